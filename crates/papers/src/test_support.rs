//! Helpers of tests.

use std::sync::Arc;

use tandem_engine::index::Index;
use tandem_engine::query::Query;
use tandem_engine::search::Hit;
use tandem_engine::search::device::GpuError;
use tandem_model::base::ids::{QueryId, TermId};
use tandem_model::base::random::Random;

use crate::codec::Codec;
use crate::ding::daat::lists::CodedLists;

/// The limit of waits for a GPU in tests of hangs, in seconds.
#[cfg(feature = "gpu")]
const HANG_WAIT_S: f64 = 2.0;

/// Makes an index with a list per density, one document in `one_in`. All lists have the last document.
pub(crate) fn random_index(num_docs: u32, densities: &[u32], seed: u64) -> Arc<Index> {
    let mut random = Random::new(seed, 0);
    let list = |(term, &one_in): (usize, &u32)| {
        let docs = (0..num_docs).filter(|doc| random.below(one_in) == 0 || doc + 1 == num_docs);
        (format!("t{term:04}"), docs.map(|doc| (doc, 1 + doc % 5)).collect())
    };
    let lists: Vec<(String, Vec<(u32, u32)>)> = densities.iter().enumerate().map(list).collect();
    Arc::new(Index::from_lists(&lists).unwrap())
}

/// Makes a query of these terms of a random index.
pub(crate) fn query_of(index: &Index, terms: impl IntoIterator<Item = usize>) -> Query {
    let names: Vec<String> = terms.into_iter().map(|term| format!("t{term:04}")).collect();
    Query::prepare(QueryId(0), "q", &names, index).unwrap()
}

/// Encodes the postings of the documents `docs` of all terms.
pub(crate) fn coded(index: &Index, codec: Box<dyn Codec>, docs: std::ops::Range<u32>) -> Arc<CodedLists> {
    let terms: Vec<TermId> = (0..index.num_terms()).map(TermId).collect();
    Arc::new(CodedLists::encode(index, &terms, codec, docs).unwrap())
}

/// Returns the documents with the bits of their scores.
pub(crate) fn bits(hits: &[Hit]) -> Vec<(u32, u32)> {
    hits.iter().map(|hit| (hit.doc.0, hit.score.to_bits())).collect()
}

/// Returns `all`, or `few` under a sanitizer (kernels/sanitize.py), where kernels run a hundred times slower. Both must
/// reach the same paths.
pub(crate) fn sized<T>(all: T, few: T) -> T {
    if std::env::var_os("TANDEM_SANITIZER").is_some() { few } else { all }
}

/// Runs the test of this `name`, with its modules, in a process of its own. It gets a function after which the GPU never
/// answers. All that it made is dropped before the GPU answers again.
#[cfg(feature = "gpu")]
pub(crate) fn with_a_hang(name: &str, test: impl FnOnce(&dyn Fn())) {
    crate::occupied::in_a_process_that_waits(name, HANG_WAIT_S, || {
        let flag = crate::occupied::flag();
        let began = std::cell::Cell::new(std::time::Instant::now());
        test(&|| {
            crate::occupied::occupy(&cudarc::driver::CudaContext::new(0).unwrap(), flag);
            began.set(std::time::Instant::now());
        });
        assert!(began.get().elapsed().as_secs_f64() < 3.0 * HANG_WAIT_S, "only the first wait takes its time");
        flag.store(1, std::sync::atomic::Ordering::SeqCst);
    });
}

/// Returns an opened GPU. Without one, the test is noted as skipped, or fails if `TANDEM_REQUIRE_GPU` is set.
pub(crate) fn gpu_or_skip<T>(opened: Result<T, GpuError>) -> Option<T> {
    match opened {
        Ok(gpu) => Some(gpu),
        Err(error @ GpuError::NoGpu(_)) => {
            assert!(std::env::var_os("TANDEM_REQUIRE_GPU").is_none(), "TANDEM_REQUIRE_GPU is set, but: {error}");
            crate::skipped::skipped("no GPU");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[cfg(feature = "gpu")]
pub(crate) fn freqs(seed: u64, len: usize) -> Vec<u32> {
    let mut random = Random::new(seed, 1);
    (0..len).map(|_| 1 + if random.below(10) == 0 { random.below(1 << 20) } else { random.below(4) }).collect()
}

/// Makes an index with terms `t0` and so on. Lengths are around those of blocks, and documents come in runs, so that
/// some blocks are needed and others are not.
#[cfg(feature = "gpu")]
pub(crate) fn bursty_index(random: &mut Random) -> (Arc<Index>, Vec<TermId>) {
    let num_docs = 60_000_u32;
    let lens = [1, 2, 100, 127, 128, 129, 511, 513, 3000, 20_000, 59_999, 60_000];
    let lists: Vec<(String, Vec<(u32, u32)>)> = lens
        .iter()
        .enumerate()
        .map(|(term, &len)| {
            let mut docs: Vec<u32> = (0..num_docs).collect();
            while docs.len() > len {
                let surplus = docs.len() - len;
                let start = random.below(docs.len() as u32) as usize;
                let run = (1 + random.below(1 + num_docs / 50) as usize).min(surplus).min(docs.len() - start);
                docs.drain(start..start + run);
            }
            let freqs = freqs(term as u64, len);
            (format!("t{term}"), docs.into_iter().zip(freqs).collect())
        })
        .collect();
    let index = Arc::new(Index::from_lists(&lists).unwrap());
    let terms = lists.iter().map(|(name, _)| index.term(name).unwrap()).collect();
    (index, terms)
}
