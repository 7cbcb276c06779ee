//! Waiting jobs that stand in several queues at once.
//!
//! A job of the stealing policy can be taken by priority, by age, by urgency or by a thief. Each of these orders is a
//! queue or heap of job numbers; the jobs themselves are kept here, once. Taking a job removes it here, and its entries
//! in the other orders die: they are dropped when they come to the front, or all at once when most of an order is dead
//! (lazy deletion). So an order that nobody asks stays as small as the queue it is of.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::Job;
use crate::ids::JobId;

/// The jobs that wait, by number, in a ring as long as the span of their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitingJobs {
    ring: VecDeque<Option<Job>>,
    first: u32,
    waiting: usize,
}

impl WaitingJobs {
    /// Adds a job; numbers ascend by one from call to call.
    #[inline]
    pub(super) fn insert(&mut self, job: &Job) {
        if self.ring.is_empty() {
            self.first = job.id.0;
        }
        debug_assert_eq!(job.id.index(), self.first as usize + self.ring.len(), "jobs arrive in order");
        self.ring.push_back(Some(*job));
        self.waiting += 1;
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// Those that wait, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Job> {
        self.ring.iter().flatten()
    }

    /// The job that has waited longest.
    pub(super) fn oldest(&self) -> Option<&Job> {
        // Taking a job clears the front.
        self.ring.front()?.as_ref()
    }

    /// The job, if it still waits.
    #[inline]
    pub(super) fn get(&self, id: JobId) -> Option<&Job> {
        self.ring.get(id.0.checked_sub(self.first)? as usize)?.as_ref()
    }

    /// Takes the job, if it still waits.
    #[inline]
    pub(super) fn take(&mut self, id: JobId) -> Option<Job> {
        let job = self.ring.get_mut(id.0.checked_sub(self.first)? as usize)?.take();
        self.waiting -= usize::from(job.is_some());
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
    /// So many dead entries are not worth looking for.
    const FEW: usize = 64;

    /// Adds a job, which must wait among `jobs`.
    #[inline]
    pub(super) fn push(&mut self, key: K, id: JobId, jobs: &WaitingJobs) {
        if jobs.waiting == 1 {
            // All others are dead.
            self.queue.clear();
            self.jumpers.clear();
        } else if self.queue.len() + self.jumpers.len() > 2 * jobs.waiting + Self::FEW {
            self.queue.retain(|(_, id)| jobs.get(*id).is_some());
            self.jumpers.retain(|Reverse((_, id))| jobs.get(*id).is_some());
        }
        match self.queue.back() {
            Some(last) if (key, id) < *last => self.jumpers.push(Reverse((key, id))),
            _ => self.queue.push_back((key, id)),
        }
    }

    /// The first job that still waits, with its key.
    #[inline]
    pub(super) fn first<'a>(&mut self, jobs: &'a WaitingJobs) -> Option<(K, &'a Job)> {
        loop {
            let (is_jumper, &(key, id)) = match (self.queue.front(), self.jumpers.peek()) {
                (None, None) => return None,
                (Some(queued), Some(Reverse(jumper))) if jumper < queued => (true, jumper),
                (Some(queued), _) => (false, queued),
                (None, Some(Reverse(jumper))) => (true, jumper),
            };
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
    use crate::machine::PerClass;
    use crate::time::Nanos;

    fn job(id: JobId) -> Job {
        let predicted = PerClass::default();
        Job { id, query: QueryId(0), row: 0, arrival: Nanos::ZERO, deadline: Nanos::ZERO, predicted }
    }

    #[test]
    fn an_order_gives_what_sorting_gives_without_what_has_been_taken() {
        let keys = [5, 7, 3, 7, 9, 1, 9, 4, 5, 0];
        let mut jobs = WaitingJobs::default();
        let mut order = Order::default();
        for (id, key) in (0..).map(JobId).zip(keys) {
            jobs.insert(&job(id));
            order.push(key, id, &jobs);
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

    #[test]
    fn an_order_that_nobody_asks_stays_as_small_as_what_waits() {
        let mut jobs = WaitingJobs::default();
        let mut order = Order::default();
        for id in (0..10_000).map(JobId) {
            jobs.insert(&job(id));
            // Keys that fall: all but the first jump the queue. Ten always wait.
            order.push(u32::MAX - id.0, id, &jobs);
            jobs.take(JobId(id.0.wrapping_sub(10)));
        }
        assert!(order.queue.len() + order.jumpers.len() <= 2 * 11 + Order::<u32>::FEW + 1);
        assert_eq!(order.first(&jobs).map(|(_, job)| job.id), Some(JobId(9_999)));
    }
}
