//! Ways to serve streams of queries on the cores of this machine, for figures 4, 5 and 6 of Tatikonda et al.
//!
//! All ways run the paper's lists and steps ([`published`](crate::tatikonda::published)) and must give the same answers.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tandem_engine::query::Query;
use tandem_engine::search::cpu::multicore::{Cores, Served, Stream, serve};
use tandem_engine::search::{ExecError, Executor};
use tandem_model::base::random::Random;
use tandem_model::base::time::Nanos;
use tandem_model::traffic::{ArrivalProcess, Mode, Stretch, UnitTimes};

use crate::codec::Pfor;
use crate::context::terms_of;
use crate::ding::daat::lists::CodedLists;
use crate::tatikonda::published::core::Core;
use crate::tatikonda::published::gang::Gang;
use crate::tatikonda::published::pools::serve_by_tasks;
use crate::{Context, ExperimentError, Findings, Input, Result};

/// Documents of the synthetic index, whose queries take a few milliseconds. All four figures take some minutes on sixteen
/// cores. The paper's crawl had 77 million documents, and its queries took 9 ms.
pub(crate) const DOCS: u32 = 10_000_000;
pub(crate) const QUERIES: usize = 1000;
/// Cores of the paper's machine.
pub(crate) const PAPERS_CORES: usize = 8;
/// Default threshold of the pool in the paper.
pub(crate) const PAPERS_THRESHOLD: usize = 5;
/// Maximum duration of queries that are answered one at a time, in measurements.
const QUIET_MEASUREMENTS: f64 = 2.0;
/// Lengths of queries in figures 5 and 6.
pub(crate) const LENGTHS: std::ops::RangeInclusive<usize> = 2..=10;
/// Minimum number of the log's queries of each length; with fewer, queries are composed.
const ENOUGH: usize = 100;
/// Random stream of the order of queries.
const ORDER_STREAM: u64 = 0x7461_7469;
/// First random stream of the terms of composed queries.
const LENGTH_STREAM: u64 = 0x6C65_6E00;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// One query per core.
    Inter,
    /// Document ranges of one index.
    DocpUi,
    /// An index per document range.
    DocpPi,
    /// Tasks in a pool with this threshold.
    Fgqp(usize),
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inter => f.write_str("INTER"),
            Self::DocpUi => f.write_str("DOCP-UI"),
            Self::DocpPi => f.write_str("DOCP-PI"),
            Self::Fgqp(threshold) => write!(f, "FGQP(γ={threshold})"),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// Queries answered per second, from the first start to the last answer.
    pub(crate) throughput_qps: f64,
    /// Mean time from start to answer.
    pub(crate) latency_ms: f64,
    /// Mean time from arrival to answer.
    pub(crate) delay_ms: f64,
}

impl Measured {
    fn of(served: &[Served]) -> Self {
        let begun = served.iter().map(|one| one.started).min().unwrap_or_default();
        let ended = served.iter().map(|one| one.finished).max().unwrap_or_default();
        let mean_ms = |since: fn(&Served) -> Nanos| {
            served.iter().map(|one| one.finished.since(since(one)).as_ms()).sum::<f64>() / served.len() as f64
        };
        Self {
            throughput_qps: served.len() as f64 / ended.since(begun).as_secs(),
            latency_ms: mean_ms(|one| one.started),
            delay_ms: mean_ms(|one| one.arrival),
        }
    }

    /// Returns the better of two, number by number, because interference only slows a machine down.
    pub(crate) fn better(self, other: Self) -> Self {
        Self {
            throughput_qps: self.throughput_qps.max(other.throughput_qps),
            latency_ms: self.latency_ms.min(other.latency_ms),
            delay_ms: self.delay_ms.min(other.delay_ms),
        }
    }
}

/// Index, queries and cores of a figure.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) input: Input,
    cores: Cores,
    k: usize,
    seed: u64,
    max_workers: usize,
    /// Duration of one measurement.
    seconds: f64,
    /// The log's lists.
    lists: Arc<CodedLists>,
    /// The log's lists in the last number of parts.
    parts: RefCell<Option<(usize, Vec<Arc<CodedLists>>)>>,
}

/// Queries of one kind, with digests of their answers and the performance of one core.
#[derive(Debug)]
pub(crate) struct Load {
    queries: Vec<Query>,
    digests: Vec<u64>,
    pub(crate) alone: Measured,
}

impl Load {
    /// Returns enough queries for a mean.
    fn some_queries(&self) -> impl Iterator<Item = &Query> {
        self.queries.iter().take(200)
    }

    pub(crate) fn len(&self) -> usize {
        self.queries.len()
    }
}

impl Bench {
    /// Opens the default input and adds a description of the measurement to the findings.
    pub(crate) fn open(context: &Context<'_>, findings: &mut Findings) -> Result<Self> {
        let bench = Self::on(context.input(DOCS, QUERIES, findings)?, context)?;
        bench.describe(findings);
        Ok(bench)
    }

    /// Opens an input. Queries of one term need no intersection and are left out, as in the paper.
    pub(crate) fn on(mut input: Input, context: &Context<'_>) -> Result<Self> {
        let mode = context.mode(Mode::And);
        if mode != Mode::And {
            return Err(ExperimentError::Input(format!("the mode is {mode}, the paper's methods answer AND only")));
        }
        input.queries.retain(|query| query.terms.len() > 1);
        if input.queries.is_empty() {
            return Err(ExperimentError::Input("no query has two terms of this index".to_owned()));
        }
        let all_docs = 0..input.index.num_docs();
        // "The default skip block size is set to 512".
        let lists = CodedLists::encode(&input.index, &terms_of(&input.queries), Box::new(Pfor::<512>), all_docs)?;
        Ok(Self {
            input,
            cores: Cores::of_this_machine(),
            lists: Arc::new(lists),
            k: context.k,
            seed: context.seed,
            max_workers: context.cores,
            seconds: context.seconds,
            parts: RefCell::default(),
        })
    }

    /// Filters the numbers of workers that do not exceed the cores of this machine.
    pub(crate) fn workers(&self, wanted: &[usize]) -> Vec<usize> {
        wanted.iter().copied().filter(|&workers| workers <= self.max_workers).collect()
    }

    /// Returns the paper's eight workers, or as many as this machine has cores.
    pub(crate) fn eight(&self) -> usize {
        PAPERS_CORES.min(self.max_workers)
    }

    /// Describes the settings and the limits of this machine.
    fn describe(&self, findings: &mut Findings) {
        findings.provenance("mode", Mode::And.name());
        findings.provenance("k", self.k.to_string());
        let (cores, physical) = (self.cores.len(), self.cores.num_physical());
        findings.provenance("cores", format!("{cores}, {physical} of them whole; {} used", self.max_workers));
        if self.max_workers < PAPERS_CORES {
            findings.note(format!(
                "This machine has {} cores, the paper's has {PAPERS_CORES}: rows of fewer workers are not compared with \
                 the paper's.",
                self.max_workers
            ));
        } else if physical < cores {
            findings.note(format!(
                "{cores} logical cores share {physical} physical ones: each worker beyond {physical} adds part of a core."
            ));
        }
        findings.note(format!(
            "Lists in {}, Small Adaptive, block after block. Gains are relative to one core.",
            self.lists.codec()
        ));
    }

    /// Makes a load: answers the queries on one core, twice, so that all data is in memory.
    pub(crate) fn load(&self, queries: Vec<Query>) -> Result<Load> {
        let mut load = Load { queries, digests: Vec::new(), alone: Measured::default() };
        let stream = self.stream(&load, (0..load.queries.len() as u32).collect());
        let first = self.serve(Method::Inter, 1, &stream)?;
        let second = self.serve(Method::Inter, 1, &stream)?;
        load.alone = Measured::of(&second).better(Measured::of(&first));
        load.digests = first.iter().map(|one| one.digest).collect();
        Ok(load)
    }

    /// Makes a load of all queries of the log.
    pub(crate) fn whole_load(&self) -> Result<Load> {
        self.load(self.input.queries.clone())
    }

    /// Measures throughput: all queries wait from the beginning.
    pub(crate) fn saturate(&self, method: Method, workers: usize, load: &Load) -> Result<Measured> {
        // Whole passes over the log give every measurement the same mixture of queries.
        let expected_qps = load.alone.throughput_qps * workers as f64;
        let passes = (self.seconds * expected_qps / load.queries.len() as f64).round().max(1.0) as usize;
        let order = (0..passes).flat_map(|_| 0..load.queries.len() as u32).collect();
        self.measure(method, workers, load, &self.stream(load, order))
    }

    /// Measures the latency of single queries: the first of the log, as many for every method.
    pub(crate) fn one_at_a_time(&self, method: Method, workers: usize, load: &Load) -> Result<Measured> {
        let most = QUIET_MEASUREMENTS * self.seconds * load.alone.throughput_qps;
        let mut stream = self.stream(load, (0..load.queries.len() as u32).take(most.ceil() as usize).collect());
        stream.most_at_once = 1;
        self.measure(method, workers, load, &stream)
    }

    /// Returns the greatest speed-up of document ranges over one core, from ranges timed alone: the sum of a query's times
    /// over its slowest.
    pub(crate) fn slowest_range_bound(&self, load: &Load, workers: usize) -> f64 {
        let mut cores: Vec<Core> = (0..workers).map(|part| self.core(&self.lists, part, workers)).collect();
        let (mut all, mut slowest) = (0.0, 0.0);
        for query in load.some_queries() {
            let times = cores.iter_mut().map(|core| core.time_us(&query.terms, self.k));
            let (sum, most) = times.fold((0.0, 0.0_f64), |(sum, most), us| (sum + us, most.max(us)));
            all += sum;
            slowest += most;
        }
        all / slowest
    }

    /// Returns the mean number of FGQP's tasks per query.
    pub(crate) fn tasks_per_query(&self, load: &Load) -> f64 {
        load.queries.iter().map(|query| self.num_tasks(query)).sum::<usize>() as f64 / load.queries.len() as f64
    }

    /// Returns the queries with at most this many of FGQP's tasks.
    pub(crate) fn queries_of_few_tasks(&self, most: usize) -> Vec<Query> {
        self.input.queries.iter().filter(|query| self.num_tasks(query) <= most).cloned().collect()
    }

    fn num_tasks(&self, query: &Query) -> usize {
        self.lists.cursor(query.terms[0].term).num_blocks()
    }

    /// Measures delay with Poisson arrivals.
    pub(crate) fn at_rate(&self, method: Method, workers: usize, load: &Load, rate_qps: f64) -> Result<Measured> {
        let n = ((self.seconds * rate_qps) as usize).max(200);
        let units = UnitTimes::of(&ArrivalProcess::Poisson, self.seed).take(n);
        let arrivals = units.map(|unit| Stretch::evenly(rate_qps).time(unit)).collect();
        let mut random = Random::new(self.seed, ORDER_STREAM);
        // A few long queries dominate the load. Shuffled passes draw each query equally often.
        let mut order: Vec<u32> = Vec::with_capacity(n);
        while order.len() < n {
            let mut pass: Vec<u32> = (0..load.queries.len() as u32).collect();
            for last in (1..pass.len()).rev() {
                pass.swap(last, random.below(last as u32 + 1) as usize);
            }
            order.extend(pass);
        }
        order.truncate(n);
        self.measure(method, workers, load, &Stream { arrivals, ..self.stream(load, order) })
    }

    /// Returns a stream of a load's queries that all wait from the beginning.
    fn stream<'a>(&self, load: &'a Load, order: Vec<u32>) -> Stream<'a> {
        let (arrivals, most_at_once) = (Vec::new(), usize::MAX);
        Stream { queries: &load.queries, order, arrivals, most_at_once, mode: Mode::And, k: self.k }
    }

    fn measure(&self, method: Method, workers: usize, load: &Load, stream: &Stream<'_>) -> Result<Measured> {
        let served = self.serve(method, workers, stream)?;
        for (one, &query) in served.iter().zip(&stream.order) {
            if one.digest != load.digests[query as usize] {
                let label = &load.queries[query as usize].label;
                let message = format!("query {label}: {method} gives another answer than one core");
                return Err(ExperimentError::Wrong(message));
            }
        }
        Ok(Measured::of(&served))
    }

    fn serve(&self, method: Method, workers: usize, stream: &Stream<'_>) -> Result<Vec<Served>> {
        let (lists, cores) = (&self.lists, &self.cores);
        let gang = |parts: Vec<Core>| -> Result<Vec<Served>> {
            let gang: Box<dyn Executor> = Box::new(Gang::spawn(parts, cores)?);
            Ok(serve(&mut [gang], stream, cores)?)
        };
        match method {
            Method::Inter => {
                let mut lanes: Vec<Box<dyn Executor>> =
                    (0..workers).map(|_| Box::new(Core::whole(lists)) as Box<_>).collect();
                Ok(serve(&mut lanes, stream, cores)?)
            }
            Method::DocpUi => gang((0..workers).map(|part| self.core(lists, part, workers)).collect()),
            Method::DocpPi => {
                let parts = self.parts(workers)?.into_iter().enumerate();
                gang(parts.map(|(part, lists)| self.core(&lists, part, workers)).collect())
            }
            // A thread of its own, because the producer pins itself to a core.
            Method::Fgqp(threshold) => Ok(std::thread::scope(|scope| {
                let served = scope.spawn(|| serve_by_tasks(lists, workers, threshold, stream, cores));
                served.join().unwrap_or(Err(ExecError::Panicked))
            })?),
        }
    }

    /// Returns a core for one of `parts` equal ranges of the documents.
    fn core(&self, lists: &Arc<CodedLists>, part: usize, parts: usize) -> Core {
        Core::new(Arc::clone(lists), self.docs_of_part(part, parts))
    }

    fn docs_of_part(&self, part: usize, parts: usize) -> Range<u32> {
        let bound = |part| (u64::from(self.lists.num_docs()) * part as u64 / parts as u64) as u32;
        bound(part)..bound(part + 1)
    }

    /// Returns the lists of the log's queries in one part per worker.
    fn parts(&self, workers: usize) -> Result<Vec<Arc<CodedLists>>> {
        if let Some((number, parts)) = &*self.parts.borrow()
            && *number == workers
        {
            return Ok(parts.clone());
        }
        let terms = terms_of(&self.input.queries);
        let encode = |docs| CodedLists::encode(&self.input.index, &terms, Box::new(Pfor::<512>), docs).map(Arc::new);
        let parts = (0..workers).map(|part| encode(self.docs_of_part(part, workers)));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        self.parts.replace(Some((workers, parts.clone())));
        Ok(parts)
    }

    /// Returns queries of `num_terms` terms: the log's own if it has enough of every length. Otherwise each query has two
    /// terms of a query of the log and further terms that are at least as frequent as its rarest, because long queries are
    /// long by common words.
    pub(crate) fn queries_of_length(&self, num_terms: usize) -> Vec<Query> {
        let log = &self.input.queries;
        let of_length = |num_terms| log.iter().filter(move |query| query.terms.len() == num_terms);
        if LENGTHS.into_iter().all(|num_terms| of_length(num_terms).count() >= ENOUGH) {
            return of_length(num_terms).cloned().collect();
        }
        let terms: Vec<_> = log.iter().flat_map(|query| query.terms.iter().copied()).collect();
        let mut random = Random::new(self.seed, LENGTH_STREAM + num_terms as u64);
        let mut queries = Vec::new();
        for query in log {
            let mut query = Query { terms: query.terms[..2].to_vec(), ..query.clone() };
            let mut tries = 0;
            while query.terms.len() < num_terms && tries < 1000 {
                tries += 1;
                let term = terms[random.below(terms.len() as u32) as usize];
                let is_new = query.terms.iter().all(|other| other.term != term.term);
                if is_new && term.doc_freq >= query.terms[0].doc_freq {
                    query.terms.push(term);
                }
            }
            query.terms.sort_by_key(|term| (term.doc_freq, term.term));
            if query.terms.len() == num_terms {
                queries.push(query);
            }
        }
        queries
    }
}
