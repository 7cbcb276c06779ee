//! The pool's slots. A slot holds one query in flight, shared by all cores.
//!
//! A slot holds the terms, the claimed tasks ([`Claims`]) and the result of each core, as numbers in atomics. One
//! thread writes them and then publishes. The core that finishes last sees all results and merges them. It sets
//! `answered` or, for AND+OR with too few results, publishes the OR in the same slot.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use tandem_base::base::ids::{DocId, TermId};
use tandem_base::traffic::Mode;

use super::claims::{CachePadded, Claims};
use super::partial_result::PartialResult;
use super::partition::Partition;
use crate::query::{Query, QueryTerm};
use crate::search::cpu::executor::Pass;
use crate::search::{Hit, TopK};

/// The assignment of tasks to cores, named like OpenMP's loop schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// A free core takes the next task.
    Dynamic,
    /// A free core takes an even share of the unclaimed tasks, or half of one if idle cores may come, so that pieces shrink
    /// towards the end.
    Guided,
}

/// Slots for queries in flight, with their common settings.
#[derive(Debug)]
pub(crate) struct TaskPool {
    pub(crate) slots: Box<[Slot]>,
    pub(crate) partition: Partition,
    pub(crate) schedule: Schedule,
    /// The number of cores that report no work.
    pub(crate) idle: AtomicUsize,
}

impl TaskPool {
    /// A pool of `slots` slots for `workers` cores.
    pub(crate) fn new(slots: usize, workers: usize, partition: Partition, schedule: Schedule) -> Self {
        let slots = (0..slots).map(|_| Slot::new(workers)).collect();
        Self { slots, partition, schedule, idle: AtomicUsize::new(0) }
    }
}

#[derive(Debug)]
pub(crate) struct Slot {
    /// The core whose [`Claims::finish`] returns true must call [`answer`](Self::answer) or
    /// [`publish_pass`](Self::publish_pass).
    pub(crate) claims: Claims,
    /// Polled by the owner.
    is_answered: CachePadded<AtomicBool>,
    has_failed: AtomicBool,
    mode: AtomicU32,
    pass: AtomicU32,
    k: AtomicU32,
    num_terms: AtomicU32,
    /// Cores that are expected to work on the query, or those that have come, if they are more.
    cores: AtomicU32,
    /// Cores that have come, the query's own included.
    arrived: AtomicU32,
    /// Bits of a score that k documents reach. All cores raise it while they read the fields around it.
    threshold: CachePadded<AtomicU32>,
    terms: Box<[(AtomicU64, AtomicU32)]>,
    deposits: Box<[PartialResult]>,
    answer: PartialResult,
}

impl Slot {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            claims: Claims::default(),
            is_answered: CachePadded::default(),
            has_failed: AtomicBool::new(false),
            mode: AtomicU32::new(0),
            pass: AtomicU32::new(0),
            k: AtomicU32::new(0),
            num_terms: AtomicU32::new(0),
            cores: AtomicU32::new(1),
            arrived: AtomicU32::new(1),
            threshold: CachePadded::default(),
            terms: (0..Query::MAX_TERMS).map(|_| Default::default()).collect(),
            deposits: (0..workers).map(|_| PartialResult::new()).collect(),
            answer: PartialResult::new(),
        }
    }

    /// Publishes a query, on which `cores` cores will work at first. The caller owns the slot: it is new, or the last answer
    /// was taken.
    pub(crate) fn publish(&self, query: &Query, mode: Mode, pass: Pass, k: usize, (num_tasks, cores): (u32, u32)) {
        self.cores.store(cores, Ordering::Relaxed);
        self.is_answered.0.store(false, Ordering::Relaxed);
        self.has_failed.store(false, Ordering::Relaxed);
        self.mode.store(mode as u32, Ordering::Relaxed);
        self.k.store(k as u32, Ordering::Relaxed);
        self.num_terms.store(query.terms.len() as u32, Ordering::Relaxed);
        for (slot, term) in self.terms.iter().zip(&query.terms) {
            slot.0.store(u64::from(term.term.0) << 32 | u64::from(term.doc_freq), Ordering::Relaxed);
            slot.1.store(term.qtf, Ordering::Relaxed);
        }
        self.publish_pass(pass, num_tasks);
    }

    /// Publishes another pass of the query. The caller finished it last, or owns the slot.
    pub(crate) fn publish_pass(&self, pass: Pass, num_tasks: u32) {
        self.pass.store(pass as u32, Ordering::Relaxed);
        // Helpers of an earlier pass come again.
        self.arrived.store(1, Ordering::Relaxed);
        self.threshold.0.store(0, Ordering::Relaxed);
        self.claims.publish(num_tasks);
    }

    /// Reads the query into `terms`. The caller holds a claim.
    pub(crate) fn read(&self, terms: &mut Vec<QueryTerm>) -> (Pass, usize) {
        terms.clear();
        let num_terms = self.num_terms.load(Ordering::Relaxed) as usize;
        terms.extend(self.terms[..num_terms].iter().map(|(term, qtf)| {
            let word = term.load(Ordering::Relaxed);
            QueryTerm { term: TermId((word >> 32) as u32), doc_freq: word as u32, qtf: qtf.load(Ordering::Relaxed) }
        }));
        let pass = if self.pass.load(Ordering::Relaxed) == Pass::And as u32 { Pass::And } else { Pass::Or };
        (pass, self.k.load(Ordering::Relaxed) as usize)
    }

    /// Cores among which a claim divides the rest.
    pub(crate) fn cores(&self) -> u32 {
        self.cores.load(Ordering::Relaxed)
    }

    /// Counts a core that has come to help. The caller holds a claim.
    pub(crate) fn arrive(&self) {
        let arrived = self.arrived.fetch_add(1, Ordering::Relaxed) + 1;
        self.cores.fetch_max(arrived, Ordering::Relaxed);
    }

    pub(crate) fn wants_or(&self) -> bool {
        self.mode.load(Ordering::Relaxed) == Mode::AndOr as u32 && self.pass.load(Ordering::Relaxed) == Pass::And as u32
    }

    /// Raises `best` to the threshold of all cores. Stand-ins ([`DocId::END`]) just below it take the k places, and any
    /// better document replaces them. The caller holds a claim.
    pub(crate) fn lift(&self, best: &mut TopK) {
        // Small documents that just reach the score may be among the best.
        let threshold = f32::from_bits(self.threshold.0.load(Ordering::Relaxed)).next_down();
        if threshold > best.threshold() {
            (0..best.k()).for_each(|_| best.offer(DocId::END.0, threshold));
        }
    }

    /// Publishes this core's threshold. The caller holds a claim.
    pub(crate) fn raise_threshold(&self, best: &TopK) {
        // Non-negative scores order as their bits do.
        let known = best.threshold().to_bits();
        if known > self.threshold.0.load(Ordering::Relaxed) {
            self.threshold.0.fetch_max(known, Ordering::Relaxed);
        }
    }

    /// Offers the earlier result of core `worker` to `best`. The caller holds a claim.
    pub(crate) fn take_back(&self, worker: usize, best: &mut TopK) {
        self.deposits[worker].offer_to(best, self.claims.epoch());
    }

    /// Replaces the result of core `worker` by `hits`.
    pub(crate) fn deposit(&self, worker: usize, hits: &[Hit]) {
        self.deposits[worker].replace(hits, self.claims.epoch());
    }

    pub(crate) fn merge(&self, best: &mut TopK) {
        for deposit in &self.deposits {
            deposit.offer_to(best, self.claims.epoch());
        }
    }

    /// Stores the answer for the owner. The caller finished last.
    pub(crate) fn answer(&self, hits: &[Hit]) {
        self.answer.replace(hits, self.claims.epoch());
        self.is_answered.0.store(true, Ordering::Release);
    }

    /// Marks the query as failed by a panic. Its answer is invalid.
    pub(crate) fn fail(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_answered(&self) -> bool {
        self.is_answered.0.load(Ordering::Acquire)
    }

    /// Whether a core panicked during the answered query.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    pub(crate) fn take_answer(&self, hits: &mut Vec<Hit>) {
        hits.clear();
        hits.extend(self.answer.hits(self.claims.epoch()));
    }
}
