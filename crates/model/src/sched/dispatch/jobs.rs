//! The jobs in flight: one table, which the dispatcher keeps and policies read.
//!
//! Numbers of jobs ascend by one. The table is a ring as long as the span of the numbers in flight. A job is written once,
//! when it arrives; queues, batches and heaps hold its number:
//!
//! ```text
//!   number    … 41   42   43   44   45   46   47 …
//!   place        ·    R    F    R    W    R    W       R: running, W: waiting, F: finished before one that is older
//!                     ▲ first        ▲ oldest          ▲ end
//! ```

use super::super::Job;
use crate::base::ids::JobId;
use crate::base::time::Nanos;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sched) enum Place {
    Waiting,
    Running,
    Finished,
}

/// The jobs in flight. A policy sees the waiting ones. A job that it names in a batch waits until [`Policy::next`] has
/// returned.
///
/// [`Policy::next`]: crate::sched::Policy::next
#[derive(Clone, Debug)]
pub struct Jobs {
    /// Jobs by number, modulo the ring's size, which is a power of two. States are stored apart because they are read most.
    ring: Vec<Job>,
    places: Vec<Place>,
    released: Vec<Nanos>,
    /// Numbers in flight run from `first`, which has not finished, to before `end`.
    first: u32,
    end: u32,
    /// No job below this number waits.
    oldest: u32,
    waiting: usize,
}

impl Default for Jobs {
    fn default() -> Self {
        Self::with_room_for(64)
    }
}

impl Jobs {
    fn with_room_for(jobs: usize) -> Self {
        let (ring, places, released) =
            (vec![Job::default(); jobs], vec![Place::Finished; jobs], vec![Nanos::ZERO; jobs]);
        Self { ring, places, released, first: 0, end: 0, oldest: 0, waiting: 0 }
    }

    /// The number of waiting jobs.
    #[must_use]
    #[inline]
    pub fn num_waiting(&self) -> usize {
        self.waiting
    }

    /// The job, if it is waiting.
    #[must_use]
    #[inline]
    pub fn waiting(&self, id: JobId) -> Option<&Job> {
        (self.place(id) == Some(Place::Waiting)).then(|| self.job(id))
    }

    /// Waiting jobs, the oldest first.
    #[inline]
    pub fn iter_waiting(&self) -> impl Iterator<Item = &Job> {
        let end = if self.waiting == 0 { self.oldest } else { self.end };
        (self.oldest..end).map(JobId).filter(|&id| self.places[self.at(id)] == Place::Waiting).map(|id| self.job(id))
    }

    #[inline]
    pub(in crate::sched) fn iter_unfinished(&self) -> impl Iterator<Item = &Job> {
        (self.first..self.end)
            .map(JobId)
            .filter(|&id| self.places[self.at(id)] != Place::Finished)
            .map(|id| self.job(id))
    }

    /// The job that has waited longest.
    #[must_use]
    #[inline]
    pub fn oldest(&self) -> Option<&Job> {
        // Starts advance this mark, so it always names a waiting job if any waits.
        (self.waiting > 0).then(|| self.job(JobId(self.oldest)))
    }

    /// A job in flight: it waits, runs, or has just finished.
    #[must_use]
    #[inline]
    pub fn job(&self, id: JobId) -> &Job {
        &self.ring[self.at(id)]
    }

    #[inline]
    pub(in crate::sched) fn next_id(&self) -> JobId {
        JobId(self.end)
    }

    #[inline]
    pub(in crate::sched) fn first(&self) -> Option<&Job> {
        (self.first != self.end).then(|| self.job(JobId(self.first)))
    }

    /// When the dispatcher learnt of the job.
    #[inline]
    pub(in crate::sched) fn released(&self, id: JobId) -> Nanos {
        self.released[self.at(id)]
    }

    /// The job's state; `None` if it has not arrived, or if it and all older jobs have finished.
    #[inline]
    pub(in crate::sched) fn place(&self, id: JobId) -> Option<Place> {
        (id.0.wrapping_sub(self.first) < self.end - self.first).then(|| self.places[self.at(id)])
    }

    /// Whether this job and all older ones have finished.
    #[inline]
    pub(in crate::sched) fn is_past(&self, id: JobId) -> bool {
        id.0 < self.first
    }

    /// Adds the [next](Self::next_id) job, which waits.
    ///
    /// The function is inlined so that the job is built in its place. A copy would be read while it is still being written,
    /// and that stall costs the processor more than all the rest.
    #[inline(always)]
    pub(in crate::sched) fn arrive(&mut self, now: Nanos, make: impl FnOnce(JobId) -> Job) -> JobId {
        if (self.end - self.first) as usize == self.ring.len() {
            self.grow();
        }
        let id = self.next_id();
        let at = self.at(id);
        if self.waiting == 0 {
            self.oldest = id.0;
        }
        self.ring[at] = make(id);
        self.places[at] = Place::Waiting;
        self.released[at] = now;
        self.end += 1;
        self.waiting += 1;
        id
    }

    #[inline]
    pub(in crate::sched) fn start(&mut self, id: JobId) -> &Job {
        let at = self.at(id);
        self.places[at] = Place::Running;
        self.waiting -= 1;
        if id.0 == self.oldest {
            self.oldest += 1;
            while self.waiting > 0 && self.places[self.at(JobId(self.oldest))] != Place::Waiting {
                self.oldest += 1;
            }
        }
        &self.ring[at]
    }

    /// Marks a running job as finished. It is readable until [`leave`](Self::leave).
    #[inline]
    pub(in crate::sched) fn finish(&mut self, id: JobId) {
        let at = self.at(id);
        self.places[at] = Place::Finished;
    }

    /// Forgets the oldest jobs that have finished.
    #[inline]
    pub(in crate::sched) fn leave(&mut self) {
        while self.first != self.end && self.places[self.at(JobId(self.first))] == Place::Finished {
            self.first += 1;
        }
    }

    #[inline]
    fn at(&self, id: JobId) -> usize {
        id.index() & (self.ring.len() - 1)
    }

    #[cold]
    fn grow(&mut self) {
        let size = self.ring.len();
        self.ring.resize(2 * size, Job::default());
        self.places.resize(2 * size, Place::Finished);
        self.released.resize(2 * size, Nanos::ZERO);
        // Every other lap of the old ring moves to the second half of the new one.
        for id in (self.first..self.end).map(JobId) {
            let to = self.at(id);
            if let Some(from) = to.checked_sub(size) {
                (self.ring[to], self.places[to], self.released[to]) =
                    (self.ring[from], self.places[from], self.released[from]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn job(id: u32) -> Job {
        Job { id: JobId(id), row: 7 * id, ..Job::default() }
    }

    proptest! {
        #[test]
        fn the_table_tells_what_a_map_tells(steps in prop::collection::vec((0..4_u8, any::<prop::sample::Index>()), 0..600)) {
            let mut jobs = Jobs::default();
            let mut map: BTreeMap<u32, Place> = BTreeMap::new();
            for (step, which) in steps {
                let of = |place| map.iter().filter(|entry| *entry.1 == place).map(|(&id, _)| id).collect::<Vec<_>>();
                let (waiting, running) = (of(Place::Waiting), of(Place::Running));
                match step {
                    2 if !waiting.is_empty() => {
                        let id = *which.get(&waiting);
                        prop_assert_eq!(jobs.start(JobId(id)), &job(id));
                        map.insert(id, Place::Running);
                    }
                    3 if !running.is_empty() => {
                        let id = *which.get(&running);
                        jobs.finish(JobId(id));
                        jobs.leave();
                        map.insert(id, Place::Finished);
                    }
                    _ => {
                        let id = jobs.next_id().0;
                        prop_assert_eq!(id as usize, map.len());
                        jobs.arrive(Nanos(u64::from(id)), |id| job(id.0));
                        map.insert(id, Place::Waiting);
                    }
                }
                let waiting: Vec<u32> = map.iter().filter(|entry| *entry.1 == Place::Waiting).map(|(&id, _)| id).collect();
                prop_assert_eq!(jobs.iter_waiting().map(|job| job.id.0).collect::<Vec<_>>(), waiting.clone());
                prop_assert_eq!(jobs.num_waiting(), waiting.len());
                prop_assert_eq!(jobs.oldest().map(|job| job.id.0), waiting.first().copied());
                let unfinished: Vec<u32> =
                    map.iter().filter(|entry| *entry.1 != Place::Finished).map(|(&id, _)| id).collect();
                prop_assert_eq!(jobs.iter_unfinished().map(|job| job.id.0).collect::<Vec<_>>(), unfinished.clone());
                let first = unfinished.first().copied();
                prop_assert_eq!(jobs.first().map(|job| job.id.0), first);
                for (&id, &place) in &map {
                    let is_past = first.is_none_or(|first| id < first);
                    prop_assert_eq!((jobs.place(JobId(id)), jobs.is_past(JobId(id))), ((!is_past).then_some(place), is_past));
                    prop_assert_eq!(jobs.waiting(JobId(id)).is_some(), place == Place::Waiting);
                }
            }
        }
    }
}
