//! Orders over waiting jobs; a job is in several of them at once.
//!
//! The stealing policy takes a job by priority, by age, by urgency or by theft. Each of these orders is a queue or heap of job
//! numbers. Once a job [waits](Jobs) no more, its entries in the other orders are dead. They are dropped at the front, or all
//! at once when most of an order is dead (lazy deletion). An order that is never asked therefore stays as small as the waiting
//! jobs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::{Job, Jobs};
use crate::base::ids::JobId;

/// One order over waiting jobs: the smallest key first; ties go to the job that arrived first.
///
/// Jobs whose keys ascend are in a plain queue, in constant time. This always holds for the order of arrival, and for equal
/// times to the deadline. Only jobs that overtake others go through a heap.
#[derive(Clone, Debug)]
pub(super) struct Order<K> {
    queue: VecDeque<(K, JobId)>,
    jumpers: BinaryHeap<Reverse<(K, JobId)>>,
}

impl<K: Ord> Default for Order<K> {
    fn default() -> Self {
        Self { queue: VecDeque::new(), jumpers: BinaryHeap::new() }
    }
}

impl<K: Ord + Copy> Order<K> {
    /// Up to this many dead entries are not cleaned up.
    const FEW: usize = 64;

    /// Adds a job, which must wait among `jobs`.
    #[inline]
    pub(super) fn push(&mut self, key: K, id: JobId, jobs: &Jobs) {
        let waiting = jobs.num_waiting();
        if waiting == 1 {
            // All other entries are dead.
            self.queue.clear();
            self.jumpers.clear();
        } else if self.queue.len() + self.jumpers.len() > 2 * waiting + Self::FEW {
            self.queue.retain(|(_, id)| jobs.waiting(*id).is_some());
            self.jumpers.retain(|Reverse((_, id))| jobs.waiting(*id).is_some());
        }
        match self.queue.back() {
            Some(last) if (key, id) < *last => self.jumpers.push(Reverse((key, id))),
            _ => self.queue.push_back((key, id)),
        }
    }

    /// Drops the first entry, which [`first`](Self::first) has just returned, since its job is about to run.
    #[inline]
    pub(super) fn pop(&mut self) {
        match (self.queue.front(), self.jumpers.peek()) {
            (Some(queued), Some(Reverse(jumper))) if jumper < queued => drop(self.jumpers.pop()),
            (None, _) => drop(self.jumpers.pop()),
            (Some(_), _) => drop(self.queue.pop_front()),
        }
    }

    /// The [first](Self::first) job if its key is at most `until`. Usually it is not, and then no job is looked at.
    #[inline]
    pub(super) fn first_until<'a>(&mut self, until: K, jobs: &'a Jobs) -> Option<&'a Job> {
        let queued = self.queue.front().is_some_and(|(key, _)| *key <= until);
        if !queued && self.jumpers.peek().is_none_or(|Reverse((key, _))| *key > until) {
            return None;
        }
        self.first(jobs).filter(|(key, _)| *key <= until).map(|(_, job)| job)
    }

    /// The first job that still waits, with its key.
    #[inline]
    pub(super) fn first<'a>(&mut self, jobs: &'a Jobs) -> Option<(K, &'a Job)> {
        loop {
            let (is_jumper, &(key, id)) = match (self.queue.front(), self.jumpers.peek()) {
                (None, None) => return None,
                (Some(queued), Some(Reverse(jumper))) if jumper < queued => (true, jumper),
                (Some(queued), _) => (false, queued),
                (None, Some(Reverse(jumper))) => (true, jumper),
            };
            if let Some(job) = jobs.waiting(id) {
                return Some((key, job));
            }
            if is_jumper {
                self.jumpers.pop();
            } else {
                self.queue.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::QueryId;
    use crate::base::machine::PerClass;
    use crate::base::time::Nanos;

    fn job(id: JobId) -> Job {
        let predicted = PerClass::default();
        Job { id, query: QueryId(0), row: 0, priority: 0, arrival: Nanos::ZERO, deadline: Nanos::ZERO, predicted }
    }

    #[test]
    fn an_order_equals_sorting_without_taken_jobs() {
        let keys = [5, 7, 3, 7, 9, 1, 9, 4, 5, 0];
        let mut jobs = Jobs::default();
        let mut order = Order::default();
        for (id, key) in (0..).map(JobId).zip(keys) {
            jobs.arrive(Nanos::ZERO, job);
            order.push(key, id, &jobs);
        }
        // Jobs 0 and 5 leave through another order.
        jobs.start(JobId(0));
        jobs.start(JobId(5));
        let mut found = Vec::new();
        while let Some((key, id)) = order.first(&jobs).map(|(key, job)| (key, job.id)) {
            found.push((key, id.0));
            jobs.start(id);
        }
        assert_eq!(found, [(0, 9), (3, 2), (4, 7), (5, 8), (7, 1), (7, 3), (9, 4), (9, 6)]);
    }

    #[test]
    fn an_order_is_cleaned_only_when_most_of_it_is_dead() {
        let mut jobs = Jobs::default();
        let mut order = Order::default();
        let mut push = |jobs: &mut Jobs, ids: std::ops::Range<u32>| {
            for id in ids.map(JobId) {
                jobs.arrive(Nanos::ZERO, job);
                order.push(0, id, jobs);
            }
            order.queue.len()
        };
        let leave = |jobs: &mut Jobs, ids: std::ops::Range<u32>| {
            for id in ids.map(JobId) {
                jobs.start(id);
            }
        };
        assert_eq!(push(&mut jobs, 0..300), 300);
        leave(&mut jobs, 0..150);
        // Half is dead: cleaning up now would cost each push as much as all that wait.
        assert_eq!(push(&mut jobs, 300..301), 301);
        leave(&mut jobs, 150..200);
        assert_eq!(push(&mut jobs, 301..302), 102);
    }

    #[test]
    fn an_order_that_nobody_asks_stays_as_small_as_what_waits() {
        let mut jobs = Jobs::default();
        let mut order = Order::default();
        for id in (0..10_000).map(JobId) {
            jobs.arrive(Nanos::ZERO, job);
            // Keys fall, so all but the first overtake the queue. Ten always wait.
            order.push(u32::MAX - id.0, id, &jobs);
            if let Some(old) = id.0.checked_sub(10) {
                jobs.start(JobId(old));
            }
        }
        assert!(order.queue.len() + order.jumpers.len() <= 2 * 11 + Order::<u32>::FEW + 1);
        assert_eq!(order.first(&jobs).map(|(_, job)| job.id), Some(JobId(9_999)));
    }
}
