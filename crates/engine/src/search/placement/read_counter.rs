//! Counts on the host which rows of an index a search reads on a GPU.
//!
//! The counter replays `kernels/drive.cuh` with the final threshold, which gives a lower bound of the real reads. A
//! driving list is scanned block by block; impacts are read if the block's bound reaches the threshold but not all of
//! its postings do. A warp takes 32 postings that may reach it, reads their documents and looks them up in one list after
//! another. A directory or the bound of the one block that may hold the document ends most look-ups without a read; the
//! others read four documents. Frequencies of survivors and of found documents are read, too.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use tandem_base::base::ids::TermId;
use tandem_base::traffic::Mode;

use super::expected_reads::{ReadRates, expected_reads};
use super::learned_reads::LearnedReads;
use super::list_rows::{byte_rows, directory_scale, value_rows};
use crate::index::{BLOCK_LEN, BlockBuffer, Bm25, Index, PostingList};
use crate::query::Query;
use crate::search::cpu::CpuExecutor;
use crate::search::{ExecError, Executor, Hit};

/// Postings that a warp scores at a time.
const WARP: usize = 32;
/// Rows per 32-byte sector, the unit of a read across the bus.
const SECTOR_ROWS: u32 = 2;
/// The most queries of a log that are counted.
const MOST_QUERIES: usize = 512;
/// Bits of a scaled document behind its part of a directory's interval.
const PART_SHIFT: u32 = 27;
/// Results per counted query.
const K: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowsRead {
    term: TermId,
    block: u32,
    first_row: u32,
    num_rows: u32,
    /// The warp's request. A request reads each sector once.
    request: u64,
}

#[derive(Debug)]
struct ReadCounter {
    index: Arc<Index>,
    cpu: CpuExecutor,
    directory_stride: u32,
    hits: Vec<Hit>,
    requests: u64,
}

/// A list of a query in the kernels' form.
struct CountedTerm<'a> {
    id: TermId,
    list: PostingList<'a>,
    weight: f32,
    /// Upper bound of the score from this term and all later ones.
    rest: f32,
    /// Directory entries per document in units of 2^-32, 0 without a directory.
    scale: u64,
    decoded: usize,
    block: BlockBuffer,
    packing: Packing,
}

/// Rows and bits per value of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Packing {
    len: usize,
    doc_width: u32,
    impact_row: u32,
    freq_row: u32,
    freq_width: u32,
}

impl<'a> CountedTerm<'a> {
    fn new(id: TermId, list: PostingList<'a>, weight: f32, scale: u32) -> Self {
        Self {
            id,
            list,
            weight,
            rest: weight * list.max_impact(),
            scale: scale.into(),
            decoded: usize::MAX,
            block: BlockBuffer::default(),
            packing: Packing::default(),
        }
    }

    fn decode(&mut self, block: usize) {
        if self.decoded == block {
            return;
        }
        self.decoded = block;
        let BlockBuffer { docs, freqs } = &mut self.block;
        let len = self.list.decode_docs(block, docs);
        self.list.decode_freqs(block, freqs);
        let width = |most: u32| u32::BITS - most.leading_zeros();
        let doc_width = width(docs[len - 1] - docs[0]);
        let impact_row = value_rows(len, doc_width);
        let freq_width = width(freqs[..len].iter().max().map_or(0, |most| most - 1));
        self.packing = Packing { len, doc_width, impact_row, freq_row: impact_row + byte_rows(len), freq_width };
    }

    /// Whether the directory may have `doc`, which would be at `position` of the decoded block. If so, one of its two
    /// neighbours in the list is in its part of an interval.
    fn may_have(&self, doc: u32, position: usize) -> bool {
        let part = |doc: u32| (u64::from(doc) * self.scale) >> PART_SHIFT;
        let before = match position.checked_sub(1) {
            Some(before) => Some(self.block.docs[before]),
            None => self.decoded.checked_sub(1).map(|block| self.list.last_doc(block)),
        };
        part(self.block.docs[position]) == part(doc) || before.is_some_and(|before| part(before) == part(doc))
    }
}

/// A posting of the driving list with its document's score so far.
#[derive(Clone, Copy, Debug)]
struct Survivor {
    block: usize,
    position: usize,
    packing: Packing,
    doc: u32,
    score: f32,
}

impl ReadCounter {
    /// `cpu` must search the same index.
    fn new(index: &Arc<Index>, cpu: CpuExecutor, directory_stride: u32) -> Self {
        Self { index: Arc::clone(index), cpu, directory_stride, hits: Vec::new(), requests: 0 }
    }

    /// Calls `read` with each read of an AND or OR query. Fails if the query cannot be searched.
    fn count(&mut self, query: &Query, mode: Mode, read: &mut impl FnMut(RowsRead)) -> Result<(), ExecError> {
        self.cpu.search(query, mode, K, &mut self.hits)?;
        let floor = if self.hits.len() == K { self.hits[K - 1].score } else { 0.0 };
        let norms = Arc::clone(self.cpu.norms());
        let mut reading = Reading {
            norms: &norms,
            directory_stride: self.directory_stride,
            floor,
            requests: &mut self.requests,
            read,
        };
        reading.run(&self.index, query, mode);
        Ok(())
    }

    /// The sectors of each list that cross the bus if all rows are host-resident, in the query's order. Fails if the
    /// query cannot be searched.
    fn sectors(&mut self, query: &Query, mode: Mode) -> Result<Vec<f64>, ExecError> {
        let mut sums = vec![0.0; query.terms.len()];
        // Blocks and sectors that the current request has read.
        let (mut request, mut seen) = (u64::MAX, Vec::new());
        self.count(query, mode, &mut |read| {
            if read.request != request {
                request = read.request;
                seen.clear();
            }
            // Every second block begins in the middle of a sector. The count treats all blocks as aligned.
            let place = query.terms.iter().position(|term| term.term == read.term);
            for sector in read.first_row / SECTOR_ROWS..=(read.first_row + read.num_rows - 1) / SECTOR_ROWS {
                if !seen.contains(&(read.block, sector)) {
                    seen.push((read.block, sector));
                    place.into_iter().for_each(|place| sums[place] += 1.0);
                }
            }
        })?;
        Ok(sums)
    }
}

struct Reading<'a, F> {
    norms: &'a [f32],
    directory_stride: u32,
    /// The least score of a result.
    floor: f32,
    requests: &'a mut u64,
    read: &'a mut F,
}

impl<F: FnMut(RowsRead)> Reading<'_, F> {
    fn run(&mut self, index: &Index, query: &Query, mode: Mode) {
        let bm25: Bm25 = index.built_with();
        let mut terms: Vec<CountedTerm<'_>> = Vec::with_capacity(query.terms.len());
        for term in &query.terms {
            let list = index.list(term.term);
            let weight = bm25.weight(index.num_docs(), term.doc_freq, term.qtf);
            let is_long = term.doc_freq as usize >= BLOCK_LEN;
            let scale =
                if is_long { directory_scale(index.num_docs(), term.doc_freq, self.directory_stride) } else { 0 };
            terms.push(CountedTerm::new(term.term, list, weight, scale));
        }
        let mut total = 0.0;
        for term in terms.iter_mut().rev() {
            total += term.rest;
            term.rest = total;
        }
        let needs_all = mode == Mode::And && terms.len() > 1;
        let drivers = if needs_all { 1 } else { terms.iter().take_while(|term| term.rest >= self.floor).count() };
        for driver in 0..drivers {
            self.drive(&mut terms, driver, needs_all);
        }
    }

    /// Begins a request of a warp.
    fn ask(&mut self) -> u64 {
        *self.requests += 1;
        *self.requests
    }

    fn rows(&mut self, request: u64, term: TermId, block: usize, first_row: u32, num_rows: u32) {
        (self.read)(RowsRead { term, block: block as u32, first_row, num_rows: num_rows.max(1), request });
    }

    /// Reads the row or two of four values of `width` bits around `position`, which are in the rows from `row` on.
    fn values(&mut self, request: u64, (term, block): (TermId, usize), row: u32, width: u32, position: usize) {
        if width > 0 {
            let bit = position as u32 / 4 * width;
            let (low, high) = (bit / 32, (bit + width - 1) / 32);
            self.rows(request, term, block, row + low, high - low + 1);
        }
    }

    /// Scans a list and looks up postings that may be among the best.
    fn drive(&mut self, terms: &mut [CountedTerm<'_>], driver: usize, needs_all: bool) {
        let CountedTerm { id, list, weight, .. } = terms[driver];
        let rest = terms.get(driver + 1).map_or(0.0, |next| next.rest);
        let mut waiting: Vec<Survivor> = Vec::with_capacity(WARP);
        for block in 0..list.num_blocks() {
            let bound = weight * list.block_max_impact(block);
            if bound + rest < self.floor {
                continue;
            }
            terms[driver].decode(block);
            let packing = terms[driver].packing;
            // Impacts select postings, and bound the scores of those that are looked up.
            if self.floor - rest > bound / 255.0 || driver + 1 < terms.len() {
                let request = self.ask();
                self.rows(request, id, block, packing.impact_row, byte_rows(packing.len));
            }
            for position in 0..packing.len {
                let (doc, freq) = (terms[driver].block.docs[position], terms[driver].block.freqs[position]);
                let score = Bm25::score(weight, freq, self.norms[doc as usize]);
                if score + rest < self.floor {
                    continue;
                }
                waiting.push(Survivor { block, position, packing, doc, score });
                if waiting.len() == WARP {
                    self.follow(terms, driver, &mut waiting, needs_all);
                }
            }
        }
        self.follow(terms, driver, &mut waiting, needs_all);
    }

    /// Looks up survivors in the lists after the driving one while they may reach the floor, then in the lists before
    /// it, which have already scored their own documents. Clears `survivors`.
    fn follow(&mut self, terms: &mut [CountedTerm<'_>], driver: usize, survivors: &mut Vec<Survivor>, needs_all: bool) {
        let (id, floor) = (terms[driver].id, self.floor);
        let request = self.ask();
        for &Survivor { block, position, packing, .. } in survivors.iter() {
            self.values(request, (id, block), 0, packing.doc_width, position);
        }
        for place in driver + 1..=terms.len() {
            // Their own frequencies are read after the first look-up.
            if place == terms.len().min(driver + 2) {
                let request = self.ask();
                for &Survivor { block, position, packing, .. } in survivors.iter() {
                    self.values(request, (id, block), packing.freq_row, packing.freq_width, position);
                }
            }
            let Some(term) = terms.get(place) else { break };
            let (rest, after) = (term.rest, terms.get(place + 1).map_or(0.0, |next| next.rest));
            survivors.retain(|survivor| survivor.score + rest >= floor);
            let request = self.ask();
            survivors.retain_mut(|survivor| {
                match self.look_up(request, &mut terms[place], survivor.doc, survivor.score + after) {
                    Some(found) => {
                        survivor.score += found;
                        true
                    }
                    None => !needs_all && survivor.score + after >= floor,
                }
            });
        }
        survivors.retain(|survivor| survivor.score >= floor);
        for term in &mut terms[..driver] {
            let request = self.ask();
            survivors.retain(|survivor| self.look_up(request, term, survivor.doc, f32::INFINITY).is_none());
        }
        survivors.clear();
    }

    /// The score that a list adds to a document, or `None` if the document is absent or cannot reach the floor with
    /// `others` from other lists.
    fn look_up(&mut self, request: u64, term: &mut CountedTerm<'_>, doc: u32, others: f32) -> Option<f32> {
        let block = term.list.last_docs().partition_point(|&last| last < doc);
        if block >= term.list.num_blocks() {
            return None;
        }
        term.decode(block);
        let Packing { len, doc_width, freq_width, .. } = term.packing;
        let docs = &term.block.docs[..len];
        let position = docs.partition_point(|&other| other < doc);
        let bound = others + term.weight * term.list.block_max_impact(block);
        // Documents of one interval are nearly always in one block, so its bound holds.
        let may_have = match term.scale {
            0 => doc >= docs[0],
            _ => bound >= self.floor && term.may_have(doc, position),
        };
        if !may_have {
            return None;
        }
        self.values(request, (term.id, block), 0, doc_width, position.min(len - 1));
        if position == len || docs[position] != doc {
            return None;
        }
        self.values(request, (term.id, block), term.packing.freq_row, freq_width, position);
        Some(Bm25::score(term.weight, term.block.freqs[position], self.norms[doc as usize]))
    }
}

/// Reads of lists by the queries of a log. Up to [`MOST_QUERIES`] evenly spaced queries are counted, each as OR and as
/// AND. The reads of all others, and of queries that the CPU refuses, are expected from the rates of the counted ones.
pub(crate) fn log_reads(index: &Arc<Index>, log: &[Query], directory_stride: u32) -> LearnedReads {
    let step = log.len().div_ceil(MOST_QUERIES).max(1);
    let cpu = CpuExecutor::new(Arc::clone(index), index.built_with());
    let counter = || ReadCounter::new(index, cpu.clone_for_worker(), directory_stride);
    let sampled = log.par_iter().enumerate().step_by(step).with_min_len(16);
    let counted = sampled.map_init(counter, |counter, (number, query)| {
        let (or, and) = (counter.sectors(query, Mode::Or).ok()?, counter.sectors(query, Mode::And).ok()?);
        Some((number, or.iter().zip(and).map(|(or, and)| (or + and) / 2.0).collect()))
    });
    let counted: BTreeMap<usize, Vec<f64>> = counted.flatten().collect();

    let even = ReadRates::default();
    let lens = |number: usize| log[number].terms.iter().map(|term| term.doc_freq);
    // Sums in the log's order do not depend on the number of threads.
    let rates = ReadRates::counted(counted.iter().flat_map(|(&number, sectors)| {
        let expected = expected_reads(lens(number), &even);
        lens(number).zip(expected).zip(sectors).map(|((len, expected), &sectors)| (len, expected, sectors))
    }));
    let mut learned = LearnedReads::default();
    for (number, query) in log.iter().enumerate() {
        let reads = match counted.get(&number) {
            Some(sectors) => sectors.clone(),
            None => expected_reads(lens(number), &rates).collect(),
        };
        // Counted queries alternate between the halves.
        query.terms.iter().zip(reads).for_each(|(term, reads)| learned.record(number / step, term.term.0, reads));
    }
    learned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::placement::learned_reads::ListSize;
    use tandem_base::base::ids::QueryId;

    const STRIDE: u32 = 10;

    /// A rare list of 128 documents, 470 apart, a third of them in a long list of 20,000. All documents score alike.
    fn index() -> Arc<Index> {
        let rare = (0..128).map(|i| (i * 470, 1)).collect();
        let long = (0..20_000).map(|i| (3 * i, 1)).collect();
        let lists: [(&str, Vec<(u32, u32)>); 2] = [("rare", rare), ("long", long)];
        Arc::new(Index::from_lists(&lists).unwrap())
    }

    fn counter(index: &Arc<Index>) -> ReadCounter {
        ReadCounter::new(index, CpuExecutor::new(Arc::clone(index), index.built_with()), STRIDE)
    }

    #[test]
    fn a_query_reads_what_its_threshold_leaves_of_its_lists() {
        let index = index();
        let query = Query::prepare(QueryId(0), "q", &["rare", "long"], &index).unwrap();
        let mut reads = Vec::new();
        counter(&index).count(&query, Mode::And, &mut |read| reads.push(read)).unwrap();
        let [rare, long] = ["rare", "long"].map(|name| index.term(name).unwrap());
        // Impacts of the only block: 8 rows after 16 rows of 16-bit documents.
        assert_eq!(reads[0], RowsRead { term: rare, block: 0, first_row: 16, num_rows: 8, request: reads[0].request });
        // All documents are read, because all score alike. The directory ends most look-ups of those that the long list
        // lacks.
        let of = |term| reads.iter().filter(move |read| read.term == term);
        assert_eq!(of(rare).count(), 1 + 128);
        assert!((43..=64).contains(&of(long).count()), "{reads:?}");
        let mut requests: Vec<u64> = of(long).map(|read| read.request).collect();
        requests.dedup();
        assert_eq!(requests.len(), 128 / WARP);
        // Four 9-bit documents take one or two rows.
        assert!(of(long).all(|read| read.num_rows <= 2 && read.first_row < 9), "{reads:?}");
        // Frequencies of one take no rows. A request counts each sector once: each read holds four documents.
        let sectors = counter(&index).sectors(&query, Mode::And).unwrap();
        assert!((4.0 + 8.0..=4.0 + 32.0).contains(&sectors[0]), "{sectors:?}");
        assert!((43.0..=2.0 * 64.0).contains(&sectors[1]), "{sectors:?}");
    }

    #[test]
    fn what_cannot_be_among_the_best_is_not_read() {
        // Ten short documents of the rare list score highest; the others cannot reach them and are not looked up.
        let rare = (0..1280).map(|i| (i * 47, 1)).collect();
        let long = (0..20_000).map(|i| (3 * i, 1)).collect();
        let filling = (470..60_160).map(|doc| (doc, 60)).collect();
        let lists: [(&str, Vec<(u32, u32)>); 3] = [("rare", rare), ("long", long), ("filling", filling)];
        let index = Arc::new(Index::from_lists(&lists).unwrap());
        let query = Query::prepare(QueryId(0), "q", &["rare", "long"], &index).unwrap();
        let sectors = counter(&index).sectors(&query, Mode::Or).unwrap();
        assert!(sectors[0] <= 30.0 && sectors[1] <= 20.0, "{sectors:?}");
    }

    #[test]
    fn every_query_of_a_log_is_learned_alike() {
        let index = index();
        let query = Query::prepare(QueryId(0), "q", &["rare", "long"], &index).unwrap();
        let [or, and] = [Mode::Or, Mode::And].map(|mode| counter(&index).sectors(&query, mode).unwrap());
        let mut expected = LearnedReads::default();
        for (place, term) in query.terms.iter().enumerate() {
            expected.record(0, term.term.0, (or[place] + and[place]) / 2.0);
        }
        assert_eq!(log_reads(&index, std::slice::from_ref(&query), STRIDE), expected);
        // Every second query is counted, in turn for either half of the log.
        let mut none = query.clone();
        none.terms.clear();
        let log: Vec<Query> = [&query, &none].into_iter().cycle().take(2 * MOST_QUERIES).cloned().collect();
        let mut halves = LearnedReads::default();
        for number in 0..MOST_QUERIES {
            for (place, term) in query.terms.iter().enumerate() {
                halves.record(number, term.term.0, (or[place] + and[place]) / 2.0);
            }
        }
        assert_eq!(log_reads(&index, &log, STRIDE), halves);
        let log = vec![query.clone(); 2 * MOST_QUERIES];
        let sizes = [128, 20_000].map(|postings| ListSize { postings, rows: 1 });
        let reads = |learned: &LearnedReads| learned.row_reads(&sizes);
        let (one, all) = (reads(&expected), reads(&log_reads(&index, &log, STRIDE)));
        for (one, all) in one.into_iter().zip(all) {
            assert!(one > 0.0 && (all / one / log.len() as f32 - 1.0).abs() < 1e-3, "{one} and {all}");
        }
    }

    #[test]
    fn directories_are_those_of_the_kernels() {
        let mut docs: Vec<u32> = (0..3000_u32).map(|i| i.wrapping_mul(2_654_435_761) % 30_000).collect();
        docs.sort_unstable();
        docs.dedup();
        let postings = docs.iter().map(|&doc| (doc, 1)).collect();
        let index = Arc::new(Index::from_lists(&[("word", postings), ("last", vec![(29_999, 1)])]).unwrap());
        let id = index.term("word").unwrap();
        let scale = directory_scale(index.num_docs(), docs.len() as u32, STRIDE);
        let mut term = CountedTerm::new(id, index.list(id), 1.0, scale);
        let part = |doc: u32| (u64::from(doc) * u64::from(scale)) >> PART_SHIFT;
        let mut excluded = 0;
        for doc in 0..=docs[docs.len() - 1] {
            let position = docs.partition_point(|&other| other < doc);
            term.decode(position / BLOCK_LEN);
            let has_any = docs.iter().any(|&other| part(other) == part(doc));
            assert_eq!(term.may_have(doc, position % BLOCK_LEN), has_any, "{doc}");
            excluded += u32::from(!has_any);
        }
        assert!(excluded > 10_000, "{excluded}");
    }
}
