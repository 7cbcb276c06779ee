//! A batch of queries in the device's form, which batch.cuh describes.
//!
//! ```text
//! input    entries | terms | drivers, hints (first launch) | drivers, hints (second) | tiled | sampled | sorted later
//! launch   score_batch ─▶ score_tiles (sample) ─▶ score_tiles ─▶ score_batch (second stages) ─▶ merge_topk
//! results  number, keys | number, keys | ...  | postings scored, start, end
//! ```
//!
//! A batch may mix modes and numbers of results. Nearly all batches are one launch. Further launches serve tiles, the
//! second stage of AND+OR, and more results than a warp sorts. The input of a small batch is a kernel parameter, which
//! saves a copy before the launch.

use bytemuck::{Pod, cast_slice};
use tandem_base::traffic::Mode;

use super::arguments::{
    BatchArgument, BatchEntry, IS_LAST, NEEDS_ALL, NO_GATE, SCORES_ALL, SMALL_INPUT_WORDS, SORTS_LATER, SmallInput,
    TermEntry, TileEntry, WARP_K,
};
use super::kernels::{GROUP_TILES, TILE_DOCS};
use super::plan::{Plan, Pruning};
use super::share::{DriverShares, MOST_ROUNDS_A_BLOCK};
use super::terms::TermTable;
use crate::search::Request;
use crate::search::device::Device;

/// Candidates per query. Queries with more, which are rare with seeds, run again alone.
const CANDIDATES: usize = 4096;
const CANDIDATES_A_RESULT: usize = 16;
/// Warps of a multiprocessor for which items are sized. It holds some more at once.
const WARPS_A_MULTIPROCESSOR: u32 = 32;
/// Words for the postings scored and the start and end of a batch.
const END: usize = 3;
/// The most blocks in the lists of a batch of several queries, so that 32 bits count the items of a launch.
const MAX_BLOCKS: u64 = 1 << 30;
/// A query's tiles are sampled first from this mean number of postings per tile on. The sample's threshold then spares
/// most candidates of the other tiles.
const SAMPLED_POSTINGS: u64 = 64;
/// The least tiles per sampled tile.
const SAMPLED_TILES: u32 = 4;
/// The least `k` for sampling. For fewer results the first tiles of a single launch find as good a threshold.
const SAMPLED_K: u32 = 64;

/// Thread blocks of `score_tiles` or `score_impact_tiles` that a multiprocessor holds at once.
const TILE_BLOCKS: u32 = 5;
/// The least groups of tiles per resident thread block, so that all end at about the same time.
const GROUP_WAVES: u32 = 4;

#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchCapacity {
    /// Queries, and second stages of queries.
    pub(crate) entries: usize,
    pub(crate) input_words: usize,
    pub(crate) result_words: usize,
    /// Candidates of all queries together.
    pub(crate) candidates: usize,
    pub(crate) is_for_one: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Parallelism {
    pub(crate) warps: u32,
    pub(crate) multiprocessors: u32,
}

impl Parallelism {
    pub(crate) fn of(device: &Device) -> Self {
        Self { warps: device.multiprocessors * WARPS_A_MULTIPROCESSOR, multiprocessors: device.multiprocessors }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    /// Its first term among those of the batch.
    pub(crate) first_term: u32,
    pub(crate) place: AnswerSource,
}

/// The source of a request's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerSource {
    /// The request has no term and no results.
    Nowhere,
    /// The batch writes it from this word of the results on.
    At(u32),
    /// The request exceeds the capacity of a batch and runs alone.
    Alone,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Launches {
    pub(crate) input_len: usize,
    /// Whether the input is a kernel parameter.
    pub(crate) is_small: bool,
    pub(crate) scored: Option<BatchArgument>,
    pub(crate) sampled: Option<BatchArgument>,
    pub(crate) tiled: Option<BatchArgument>,
    pub(crate) scored_again: Option<BatchArgument>,
    pub(crate) sorted: Option<(BatchArgument, u32)>,
}

#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) planned: Vec<Planned>,
    pub(crate) terms: Vec<TermEntry>,
    entries: Vec<BatchEntry>,
    first: Box<DriverShares>,
    second: Box<DriverShares>,
    tiled: Vec<TileEntry>,
    sampled: Vec<TileEntry>,
    later: Vec<u32>,
    tiles: u32,
    sampled_tiles: u32,
    num_blocks: u64,
    result_words: usize,
    candidates: usize,
    num_answered: u32,
}

struct Needs {
    num_blocks: u64,
    candidates: usize,
    result_words: usize,
}

fn candidates(plan: &Plan, num_docs: u32, tiles: u32, room: &BatchCapacity) -> usize {
    let k = plan.query.k as usize;
    let most = num_docs.max(1) as usize;
    let by_lists = CANDIDATES + CANDIDATES_A_RESULT * k;
    match plan.by_tiles {
        _ if room.is_for_one => room.candidates,
        // A stage before the tiles uses lists.
        true => (tiles as usize * k).max(by_lists).min(most),
        false => by_lists.min(most),
    }
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.planned.clear();
        self.terms.clear();
        self.entries.clear();
        self.first.clear();
        self.second.clear();
        self.tiled.clear();
        self.sampled.clear();
        self.later.clear();
        (self.tiles, self.sampled_tiles, self.num_blocks) = (0, 0, 0);
        (self.result_words, self.candidates, self.num_answered) = (0, 0, 0);
    }

    /// Exchanges the memory that only planning and launch use. Batches that take turns thus use the same, which stays in
    /// the processor's caches.
    pub(crate) fn swap_scratch(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.entries, &mut other.entries);
        std::mem::swap(&mut self.first, &mut other.first);
        std::mem::swap(&mut self.second, &mut other.second);
    }

    /// Adds a request if it fits, and returns whether it did. An empty batch takes any request.
    #[inline]
    pub(crate) fn add(
        &mut self,
        table: &TermTable,
        &Request { query, mode, k }: &Request<'_>,
        pruning: Pruning,
        room: &BatchCapacity,
        machine: Parallelism,
    ) -> bool {
        let first_term = self.terms.len();
        let plan = Plan::new(table, query, mode, k, pruning, &mut self.terms);
        self.add_planned(plan, first_term, table.num_docs, room, machine)
    }

    /// Like [`Batch::add`], for a plan whose terms were appended last.
    pub(crate) fn add_planned(
        &mut self,
        plan: Plan,
        first_term: usize,
        num_docs: u32,
        room: &BatchCapacity,
        machine: Parallelism,
    ) -> bool {
        let planned = |place| Planned { plan, first_term: first_term as u32, place };
        let terms_of = &self.terms[first_term..];
        if terms_of.is_empty() {
            self.planned.push(planned(AnswerSource::Nowhere));
            return true;
        }
        let by_tiles = plan.by_tiles;
        let tiles = num_docs.div_ceil(TILE_DOCS).max(1);
        let needs = Needs {
            num_blocks: plan.num_blocks,
            candidates: candidates(&plan, num_docs, tiles, room),
            result_words: 1 + plan.query.k as usize,
        };
        if !self.has_room(&needs, terms_of.len(), room, machine) {
            if self.entries.is_empty() {
                self.planned.push(planned(AnswerSource::Alone));
                return true;
            }
            self.terms.truncate(first_term);
            return false;
        }
        self.planned.push(planned(AnswerSource::At(self.result_words as u32)));
        let last = self.add_entries(&plan, first_term, needs.candidates);
        if by_tiles {
            self.add_tiles(last, tiles, machine);
        }
        self.num_blocks += needs.num_blocks;
        self.result_words += needs.result_words;
        self.candidates += needs.candidates;
        self.num_answered += 1;
        true
    }

    /// Whether a query with `num_terms` terms fits.
    fn has_room(&self, needs: &Needs, num_terms: usize, room: &BatchCapacity, machine: Parallelism) -> bool {
        self.entries.len() + 2 <= room.entries
            && self.candidates + needs.candidates <= room.candidates
            && self.result_words + needs.result_words + END <= room.result_words
            && self.input_words(num_terms, needs.num_blocks, machine) <= room.input_words
            && (self.entries.is_empty() || self.num_blocks + needs.num_blocks <= MAX_BLOCKS)
    }

    /// Adds the one or two entries of a query with their driving lists, without tiles. Returns the number of the last
    /// entry.
    fn add_entries(&mut self, plan: &Plan, first_term: usize, capacity: usize) -> u32 {
        let number = self.entries.len() as u32;
        let later = if plan.query.k as usize > WARP_K { SORTS_LATER } else { 0 };
        let mut query = plan.query;
        query.first_term = first_term as u32;
        let entry = BatchEntry {
            query,
            num_items: 0,
            result: self.result_words as u32,
            candidates: self.candidates as u32,
            capacity: capacity as u32,
            gate: NO_GATE,
            flags: IS_LAST | later,
        };
        let mut last = number;
        let is_union = plan.mode != Mode::And;
        if plan.mode != Mode::Or {
            // `score_tiles` sorts its results, but a stage before it does not.
            let flags = NEEDS_ALL | if is_union { later } else { IS_LAST | later };
            self.entries.push(BatchEntry { flags, ..entry });
            self.first.add(number, plan, &self.terms[first_term..], true);
        }
        if is_union {
            let gate = if plan.mode == Mode::AndOr { number } else { NO_GATE };
            last = self.entries.len() as u32;
            let all = if plan.scores_all { SCORES_ALL } else { 0 };
            self.entries.push(BatchEntry { gate, flags: entry.flags | all, ..entry });
            if !plan.by_tiles {
                let shares = if gate == NO_GATE { &mut self.first } else { &mut self.second };
                shares.add(last, plan, &self.terms[first_term..], false);
            }
        }
        // `score_tiles` sorts for any k.
        if later != 0 && !plan.by_tiles {
            self.later.push(last);
        }
        last
    }

    fn add_tiles(&mut self, number: u32, tiles: u32, machine: Parallelism) {
        let entry = &mut self.entries[number as usize];
        let terms = &self.terms[entry.query.first_term as usize..];
        let postings: u64 = terms.iter().map(|term| u64::from(term.doc_freq)).sum();
        let pays = entry.query.k >= SAMPLED_K
            && tiles >= SAMPLED_TILES * machine.multiprocessors
            && postings >= SAMPLED_POSTINGS * u64::from(tiles);
        let sample_stride = if pays { tiles / machine.multiprocessors } else { 0 };
        entry.num_items = tiles;
        self.tiled.push(TileEntry { query: number, sample_stride });
        self.tiles += tiles;
        if pays {
            self.sampled.push(TileEntry { query: number, sample_stride });
            self.sampled_tiles += tiles.div_ceil(sample_stride);
        }
    }

    /// Upper bound of the input words with one more query of `more_terms` terms and `more_blocks` blocks.
    fn input_words(&self, more_terms: usize, more_blocks: u64, machine: Parallelism) -> usize {
        let entries = self.entries.len() + 2;
        let drivers = self.first.len() + self.second.len() + 2 * more_terms;
        let rounds =
            f64::from(self.first.rounds + self.second.rounds) + f64::from(MOST_ROUNDS_A_BLOCK) * more_blocks as f64;
        let blocks = self.num_blocks + more_blocks;
        let hints = 2 * DriverShares::most_hints(entries, rounds, blocks, drivers, machine.warps);
        12 * entries
            + 5 * (self.terms.len() + more_terms)
            + 4 * drivers
            + hints
            + 2 * (self.tiled.len() + self.sampled.len() + 2)
            + self.later.len()
            + 40
    }

    /// Whether the input fits a kernel parameter, which has no hints.
    fn is_small(&self) -> bool {
        let drivers = 4 * (self.first.len() + self.second.len());
        let len = 12 * self.entries.len() + (5 * self.terms.len()).next_multiple_of(4) + drivers;
        len <= SMALL_INPUT_WORDS && self.tiled.is_empty() && self.later.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Assigns work to warps and returns the launches. [`Batch::write`] then writes the input.
    pub(crate) fn finish(&mut self, machine: Parallelism) -> Launches {
        let is_small = self.is_small();
        self.first.share_out(&mut self.entries, machine.warps, !is_small);
        self.second.share_out(&mut self.entries, machine.warps, !is_small);
        let mut len = 0;
        let mut place = |words: usize| {
            let at = len;
            // Every section is aligned to 16 bytes.
            len = (len + words).next_multiple_of(4);
            at as u32
        };
        let words = |bytes: usize| bytes / 4;
        let common = BatchArgument {
            queries_at: place(words(size_of_val(self.entries.as_slice()))),
            terms_at: place(words(size_of_val(self.terms.as_slice()))),
            num_queries: self.num_answered,
            end_at: self.result_words as u32,
            ..BatchArgument::default()
        };
        let mut scored = |shares: &DriverShares| BatchArgument {
            drivers_at: place(words(size_of_val(shares.drivers.as_slice()))),
            hints_at: place(shares.hints.len()),
            num_drivers: shares.drivers.len() as u32,
            num_items: shares.num_items,
            num_first_items: shares.num_first_items,
            item_rows: shares.item_rows,
            num_places: shares.num_places(),
            ..common
        };
        let [first, second] = [&self.first, &self.second].map(|shares| (!shares.is_empty()).then(|| scored(shares)));
        let mut tiles = |tiled: &[TileEntry], num_items: u32| {
            let tiles_at = place(words(size_of_val(tiled)));
            let tiles_a_block =
                (num_items / (GROUP_WAVES * TILE_BLOCKS * machine.multiprocessors)).clamp(1, GROUP_TILES);
            (num_items > 0).then_some(BatchArgument {
                tiles_at,
                tiles_a_block,
                num_tiled: tiled.len() as u32,
                num_items,
                ..common
            })
        };
        let tiled = tiles(&self.tiled, self.tiles);
        let sampled = tiles(&self.sampled, self.sampled_tiles);
        let later_at = place(self.later.len());
        let num_later = self.later.len() as u32;
        let sorted = (num_later > 0).then_some((BatchArgument { later_at, ..common }, num_later));
        let mut launches =
            Launches { input_len: len, is_small, scored: first, sampled, tiled, scored_again: second, sorted };
        // A second stage always follows a first one.
        let earliest = [&mut launches.scored, &mut launches.sampled, &mut launches.tiled];
        if let Some(batch) = earliest.into_iter().flatten().next() {
            batch.is_first = 1;
        }
        launches
    }

    pub(crate) fn write(&self, launches: &Launches, input: &mut [u32]) {
        let mut len = 0;
        append(input, &mut len, &self.entries);
        append(input, &mut len, &self.terms);
        for shares in [&self.first, &self.second].into_iter().filter(|shares| !shares.is_empty()) {
            append(input, &mut len, &shares.drivers);
            append(input, &mut len, &shares.hints);
        }
        append(input, &mut len, &self.tiled);
        append(input, &mut len, &self.sampled);
        append(input, &mut len, &self.later);
        debug_assert_eq!(len, launches.input_len);
    }

    /// The input as a parameter, if it is small enough.
    pub(crate) fn small_input(&self, launches: &Launches) -> Option<SmallInput> {
        launches.is_small.then(|| {
            let mut small = SmallInput { words: [0; SMALL_INPUT_WORDS] };
            self.write(launches, &mut small.words);
            small
        })
    }
}

fn append<T: Pod>(input: &mut [u32], len: &mut usize, items: &[T]) {
    let words: &[u32] = cast_slice(items);
    input[*len..*len + words.len()].copy_from_slice(words);
    *len = (*len + words.len()).next_multiple_of(4);
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;

    const ROOM: BatchCapacity =
        BatchCapacity { entries: 64, input_words: 1 << 16, result_words: 4000, candidates: 400_000, is_for_one: false };
    const MACHINE: Parallelism = Parallelism { warps: 4224, multiprocessors: 132 };

    fn add(batch: &mut Batch, lists: &[(u32, f32)], mode: Mode, k: usize) -> bool {
        let (mut plan, terms) = plan(lists, 0.5, mode);
        plan.query.k = k as u32;
        let first = batch.terms.len();
        batch.terms.extend(terms);
        batch.add_planned(plan, first, 1_000_000, &ROOM, MACHINE)
    }

    #[test]
    fn gpu_batch_launches_second_stages_only_again() {
        let mut batch = Batch::default();
        let lists = [(2000, 3.0), (90_000, 1.0)];
        for mode in Mode::ALL {
            assert!(add(&mut batch, &lists, mode, 10));
        }
        let launches = batch.finish(MACHINE);
        assert!(launches.is_small && launches.tiled.is_none() && launches.sorted.is_none());
        // AND and AND+OR drive by one list each. OR and the union of AND+OR drive by two.
        let (first, second) = (launches.scored.unwrap(), launches.scored_again.unwrap());
        assert_eq!((first.num_drivers, second.num_drivers), (4, 2));
        assert_eq!((first.is_first, second.is_first, first.num_queries, first.end_at), (1, 0, 3, 33));
        let input = batch.small_input(&launches).unwrap();
        let entries: &[BatchEntry] = cast_slice(&input.words[..4 * 12]);
        assert_eq!(entries.iter().map(|entry| entry.gate).collect::<Vec<_>>(), [NO_GATE, NO_GATE, NO_GATE, 2]);
        assert_eq!(entries[2].flags, NEEDS_ALL);
        assert_eq!(entries[2].result, entries[3].result);
        assert_eq!(entries.iter().map(|entry| entry.num_items).sum::<u32>(), first.num_items + second.num_items);
    }

    #[test]
    fn gpu_batch_sorts_large_k_later_and_tiles_long_queries() {
        let mut batch = Batch::default();
        assert!(add(&mut batch, &[(2000, 3.0)], Mode::Or, 10));
        assert!(add(&mut batch, &[(2000, 3.0)], Mode::Or, 129));
        assert!(add(&mut batch, &[(400_000, 1.0); 12], Mode::AndOr, 1000));
        let launches = batch.finish(MACHINE);
        assert!(!launches.is_small);
        assert_eq!(launches.sorted.map(|(_, num_later)| num_later), Some(1));
        assert_eq!(launches.tiled.map(|tiled| (tiled.num_tiled, tiled.num_items)), Some((1, 123)));
        assert_eq!(launches.scored.unwrap().num_drivers, 3);
        assert!(launches.scored_again.is_none());
        let mut input = vec![0; launches.input_len];
        batch.write(&launches, &mut input);
    }

    #[test]
    fn gpu_batch_without_room_leaves_the_rest_for_later() {
        let mut batch = Batch::default();
        let mut added = 0;
        while add(&mut batch, &[(2000, 3.0)], Mode::Or, 10) {
            added += 1;
        }
        // Each query may need two entries and 4256 candidates.
        assert_eq!(added, 63);
        assert_eq!((batch.planned.len(), batch.terms.len()), (63, 63));
        batch.clear();
        // A query above the capacity of a batch runs alone; a query without terms does not run.
        assert!(add(&mut batch, &[(400_000, 1.0); 12], Mode::Or, 5000));
        assert!(add(&mut batch, &[], Mode::Or, 10));
        assert_eq!(
            batch.planned.iter().map(|one| one.place).collect::<Vec<_>>(),
            [AnswerSource::Alone, AnswerSource::Nowhere]
        );
        assert!(batch.is_empty());
    }
}
