//! Observation of [pauses](crate::cost::machine_profile::pauses): a thread on each core reads the clock all the time.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::cost::machine_profile::{LEAST_PAUSE, Pauses};
use crate::search::cpu::multicore::Cores;

/// Duration of the observation.
const LASTS: Duration = Duration::from_secs(9);

/// The pauses of the cores of the dispatcher and of this number of lanes, over nine seconds. A machine with fewer cores shows
/// those that it has. Lanes whose threads wait on these cores would be seen as pauses: call it before they start.
#[must_use]
pub fn observe_pauses(lanes: usize) -> Pauses {
    let machine = Cores::of_this_machine();
    let threads = (1 + lanes).min(machine.len()).max(1);
    let start = Barrier::new(threads);
    let cores = std::thread::scope(|scope| {
        let watch = |core| {
            machine.pin(core);
            start.wait();
            pauses_of_this_thread()
        };
        let threads: Vec<_> = (0..threads).map(|core| scope.spawn(move || watch(core))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    Pauses { observed_us: LASTS.as_micros() as u32, cores }
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
