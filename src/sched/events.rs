//! What happens next: the one rule for ties, shared by the simulator and the live driver under a manual clock.
//!
//! Arrivals are streamed by the caller, never pushed: pending events are at most one completion a processor and one
//! wake-up, so what is kept stays as small as the machine. At one and the same nanosecond the order is
//!
//! 1. completions, in the order in which their batches were started,
//! 2. the wake-up,
//! 3. the arrival.
//!
//! A completion goes first so that a job that arrives at that very moment finds the processor idle, as in the textbook
//! queue where the waiting time is max(0, finish of the one before − arrival).

use crate::ids::ProcessorId;
use crate::time::Nanos;

/// What is due next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// This processor finishes.
    Finish(Nanos, ProcessorId),
    /// The wake-up.
    Wake(Nanos),
    /// The caller's next arrival.
    Arrival,
}

/// Completions and the wake-up that lie ahead, in the order in which they are to be handled.
#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    /// At most one a processor, the next one last; of equal times the one that started first is last.
    finishes: Vec<(Nanos, ProcessorId)>,
    wake: Option<Nanos>,
}

impl EventQueue {
    /// Nothing ahead.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that `processor` will finish at `at`; to be called in the order of the starts.
    pub fn finish_at(&mut self, at: Nanos, processor: ProcessorId) {
        // Sinks in from the end: among few entries, this beats any heap.
        self.finishes.push((at, processor));
        let mut place = self.finishes.len() - 1;
        while place > 0 && self.finishes[place - 1].0 <= at {
            self.finishes.swap(place - 1, place);
            place -= 1;
        }
    }

    /// Sets the one wake-up, as [`Action::WakeAt`](super::Action::WakeAt) asks.
    pub fn wake_at(&mut self, at: Nanos) {
        self.wake = Some(at);
    }

    /// When the next completion or wake-up is due, if there is one.
    #[must_use]
    pub fn peek(&self) -> Option<Nanos> {
        let finish = self.finishes.last().map(|(at, _)| *at);
        [finish, self.wake].into_iter().flatten().min()
    }

    /// Removes and gives what is due next, where the caller's next arrival is at `arrival`; `None`
    /// when nothing is left.
    pub fn pop(&mut self, arrival: Option<Nanos>) -> Option<Due> {
        let arrival_at = arrival.unwrap_or(Nanos::MAX);
        let wake_at = self.wake.unwrap_or(Nanos::MAX);
        if let Some((at, processor)) = self.finishes.last().copied()
            && at <= wake_at
            && at <= arrival_at
        {
            self.finishes.pop();
            return Some(Due::Finish(at, processor));
        }
        if let Some(at) = self.wake
            && at <= arrival_at
        {
            self.wake = None;
            return Some(Due::Wake(at));
        }
        arrival.map(|_| Due::Arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_one_time_completions_go_first_in_order_of_start_then_the_wake_up_then_the_arrival() {
        let mut queue = EventQueue::new();
        queue.finish_at(Nanos(7), ProcessorId(3));
        queue.finish_at(Nanos(7), ProcessorId(1));
        queue.finish_at(Nanos(5), ProcessorId(2));
        queue.wake_at(Nanos(7));
        assert_eq!(queue.peek(), Some(Nanos(5)));
        let arrival = Some(Nanos(7));
        let order: Vec<Due> = (0..5).filter_map(|_| queue.pop(arrival)).collect();
        let expected = [
            Due::Finish(Nanos(5), ProcessorId(2)),
            Due::Finish(Nanos(7), ProcessorId(3)),
            Due::Finish(Nanos(7), ProcessorId(1)),
            Due::Wake(Nanos(7)),
            Due::Arrival,
        ];
        assert_eq!(order, expected);
        assert_eq!(queue.pop(None), None);
    }
}
