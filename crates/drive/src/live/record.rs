//! Records of a run while it lasts, in memory that does not grow with it.

use tandem_model::base::ids::{JobId, ProcessorId, QueryId};
use tandem_model::base::machine::{Class, LaneFault, PerClass};
use tandem_model::base::time::Nanos;
use tandem_model::sched::{Job, LogRow, RunLog, ShedJob, Sink};

use super::gaps::Gap;

/// Counts events of a run in addition to its log, and decides when the run is lost.
pub trait Record: Sink {
    /// The age from which an unanswered job counts as late; `None`: the run is never given up.
    fn late_after(&self) -> Option<Nanos>;

    /// Whether the run has failed for certain, given that `overdue` jobs in flight are late by now.
    fn is_lost(&self, overdue: usize) -> bool;

    /// Takes a released job that had no answer when the run ended, with its age.
    fn unanswered(&mut self, job: &Job, age: Nanos);

    /// Takes a gap of the machine that has just ended. Jobs in flight that arrived before its end have waited in it.
    fn gap(&mut self, _gap: &Gap) {}
}

/// Nothing is counted.
impl Record for () {
    fn late_after(&self) -> Option<Nanos> {
        None
    }

    fn is_lost(&self, _: usize) -> bool {
        false
    }

    fn unanswered(&mut self, _: &Job, _: Nanos) {}
}

impl<R: Record> Record for &mut R {
    fn late_after(&self) -> Option<Nanos> {
        R::late_after(self)
    }

    fn is_lost(&self, overdue: usize) -> bool {
        R::is_lost(self, overdue)
    }

    fn unanswered(&mut self, job: &Job, age: Nanos) {
        R::unanswered(self, job, age);
    }

    fn gap(&mut self, gap: &Gap) {
        R::gap(self, gap);
    }
}

/// Keeps every n-th item, for n a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    mask: u32,
}

impl Sample {
    /// Keeps at most `most` of `all` items, and at least about half as many.
    pub(super) fn of(all: usize, most: usize) -> Self {
        let each = all.div_ceil(most.max(1)).next_power_of_two();
        Self { mask: u32::try_from(each - 1).unwrap_or(u32::MAX) }
    }

    #[inline]
    pub(super) fn keeps(self, number: u32) -> bool {
        number & self.mask == 0
    }
}

/// The log of a run: whole, or every second, fourth... batch of a long one.
#[derive(Clone, Debug)]
pub(super) struct Sampled {
    log: RunLog,
    sample: Sample,
}

impl Sampled {
    /// A log of `planned` queries that keeps about `keep` of them at most.
    pub(super) fn of(planned: usize, keep: usize) -> Self {
        let sample = Sample::of(planned, keep);
        let blank = LogRow {
            job: JobId(0),
            query: QueryId(0),
            arrival: Nanos::ZERO,
            released: Nanos::ZERO,
            started: Nanos::ZERO,
            finished: Nanos::MAX,
            processor: ProcessorId(0),
            class: Class::CPU,
            batch: 0,
            deadline: Nanos::ZERO,
            priority: 0,
            predicted: PerClass::default(),
            stolen: false,
            again: false,
            lanes: 1,
            helped: Nanos::ZERO,
        };
        let mut sampled = Self { log: RunLog::default(), sample };
        sampled.log.rows = room_for(sampled.expected(planned), blank);
        sampled
    }

    pub(super) fn sample(&self) -> Sample {
        self.sample
    }

    /// The mean number of `planned` queries that it will keep.
    pub(super) fn expected(&self, planned: usize) -> usize {
        planned.div_ceil(self.sample.mask as usize + 1)
    }

    /// The log, in order of arrival.
    pub(super) fn into_log(mut self) -> RunLog {
        self.log.sort();
        self.log
    }
}

impl Sink for Sampled {
    #[inline]
    fn record(&mut self, row: &LogRow) {
        if self.sample.keeps(row.batch) {
            self.log.rows.push(*row);
        }
    }

    #[inline]
    fn record_batch(&mut self, number: u32, rows: impl Iterator<Item = LogRow> + Clone) {
        if self.sample.keeps(number) {
            self.log.rows.extend(rows);
        }
    }

    fn shed(&mut self, job: &ShedJob) {
        if self.sample.keeps(job.job.0) {
            self.log.shed.push(*job);
        }
    }

    fn lane_fault(&mut self, fault: &LaneFault) {
        self.log.lane_fault(fault);
    }
}

/// An empty vector with room for `count` items, in memory that is already mapped: the first touch of a page costs as
/// much as a system call. `blank` must not be all zeros, since such memory would come unmapped.
pub(super) fn room_for<T: Clone>(count: usize, blank: T) -> Vec<T> {
    let mut room = vec![blank; count];
    room.clear();
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_counts_is_never_given_up() {
        assert_eq!((().late_after(), ().is_lost(usize::MAX)), (None, false));
    }

    #[test]
    fn a_borrowed_record_decides_as_the_record_itself() {
        struct Strict;
        impl Sink for Strict {
            fn record(&mut self, _: &LogRow) {}
            fn shed(&mut self, _: &ShedJob) {}
        }
        impl Record for Strict {
            fn late_after(&self) -> Option<Nanos> {
                Some(Nanos(7))
            }
            fn is_lost(&self, overdue: usize) -> bool {
                overdue > 1
            }
            fn unanswered(&mut self, _: &Job, _: Nanos) {}
        }
        let borrowed = &mut Strict;
        let all = |record: &dyn Fn(usize) -> (Option<Nanos>, bool)| [record(1), record(2)];
        let expected = [(Some(Nanos(7)), false), (Some(Nanos(7)), true)];
        assert_eq!(all(&|n| (Record::late_after(&borrowed), Record::is_lost(&borrowed, n))), expected);
    }

    #[test]
    fn a_sample_keeps_all_if_there_is_room() {
        let kept = |all: u32, most| (0..all).filter(|&number| Sample::of(all as usize, most).keeps(number)).count();
        assert_eq!([(0, 5), (5, 5), (6, 5), (1000, 5), (7, 0)].map(|(all, most)| kept(all, most)), [0, 5, 3, 4, 1]);
    }
}
