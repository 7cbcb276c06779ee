//! The two rings between the driver and a lane's thread: orders out, completions back.
//!
//! Each ring has one writer and one reader. A slot carries the number of its turn, counted from 1 without end: the writer
//! fills a slot and writes the turn last, the reader looks for the turn that it expects next. So there is no lock, no
//! shared counter and no "full" or "empty" to ask for, and an order of a few queries moves in one cache line:
//!
//! ```text
//!   slot       0        1        2        3            a lane's depth, rounded up to a power of two
//!   turn     | 9 ...  | 10 ... | 7 ...  | 8 ...  |     the reader that has read 9 looks for 10 in slot 1
//!   holds      turn, number of queries, their rows     more than 12 rows: in segments, made once and used again
//! ```
//!
//! A slot is free for its next turn because the dispatcher never gives a lane more batches than its depth: turn t + size is
//! ordered only after the completion of turn t has been seen.
//!
//! A reader that finds nothing for long [sleeps](Sleeper), and the writer wakes it. Slots and sleepers fill cache lines of
//! their own (two, for processors that fetch lines in pairs), so that lanes do not slow each other.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use tandem_engine::search::Executor;
use tandem_model::base::machine::FaultKind;

use super::ending::LiveError;

/// Rows that an order carries in its own cache line.
const INLINE: usize = 12;
/// Rows in the first segment beyond; each further one holds twice as many.
const FIRST_SEGMENT: usize = 64;
/// Segments that a slot can have: for some 2^25 rows, twice as many as any batch has.
const SEGMENTS: usize = 19;

/// Rows of an order beyond the first few; made when first needed.
type Segment = OnceLock<Box<[AtomicU32]>>;

#[derive(Debug)]
#[repr(align(128))]
struct OrderSlot {
    turn: AtomicU32,
    queries: AtomicU32,
    until: AtomicU64,
    /// The lanes on which the query begins, or 0 if no other lane may help.
    lanes: AtomicU32,
    rows: [AtomicU32; INLINE],
    more: Box<[Segment]>,
}

impl OrderSlot {
    fn new() -> Self {
        let more = std::iter::repeat_with(Segment::new).take(SEGMENTS).collect();
        let (turn, queries, until, lanes, rows) = Default::default();
        Self { turn, queries, until, lanes, rows, more }
    }

    fn segment(&self, number: usize) -> &[AtomicU32] {
        let length = FIRST_SEGMENT << number;
        self.more[number].get_or_init(|| std::iter::repeat_with(AtomicU32::default).take(length).collect())
    }

    fn places(&self, count: usize) -> impl Iterator<Item = &AtomicU32> {
        let beyond = count.saturating_sub(INLINE);
        let segments = (0..).take_while(move |&number| beyond > FIRST_SEGMENT * ((1 << number) - 1));
        self.rows.iter().chain(segments.flat_map(|number| self.segment(number))).take(count)
    }
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct CompletionSlot {
    turn: AtomicU32,
    /// The turn that a thread is about to complete: only the first of two threads on a lane writes it.
    claimed: AtomicU32,
    has_failed: AtomicBool,
    again: AtomicBool,
    picked_up: AtomicU64,
    worked: AtomicU64,
    host: AtomicU64,
    prepared: AtomicU64,
    device: AtomicU64,
    done: AtomicU64,
}

/// The course of a batch. Times are nanoseconds since the lane pool was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Completion {
    /// When the lane's thread took the order.
    pub(super) picked_up: u64,
    /// Time in which the thread worked on this batch and on none before it.
    pub(super) worked: u64,
    /// Working time of the thread since the completion before, on a lane that prepares one batch while its device works on
    /// another; else 0.
    pub(super) host: u64,
    /// Time to prepare this batch, on a lane that overlaps batches; else 0.
    pub(super) prepared: u64,
    /// Time of the device on this batch, on a lane that overlaps batches; else 0.
    pub(super) device: u64,
    pub(super) done: u64,
    /// Whether an error came, which [`Rings::take_failure`] returns. [`Rings::complete`] sets this field.
    pub(super) has_failed: bool,
    /// Whether the batch ran again on the lane's fallback executor, for a reason that [`Rings::take_survived`] returns.
    pub(super) again: bool,
}

/// A fault after which a lane's fallback executor took over. Times as in [`Completion`].
#[derive(Clone, Debug)]
pub(super) struct Survived {
    pub(super) at: u64,
    pub(super) kind: FaultKind,
    pub(super) queries: usize,
    /// Whether the fallback has replaced the executor of the lane permanently.
    pub(super) is_retired: bool,
    /// The fault in words.
    pub(super) what: String,
}

/// An executor that waits to be used.
#[derive(Default)]
struct Fallback(Mutex<Option<Box<dyn Executor>>>);

impl std::fmt::Debug for Fallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fallback")
    }
}

#[derive(Debug)]
pub(super) struct Rings {
    orders: Box<[OrderSlot]>,
    completions: Box<[CompletionSlot]>,
    /// The lane's thread, while it is idle.
    pub(super) worker: Sleeper,
    /// Batches whose answers have been compared.
    checked: AtomicU32,
    failure: Mutex<Option<LiveError>>,
    survived: Mutex<Vec<Survived>>,
    /// The fallback executor, until a thread takes it.
    fallback: Fallback,
    /// The number of times that a thread has taken the lane over; earlier threads have to end.
    replacements: AtomicU32,
    /// The number of the executor whose query the idle worker helps with, plus one; 0 for none.
    lead: AtomicU32,
    is_closed: AtomicBool,
}

impl Rings {
    /// Rings for `depth` batches under way, with memory reserved for batches of `most_queries`.
    pub(super) fn new(depth: u32, most_queries: u32) -> Self {
        let slots = depth.next_power_of_two() as usize;
        let orders: Box<[OrderSlot]> = std::iter::repeat_with(OrderSlot::new).take(slots).collect();
        for order in &orders {
            order.places(most_queries as usize).for_each(drop);
        }
        Self {
            orders,
            completions: std::iter::repeat_with(CompletionSlot::default).take(slots).collect(),
            worker: Sleeper::default(),
            checked: AtomicU32::new(0),
            failure: Mutex::new(None),
            survived: Mutex::new(Vec::new()),
            fallback: Fallback::default(),
            replacements: AtomicU32::new(0),
            lead: AtomicU32::new(0),
            is_closed: AtomicBool::new(false),
        }
    }

    pub(super) fn slot(&self, turn: u32) -> usize {
        turn as usize & (self.orders.len() - 1)
    }

    pub(super) fn slots(&self) -> usize {
        self.orders.len()
    }

    /// Driver: orders the queries of these rows; a thread that only lets time pass does so `until` that time. A query
    /// with which other lanes may help begins on `lanes` lanes; else they are 0. The caller must
    /// [wake](Sleeper::wake_if_asleep) the worker afterwards.
    pub(super) fn order(&self, turn: u32, rows: impl ExactSizeIterator<Item = u32>, until: u64, lanes: u32) {
        let slot = &self.orders[self.slot(turn)];
        slot.queries.store(rows.len() as u32, Ordering::Relaxed);
        slot.until.store(until, Ordering::Relaxed);
        slot.lanes.store(lanes, Ordering::Relaxed);
        slot.places(rows.len()).zip(rows).for_each(|(place, row)| place.store(row, Ordering::Relaxed));
        slot.turn.store(turn, Ordering::Release);
    }

    /// Worker: whether the order of this turn is there.
    pub(super) fn has_order(&self, turn: u32) -> bool {
        self.orders[self.slot(turn)].turn.load(Ordering::Acquire) == turn
    }

    /// Worker: takes the order of this turn if it is there: replaces `rows` by its queries.
    pub(super) fn take(&self, turn: u32, rows: &mut Vec<u32>) -> bool {
        let slot = &self.orders[self.slot(turn)];
        if slot.turn.load(Ordering::Acquire) != turn {
            return false;
        }
        rows.clear();
        let queries = slot.queries.load(Ordering::Relaxed) as usize;
        rows.extend(slot.places(queries).map(|place| place.load(Ordering::Relaxed)));
        true
    }

    /// Worker: the end of this turn's order, if the thread only lets time pass; the order must have been taken.
    pub(super) fn until(&self, turn: u32) -> u64 {
        self.orders[self.slot(turn)].until.load(Ordering::Relaxed)
    }

    /// Worker: the lanes on which this turn's order begins, or 0 if no other may help; the order must have been taken.
    pub(super) fn lanes(&self, turn: u32) -> u32 {
        self.orders[self.slot(turn)].lanes.load(Ordering::Relaxed)
    }

    /// Driver: moves the end of the order of this turn, on a thread that only lets time pass.
    pub(super) fn set_until(&self, turn: u32, until: u64) {
        self.orders[self.slot(turn)].until.store(until, Ordering::Relaxed);
    }

    /// Driver: lets the idle worker help with the query of executor number `lead`, or with none.
    pub(super) fn set_lead(&self, lead: Option<usize>) {
        self.lead.store(lead.map_or(0, |lead| lead as u32 + 1), Ordering::Relaxed);
        if lead.is_some() {
            self.worker.wake();
        }
    }

    /// Worker: the number of the executor whose query it is to help with.
    pub(super) fn lead(&self) -> Option<usize> {
        (self.lead.load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    /// Worker: reports a batch, unless another thread has done so; returns whether it did. The caller must
    /// [wake](Sleeper::wake) the driver afterwards.
    pub(super) fn complete(&self, turn: u32, completion: Completion, failure: Option<LiveError>) -> bool {
        let slot = &self.completions[self.slot(turn)];
        let claimed = slot.claimed.load(Ordering::Relaxed);
        let is_later = turn.wrapping_sub(claimed) as i32 > 0;
        if !is_later || slot.claimed.compare_exchange(claimed, turn, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        slot.has_failed.store(failure.is_some(), Ordering::Relaxed);
        failure.into_iter().for_each(|error| self.fail(error));
        slot.again.store(completion.again, Ordering::Relaxed);
        slot.picked_up.store(completion.picked_up, Ordering::Relaxed);
        slot.worked.store(completion.worked, Ordering::Relaxed);
        slot.host.store(completion.host, Ordering::Relaxed);
        slot.prepared.store(completion.prepared, Ordering::Relaxed);
        slot.device.store(completion.device, Ordering::Relaxed);
        slot.done.store(completion.done, Ordering::Relaxed);
        slot.turn.store(turn, Ordering::Release);
        true
    }

    /// Driver: whether the completion of this turn is there.
    #[inline]
    pub(super) fn has_completed(&self, turn: u32) -> bool {
        self.completions[self.slot(turn)].turn.load(Ordering::Acquire) == turn
    }

    pub(super) fn completed(&self, turn: u32) -> Option<Completion> {
        let slot = &self.completions[self.slot(turn)];
        (slot.turn.load(Ordering::Acquire) == turn).then(|| Completion {
            picked_up: slot.picked_up.load(Ordering::Relaxed),
            worked: slot.worked.load(Ordering::Relaxed),
            host: slot.host.load(Ordering::Relaxed),
            prepared: slot.prepared.load(Ordering::Relaxed),
            device: slot.device.load(Ordering::Relaxed),
            done: slot.done.load(Ordering::Relaxed),
            has_failed: slot.has_failed.load(Ordering::Relaxed),
            again: slot.again.load(Ordering::Relaxed),
        })
    }

    /// Worker: notes that the answers of all batches up to this turn have been compared.
    pub(super) fn set_checked(&self, turn: u32) {
        // The count never goes back: a thread given up as lost may report an older turn than its replacement.
        let is_later = |checked: u32| (turn.wrapping_sub(checked) as i32 > 0).then_some(turn);
        let _ = self.checked.fetch_update(Ordering::Release, Ordering::Relaxed, is_later);
    }

    /// Driver: whether the answers of all batches up to this turn have been compared.
    pub(super) fn is_checked(&self, turn: u32) -> bool {
        self.checked.load(Ordering::Acquire) == turn
    }

    /// Worker: keeps an error for the driver; the first one counts.
    pub(super) fn fail(&self, error: LiveError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(super) fn take_failure(&self) -> Option<LiveError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn survive(&self, survived: Survived) {
        self.survived.lock().unwrap_or_else(PoisonError::into_inner).push(survived);
    }

    /// Driver: takes the faults survived since the last call.
    pub(super) fn take_survived(&self) -> Vec<Survived> {
        std::mem::take(&mut self.survived.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn keep_fallback(&self, fallback: Box<dyn Executor>) {
        *self.fallback.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(fallback);
    }

    pub(super) fn take_fallback(&self) -> Option<Box<dyn Executor>> {
        self.fallback.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn has_fallback(&self) -> bool {
        self.fallback.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Driver: prepares the take-over of the lane by another thread. Returns the fallback executor and the thread's number,
    /// from 1. A thread that finds the fallback taken has lost the lane.
    pub(super) fn hand_on(&self) -> Option<(Box<dyn Executor>, u32)> {
        let mut kept = self.fallback.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fallback = kept.take()?;
        Some((fallback, self.replacements.fetch_add(1, Ordering::AcqRel) + 1))
    }

    /// Driver: gives the lane up; its thread ends if it ever returns.
    pub(super) fn abandon(&self) {
        self.replacements.fetch_add(1, Ordering::AcqRel);
    }

    /// Worker: whether the lane still belongs to the thread of this number, 0 for the first.
    pub(super) fn belongs_to(&self, thread: u32) -> bool {
        self.replacements.load(Ordering::Acquire) == thread
    }

    /// Ends the worker, once it has completed its orders.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.worker.wake();
    }

    /// Worker: whether no more orders will come.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}

/// A thread that may sleep until another thread has written something for it.
///
/// The sleeper sets a flag and then looks for input once more; the writer writes and then reads the flag. With a fence
/// between the two steps ([`wake`](Self::wake)), one of them always notices the other. Without it
/// ([`wake_if_asleep`](Self::wake_if_asleep)) the writer must look again and again until an answer comes. Such a look is a
/// load from its own cache, where a fence would wait until its writes reach the sleeper's.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Sleeper {
    is_asleep: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Sleeper {
    /// Makes the calling thread the one that sleeps here.
    pub(super) fn attend(&self) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::current());
    }

    /// Sleeps until woken or for `at_most`, unless there `is_something` already. It may return early, as any sleep may.
    pub(super) fn sleep(&self, at_most: Duration, is_something: impl FnOnce() -> bool) {
        self.is_asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !is_something() {
            std::thread::park_timeout(at_most);
        }
        self.is_asleep.store(false, Ordering::Relaxed);
    }

    /// Wakes the thread if it sleeps. The caller must have written the input before.
    pub(super) fn wake(&self) {
        fence(Ordering::SeqCst);
        self.wake_if_asleep();
    }

    /// Wakes the thread if it sleeps, without a fence. The caller must repeat it until the thread has answered.
    #[inline]
    pub(super) fn wake_if_asleep(&self) {
        if self.is_asleep.load(Ordering::Relaxed) {
            self.wake_now();
        }
    }

    #[cold]
    fn wake_now(&self) {
        if self.is_asleep.swap(false, Ordering::Relaxed) {
            let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
            thread.iter().for_each(Thread::unpark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_of_every_size_arrive_whole_and_in_order() {
        let rings = Rings::new(3, 100);
        let sizes = [1, 12, 13, 76, 77, 204, 205, 5000, 2];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut rows = Vec::new();
                for (turn, size) in (1..).zip(sizes) {
                    while !rings.take(turn, &mut rows) {
                        std::thread::yield_now();
                    }
                    assert_eq!(rows, (turn..turn + size).collect::<Vec<_>>());
                    let completion = Completion {
                        picked_up: 1,
                        worked: 2,
                        host: 3,
                        prepared: 2,
                        device: 4,
                        done: u64::from(turn),
                        has_failed: false,
                        again: false,
                    };
                    assert!(rings.complete(turn, completion, None));
                    // A thread that was thought lost comes too late.
                    assert!(!rings.complete(turn, Completion { done: 0, again: true, ..completion }, None));
                }
            });
            for (turn, size) in (1..).zip(sizes) {
                rings.order(turn, turn..turn + size, 0, 0);
                // Up to three batches are under way.
                let oldest = turn.saturating_sub(2);
                while oldest > 0 && rings.completed(oldest).is_none() {
                    std::thread::yield_now();
                }
                assert!(oldest == 0 || rings.completed(oldest).unwrap().done == u64::from(oldest));
            }
        });
    }

    #[test]
    fn an_order_keeps_its_end_and_a_worker_its_lead() {
        let rings = Rings::new(2, 1);
        rings.order(1, std::iter::once(0), 5, 0);
        rings.order(2, std::iter::once(0), 6, 3);
        rings.set_until(1, 9);
        assert_eq!([1, 2].map(|turn| (rings.until(turn), rings.lanes(turn))), [(9, 0), (6, 3)]);
        let leads = [None, Some(0), Some(3), None].map(|lead| {
            rings.set_lead(lead);
            rings.lead()
        });
        assert_eq!(leads, [None, Some(0), Some(3), None]);
    }

    #[test]
    fn a_sleeper_is_woken_by_what_is_written_for_it() {
        let rings = Rings::new(1, 1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                rings.worker.attend();
                let mut rows = Vec::new();
                for turn in 1..=1000 {
                    while !rings.take(turn, &mut rows) {
                        // The sleep is far longer than the test may take: the test ends in time only if no wake-up is lost.
                        rings.worker.sleep(Duration::from_secs(600), || rings.has_order(turn));
                    }
                    rings.set_checked(turn);
                }
            });
            for turn in 1..=1000 {
                rings.order(turn, std::iter::once(turn), 0, 0);
                if turn % 2 == 0 {
                    rings.worker.wake();
                }
                while !rings.is_checked(turn) {
                    if turn % 2 == 1 {
                        rings.worker.wake_if_asleep();
                    }
                    std::thread::yield_now();
                }
            }
        });
    }
}
