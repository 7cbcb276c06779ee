//! Stalls of the dispatcher's core, independent of what the dispatcher does.
//!
//! A core is taken away from a working and from a waiting dispatcher alike. So stalls are a Poisson process in simulated time,
//! one after another. A dispatcher with little work meets few of them:
//!
//! ```text
//!   stalls       |###|            |#####|          |##|
//!   could        [round ]     [round ]                    [round ]
//!   does         ....[round ] [rou.......nd ]             [round ]
//! ```
//!
//! A round that could begin during a stall begins at its end, with all events until then. A round under way is prolonged by
//! the stall. Each stall is drawn from the previous one, so a run has the same stalls in every simulator.

use super::draws::value_at;
use super::{Quantile, Stalls};
use crate::base::random::{NodeSeed, Purpose, ln, mix};
use crate::base::time::Nanos;

/// Step from the bits of one draw to the next.
const STEP: u64 = 0x5851_F42D_4C95_7F2D;
/// A longer time since the last stall, in mean gaps, skips the stalls between.
const FAR: f64 = 4e6;

/// Frequency and lengths of stalls of the dispatcher's core, from [`Stalls`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DispatcherStalls {
    /// Mean time from the end of a stall to the next one; 0 without stalls.
    gap_ns: f64,
    us: Vec<Quantile>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stall {
    from: Nanos,
    until: Nanos,
    /// The random bits of the next stall.
    bits: u64,
}

/// The stalls of a run, in order of time.
#[derive(Clone, Debug)]
pub struct StallClock {
    stalls: DispatcherStalls,
    /// The first stall that is not over.
    next: Stall,
}

impl DispatcherStalls {
    pub(super) fn new(file: &Stalls) -> Self {
        let gap_ns = if file.per_s > 0.0 && !file.us.is_empty() { 1e9 / file.per_s } else { 0.0 };
        Self { gap_ns, us: file.us.clone() }
    }

    /// The stalls of a node in a run, the same at every rate and under every policy.
    #[must_use]
    pub fn of_run(&self, seed: NodeSeed) -> StallClock {
        let bits = seed.stream(Purpose::DispatcherStalls, 0).bits();
        StallClock { next: self.after(Nanos::ZERO, bits), stalls: self.clone() }
    }

    fn after(&self, end: Nanos, bits: u64) -> Stall {
        if self.gap_ns == 0.0 {
            return Stall { from: Nanos::MAX, until: Nanos::MAX, bits };
        }
        let gap_ns = -ln(1.0 - unit(bits)) * self.gap_ns;
        // Two stalls never overlap.
        let from = end + Nanos(1) + Nanos(gap_ns as u64);
        let bits = mix(bits ^ STEP);
        let lasts_us = value_at(&self.us, unit(bits)).unwrap_or(0.0);
        Stall { from, until: from + Nanos::from_us(lasts_us), bits: mix(bits ^ STEP) }
    }

    /// When a round begins that could begin at `at`, and the first stall that is not over then. `next` is the first stall that
    /// may not be over.
    #[cold]
    fn begin(&self, mut next: Stall, at: Nanos) -> (Nanos, Stall) {
        if at == Nanos::MAX {
            return (at, next);
        }
        if at.since(next.until).0 as f64 > FAR * self.gap_ns {
            next = self.after(at, next.bits);
        }
        while next.until <= at {
            next = self.after(next.until, next.bits);
        }
        if at < next.from { (at, next) } else { (next.until, self.after(next.until, next.bits)) }
    }

    /// When a round ends that would end at `at`, and the first stall that is not over then.
    #[cold]
    fn end(&self, mut next: Stall, mut at: Nanos) -> (Nanos, Stall) {
        while next.from <= at && at < Nanos::MAX {
            at += next.until.since(next.from);
            next = self.after(next.until, next.bits);
        }
        (at, next)
    }
}

impl StallClock {
    /// When a round begins that could begin at `at`: at once, or at the end of the stall at that time.
    #[must_use]
    #[inline(always)]
    pub fn begin_at(&self, at: Nanos) -> Nanos {
        if at < self.next.from { at } else { self.stalls.begin(self.next, at).0 }
    }

    /// The begin of a round, as [`begin_at`](Self::begin_at), which also forgets earlier stalls. `at` is no earlier than the
    /// end of the last round.
    #[inline(always)]
    pub fn begin(&mut self, at: Nanos) -> Nanos {
        if at < self.next.from {
            return at;
        }
        let (begin, next) = self.stalls.begin(self.next, at);
        self.next = next;
        begin
    }

    /// When the last begun round ends, if it would end at `at` without stalls.
    #[must_use]
    #[inline(always)]
    pub fn end(&mut self, at: Nanos) -> Nanos {
        if at < self.next.from {
            return at;
        }
        let (end, next) = self.stalls.end(self.next, at);
        self.next = next;
        end
    }
}

#[inline]
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: NodeSeed = NodeSeed { seed: 7, node: 0 };

    fn stalls(per_s: f64, points: &[(f64, f64)]) -> DispatcherStalls {
        let us = points.iter().map(|&(share, value)| Quantile { share, value }).collect();
        DispatcherStalls::new(&Stalls { per_s, us })
    }

    /// Begin and end of the first `count` stalls of a run.
    fn first(stalls: &DispatcherStalls, seed: NodeSeed, count: usize) -> Vec<(Nanos, Nanos)> {
        let first = stalls.of_run(seed).next;
        let all = std::iter::successors(Some(first), |stall| Some(stalls.after(stall.until, stall.bits)));
        all.take(count).map(|stall| (stall.from, stall.until)).collect()
    }

    #[test]
    fn they_come_as_often_and_last_as_long_as_they_should() {
        let stalls = stalls(200.0, &[(0.0, 100.0), (0.9, 100.0), (0.9, 3000.0), (1.0, 3000.0)]);
        let all = first(&stalls, FIRST, 20_000);
        let lasted: u64 = all.iter().map(|(from, until)| until.since(*from).0).sum();
        let gaps: Vec<f64> = all.windows(2).map(|two| two[1].0.since(two[0].1).as_ms()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
        // Gaps are exponential with mean 5 ms, so their mean square is twice the squared mean. A tenth lasts 3 ms, the others
        // a tenth of that.
        assert!((mean - 5.0).abs() < 0.15 && (square / (mean * mean) - 2.0).abs() < 0.15, "{mean}, {square}");
        assert!((lasted as f64 / 20_000.0 / 390e3 - 1.0).abs() < 0.05, "{lasted}");
        // Other seeds and nodes have other stalls; equal ones have equal stalls.
        assert_eq!(first(&stalls, FIRST, 3), all[..3]);
        for other in [NodeSeed { seed: 8, ..FIRST }, NodeSeed { node: 1, ..FIRST }] {
            assert_ne!(first(&stalls, other, 1)[0], all[0]);
        }
    }

    #[test]
    fn a_round_begins_after_a_stall_and_ends_later_by_those_on_its_way() {
        let stalls = stalls(1000.0, &[(1.0, 40.0)]);
        let all = first(&stalls, FIRST, 3);
        let [(from, until), (second, second_until), (third, _)] = all[..] else { panic!("{all:?}") };
        let mut clock = stalls.of_run(FIRST);
        assert_eq!(
            [Nanos(from.0 - 1), from, Nanos(until.0 - 1), until].map(|at| clock.begin_at(at)),
            [Nanos(from.0 - 1), until, until, until]
        );
        // Asking forgets nothing; after it the first stall is over.
        assert_eq!(
            (clock.begin(Nanos(from.0 - 10)), clock.end(Nanos(from.0 - 5))),
            (Nanos(from.0 - 10), Nanos(from.0 - 5))
        );
        assert_eq!(clock.end(from + Nanos(5)), until + Nanos(5));
        assert_eq!((clock.begin(until + Nanos(5)), clock.begin_at(from)), (until + Nanos(5), from));
        // The round spans both remaining stalls, from before the second until after the third.
        assert_eq!(clock.begin(Nanos(second.0 - 1)), Nanos(second.0 - 1));
        let work = third.since(second_until) + Nanos(10);
        assert_eq!(clock.end(Nanos(second.0 - 1) + work), Nanos(second.0 - 1) + work + Nanos(80_000));
    }

    #[test]
    fn asked_late_or_often_they_are_the_same() {
        let stalls = stalls(5000.0, &[(0.0, 20.0), (1.0, 300.0)]);
        let (mut often, mut late) = (stalls.of_run(FIRST), stalls.of_run(FIRST));
        let (mut at, mut now) = (Nanos::ZERO, Nanos::ZERO);
        for i in 0..2000 {
            at += Nanos(mix(i) % 700_000);
            // One clock looks at every microsecond before, like an idle driver; the other only when it must.
            let looks = (0..=20).map(|us| Nanos(at.0.saturating_sub(20_000) + us * 1000));
            let begin = late.begin(at);
            now = looks.fold(now, |now, look| often.begin(now.max(look)));
            assert_eq!(now, begin);
            at = begin;
        }
        assert_eq!(often.next, late.next);
    }

    #[test]
    fn none_come_where_none_are_told_and_time_may_end() {
        for stalls in [DispatcherStalls::default(), stalls(0.0, &[(1.0, 5.0)]), stalls(5.0, &[])] {
            let mut clock = stalls.of_run(FIRST);
            let at = Nanos(u64::MAX / 2);
            assert_eq!((clock.begin_at(at), clock.begin(at), clock.end(at)), (at, at, at));
            assert_eq!((clock.begin(Nanos::MAX), clock.end(Nanos::MAX)), (Nanos::MAX, Nanos::MAX));
        }
        let mut clock = stalls(1e6, &[(1.0, 0.1)]).of_run(FIRST);
        assert!(clock.begin(Nanos(u64::MAX / 2)) < Nanos(u64::MAX / 2 + 1000));
        assert_eq!((clock.begin(Nanos::MAX), clock.end(Nanos::MAX)), (Nanos::MAX, Nanos::MAX));
    }
}
