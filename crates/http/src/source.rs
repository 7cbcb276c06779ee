//! The sources of queries: an open loop with a fixed schedule, or a closed loop of clients.

use tandem_model::base::time::Nanos;

/// A query to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// Number of the arrival.
    pub(crate) job: u32,
    /// Position in the log.
    pub(crate) query: u32,
    /// Intended start, in nanoseconds since the start of the run.
    pub(crate) intended: u64,
}

/// When the next query is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Now or earlier.
    Now,
    /// At this time.
    At(u64),
    /// After an answer.
    AfterAnswer,
    /// Never: all are sent.
    Never,
}

pub(crate) trait Source {
    /// When the next query is due, with this number of queries in flight.
    fn due(&self, now: u64, in_flight: usize) -> Due;

    /// Takes the next query, which is due.
    fn take(&mut self, now: u64) -> Option<Order>;

    /// Whether the times are a schedule, for which the client spins.
    fn is_schedule(&self) -> bool;
}

/// An open loop: arrivals with their times, which no answer changes.
#[derive(Debug)]
pub struct Open<I> {
    arrivals: I,
    next: Option<Order>,
    first: u32,
    step: u32,
}

impl<I: Iterator<Item = (Nanos, u32)>> Open<I> {
    /// The arrivals `first`, `first + step` and so on of `arrivals`.
    pub fn new(mut arrivals: I, first: usize, step: usize) -> Self {
        let skipped = first.checked_sub(1).and_then(|last| arrivals.nth(last));
        let mut open = Self { arrivals, next: None, first: first as u32, step: step as u32 };
        if first == 0 || skipped.is_some() {
            open.next = open.arrivals.next().map(|arrival| order(first as u32, arrival));
        }
        open
    }
}

fn order(job: u32, (at, query): (Nanos, u32)) -> Order {
    Order { job, query, intended: at.0 }
}

impl<I: Iterator<Item = (Nanos, u32)>> Source for Open<I> {
    fn due(&self, now: u64, _in_flight: usize) -> Due {
        match self.next {
            Some(next) if next.intended <= now => Due::Now,
            Some(next) => Due::At(next.intended),
            None => Due::Never,
        }
    }

    fn take(&mut self, _now: u64) -> Option<Order> {
        let taken = self.next?;
        self.first = taken.job + self.step;
        self.next = self.arrivals.nth(self.step as usize - 1).map(|arrival| order(self.first, arrival));
        Some(taken)
    }

    fn is_schedule(&self) -> bool {
        true
    }
}

/// A closed loop: each of some clients sends its next query when the last one is answered.
#[derive(Clone, Copy, Debug)]
pub struct Closed<'a> {
    queries: &'a [u32],
    clients: usize,
    until: u64,
    next: u32,
}

impl<'a> Closed<'a> {
    /// `clients` clients send `queries` in order, from `first` on and again from the beginning, until `until`.
    #[must_use]
    pub fn new(queries: &'a [u32], clients: usize, first: usize, until: Nanos) -> Self {
        Self { queries, clients, until: until.0, next: first as u32 }
    }
}

impl Source for Closed<'_> {
    fn due(&self, now: u64, in_flight: usize) -> Due {
        if now >= self.until || self.queries.is_empty() {
            Due::Never
        } else if in_flight < self.clients {
            Due::Now
        } else {
            Due::AfterAnswer
        }
    }

    fn take(&mut self, now: u64) -> Option<Order> {
        let query = self.queries[self.next as usize % self.queries.len()];
        let taken = Order { job: self.next, query, intended: now };
        self.next += 1;
        Some(taken)
    }

    fn is_schedule(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_an_open_loop_are_the_whole_of_it() {
        let arrivals: Vec<(Nanos, u32)> = (0..10).map(|i| (Nanos(i * 5), i as u32)).collect();
        let mut jobs: Vec<Order> = Vec::new();
        for first in 0..3 {
            let mut open = Open::new(arrivals.iter().copied(), first, 3);
            while open.due(u64::MAX, 0) == Due::Now {
                jobs.extend(open.take(0));
            }
        }
        jobs.sort_by_key(|order| order.job);
        let expected: Vec<Order> = (0..10).map(|i| Order { job: i, query: i, intended: u64::from(i) * 5 }).collect();
        assert_eq!(jobs, expected);
    }
}
