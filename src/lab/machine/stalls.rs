//! How often a core is taken away, and for how long: a thread on each looks at the clock and nothing else.
//!
//! ```text
//!   looks   | | | | | | |            | | | | | |     a gap much longer than a look: the core did something else
//! ```

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use crate::cost::machine_file::{Quantile, Stalls};
use crate::exec::cpu::multicore::Cores;
use crate::quantile::nearest_rank;

/// How long each core looks.
const LOOK: Duration = Duration::from_millis(500);
/// Gaps shorter than this are looks.
const SHORTEST_US: f64 = 2.0;
/// The quantiles that are kept.
const SHARES: [f64; 9] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0];

/// Looks on all cores of this machine, as many as `threads` of them at once.
pub(super) fn measure(threads: usize) -> Stalls {
    let cores = Cores::of_this_machine();
    let threads = threads.min(cores.len().saturating_sub(1)).max(1);
    let barrier = Arc::new(Barrier::new(threads));
    let mut us: Vec<f64> = std::thread::scope(|scope| {
        let looking: Vec<_> = (0..threads)
            .map(|i| {
                let (cores, barrier) = (&cores, Arc::clone(&barrier));
                scope.spawn(move || {
                    // The driver's core is the first.
                    cores.pin(1 + i);
                    barrier.wait();
                    look()
                })
            })
            .collect();
        looking.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    us.sort_by(f64::total_cmp);
    let per_s = us.len() as f64 / (threads as f64 * LOOK.as_secs_f64());
    let quantile = |&share: &f64| Some(Quantile { share, value: nearest_rank(&us, share)? });
    Stalls { per_s, us: SHARES.iter().filter_map(quantile).collect() }
}

/// The gaps that one core sees, in microseconds.
fn look() -> Vec<f64> {
    let began = Instant::now();
    let mut gaps = Vec::with_capacity(1 << 16);
    let mut last = began;
    loop {
        let now = Instant::now();
        let us = (now - last).as_secs_f64() * 1e6;
        if us >= SHORTEST_US {
            gaps.push(us);
        }
        last = now;
        if now - began >= LOOK {
            return gaps;
        }
    }
}
