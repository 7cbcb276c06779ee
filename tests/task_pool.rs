//! The lock-free claims of tasks, under every interleaving of a few threads.
//!
//! The file that claims tasks is compiled once more, with loom's atomics in place of the standard library's. Loom runs
//! each case until it has tried every order of the threads, up to a number of preemptions, and every value that a relaxed
//! load may see. The pool's data around the claims are plain cells of loom here. Loom reports a claim that doesn't make
//! them visible in time, or gives two threads access at once.

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
#[path = "../crates/engine/src/search/cpu/multicore/pool/claims.rs"]
mod claims;

/// Searching threads: the owner of the slot and helpers.
const WORKERS: usize = 2;

/// A slot of the pool, reduced to the data that claims protect.
struct Slot {
    claims: Claims,
    /// Written by the owner, read by each thread that holds a claim.
    query: UnsafeCell<u32>,
    /// The epoch, a bit for each task searched, and the query as read, by worker.
    found: [UnsafeCell<(u64, u32, u32)>; WORKERS],
    /// Written by the thread that finishes last, read by the owner.
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

    /// Does the work of the pool's workers: claims, searches, deposits, finishes; the last one merges. Returns whether it
    /// had a task.
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

    /// Merges the results of this epoch: every task once, of one query.
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
            // The thread that finishes an AND starts the OR that follows.
            write(&self.query, query + 1);
            self.claims.publish(num_tasks);
        } else {
            write(&self.answer, query);
            self.is_answered.store(true, Ordering::Release);
        }
    }
}

fn read<T: Copy>(cell: &UnsafeCell<T>) -> T {
    // SAFETY: claims guarantee that no other thread writes meanwhile; loom checks it.
    cell.with(|place| unsafe { *place })
}

fn write<T>(cell: &UnsafeCell<T>, value: T) {
    // SAFETY: claims guarantee that no other thread reads or writes meanwhile; loom checks it.
    cell.with_mut(|place| unsafe { *place = value });
}

type Claiming = dyn Fn(usize, &Claims, &mut u64) -> Option<Claim> + Send + Sync;

/// One owner asks `queries` queries of `passes` passes, one after another, with a helper.
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
            assert!(slot.claims.claim(|_| 1).is_none());
            assert_eq!(read(&slot.answer), 10 * query + passes - 1);
        }
        slot.is_closed.store(true, Ordering::Relaxed);
        helper.join().unwrap();
    });
}

#[test]
fn next_tasks_are_neither_lost_nor_searched_twice() {
    explore(2, 1, 2, StdArc::new(|_, claims, _| claims.claim(|_| 1)));
}

#[test]
fn shared_tasks_are_neither_lost_nor_searched_twice() {
    explore(1, 1, 4, StdArc::new(|_, claims, _| claims.claim(|left| left / 2)));
}

#[test]
fn a_second_pass_is_put_up_by_whoever_finished_the_first() {
    explore(1, 2, 2, StdArc::new(|_, claims, _| claims.claim(|_| 1)));
}
