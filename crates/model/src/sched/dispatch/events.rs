//! The queue of events and the one rule for ties, shared by the simulator and the live driver under a manual clock.
//!
//! The caller streams arrivals and never pushes them. Pending events are at most one wake-up and, per lane, as many
//! completions as the lane is deep. Events at the same nanosecond are ordered:
//!
//! 1. completions, in the order in which their batches were started,
//! 2. the wake-up,
//! 3. the arrival.
//!
//! Completions go first so that a job that arrives at that moment finds the processor idle. This matches the textbook queue,
//! whose waiting time is max(0, finish of the previous job − arrival).

use crate::base::ids::ProcessorId;
use crate::base::time::Nanos;

/// The next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// This processor finishes a batch.
    Finish(Nanos, ProcessorId),
    /// The wake-up.
    Wake(Nanos),
    /// The caller's next arrival.
    Arrival,
}

/// Pending completions and the pending wake-up, in the order in which they are handled.
#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    /// Completions by ascending time; equal times are in order of start. Entries before `first` have been handled.
    finishes: Vec<(Nanos, ProcessorId)>,
    first: usize,
    wake: Option<Nanos>,
}

impl EventQueue {
    /// Handled completions that are kept before the memory is reclaimed.
    const MOST_HANDLED: usize = 256;
    /// Up to this many pending completions, insertion is linear.
    const FEW: usize = 12;

    /// An empty queue.
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that `processor` will finish at `at`. Calls must be in the order of starts.
    #[inline]
    pub fn finish_at(&mut self, at: Nanos, processor: ProcessorId) {
        if self.first == self.finishes.len() {
            self.finishes.clear();
            self.first = 0;
            self.finishes.push((at, processor));
            return;
        }
        if self.first > Self::MOST_HANDLED {
            self.finishes.drain(..self.first);
            self.first = 0;
        }
        // The latest start usually finishes last. With few lanes, insertion from the end is faster than a heap.
        self.finishes.push((at, processor));
        let ahead = &mut self.finishes[self.first..];
        let mut place = ahead.len() - 1;
        if place > Self::FEW {
            // With many pending, a binary search finds the place, and one copy moves the rest.
            let found = ahead[..place].partition_point(|(before, _)| *before <= at);
            ahead.copy_within(found..place, found + 1);
            place = found;
        }
        while place > 0 && ahead[place - 1].0 > at {
            ahead[place] = ahead[place - 1];
            place -= 1;
        }
        ahead[place] = (at, processor);
    }

    /// Moves the completion of `processor`, its only one, to `at`.
    #[inline]
    pub fn move_to(&mut self, at: Nanos, processor: ProcessorId) {
        let ahead = &self.finishes[self.first..];
        if let Some(place) = ahead.iter().position(|&(_, of)| of == processor) {
            self.finishes.remove(self.first + place);
            self.finish_at(at, processor);
        }
    }

    /// Delays the completions of `processor` that are due between `from` and `until` to `until`.
    pub fn hold(&mut self, processor: ProcessorId, from: Nanos, until: Nanos) {
        let ahead = &mut self.finishes[self.first..];
        let is_held = |&(at, of): &(Nanos, ProcessorId)| of == processor && from < at && at < until;
        let Some(first) = ahead.iter().position(is_held) else { return };
        let end = first + ahead[first..].partition_point(|&(at, _)| at <= until);
        // Completions that stay go before delayed ones; both keep their order.
        ahead[first..end].sort_by_key(is_held);
        for held in ahead[first..end].iter_mut().filter(|held| is_held(held)) {
            held.0 = until;
        }
    }

    #[must_use]
    #[inline]
    pub(crate) fn next_finish(&self) -> Option<(Nanos, ProcessorId)> {
        self.finishes.get(self.first).copied()
    }

    /// Removes the next completion, which must exist.
    #[inline]
    pub(crate) fn pop_finish(&mut self) {
        self.first += 1;
    }

    /// Sets the wake-up, as [`Action::WakeAt`](super::Action::WakeAt) asks.
    #[inline]
    pub fn wake_at(&mut self, at: Nanos) {
        self.wake = Some(at);
    }

    /// When the next completion or wake-up is due, if any.
    #[must_use]
    #[inline]
    pub fn peek(&self) -> Option<Nanos> {
        let finish = self.finishes.get(self.first).map(|(at, _)| *at);
        match (finish, self.wake) {
            (Some(finish), Some(wake)) => Some(finish.min(wake)),
            (finish, wake) => finish.or(wake),
        }
    }

    /// Removes and returns the next event that is due by `until`, if any. The caller's next arrival is at `arrival`.
    #[inline]
    pub fn pop(&mut self, arrival: Option<Nanos>, until: Nanos) -> Option<Due> {
        let arrival_at = arrival.unwrap_or(Nanos::MAX);
        let wake_at = self.wake.unwrap_or(Nanos::MAX);
        if let Some(&(at, processor)) = self.finishes.get(self.first)
            && at <= wake_at
            && at <= arrival_at
        {
            if at > until {
                return None;
            }
            self.first += 1;
            return Some(Due::Finish(at, processor));
        }
        if self.wake.is_some() && wake_at <= arrival_at {
            if wake_at > until {
                return None;
            }
            self.wake = None;
            return Some(Due::Wake(wake_at));
        }
        (arrival.is_some() && arrival_at <= until).then_some(Due::Arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_precede_wake_ups_and_arrivals_at_one_time() {
        let mut queue = EventQueue::new();
        queue.finish_at(Nanos(7), ProcessorId(3));
        queue.finish_at(Nanos(7), ProcessorId(1));
        queue.finish_at(Nanos(5), ProcessorId(2));
        queue.wake_at(Nanos(7));
        assert_eq!(queue.peek(), Some(Nanos(5)));
        let arrival = Some(Nanos(7));
        assert_eq!(queue.pop(arrival, Nanos(4)), None);
        let order: Vec<Due> = (0..5).filter_map(|_| queue.pop(arrival, Nanos(7))).collect();
        let expected = [
            Due::Finish(Nanos(5), ProcessorId(2)),
            Due::Finish(Nanos(7), ProcessorId(3)),
            Due::Finish(Nanos(7), ProcessorId(1)),
            Due::Wake(Nanos(7)),
            Due::Arrival,
        ];
        assert_eq!(order, expected);
        assert_eq!(queue.pop(None, Nanos::MAX), None);
    }

    #[test]
    fn held_back_batches_finish_together() {
        let mut queue = EventQueue::new();
        for (at, processor) in [(3, 1), (5, 1), (6, 2), (7, 1), (8, 2), (9, 1), (9, 2)] {
            queue.finish_at(Nanos(at), ProcessorId(processor));
        }
        queue.hold(ProcessorId(1), Nanos(3), Nanos(8));
        let left: Vec<(u64, u32)> = std::iter::from_fn(|| queue.pop(None, Nanos::MAX))
            .map(|due| match due {
                Due::Finish(at, processor) => (at.0, processor.0),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(left, [(3, 1), (6, 2), (8, 2), (8, 1), (8, 1), (9, 1), (9, 2)]);
        queue.finish_at(Nanos(30), ProcessorId(1));
        queue.finish_at(Nanos(40), ProcessorId(2));
        queue.move_to(Nanos(25), ProcessorId(2));
        assert_eq!(queue.pop(None, Nanos::MAX), Some(Due::Finish(Nanos(25), ProcessorId(2))));
        assert_eq!(queue.pop(None, Nanos::MAX), Some(Due::Finish(Nanos(30), ProcessorId(1))));
        // The processor has no pending completion.
        queue.finish_at(Nanos(20), ProcessorId(2));
        queue.hold(ProcessorId(1), Nanos(3), Nanos(30));
        assert_eq!(queue.peek(), Some(Nanos(20)));
    }
}
