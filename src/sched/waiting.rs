//! Waiting jobs that stand in several queues at once.
//!
//! A job of the stealing policy can be taken by priority, by age, by urgency or by a thief. Each of these orders is a
//! heap of job numbers; the jobs themselves are kept here, once. Taking a job removes it here, and its entries in the
//! other heaps die: a heap drops dead entries when they come to its top (lazy deletion).

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
#[derive(Clone, Debug)]
pub(super) struct Order<K> {
    heap: BinaryHeap<Reverse<(K, JobId)>>,
}

impl<K: Ord> Default for Order<K> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new() }
    }
}

impl<K: Ord + Copy> Order<K> {
    pub(super) fn push(&mut self, key: K, id: JobId) {
        self.heap.push(Reverse((key, id)));
    }

    /// The first job that still waits, with its key.
    pub(super) fn first<'a>(&mut self, jobs: &'a WaitingJobs) -> Option<(K, &'a Job)> {
        loop {
            let Reverse((key, id)) = *self.heap.peek()?;
            match jobs.get(id) {
                Some(job) => return Some((key, job)),
                None => self.heap.pop(),
            };
        }
    }
}
