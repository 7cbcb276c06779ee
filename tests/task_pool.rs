//! The lock-free claims of tasks, under every interleaving of a few threads.
//!
//! The file that claims tasks is compiled once more, with loom's atomics in place of the standard library's. Loom runs
//! each case again and again, until it has tried every order in which threads may take turns (with so many
//! preemptions), and every value that a relaxed load may see. What the pool keeps around the claims is plain data in
//! loom's cells here: if a claim didn't make them visible in time, or let two threads have them at once, loom would say
//! so.

use std::sync::Arc as StdArc;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicBool;
use loom::thread;

use self::atomics::Ordering;
use self::claims::{Claim, Claims, MAX_TASKS};

#[expect(unreachable_pub)]
mod atomics {
    pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}
#[path = "../crates/core/src/search/cpu/multicore/pool/claims.rs"]
mod claims;

/// Threads that search: the owner of the slot and helpers.
const WORKERS: usize = 2;

/// A slot as the pool has it, reduced to what claims protect.
struct Slot {
    claims: Claims,
    /// Written by the owner, read by whoever holds a claim.
    query: UnsafeCell<u32>,
    /// By worker: the epoch, and a bit for each task that was searched, of the query as it was read.
    found: [UnsafeCell<(u64, u32, u32)>; WORKERS],
    /// Written by the one who finishes last, read by the owner.
    answer: UnsafeCell<u32>,
    is_answered: AtomicBool,
    is_closed: AtomicBool,
}

impl Slot {
    fn new() -> Self {
        Self {
            claims: Claims::default(),
            query: UnsafeCell::new(0),
            found: std::array::from_fn(|_| UnsafeCell::new((0, 0, 0))),
            answer: UnsafeCell::new(0),
            is_answered: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        }
    }

    fn publish(&self, query: u32, num_tasks: u32) {
        self.is_answered.store(false, Ordering::Relaxed);
        write(&self.query, query);
        self.claims.publish(num_tasks);
    }

    /// As a worker of the pool does: claims, searches, deposits, finishes; the last one merges. Whether it had a task.
    fn work(
        &self,
        worker: usize,
        mut claim: impl FnMut(&Claims) -> Option<Claim>,
        passes: u32,
        num_tasks: u32,
    ) -> bool {
        let Some(mut claimed) = claim(&self.claims) else { return false };
        let query = read(&self.query);
        let (mut count, mut bits) = (0, 0);
        loop {
            count += claimed.tasks.len() as u32;
            claimed.tasks.clone().for_each(|task| bits |= 1 << task);
            match claim(&self.claims) {
                Some(next) => claimed = next,
                None => break,
            }
        }
        let epoch = self.claims.epoch();
        write(&self.found[worker], (epoch, bits, query));
        if self.claims.finish(count) {
            self.settle(passes, num_tasks);
        }
        true
    }

    /// Merges what all found in this epoch: every task once, of the same query.
    fn settle(&self, passes: u32, num_tasks: u32) {
        let (epoch, query) = (self.claims.epoch(), read(&self.query));
        let mut all = 0;
        for found in &self.found {
            let (found_in, bits, of) = read(found);
            if found_in == epoch {
                assert_eq!(of, query, "a query that was searched after it was answered");
                assert_eq!(all & bits, 0, "a task that was claimed twice");
                all |= bits;
            }
        }
        assert_eq!(all, (1 << num_tasks) - 1, "a task that was lost");
        if query % 10 + 1 < passes {
            // As the OR that follows an AND: put up by whoever finished it.
            write(&self.query, query + 1);
            self.claims.publish(num_tasks);
        } else {
            write(&self.answer, query);
            self.is_answered.store(true, Ordering::Release);
        }
    }
}

fn read<T: Copy>(cell: &UnsafeCell<T>) -> T {
    // SAFETY: that nobody writes meanwhile is what claims promise; loom checks it.
    cell.with(|place| unsafe { *place })
}

fn write<T>(cell: &UnsafeCell<T>, value: T) {
    // SAFETY: that nobody else reads or writes meanwhile is what claims promise; loom checks it.
    cell.with_mut(|place| unsafe { *place = value });
}

type Claiming = dyn Fn(usize, &Claims, &mut u64) -> Option<Claim> + Send + Sync;

/// One owner asks `queries` queries of `passes` passes, one after another, and a helper helps.
fn explore(queries: u32, passes: u32, num_tasks: u32, claiming: StdArc<Claiming>) {
    assert!(num_tasks as usize <= MAX_TASKS);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let slot = Arc::new(Slot::new());
        let helper = {
            let (slot, claiming) = (Arc::clone(&slot), StdArc::clone(&claiming));
            thread::spawn(move || {
                let mut seen = 0;
                while !slot.is_closed.load(Ordering::Relaxed) {
                    if !slot.work(1, |claims| claiming(1, claims, &mut seen), passes, num_tasks) {
                        thread::yield_now();
                    }
                }
            })
        };
        let mut seen = 0;
        for query in 1..=queries {
            slot.publish(10 * query, num_tasks);
            while !slot.is_answered.load(Ordering::Acquire) {
                if !slot.work(0, |claims| claiming(0, claims, &mut seen), passes, num_tasks) {
                    thread::yield_now();
                }
            }
            assert_eq!(slot.claims.unclaimed(), 0);
            assert_eq!(read(&slot.answer), 10 * query + passes - 1);
        }
        slot.is_closed.store(true, Ordering::Relaxed);
        helper.join().unwrap();
    });
}

#[test]
fn whoever_comes_takes_the_next_task_and_none_is_lost_or_searched_twice() {
    explore(2, 1, 2, StdArc::new(|_, claims, _| claims.claim(|_| 1)));
}

#[test]
fn whoever_comes_takes_a_share_and_none_is_lost_or_searched_twice() {
    explore(1, 1, 4, StdArc::new(|_, claims, _| claims.claim(|left| left / 2)));
}

#[test]
fn a_second_pass_is_put_up_by_whoever_finished_the_first() {
    explore(1, 2, 2, StdArc::new(|_, claims, _| claims.claim(|_| 1)));
}

#[test]
fn tasks_that_belong_to_threads_are_searched_once_in_every_epoch() {
    let claim_own = |worker: usize, claims: &Claims, seen: &mut u64| {
        let claim = claims.claim_own(worker as u32, *seen)?;
        *seen = claim.epoch;
        Some(claim)
    };
    explore(2, 1, WORKERS as u32, StdArc::new(claim_own));
    explore(1, 2, WORKERS as u32, StdArc::new(claim_own));
}
