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
/// times to the deadline. Of jobs that overtake others, only those near the front go through a heap. The others lie in no
/// order, since under policies with batches most of them leave by another order. If the heap runs empty, the nearest of them
/// move to it.
#[derive(Clone, Debug)]
pub(super) struct Order<K> {
    queue: VecDeque<(K, JobId)>,
    /// Jobs that overtake others: those before `edge`, and the others.
    near: BinaryHeap<Reverse<(K, JobId)>>,
    far: Vec<(K, JobId)>,
    edge: Option<(K, JobId)>,
}

impl<K: Ord> Default for Order<K> {
    fn default() -> Self {
        Self { queue: VecDeque::new(), near: BinaryHeap::new(), far: Vec::new(), edge: None }
    }
}

impl<K: Ord + Copy> Order<K> {
    /// Up to this many dead entries are not cleaned up.
    const FEW: usize = 64;
    /// The share of the far jobs that move to the heap together: one in so many.
    const MOVED: usize = 8;

    /// Adds a job, which must wait among `jobs`.
    #[inline]
    pub(super) fn push(&mut self, key: K, id: JobId, jobs: &Jobs) {
        let waiting = jobs.num_waiting();
        if waiting == 1 {
            // All other entries are dead.
            self.look_less_far();
            self.queue.clear();
            self.near.clear();
            self.far.clear();
        } else if self.queue.len() + self.near.len() + self.far.len() > 2 * waiting + Self::FEW {
            self.look_less_far();
            self.queue.retain(|(_, id)| jobs.waiting(*id).is_some());
            self.near.retain(|Reverse((_, id))| jobs.waiting(*id).is_some());
            self.far.retain(|(_, id)| jobs.waiting(*id).is_some());
        }
        let entry = (key, id);
        match self.queue.back() {
            Some(last) if entry < *last => match self.edge {
                Some(edge) if entry < edge => self.near.push(Reverse(entry)),
                _ => self.far.push(entry),
            },
            _ => self.queue.push_back(entry),
        }
    }

    /// Gives the edge up if most of the jobs are before it, so that the next one is nearer.
    fn look_less_far(&mut self) {
        if self.near.len() > self.far.len() {
            self.far.extend(self.near.drain().map(|Reverse(entry)| entry));
            self.edge = None;
        }
    }

    /// The first of the jobs that overtake others; it may be dead.
    #[inline]
    fn jumper(&mut self, jobs: &Jobs) -> Option<(K, JobId)> {
        if self.near.is_empty() && !self.far.is_empty() {
            self.approach(jobs);
        }
        self.near.peek().map(|Reverse(first)| *first)
    }

    /// Moves the nearest of the far jobs to the heap: a share of them, so that each job pays for a constant number of others.
    #[cold]
    fn approach(&mut self, jobs: &Jobs) {
        self.far.retain(|(_, id)| jobs.waiting(*id).is_some());
        let moved = (self.far.len() / Self::MOVED).max(Self::FEW).min(self.far.len());
        if moved > 0 {
            self.edge = Some(*self.far.select_nth_unstable(moved - 1).1);
            self.near.extend(self.far.drain(..moved).map(Reverse));
        }
    }

    /// Drops the first entry, which [`first`](Self::first) has just returned, since its job is about to run.
    #[inline]
    pub(super) fn pop(&mut self) {
        match (self.queue.front(), self.near.peek()) {
            (Some(queued), Some(Reverse(jumper))) if jumper < queued => drop(self.near.pop()),
            (None, _) => drop(self.near.pop()),
            (Some(_), _) => drop(self.queue.pop_front()),
        }
    }

    /// The [first](Self::first) job if its key is at most `until`. Usually it is not, and then no job is looked at.
    #[inline]
    pub(super) fn first_until<'a>(&mut self, until: K, jobs: &'a Jobs) -> Option<&'a Job> {
        let queued = self.queue.front().is_some_and(|(key, _)| *key <= until);
        if !queued && self.jumper(jobs).is_none_or(|(key, _)| key > until) {
            return None;
        }
        self.first(jobs).filter(|(key, _)| *key <= until).map(|(_, job)| job)
    }

    /// The first job that still waits, with its key.
    #[inline]
    pub(super) fn first<'a>(&mut self, jobs: &'a Jobs) -> Option<(K, &'a Job)> {
        loop {
            let (is_jumper, (key, id)) = match (self.queue.front().copied(), self.jumper(jobs)) {
                (None, None) => return None,
                (Some(queued), Some(jumper)) if jumper < queued => (true, jumper),
                (Some(queued), _) => (false, queued),
                (None, Some(jumper)) => (true, jumper),
            };
            if let Some(job) = jobs.waiting(id) {
                return Some((key, job));
            }
            if is_jumper {
                self.near.pop();
            } else {
                self.queue.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::base::ids::QueryId;
    use crate::base::machine::PerClass;
    use crate::base::time::Nanos;

    fn job(id: JobId) -> Job {
        let predicted = PerClass::default();
        Job { id, query: QueryId(0), row: 0, priority: 0, arrival: Nanos::ZERO, deadline: Nanos::ZERO, predicted }
    }

    proptest! {
        /// Steps: a job arrives, the first one starts, or several others start at once, as a batch.
        #[test]
        fn an_order_gives_what_sorting_gives_without_what_has_been_taken(
            steps in prop::collection::vec((0..8_u8, 0..2000_u32, any::<prop::sample::Index>()), 0..3000),
        ) {
            let (mut jobs, mut order) = (Jobs::default(), Order::default());
            let mut sorted = BTreeSet::new();
            for (step, key, which) in steps {
                let first = order.first(&jobs).map(|(key, job)| (key, job.id));
                prop_assert_eq!(first, sorted.first().copied());
                match (step, first) {
                    (0, Some(taken)) => {
                        order.pop();
                        jobs.start(taken.1);
                        sorted.remove(&taken);
                    }
                    (1, Some(_)) if key < 60 => {
                        let oldest: BTreeSet<JobId> = sorted.iter().map(|entry| entry.1).collect();
                        let batch: Vec<JobId> = oldest.into_iter().take(1 + which.index(sorted.len())).collect();
                        for &id in &batch {
                            jobs.start(id);
                        }
                        sorted.retain(|entry| !batch.contains(&entry.1));
                    }
                    _ => {
                        let id = jobs.next_id();
                        jobs.arrive(Nanos::ZERO, job);
                        order.push(key, id, &jobs);
                        sorted.insert((key, id));
                    }
                }
            }
        }
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
        assert!(order.queue.len() + order.near.len() + order.far.len() <= 2 * 11 + Order::<u32>::FEW + 1);
        assert_eq!(order.first(&jobs).map(|(_, job)| job.id), Some(JobId(9_999)));
    }
}
