//! Recursive graph bisection, which finds an order of documents with small gaps.
//!
//! Documents are split into halves. Pairs are swapped between the halves while both swaps together save
//! [bits](super::gains). Each half is then split in the same way, down to a few documents.
//!
//! ```text
//! all documents           a b c d e f g h
//! halves, after swaps     b d e h | a c f g          terms of b, d, e and h meet in the left half
//! quarters                d h|b e | a g|c f
//! ```
//!
//! A step computes what moving each document saves, sorts each half by it, and swaps the best of one half with the best
//! of the other until a pair saves nothing. Terms in a large share of all documents hardly change gains, yet are much
//! of the work, so they are left out. So are terms that only one document of a part contains.
//!
//! Halves are processed in parallel, and so are the documents of large parts. Results do not depend on the number of
//! threads: sums have one order, and equal gains rank by document. Sources: Dhulipala et al., "Compressing Graphs and
//! Indexes with Recursive Graph Bisection", KDD 2016; Mackenzie et al., "Compressing Inverted Indexes with Recursive
//! Graph Bisection", ECIR 2019; "Tradeoff Options for Bipartite Graph Partitioning", TKDE 2021.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::forward::Forward;
use super::gains::{Gains, Steps};
use super::permutation::Permutation;
use crate::index::Index;

/// Rows per task that computes gains.
const ROWS_A_TASK: usize = 256;

/// Effort of the search for an order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BisectionOptions {
    /// Terms in a larger share of the documents are left out.
    pub max_share: f64,
    /// Terms in fewer documents are left out; at least 2.
    pub min_doc_freq: u32,
    /// Maximum number of steps per split.
    pub max_steps: u32,
    /// Parts of at most this many documents are not split; at least 2.
    pub min_part: usize,
}

impl Default for BisectionOptions {
    fn default() -> Self {
        Self { max_share: 0.1, min_doc_freq: 2, max_steps: 20, min_part: 16 }
    }
}

struct Bisection<'a> {
    options: BisectionOptions,
    steps: Steps,
    /// Documents in all levels, and how many of them are done.
    work: u64,
    done: AtomicU64,
    progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// The rows of a part, in halves.
struct Halves {
    /// Rows of the left half, then of the right one.
    rows: Vec<u32>,
    middle: usize,
    /// Number of documents of the half that contain each term.
    left_freqs: Vec<u32>,
    right_freqs: Vec<u32>,
}

/// Finds an order for the documents of `index` on all of rayon's threads. It does not depend on their number.
///
/// The search takes about 8 bytes of memory per posting. `progress` receives the work done and in all.
pub fn bisect(index: &Index, options: BisectionOptions, progress: &(dyn Fn(u64, u64) + Sync)) -> Permutation {
    let max_freq = (f64::from(index.num_docs()) * options.max_share) as u32;
    let forward = Forward::new(index, options.min_doc_freq.max(2), max_freq);
    let mut order = vec![0; forward.docs.len()];
    let work = work_of(order.len(), options.min_part);
    let bisection = Bisection { options, steps: Steps::new(), work, done: AtomicU64::new(0), progress };
    bisection.order(forward, &mut order);
    Permutation::from_order(&order)
}

/// Documents times the levels of parts above `min_part` that they go through.
fn work_of(len: usize, min_part: usize) -> u64 {
    let levels = (len as f64 / min_part as f64).log2().ceil().max(0.0);
    (len as f64 * levels) as u64
}

impl Bisection<'_> {
    /// Writes the part's documents into `order`.
    fn order(&self, part: Forward, order: &mut [u32]) {
        if part.docs.len() <= self.options.min_part.max(2) {
            order.copy_from_slice(&part.docs);
            return;
        }
        let mut halves = Halves::new(&part);
        self.swap(&part, &mut halves);
        // Rows in order of the documents are read front to back. The first split of a half also keeps the locality of
        // the collection's own order.
        let (left_rows, right_rows) = halves.rows.split_at_mut(halves.middle);
        left_rows.sort_unstable();
        right_rows.sort_unstable();
        let (left, right) =
            rayon::join(|| part.part(left_rows, &halves.left_freqs), || part.part(right_rows, &halves.right_freqs));
        let (left_order, right_order) = order.split_at_mut(halves.middle);
        let len = part.docs.len() as u64;
        drop((part, halves));
        let done = self.done.fetch_add(len, Ordering::Relaxed) + len;
        (self.progress)(done.min(self.work), self.work);
        rayon::join(|| self.order(left, left_order), || self.order(right, right_order));
    }

    /// Swaps documents between the halves until no swap saves bits.
    fn swap(&self, part: &Forward, halves: &mut Halves) {
        let mut gains = Gains::new(part.num_terms);
        for _ in 0..self.options.max_steps {
            let (left_rows, right_rows) = halves.rows.split_at(halves.middle);
            let sizes = (left_rows.len(), right_rows.len());
            gains.compute(&self.steps, &halves.left_freqs, &halves.right_freqs, sizes);
            let (left, right) =
                rayon::join(|| ranked(part, left_rows, &gains.left), || ranked(part, right_rows, &gains.right));
            let pairs = left.iter().zip(&right);
            let num_swaps = pairs.take_while(|(left, right)| left.gain + right.gain > 0.0).count();
            if num_swaps == 0 {
                break;
            }
            halves.exchange(part, &left[..num_swaps], &right[..num_swaps]);
        }
    }
}

/// A row, and what moving it to the other half saves.
#[derive(Clone, Copy)]
struct Candidate {
    gain: f32,
    row: u32,
    /// Position of the row in its half.
    place: u32,
}

/// The rows of a half, those whose move saves most first.
fn ranked(part: &Forward, rows: &[u32], gains: &[f32]) -> Vec<Candidate> {
    let candidate = |(place, &row): (usize, &u32)| {
        let gain = part.row(row).iter().map(|&term| gains[term as usize]).sum();
        Candidate { gain, row, place: place as u32 }
    };
    let by_gain = |a: &Candidate, b: &Candidate| b.gain.total_cmp(&a.gain).then(a.row.cmp(&b.row));
    let mut ranked: Vec<Candidate> = rows.par_iter().with_min_len(ROWS_A_TASK).enumerate().map(candidate).collect();
    ranked.par_sort_unstable_by(by_gain);
    ranked
}

impl Halves {
    fn new(part: &Forward) -> Self {
        let rows: Vec<u32> = (0..part.docs.len() as u32).collect();
        let middle = rows.len() / 2;
        let count = |rows: &[u32]| {
            let mut freqs = vec![0; part.num_terms];
            rows.iter().flat_map(|&row| part.row(row)).for_each(|&term| freqs[term as usize] += 1);
            freqs
        };
        let (left, right) = rows.split_at(middle);
        let (left_freqs, right_freqs) = rayon::join(|| count(left), || count(right));
        Self { rows, middle, left_freqs, right_freqs }
    }

    /// Swaps the rows of `left` with those of `right`.
    fn exchange(&mut self, part: &Forward, left: &[Candidate], right: &[Candidate]) {
        let (left_rows, right_rows) = self.rows.split_at_mut(self.middle);
        for (left, right) in left.iter().zip(right) {
            left_rows[left.place as usize] = right.row;
            right_rows[right.place as usize] = left.row;
            for &term in part.row(left.row) {
                self.left_freqs[term as usize] -= 1;
                self.right_freqs[term as usize] += 1;
            }
            for &term in part.row(right.row) {
                self.left_freqs[term as usize] += 1;
                self.right_freqs[term as usize] -= 1;
            }
        }
    }
}
