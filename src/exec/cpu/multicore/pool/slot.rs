//! A query in flight, as all cores see it.
//!
//! A slot holds one query: its terms, how many of its tasks are claimed, how many are not
//! yet finished, and what each core found. All of it is numbers in atomics, written by one thread and then published:
//!
//! ```text
//! owner    publish ──┐ terms, k, unfinished = 8          claims = [epoch 7 | next 0 | tasks 8]
//! core 2             ├─ claim: next 0 -> 1 ── search ── claim: 1 -> 2 ── ... none left ── deposit, unfinished -= 3
//! core 5             └─ claim: next 2 -> 3 ── search ── ...                            ── deposit, unfinished -= 5 = 0
//!                                                                                          core 5 merges: answered
//! ```
//!
//! - A claim is a compare-and-swap of one word that names its epoch: it fails if the slot has moved
//!   on to another query.
//! - Who has claimed and not finished keeps the slot from moving on, so the query can be read without a lock.
//! - Who takes `unfinished` to zero sees all deposits (they were made before the subtractions), merges them, and sets
//!   `answered` or, for AND+OR with too few results, publishes the OR in the same slot.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::partial_result::PartialResult;
use super::partition::MAX_TASKS;
use crate::exec::cpu::executor::Pass;
use crate::exec::cpu::multicore::cache_padded::CachePadded;
use crate::exec::{Hit, TopK};
use crate::ids::{DocId, TermId};
use crate::query::{Mode, Query, QueryTerm};
use crate::time::Nanos;

/// Bits of the claims word for each of `next` and `tasks`; the epoch has the rest.
const COUNT_BITS: u32 = 16;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const _: () = assert!(MAX_TASKS as u64 <= COUNT_MASK);

/// One query in flight.
#[derive(Debug)]
pub(in crate::exec::cpu::multicore) struct Slot {
    /// Polled by the idle, and changed by every claim.
    claims: CachePadded<AtomicU64>,
    /// Changed once by every core.
    unfinished: CachePadded<AtomicU32>,
    /// Polled by the owner.
    is_answered: CachePadded<AtomicBool>,
    /// In nanoseconds from `origin`.
    answered_ns: AtomicU64,
    origin: Instant,
    has_failed: AtomicBool,
    mode: AtomicU32,
    pass: AtomicU32,
    k: AtomicU32,
    num_terms: AtomicU32,
    /// Bits of a score that k documents are known to reach: raised by all cores, while they read what stands around it.
    threshold: CachePadded<AtomicU32>,
    terms: Box<[(AtomicU64, AtomicU32)]>,
    /// What each core found.
    deposits: Box<[PartialResult]>,
    /// What all found.
    answer: PartialResult,
}

/// Tasks that one core has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::exec::cpu::multicore) struct Claim {
    pub(in crate::exec::cpu::multicore) epoch: u64,
    pub(in crate::exec::cpu::multicore) tasks: Range<u32>,
}

impl Slot {
    /// A slot for queries that `workers` cores may work on.
    pub(in crate::exec::cpu::multicore) fn new(workers: usize) -> Self {
        Self {
            claims: CachePadded::default(),
            unfinished: CachePadded::default(),
            is_answered: CachePadded::default(),
            answered_ns: AtomicU64::new(0),
            origin: Instant::now(),
            has_failed: AtomicBool::new(false),
            mode: AtomicU32::new(0),
            pass: AtomicU32::new(0),
            k: AtomicU32::new(0),
            num_terms: AtomicU32::new(0),
            threshold: CachePadded::default(),
            terms: (0..Query::MAX_TERMS).map(|_| Default::default()).collect(),
            deposits: (0..workers).map(|_| PartialResult::new()).collect(),
            answer: PartialResult::new(),
        }
    }

    /// Puts a query up. The caller owns the slot: it is new, or the answer before was taken.
    pub(in crate::exec::cpu::multicore) fn publish(
        &self,
        query: &Query,
        mode: Mode,
        pass: Pass,
        k: usize,
        num_tasks: u32,
    ) {
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

    /// Puts up another pass of the query that is there. The caller finished it last, or owns the slot.
    pub(in crate::exec::cpu::multicore) fn publish_pass(&self, pass: Pass, num_tasks: u32) {
        self.pass.store(pass as u32, Ordering::Relaxed);
        self.threshold.0.store(0, Ordering::Relaxed);
        self.unfinished.0.store(num_tasks, Ordering::Relaxed);
        // Epochs are the remaining 32 bits, and begin again some day.
        let epoch = (self.epoch() + 1) & (u64::MAX >> (2 * COUNT_BITS));
        // Release: who claims a task sees all of the above.
        self.claims.0.store(epoch << (2 * COUNT_BITS) | u64::from(num_tasks), Ordering::Release);
    }

    /// The present epoch; it stays while the caller holds a claim, or has finished last.
    fn epoch(&self) -> u64 {
        self.claims.0.load(Ordering::Relaxed) >> (2 * COUNT_BITS)
    }

    /// Tasks that nobody has claimed.
    #[inline]
    pub(in crate::exec::cpu::multicore) fn unclaimed(&self) -> u32 {
        let word = self.claims.0.load(Ordering::Relaxed);
        let (next, tasks) = counts(word);
        tasks - next
    }

    /// Claims the next tasks, `share(left)` of them but at least one; `None` if none is left.
    #[inline]
    pub(in crate::exec::cpu::multicore) fn claim(&self, share: impl Fn(u32) -> u32) -> Option<Claim> {
        let mut word = self.claims.0.load(Ordering::Acquire);
        loop {
            let (next, tasks) = counts(word);
            if next == tasks {
                return None;
            }
            let end = next + share(tasks - next).clamp(1, tasks - next);
            let claimed = word + (u64::from(end - next) << COUNT_BITS);
            match self.claims.0.compare_exchange_weak(word, claimed, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(Claim { epoch: word >> (2 * COUNT_BITS), tasks: next..end }),
                Err(now) => word = now,
            }
        }
    }

    /// Claims task `task`, which belongs to the caller, unless that was in epoch `seen`. `None` if there is none.
    #[inline]
    pub(in crate::exec::cpu::multicore) fn claim_own(&self, task: u32, seen: u64) -> Option<Claim> {
        let word = self.claims.0.load(Ordering::Acquire);
        let (next, tasks) = counts(word);
        let epoch = word >> (2 * COUNT_BITS);
        // All of the tasks stand as unclaimed until the last is finished.
        (epoch != seen && next == 0 && task < tasks).then(|| Claim { epoch, tasks: task..task + 1 })
    }

    /// Reads the query into `terms`; the caller holds a claim.
    pub(in crate::exec::cpu::multicore) fn read(&self, terms: &mut Vec<QueryTerm>) -> (Pass, usize) {
        terms.clear();
        let num_terms = self.num_terms.load(Ordering::Relaxed) as usize;
        terms.extend(self.terms[..num_terms].iter().map(|(term, qtf)| {
            let word = term.load(Ordering::Relaxed);
            QueryTerm { term: TermId((word >> 32) as u32), doc_freq: word as u32, qtf: qtf.load(Ordering::Relaxed) }
        }));
        let pass = if self.pass.load(Ordering::Relaxed) == Pass::And as u32 { Pass::And } else { Pass::Or };
        (pass, self.k.load(Ordering::Relaxed) as usize)
    }

    /// Whether an OR must follow if the AND finds too few.
    pub(in crate::exec::cpu::multicore) fn wants_or(&self) -> bool {
        self.mode.load(Ordering::Relaxed) == Mode::AndOr as u32 && self.pass.load(Ordering::Relaxed) == Pass::And as u32
    }

    /// Tells `best` what the other cores know: a score that k documents reach. Places for k documents are taken by
    /// stand-ins just below it ([`DocId::END`]), which any better document replaces; so that a core prunes with the
    /// threshold of all. The caller holds a claim.
    pub(in crate::exec::cpu::multicore) fn lift(&self, best: &mut TopK) {
        // Documents that reach the score, and no more, may be among the best: the smaller ones.
        let threshold = f32::from_bits(self.threshold.0.load(Ordering::Relaxed)).next_down();
        if threshold > best.threshold() {
            (0..best.k()).for_each(|_| best.offer(DocId::END.0, threshold));
        }
    }

    /// Tells the other cores what this one knows; the caller holds a claim.
    pub(in crate::exec::cpu::multicore) fn raise_threshold(&self, best: &TopK) {
        // Scores are not negative: their bits are in the same order.
        let known = best.threshold().to_bits();
        if known > self.threshold.0.load(Ordering::Relaxed) {
            self.threshold.0.fetch_max(known, Ordering::Relaxed);
        }
    }

    /// What core `worker` deposited before, offered to `best`; the caller holds a claim.
    pub(in crate::exec::cpu::multicore) fn take_back(&self, worker: usize, best: &mut TopK) {
        self.deposits[worker].offer_to(best, self.epoch());
    }

    /// Replaces what core `worker` deposited by `hits`.
    pub(in crate::exec::cpu::multicore) fn deposit(&self, worker: usize, hits: &[Hit]) {
        self.deposits[worker].replace(hits, self.epoch());
    }

    /// Says that `count` claimed tasks are finished. Whether they were the last: then the caller owns the slot, and
    /// must call [`Slot::answer`] or [`Slot::publish_pass`].
    pub(in crate::exec::cpu::multicore) fn finish(&self, count: u32) -> bool {
        // Release the deposit; acquire those of the others.
        let is_last = self.unfinished.0.fetch_sub(count, Ordering::AcqRel) == count;
        if is_last {
            let word = self.claims.0.load(Ordering::Relaxed);
            // Tasks that belong to cores were never counted as claimed.
            self.claims.0.store(word | (word & COUNT_MASK) << COUNT_BITS, Ordering::Relaxed);
        }
        is_last
    }

    /// All deposits, offered to `best`. The caller finished last.
    pub(in crate::exec::cpu::multicore) fn merge(&self, best: &mut TopK) {
        for deposit in &self.deposits {
            deposit.offer_to(best, self.epoch());
        }
    }

    /// Leaves the answer for the owner. The caller finished last.
    pub(in crate::exec::cpu::multicore) fn answer(&self, hits: &[Hit]) {
        self.answer.replace(hits, self.epoch());
        self.answered_ns.store(self.origin.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.is_answered.0.store(true, Ordering::Release);
    }

    /// Marks the query as failed: a core panicked. The answer is worthless.
    pub(in crate::exec::cpu::multicore) fn fail(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Whether the answer is there.
    #[inline]
    pub(in crate::exec::cpu::multicore) fn is_answered(&self) -> bool {
        self.is_answered.0.load(Ordering::Acquire)
    }

    /// When the answer came, from `clock` on.
    pub(in crate::exec::cpu::multicore) fn answered_at(&self, clock: Instant) -> Nanos {
        let answered = self.origin + Duration::from_nanos(self.answered_ns.load(Ordering::Relaxed));
        Nanos(answered.saturating_duration_since(clock).as_nanos() as u64)
    }

    /// Whether a core panicked over the query that was answered.
    pub(in crate::exec::cpu::multicore) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Replaces `hits` by the answer, best first.
    pub(in crate::exec::cpu::multicore) fn take_answer(&self, hits: &mut Vec<Hit>) {
        hits.clear();
        hits.extend(self.answer.hits(self.epoch()));
    }
}

/// `next` and `tasks` of a claims word.
#[inline]
fn counts(word: u64) -> (u32, u32) {
    ((word >> COUNT_BITS & COUNT_MASK) as u32, (word & COUNT_MASK) as u32)
}
