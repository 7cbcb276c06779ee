//! Observation of [pauses](tandem_model::cost::machine_profile::pauses): a thread on each core reads the clock all the time.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use tandem_engine::search::cpu::multicore::Cores;
use tandem_model::cost::machine_profile::{LEAST_PAUSE, Pauses};

/// Duration of an observation.
const LASTS: Duration = Duration::from_secs(6);

/// The pauses of the cores of the dispatcher and of this number of lanes, over six seconds. A machine with fewer cores shows
/// those that it has. If that leaves no core free, the pauses are observed again with one free core: on the GPU machines of
/// the record, cores paused a third as often then. Lanes whose threads wait on these cores would be seen as pauses: call it
/// before they start.
#[must_use]
pub fn observe_pauses(lanes: usize) -> Pauses {
    let machine = Cores::of_this_machine();
    let used = (1 + lanes).clamp(1, machine.len());
    let is_full = used == machine.len() && used > 2;
    Pauses {
        observed_us: LASTS.as_micros() as u32,
        cores: of_cores(&machine, used),
        cores_beside_free: if is_full { of_cores(&machine, used - 1) } else { Vec::new() },
    }
}

/// The pauses of the first cores, observed at once.
fn of_cores(machine: &Cores, count: usize) -> Vec<Vec<(u32, u32)>> {
    let start = Barrier::new(count);
    std::thread::scope(|scope| {
        let watch = |core| {
            machine.pin(core);
            start.wait();
            pauses_of_this_thread()
        };
        let threads: Vec<_> = (0..count).map(|core| scope.spawn(move || watch(core))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    })
}

/// Starts and durations of the gaps between two readings of the clock, in microseconds.
fn pauses_of_this_thread() -> Vec<(u32, u32)> {
    let (start, end) = (Instant::now(), LASTS.as_nanos() as u64);
    let mut pauses = Vec::new();
    let mut before = 0;
    while before < end {
        let now = start.elapsed().as_nanos() as u64;
        if now - before >= LEAST_PAUSE.0 {
            pauses.push(((before / 1000) as u32, ((now.min(end) - before) / 1000) as u32));
        }
        before = now;
    }
    pauses
}
