//! Waiting jobs that stand in several queues at once.
//!
//! A job of the stealing policy can be taken by priority, by age, by urgency or by a thief. Each of these orders is a
//! queue or heap of job numbers; the jobs themselves are kept here, once. Taking a job removes it here, and its entries
//! in the other orders die: they are dropped when they come to the front (lazy deletion).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::Job;
use crate::ids::JobId;

/// The jobs that wait, by number, in a ring as long as the span of their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitingJobs {
    ring: VecDeque<Option<Job>>,
    first: u32,
}

impl WaitingJobs {
    /// Adds a job; numbers ascend by one from call to call.
    pub(super) fn insert(&mut self, job: Job) {
        if self.ring.is_empty() {
            self.first = job.id.0;
        }
        debug_assert_eq!(job.id.index(), self.first as usize + self.ring.len(), "jobs arrive in order");
        self.ring.push_back(Some(job));
    }

    /// The job, if it still waits.
    pub(super) fn get(&self, id: JobId) -> Option<&Job> {
        self.ring.get(id.0.checked_sub(self.first)? as usize)?.as_ref()
    }

    /// Takes the job, if it still waits.
    pub(super) fn take(&mut self, id: JobId) -> Option<Job> {
        let job = self.ring.get_mut(id.0.checked_sub(self.first)? as usize)?.take();
        while let Some(None) = self.ring.front() {
            self.ring.pop_front();
            self.first += 1;
        }
        job
    }
}

/// One order over waiting jobs: the smallest key first, then the job that arrived first.
///
/// Jobs whose keys come in ascending order (always so for the order of arrival, and for deadlines equally far away)
/// stand in a plain queue, in constant time; only those that jump it go through a heap.
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
    pub(super) fn push(&mut self, key: K, id: JobId) {
        match self.queue.back() {
            Some(last) if (key, id) < *last => self.jumpers.push(Reverse((key, id))),
            _ => self.queue.push_back((key, id)),
        }
    }

    /// The first job that still waits, with its key.
    pub(super) fn first<'a>(&mut self, jobs: &'a WaitingJobs) -> Option<(K, &'a Job)> {
        loop {
            let queued = self.queue.front().copied();
            let jumper = self.jumpers.peek().map(|Reverse(entry)| *entry);
            let is_jumper = match (queued, jumper) {
                (Some(queued), Some(jumper)) => jumper < queued,
                (None, jumper) => jumper.is_some(),
                (Some(_), None) => false,
            };
            let (key, id) = if is_jumper { jumper } else { queued }?;
            if let Some(job) = jobs.get(id) {
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
    use crate::ids::QueryId;
    use crate::machine::PerKind;
    use crate::time::Nanos;

    #[test]
    fn an_order_gives_what_sorting_gives_without_what_has_been_taken() {
        let keys = [5, 7, 3, 7, 9, 1, 9, 4, 5, 0];
        let mut jobs = WaitingJobs::default();
        let mut order = Order::default();
        for (id, key) in (0..).map(JobId).zip(keys) {
            let predicted = PerKind::default();
            jobs.insert(Job { id, query: QueryId(0), arrival: Nanos::ZERO, deadline: Nanos::ZERO, predicted });
            order.push(key, id);
        }
        // Taken through another order: 0 and 5 first.
        jobs.take(JobId(0));
        jobs.take(JobId(5));
        let mut found = Vec::new();
        while let Some((key, id)) = order.first(&jobs).map(|(key, job)| (key, job.id)) {
            found.push((key, id.0));
            jobs.take(id);
        }
        assert_eq!(found, [(0, 9), (3, 2), (4, 7), (5, 8), (7, 1), (7, 3), (9, 4), (9, 6)]);
    }
}
