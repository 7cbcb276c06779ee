//! Queries in flight, as all cores see them.
//!
//! A board has a few slots, and a slot holds one query: its terms, how many of its tasks are claimed, how many are not
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
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::partition::{MAX_TASKS, Partition};
use crate::exec::cpu::executor::Pass;
use crate::exec::{Hit, MAX_K, TopK};
use crate::ids::{DocId, TermId};
use crate::query::{Mode, Query, QueryTerm};
use crate::time::Nanos;

/// Bits of the claims word for each of `next` and `tasks`; the epoch has the rest.
const COUNT_BITS: u32 = 16;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const _: () = assert!(MAX_TASKS as u64 <= COUNT_MASK);

/// Who may take which task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    /// Task `i` belongs to core `i`.
    Own,
    /// Whoever comes takes the next one.
    Next,
    /// Whoever comes takes a share of what is left: the half of an even share, so that pieces shrink towards the end.
    Share,
}

/// The slots, and what holds for all of them.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) slots: Box<[Slot]>,
    pub(super) partition: Partition,
    pub(super) taking: Taking,
    /// Cores that have nothing to do, as far as they tell.
    pub(super) idle: AtomicUsize,
}

/// One query in flight.
#[derive(Debug)]
pub(super) struct Slot {
    /// Polled by the idle, and changed by every claim.
    claims: Line<AtomicU64>,
    /// Changed once by every core.
    unfinished: Line<AtomicU32>,
    /// Polled by the owner.
    is_answered: Line<AtomicBool>,
    /// In nanoseconds from `origin`.
    answered_ns: AtomicU64,
    origin: Instant,
    has_failed: AtomicBool,
    mode: AtomicU32,
    pass: AtomicU32,
    k: AtomicU32,
    num_terms: AtomicU32,
    /// Bits of a score that k documents are known to reach: raised by all cores, while they read what stands around it.
    floor: Line<AtomicU32>,
    terms: Box<[(AtomicU64, AtomicU32)]>,
    /// What each core found.
    deposits: Box<[Deposit]>,
    /// What all found.
    answer: Deposit,
}

/// What lies on cache lines of its own, so that changing it disturbs nobody who reads something else.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Line<T>(pub(super) T);

/// Keys of documents, as [`TopK`] makes them.
#[derive(Debug)]
#[repr(align(128))]
struct Deposit {
    /// The epoch in which they were found, and how many they are: what is left of other epochs counts as nothing, so
    /// that nobody needs to clear it.
    tag: AtomicU64,
    keys: Box<[AtomicU64]>,
}

/// Tasks that one core has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) epoch: u64,
    pub(super) tasks: Range<u32>,
}

impl Board {
    /// A board of `slots` slots for `hands` cores.
    pub(super) fn new(slots: usize, hands: usize, partition: Partition, taking: Taking) -> Self {
        let slots = (0..slots).map(|_| Slot::new(hands)).collect();
        Self { slots, partition, taking, idle: AtomicUsize::new(0) }
    }

    /// Tasks that nobody has claimed yet, in all slots.
    pub(super) fn unclaimed(&self) -> usize {
        self.slots.iter().map(|slot| slot.unclaimed() as usize).sum()
    }
}

impl Slot {
    fn new(hands: usize) -> Self {
        Self {
            claims: Line::default(),
            unfinished: Line::default(),
            is_answered: Line::default(),
            answered_ns: AtomicU64::new(0),
            origin: Instant::now(),
            has_failed: AtomicBool::new(false),
            mode: AtomicU32::new(0),
            pass: AtomicU32::new(0),
            k: AtomicU32::new(0),
            num_terms: AtomicU32::new(0),
            floor: Line::default(),
            terms: (0..Query::MAX_TERMS).map(|_| Default::default()).collect(),
            deposits: (0..hands).map(|_| Deposit::new()).collect(),
            answer: Deposit::new(),
        }
    }

    /// Puts a query up. The caller owns the slot: it is new, or the answer before was taken.
    pub(super) fn publish(&self, query: &Query, mode: Mode, pass: Pass, k: usize, num_tasks: u32) {
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
    pub(super) fn publish_pass(&self, pass: Pass, num_tasks: u32) {
        self.pass.store(pass as u32, Ordering::Relaxed);
        self.floor.0.store(0, Ordering::Relaxed);
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
    pub(super) fn unclaimed(&self) -> u32 {
        let word = self.claims.0.load(Ordering::Relaxed);
        let (next, tasks) = counts(word);
        tasks - next
    }

    /// Claims the next tasks, `share(left)` of them but at least one; `None` if none is left.
    #[inline]
    pub(super) fn claim(&self, share: impl Fn(u32) -> u32) -> Option<Claim> {
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
    pub(super) fn claim_own(&self, task: u32, seen: u64) -> Option<Claim> {
        let word = self.claims.0.load(Ordering::Acquire);
        let (next, tasks) = counts(word);
        let epoch = word >> (2 * COUNT_BITS);
        // All of the tasks stand as unclaimed until the last is finished.
        (epoch != seen && next == 0 && task < tasks).then(|| Claim { epoch, tasks: task..task + 1 })
    }

    /// Reads the query into `terms`; the caller holds a claim.
    pub(super) fn read(&self, terms: &mut Vec<QueryTerm>) -> (Pass, usize) {
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
    pub(super) fn wants_or(&self) -> bool {
        self.mode.load(Ordering::Relaxed) == Mode::AndOr as u32 && self.pass.load(Ordering::Relaxed) == Pass::And as u32
    }

    /// Tells `best` what the other cores know: a score that k documents reach. Places for k documents are taken by
    /// stand-ins just below it ([`DocId::END`]), which any better document replaces; so that a core prunes with the
    /// threshold of all. The caller holds a claim.
    pub(super) fn lift(&self, best: &mut TopK) {
        // Documents that reach the score, and no more, may be among the best: the smaller ones.
        let floor = f32::from_bits(self.floor.0.load(Ordering::Relaxed)).next_down();
        if floor > best.threshold() {
            (0..best.k()).for_each(|_| best.offer(DocId::END.0, floor));
        }
    }

    /// Tells the other cores what this one knows; the caller holds a claim.
    pub(super) fn raise_floor(&self, best: &TopK) {
        // Scores are not negative: their bits are in the same order.
        let known = best.threshold().to_bits();
        if known > self.floor.0.load(Ordering::Relaxed) {
            self.floor.0.fetch_max(known, Ordering::Relaxed);
        }
    }

    /// What core `hand` deposited before, offered to `best`; the caller holds a claim.
    pub(super) fn take_back(&self, hand: usize, best: &mut TopK) {
        self.deposits[hand].offer_to(best, self.epoch());
    }

    /// Replaces what core `hand` deposited by `hits`.
    pub(super) fn deposit(&self, hand: usize, hits: &[Hit]) {
        self.deposits[hand].replace(hits, self.epoch());
    }

    /// Says that `count` claimed tasks are finished. Whether they were the last: then the caller owns the slot, and
    /// must call [`Slot::answer`] or [`Slot::publish_pass`].
    pub(super) fn finish(&self, count: u32) -> bool {
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
    pub(super) fn merge(&self, best: &mut TopK) {
        for deposit in &self.deposits {
            deposit.offer_to(best, self.epoch());
        }
    }

    /// Leaves the answer for the owner. The caller finished last.
    pub(super) fn answer(&self, hits: &[Hit]) {
        self.answer.replace(hits, self.epoch());
        self.answered_ns.store(self.origin.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.is_answered.0.store(true, Ordering::Release);
    }

    /// Marks the query as failed: a core panicked. The answer is worthless.
    pub(super) fn fail(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Whether the answer is there.
    #[inline]
    pub(super) fn is_answered(&self) -> bool {
        self.is_answered.0.load(Ordering::Acquire)
    }

    /// When the answer came, from `clock` on.
    pub(super) fn answered_at(&self, clock: Instant) -> Nanos {
        let answered = self.origin + Duration::from_nanos(self.answered_ns.load(Ordering::Relaxed));
        Nanos(answered.saturating_duration_since(clock).as_nanos() as u64)
    }

    /// Whether a core panicked over the query that was answered.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Replaces `hits` by the answer, best first.
    pub(super) fn take_answer(&self, hits: &mut Vec<Hit>) {
        hits.clear();
        hits.extend(self.answer.hits(self.epoch()));
    }
}

/// `next` and `tasks` of a claims word.
#[inline]
fn counts(word: u64) -> (u32, u32) {
    ((word >> COUNT_BITS & COUNT_MASK) as u32, (word & COUNT_MASK) as u32)
}

impl Deposit {
    fn new() -> Self {
        Self { tag: AtomicU64::new(0), keys: (0..MAX_K).map(|_| AtomicU64::new(0)).collect() }
    }

    fn replace(&self, hits: &[Hit], epoch: u64) {
        for (key, hit) in self.keys.iter().zip(hits) {
            key.store(TopK::key(hit.doc.0, hit.score), Ordering::Relaxed);
        }
        self.tag.store(epoch << 32 | hits.len() as u64, Ordering::Relaxed);
    }

    fn hits(&self, epoch: u64) -> impl Iterator<Item = Hit> + '_ {
        let tag = self.tag.load(Ordering::Relaxed);
        let len = if tag >> 32 == epoch { tag as u32 as usize } else { 0 };
        self.keys[..len].iter().map(|key| TopK::hit(key.load(Ordering::Relaxed)))
    }

    fn offer_to(&self, best: &mut TopK, epoch: u64) {
        self.hits(epoch).for_each(|hit| best.offer(hit.doc.0, hit.score));
    }
}
