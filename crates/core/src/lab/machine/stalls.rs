//! Frequency and duration of stalls: a thread on each core reads the clock in a loop.
//!
//! ```text
//!   looks   | | | | | | |            | | | | | |     a gap much longer than a look: the core did something else
//! ```
//!
//! The cores of all lanes and of the driver run the loop at once, as in a live run. For the driver, only gaps above
//! [`Round::INTERRUPTED`] count, because shorter ones are part of the measured rounds. Stalls of milliseconds may come
//! only a few times per second, so that the loop runs for seconds.

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use super::fit::rounded;
use crate::base::quantile::nearest_rank;
use crate::cost::machine_file::{Quantile, Stalls};
use crate::live::Round;
use crate::search::cpu::multicore::Cores;

/// Duration of the loop on each core.
const LOOK: Duration = Duration::from_secs(3);
/// Shorter gaps are the normal time of a look.
const SHORTEST_US: f64 = 2.0;
const SHARES: [f64; 9] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0];

/// Stalls of the cores.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Taken {
    pub(super) lanes: Stalls,
    pub(super) driver: Stalls,
}

/// Measures the driver's core and up to `threads` lane cores at once.
pub(super) fn measure(threads: usize) -> Taken {
    let cores = Cores::of_this_machine();
    let threads = threads.min(cores.len().saturating_sub(1)).max(1);
    // On a single core two threads would stall each other.
    let looks_both = cores.len() > 1;
    let barrier = Arc::new(Barrier::new(threads + usize::from(looks_both)));
    std::thread::scope(|scope| {
        let look_on = |core: usize| {
            let (cores, barrier) = (&cores, Arc::clone(&barrier));
            scope.spawn(move || {
                cores.pin(core);
                barrier.wait();
                look()
            })
        };
        // The driver has the first core.
        let driver = looks_both.then(|| look_on(0));
        let lanes: Vec<_> = (0..threads).map(|i| look_on(1 + i)).collect();
        let lanes: Vec<f64> = lanes.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect();
        let lanes_look = LOOK * threads as u32;
        let driver = match driver {
            Some(driver) => stalls_of(driver.join().unwrap_or_default(), LOOK, DRIVERS_SHORTEST_US),
            None => stalls_of(lanes.clone(), lanes_look, DRIVERS_SHORTEST_US),
        };
        Taken { lanes: stalls_of(lanes, lanes_look, SHORTEST_US), driver }
    })
}

/// Shorter gaps of the driver are part of its measured rounds.
const DRIVERS_SHORTEST_US: f64 = Round::INTERRUPTED.0 as f64 / 1e3;

/// The stalls among the `gaps` of a loop of duration `look`: those of at least `shortest_us`.
fn stalls_of(mut gaps: Vec<f64>, look: Duration, shortest_us: f64) -> Stalls {
    gaps.retain(|&us| us >= shortest_us);
    gaps.sort_by(f64::total_cmp);
    // The rate refers to the time outside stalls.
    let left_s = look.as_secs_f64() - gaps.iter().sum::<f64>() / 1e6;
    let per_s = rounded(gaps.len() as f64 / left_s.max(look.as_secs_f64() / 100.0));
    let quantile = |&share: &f64| Some(Quantile { share, value: nearest_rank(&gaps, share)? });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_counted_over_the_time_that_they_leave() {
        // A second has 20 gaps of 10 ms, and 980 that are short enough to be part of rounds.
        let gaps: Vec<f64> = (0..1000).map(|i| if i % 50 == 0 { 10_000.0 } else { 5.0 }).collect();
        let second = Duration::from_secs(1);
        let driver = stalls_of(gaps.clone(), second, DRIVERS_SHORTEST_US);
        assert_eq!((driver.per_s, driver.us.len()), (25.0, SHARES.len()));
        assert!(driver.us.iter().all(|point| point.value == 10_000.0));
        let lanes = stalls_of(gaps, second, SHORTEST_US);
        assert!((lanes.per_s - 1000.0 / 0.7951).abs() < 1e-3, "{lanes:?}");
        assert_eq!((lanes.us[2].value, lanes.us[8].value), (5.0, 10_000.0));
        // Without gaps there are no stalls.
        assert_eq!(stalls_of(Vec::new(), second, SHORTEST_US), Stalls::default());
    }
}
