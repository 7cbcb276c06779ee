//! Counts on the host which rows of an index a search reads on a GPU.
//!
//! The counter replays `kernels/drive.cuh` with the final threshold, which gives a lower bound of the real reads. A
//! driving list is scanned block by block; impacts are read if the block's bound reaches the threshold. A warp takes 32
//! postings that may reach it, reads their documents and looks them up in one list after another, four documents at a
//! time. The frequency of a found document is read, too.

use std::sync::Arc;

use rayon::prelude::*;

use super::expected_reads::{ReadRates, query_reads};
use super::list_rows::{byte_rows, value_rows};
use crate::base::ids::TermId;
use crate::index::{BLOCK_LEN, Bm25, Index, PostingList};
use crate::query::{Mode, Query};
use crate::search::cpu::CpuExecutor;
use crate::search::{ExecError, Executor, Hit};

/// Postings that a warp scores at a time.
const WARP: usize = 32;
/// Rows per 32-byte sector, the unit of a read across the bus.
const SECTOR_ROWS: u32 = 2;
/// The most queries of a log that are counted.
const MOST_QUERIES: usize = 512;
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
    k: usize,
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
    decoded: usize,
    docs: [u32; BLOCK_LEN],
}

impl CountedTerm<'_> {
    /// Bits per document in a block of `docs`.
    fn width(docs: &[u32]) -> u32 {
        let span = docs.last().zip(docs.first()).map_or(0, |(last, first)| last - first);
        u32::BITS - span.leading_zeros()
    }
}

/// A posting of the driving list with its document's score so far.
#[derive(Clone, Copy, Debug)]
struct Survivor {
    block: usize,
    position: usize,
    /// Bits per document of its block.
    width: u32,
    doc: u32,
    score: f32,
}

impl ReadCounter {
    /// `cpu` must search the same index.
    fn new(index: &Arc<Index>, cpu: CpuExecutor, k: usize) -> Self {
        Self { index: Arc::clone(index), cpu, k, hits: Vec::new(), requests: 0 }
    }

    /// Calls `read` with each read of an AND or OR query. Fails if the query cannot be searched.
    fn count(&mut self, query: &Query, mode: Mode, read: &mut impl FnMut(RowsRead)) -> Result<(), ExecError> {
        self.cpu.search(query, mode, self.k, &mut self.hits)?;
        let floor = if self.hits.len() == self.k { self.hits[self.k - 1].score } else { 0.0 };
        let norms = Arc::clone(self.cpu.norms());
        Reading { norms: &norms, floor, requests: &mut self.requests, read }.run(&self.index, query, mode);
        Ok(())
    }

    /// The sectors of each list that cross the bus if all rows are host-resident, in the query's order. Fails if the
    /// query cannot be searched.
    fn sectors(&mut self, query: &Query, mode: Mode) -> Result<Vec<(TermId, f64)>, ExecError> {
        let mut sums: Vec<(TermId, f64)> = query.terms.iter().map(|term| (term.term, 0.0)).collect();
        // Blocks and sectors that the current request has read.
        let (mut request, mut seen) = (u64::MAX, Vec::new());
        self.count(query, mode, &mut |read| {
            if read.request != request {
                request = read.request;
                seen.clear();
            }
            // Every second block begins in the middle of a sector. The count treats all blocks as aligned.
            let sectors = read.first_row / SECTOR_ROWS..=(read.first_row + read.num_rows - 1) / SECTOR_ROWS;
            let new = sectors.filter(|&sector| {
                let is_new = !seen.contains(&(read.block, sector));
                if is_new {
                    seen.push((read.block, sector));
                }
                is_new
            });
            let new = new.count();
            if let Some((_, sum)) = sums.iter_mut().find(|(term, _)| *term == read.term) {
                *sum += new as f64;
            }
        })?;
        Ok(sums)
    }
}

struct Reading<'a, F> {
    norms: &'a [f32],
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
            let rest = weight * list.max_impact();
            terms.push(CountedTerm { id: term.term, list, weight, rest, decoded: usize::MAX, docs: [0; BLOCK_LEN] });
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

    /// Reads four documents of `width` bits around `position`, which take one or two rows.
    fn four_docs(&mut self, request: u64, term: TermId, block: usize, width: u32, position: usize) {
        if width > 0 {
            let bit = position as u32 / 4 * width;
            let (low, high) = (bit / 32, (bit + width - 1) / 32);
            self.rows(request, term, block, low, high - low + 1);
        }
    }

    /// Scans a list and looks up postings that may be among the best.
    fn drive(&mut self, terms: &mut [CountedTerm<'_>], driver: usize, needs_all: bool) {
        let CountedTerm { id, list, weight, .. } = terms[driver];
        let rest = terms.get(driver + 1).map_or(0.0, |next| next.rest);
        let (mut docs, mut freqs) = ([0; BLOCK_LEN], [0; BLOCK_LEN]);
        let mut waiting: Vec<Survivor> = Vec::with_capacity(WARP);
        for block in 0..list.num_blocks() {
            if weight * list.block_max_impact(block) + rest < self.floor {
                continue;
            }
            let len = list.decode_docs(block, &mut docs);
            list.decode_freqs(block, &mut freqs);
            let width = CountedTerm::width(&docs[..len]);
            let request = self.ask();
            self.rows(request, id, block, value_rows(len, width), byte_rows(len));
            for position in 0..len {
                let doc = docs[position];
                let score = Bm25::score(weight, freqs[position], self.norms[doc as usize]);
                if score + rest < self.floor {
                    continue;
                }
                waiting.push(Survivor { block, position, width, doc, score });
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
        let floor = self.floor;
        let request = self.ask();
        for &Survivor { block, position, width, .. } in survivors.iter() {
            self.four_docs(request, terms[driver].id, block, width, position);
        }
        for place in driver + 1..terms.len() {
            let (rest, after) = (terms[place].rest, terms.get(place + 1).map_or(0.0, |next| next.rest));
            survivors.retain(|survivor| survivor.score + rest >= floor);
            let request = self.ask();
            survivors.retain_mut(|survivor| match self.look_up(request, &mut terms[place], survivor.doc) {
                Some(found) => {
                    survivor.score += found;
                    true
                }
                None => !needs_all && survivor.score + after >= floor,
            });
        }
        survivors.retain(|survivor| survivor.score >= floor);
        for term in &mut terms[..driver] {
            let request = self.ask();
            survivors.retain(|survivor| self.look_up(request, term, survivor.doc).is_none());
        }
        survivors.clear();
    }

    /// The score that a list adds to a document, or `None` if the document is absent.
    fn look_up(&mut self, request: u64, term: &mut CountedTerm<'_>, doc: u32) -> Option<f32> {
        let block = term.list.last_docs().partition_point(|&last| last < doc);
        if block >= term.list.num_blocks() {
            return None;
        }
        let len = term.list.block_len(block);
        if term.decoded != block {
            term.list.decode_docs(block, &mut term.docs);
            term.decoded = block;
        }
        let docs = &term.docs[..len];
        let position = docs.partition_point(|&other| other < doc);
        self.four_docs(request, term.id, block, CountedTerm::width(docs), position.min(len - 1));
        if position == len || docs[position] != doc {
            return None;
        }
        let mut freqs = [0; BLOCK_LEN];
        term.list.decode_freqs(block, &mut freqs);
        let most = freqs[..len].iter().max().map_or(0, |most| most - 1);
        let width = u32::BITS - most.leading_zeros();
        if width > 0 {
            let before = value_rows(len, CountedTerm::width(docs)) + byte_rows(len);
            self.rows(request, term.id, block, before + position as u32 / 4 * width / 32, 1);
        }
        Some(Bm25::score(term.weight, freqs[position], self.norms[doc as usize]))
    }
}

/// Read rates by list length, counted on up to [`MOST_QUERIES`] evenly spaced queries, each as OR and as AND. Queries
/// that the CPU refuses are skipped.
pub(crate) fn read_rates(index: &Arc<Index>, log: &[Query]) -> ReadRates {
    let step = log.len().div_ceil(MOST_QUERIES).max(1);
    let cpu = CpuExecutor::new(Arc::clone(index), index.built_with());
    let sampled: Vec<&Query> = log.iter().step_by(step).collect();
    let even = ReadRates::default();
    let chunks = sampled.par_chunks(16).map(|chunk| {
        let mut counter = ReadCounter::new(index, cpu.clone_for_worker(), K);
        let mut lists = Vec::new();
        for query in chunk {
            for mode in [Mode::Or, Mode::And] {
                let Ok(sectors) = counter.sectors(query, mode) else { continue };
                let expected = query_reads(query, &even).zip(&query.terms).zip(sectors);
                lists.extend(expected.map(|((expected, term), (_, sectors))| (term.doc_freq, expected.reads, sectors)));
            }
        }
        lists
    });
    // The sum in order makes results independent of the number of threads.
    ReadRates::counted(chunks.collect::<Vec<_>>().into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::QueryId;

    /// A rare list of 128 documents, 470 apart, a third of them in a long list of 20,000. All documents score alike.
    fn index() -> Arc<Index> {
        let rare = (0..128).map(|i| (i * 470, 1)).collect();
        let long = (0..20_000).map(|i| (3 * i, 1)).collect();
        let lists: [(&str, Vec<(u32, u32)>); 2] = [("rare", rare), ("long", long)];
        Arc::new(Index::from_lists(&lists).unwrap())
    }

    fn counter(index: &Arc<Index>) -> ReadCounter {
        ReadCounter::new(index, CpuExecutor::new(Arc::clone(index), index.built_with()), 10)
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
        // All documents are read and looked up, 32 at a time, because all score alike.
        let of = |term| reads.iter().filter(move |read| read.term == term);
        assert_eq!((of(rare).count(), of(long).count()), (1 + 128, 128));
        let mut requests: Vec<u64> = of(long).map(|read| read.request).collect();
        requests.dedup();
        assert_eq!(requests.len(), 128 / WARP);
        // Four 9-bit documents take one or two rows.
        assert!(of(long).all(|read| read.num_rows <= 2 && read.first_row < 9), "{reads:?}");
        // Frequencies of one take no rows. A request counts each sector once: each read holds four documents.
        let sectors = counter(&index).sectors(&query, Mode::And).unwrap();
        assert!(sectors[0].0 == rare && (4.0 + 8.0..=4.0 + 32.0).contains(&sectors[0].1), "{sectors:?}");
        assert!(sectors[1].0 == long && (100.0..=2.0 * 128.0).contains(&sectors[1].1), "{sectors:?}");
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
        assert!(sectors[0].1 <= 30.0 && sectors[1].1 <= 20.0, "{sectors:?}");
        let rates = read_rates(&index, &[query]);
        let long_rate = rates.of(20_000);
        // AND looks up all documents, and most share no sector.
        assert!(long_rate > 0.0 && long_rate < 0.5, "{rates:?}");
    }
}
