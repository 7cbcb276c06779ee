//! All implementations answer a query with equal documents and scores, bit for bit.
//!
//! The reference implementation, `Twin`, adds up one posting at a time and sorts. It is compared with all operators and
//! algorithms, then with all ways to share queries among threads, and all codecs. The collection has four forms:
//! documents in natural order and bisected, frequencies and impacts of eight bits. Scores must be equal in both orders,
//! too; ties are broken by the order.
//!
//! ```sh
//! TANDEM_DATA=... cargo test --release --test it equality                # a small collection, some seconds
//! TANDEM_DATA=... cargo test --release --test it equality -- --ignored   # Wikipedia and the 50,000 queries of a log
//! ```
//!
//! The second command takes minutes, or seconds on many cores. `TANDEM_INDEX` and `TANDEM_LOG` name another index and log
//! for it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rayon::prelude::*;
use tandem::base::ids::{DocId, QueryId, TermId};
use tandem::base::random::mix;
use tandem::corpus::Tokenizer;
use tandem::index::{Bm25, Index};
use tandem::indexing::quantise;
use tandem::indexing::reorder::{BisectionOptions, apply, bisect};
use tandem::papers::codec::{Column, MAX_BLOCK_LEN, all_codecs};
use tandem::query::{Query, QueryTerm, prepare_queries};
use tandem::search::cpu::multicore::{Cores, FineGrained, Served, Stream, adaptive_lanes, inter_lanes, serve};
use tandem::search::cpu::{Algorithm, CpuExecutor};
use tandem::search::{ExecError, Executor, Hit, TopK};
use tandem::traffic::Mode;

use crate::skipped;

const KS: [usize; 4] = [1, 10, 1000, 10_000];
/// Numbers of terms of additional long queries, made of words of the log.
const LONG: [usize; 3] = [65, 100, Query::MAX_TERMS];
/// Threads that share queries. The number of threads for each core is limited, so that they do not wait for each other.
const TEAMS: [usize; 3] = [2, 5, 15];
const MOST_A_CORE: usize = 4;

#[test]
fn a_small_collection_is_answered_alike_by_all() {
    let Some(data) = data() else { return };
    let dir = tempfile::tempdir().unwrap();
    let index = dir.path().join("vaswani");
    tandem(&[
        "index".as_ref(),
        "import".as_ref(),
        data.join("index/vaswani.ciff").as_ref(),
        "-o".as_ref(),
        index.as_ref(),
    ]);
    all_agree(&index, &data.join("queries/vaswani.tsv"));
}

#[test]
#[ignore = "takes minutes"]
fn fifty_thousand_queries_of_a_log_are_answered_alike_by_all() {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    if let (Some(index), Some(log)) = (named("TANDEM_INDEX"), named("TANDEM_LOG")) {
        return all_agree(&index, &log);
    }
    let Some(data) = data() else { return };
    let index = Path::new(env!("CARGO_TARGET_TMPDIR")).join("equality-enwiki");
    if Index::open(&index).is_err() {
        let corpus = data.join("corpus/enwiki-2014-261k.jsonl.zst");
        tandem(&["index".as_ref(), "build".as_ref(), corpus.as_ref(), "-o".as_ref(), index.as_ref()]);
    }
    all_agree(&index, &data.join("queries/trec-tb05-efficiency-50k.tsv"));
}

fn data() -> Option<PathBuf> {
    let data = std::env::var_os("TANDEM_DATA").map(PathBuf::from);
    if data.is_none() {
        skipped::skipped("TANDEM_DATA is not set");
    }
    data
}

fn tandem(arguments: &[&std::ffi::OsStr]) {
    let output = Command::new(env!("CARGO_BIN_EXE_tandem")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn all_agree(path: &Path, log: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let form = |name: &str| dir.path().join(name);
    let natural = Index::open(path).unwrap();
    let order = bisect(&natural, BisectionOptions::default(), &|_, _| {});
    apply(&natural, &order, &form("bisected"), &|_| {}).unwrap();
    let bisected = Index::open(&form("bisected")).unwrap();
    quantise(&natural, &form("natural-impacts")).unwrap();
    quantise(&bisected, &form("bisected-impacts")).unwrap();
    let impacts = ["natural-impacts", "bisected-impacts"].map(|name| Index::open(&form(name)).unwrap());
    let [natural_impacts, bisected_impacts] = impacts;
    for (name, natural, bisected) in
        [("frequencies", natural, bisected), ("impacts", natural_impacts, bisected_impacts)]
    {
        let expected = [("natural", natural), ("bisected", bisected)].map(|(order, index)| {
            let began = Instant::now();
            let form = Form::new(format!("{name}, {order} order"), index, log);
            let expected = form.check_operators();
            form.check_teams(&expected);
            form.check_codecs();
            let (queries, checked) = (form.queries.len(), form.checked.load(Ordering::Relaxed));
            println!("{}: {queries} queries, {checked} answers, {:.0} s", form.name, began.elapsed().as_secs_f64());
            expected
        });
        let scores = |form: &[Answers]| form.iter().map(|answers| answers.scores).collect::<Vec<_>>();
        assert!(scores(&expected[0]) == scores(&expected[1]), "{name}: another order, other scores");
    }
}

/// One form of the index, with queries.
struct Form {
    name: String,
    index: Arc<Index>,
    queries: Vec<Query>,
    executor: CpuExecutor,
    checked: AtomicU64,
}

/// Hashes of the twin's answers to a query.
struct Answers {
    /// Hashes of documents with their scores, by mode and k.
    hits: [[u64; KS.len()]; Mode::ALL.len()],
    /// Hashes of scores alone, by mode and k.
    scores: [[u64; KS.len()]; Mode::ALL.len()],
}

/// A query of the first `num_terms` distinct terms of a log, completed by terms of the index.
fn long_query(index: &Index, queries: &[Query], num_terms: usize) -> Query {
    let mut terms: Vec<QueryTerm> = Vec::new();
    let of_log = queries.iter().flat_map(|query| &query.terms).map(|term| term.term);
    for term in of_log.chain((0..index.num_terms()).map(TermId)) {
        if terms.len() < num_terms && terms.iter().all(|other| other.term != term) {
            terms.push(QueryTerm { term, doc_freq: index.list(term).doc_freq(), qtf: 1 + term.0 % 2 });
        }
    }
    terms.sort_by_key(|term| (term.doc_freq, term.term));
    Query { id: QueryId(0), label: format!("of {num_terms} terms"), terms, dropped_terms: 0 }
}

fn scramble(hits: &[Hit]) -> u64 {
    hits.iter().fold(0, |sum, hit| mix(sum ^ TopK::key(hit.doc.0, hit.score)))
}

impl Form {
    fn new(name: String, index: Index, log: &Path) -> Self {
        let index = Arc::new(index);
        let tokenizer = Tokenizer::from_name(index.tokenizer_name()).unwrap();
        let mut queries =
            prepare_queries(log, &Default::default(), &index, |text| tokenizer.terms(text)).unwrap().queries;
        assert!(!queries.is_empty());
        queries.extend(LONG.map(|num_terms| long_query(&index, &queries, num_terms)));
        let executor = CpuExecutor::new(Arc::clone(&index), index.built_with());
        Self { name, index, queries, executor, checked: AtomicU64::new(0) }
    }

    /// Checks all operators and algorithms against the twin, whose answers it returns.
    fn check_operators(&self) -> Vec<Answers> {
        let executors = || {
            let executors = Algorithm::ALL.map(|algorithm| self.executor.clone_for_worker().with_algorithm(algorithm));
            (Twin::new(&self.index), executors, Vec::new())
        };
        let answer = |(twin, executors, hits): &mut (Twin, [CpuExecutor; Algorithm::ALL.len()], Vec<Hit>),
                      query: &Query| {
            twin.add_up(&self.index, query);
            let mut answers = Answers { hits: Default::default(), scores: Default::default() };
            for (m, mode) in Mode::ALL.into_iter().enumerate() {
                for (i, k) in KS.into_iter().enumerate() {
                    let expected = twin.best(query, mode, k);
                    answers.hits[m][i] = scramble(expected);
                    answers.scores[m][i] =
                        expected.iter().fold(0, |sum, hit| mix(sum ^ u64::from(hit.score.to_bits())));
                    for (executor, algorithm) in executors.iter_mut().zip(Algorithm::ALL) {
                        // Algorithms differ in OR alone, which AND+OR uses.
                        if mode != Mode::Or && algorithm != Algorithm::Auto {
                            continue;
                        }
                        executor.search(query, mode, k, hits).unwrap();
                        let is_equal = hits.len() == expected.len()
                            && hits
                                .iter()
                                .zip(expected)
                                .all(|(a, b)| (a.doc, a.score.to_bits()) == (b.doc, b.score.to_bits()));
                        let (form, label) = (&self.name, &query.label);
                        assert!(is_equal, "{form}: query {label}, {mode}, {algorithm}, k = {k}: {hits:?} {expected:?}");
                        self.checked.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            answers
        };
        self.queries.par_iter().with_min_len(64).map_init(executors, answer).collect()
    }

    /// Checks all ways to share queries among threads; each answers every query in every mode, with each k in turn.
    fn check_teams(&self, expected: &[Answers]) {
        let (executor, cores) = (&self.executor, &Cores::default());
        let most = std::thread::available_parallelism().map_or(1, usize::from) * MOST_A_CORE;
        for (team, workers) in TEAMS.into_iter().filter(|&workers| workers <= most).enumerate() {
            self.check_team(&format!("INTER, {workers} threads"), team, expected, |stream| {
                serve(&mut inter_lanes(executor, workers), stream, cores)
            });
            self.check_team(&format!("adaptive, {workers} threads"), team + 1, expected, |stream| {
                serve(&mut adaptive_lanes(executor, workers), &Stream { most_at_once: 2, ..stream.clone() }, cores)
            });
            self.check_team(&format!("FGQP, {workers} threads"), team + 2, expected, |stream| {
                serve(&mut [Box::new(FineGrained::new(executor, workers, cores, 0)?)], stream, cores)
            });
        }
    }

    /// Checks one way: query i asks for `KS[i + turn]` documents, cyclically.
    fn check_team(
        &self,
        method: &str,
        turn: usize,
        expected: &[Answers],
        answer: impl Fn(&Stream<'_>) -> Result<Vec<Served>, ExecError>,
    ) {
        for (m, mode) in Mode::ALL.into_iter().enumerate() {
            for (i, k) in KS.into_iter().enumerate() {
                let asked = |query: &u32| (*query as usize + turn) % KS.len() == i;
                let order: Vec<u32> = (0..self.queries.len() as u32).filter(asked).collect();
                let (arrivals, most_at_once) = (Vec::new(), usize::MAX);
                let stream = Stream { queries: &self.queries, order, arrivals, most_at_once, mode, k };
                let served = answer(&stream).unwrap();
                for (one, &query) in served.iter().zip(&stream.order) {
                    let (form, label) = (&self.name, &self.queries[query as usize].label);
                    let is_equal = one.digest == expected[query as usize].hits[m][i];
                    assert!(is_equal, "{form}: query {label}, {mode}, {method}, k = {k}");
                }
                self.checked.fetch_add(served.len() as u64, Ordering::Relaxed);
            }
        }
    }
}

impl Form {
    /// Checks that every codec returns the lists of the queries.
    fn check_codecs(&self) {
        let mut terms: Vec<TermId> = self.queries.iter().flat_map(|query| &query.terms).map(|term| term.term).collect();
        terms.sort_unstable();
        terms.dedup();
        terms.par_iter().for_each_init(all_codecs, |codecs, &term| {
            let (docs, freqs): (Vec<u32>, Vec<u32>) = self.index.list(term).postings().unzip();
            let (mut words, mut buffer) = (Vec::new(), [0; MAX_BLOCK_LEN]);
            let columns = [(Column::Docs, &docs), (Column::Freqs, &freqs)];
            for (codec, (column, values)) in codecs.iter().flat_map(|codec| columns.map(|column| (codec, column))) {
                words.clear();
                codec.encode(column, values, &mut words).unwrap();
                let encoded = codec.open(column, &words).unwrap();
                let mut left = &values[..];
                for block in 0..encoded.num_blocks() {
                    let len = encoded.decode_block(block, &mut buffer).unwrap();
                    let (expected, rest) = left.split_at(len);
                    assert!(buffer[..len] == *expected, "{}: list {}, {}, {column:?}", self.name, term.0, codec.name());
                    left = rest;
                }
                assert!(left.is_empty(), "{}: list {}, {}, {column:?}", self.name, term.0, codec.name());
            }
        });
    }
}

/// A reference implementation that adds up one posting at a time.
struct Twin {
    norms: Vec<f32>,
    scores: Vec<f32>,
    /// The number of the query's terms in each document.
    found: Vec<u16>,
    /// Documents with any term.
    touched: Vec<u32>,
    /// The best documents with all terms, and with any, in order.
    best: [Vec<Hit>; 2],
}

impl Twin {
    fn new(index: &Index) -> Self {
        let (bm25, average) = (index.built_with(), index.average_length());
        let norms: Vec<f32> = index.doc_lengths().iter().map(|&length| bm25.norm(length, average)).collect();
        let (scores, found) = (vec![0.0; norms.len()], vec![0; norms.len()]);
        Self { norms, scores, found, touched: Vec::new(), best: Default::default() }
    }

    fn add_up(&mut self, index: &Index, query: &Query) {
        for doc in self.touched.drain(..) {
            (self.scores[doc as usize], self.found[doc as usize]) = (0.0, 0);
        }
        for term in &query.terms {
            let weight = index.built_with().weight(index.num_docs(), term.doc_freq, term.qtf);
            for (doc, tf) in index.list(term.term).postings() {
                let at = doc as usize;
                if self.found[at] == 0 {
                    self.touched.push(doc);
                }
                self.found[at] += 1;
                self.scores[at] += Bm25::score(weight, tf, self.norms[at]);
            }
        }
        let least = [query.terms.len(), 1];
        for (best, least) in self.best.iter_mut().zip(least) {
            let with_terms = self.touched.iter().filter(|&&doc| usize::from(self.found[doc as usize]) >= least);
            best.clear();
            best.extend(with_terms.map(|&doc| Hit { doc: DocId(doc), score: self.scores[doc as usize] }));
            let order = |a: &Hit, b: &Hit| b.score.total_cmp(&a.score).then(a.doc.cmp(&b.doc));
            let most = KS[KS.len() - 1];
            if best.len() > most {
                best.select_nth_unstable_by(most, order);
                best.truncate(most);
            }
            best.sort_unstable_by(order);
        }
    }

    /// The best `k` documents of the last query.
    fn best(&self, query: &Query, mode: Mode, k: usize) -> &[Hit] {
        let [all_terms, any_term] = &self.best;
        let best = match mode {
            Mode::And => all_terms,
            Mode::AndOr if all_terms.len() >= k || query.terms.len() == 1 => all_terms,
            Mode::AndOr | Mode::Or => any_term,
        };
        &best[..best.len().min(k)]
    }
}
