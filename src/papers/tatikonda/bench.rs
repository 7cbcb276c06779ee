//! What figures 4, 5 and 6 of Tatikonda et al. share: their methods, on streams of queries, on this machine's cores.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::rc::Rc;

use crate::exec::cpu::CpuExecutor;
use crate::exec::cpu::multicore::{
    Cores, DocumentPartitioned, FineGrained, PartitionedIndex, Served, Stream, adaptive_lanes, inter_lanes, serve,
};
use crate::exec::{ExecError, Executor};
use crate::ids::TermId;
use crate::papers::{Context, ExperimentError, Findings, Input};
use crate::query::{ArrivalProcess, Mode, Query, Stretch, UnitTimes};
use crate::random::Random;
use crate::time::Nanos;

/// Documents of the synthetic index: some minutes for all four figures on sixteen cores, and queries of half a
/// millisecond. The paper's crawl had 77 million, and its queries took 9 ms.
pub(super) const DOCS: u32 = 10_000_000;
/// Queries of its log that are used.
pub(super) const QUERIES: usize = 1000;
/// Cores of the paper's machine.
pub(super) const PAPERS_CORES: usize = 8;
/// The pool's threshold in the paper, unless it says otherwise.
pub(super) const PAPERS_THRESHOLD: usize = 5;

/// A way to share queries among cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Inter,
    DocpUi,
    DocpPi,
    /// With the pool's threshold.
    Fgqp(usize),
    Adaptive,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inter => f.write_str("INTER"),
            Self::DocpUi => f.write_str("DOCP-UI"),
            Self::DocpPi => f.write_str("DOCP-PI"),
            Self::Fgqp(threshold) => write!(f, "FGQP(γ={threshold})"),
            Self::Adaptive => f.write_str("adaptive"),
        }
    }
}

/// What a stream came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    /// Queries answered a second, from the first begun to the last answered.
    pub(super) throughput_qps: f64,
    /// Mean time from a query's begin to its answer.
    pub(super) latency_ms: f64,
    /// Mean time from a query's arrival to its answer.
    pub(super) delay_ms: f64,
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

    /// The better of two, number by number: what disturbs a machine makes it slower, never faster.
    pub(super) fn better(self, other: Self) -> Self {
        Self {
            throughput_qps: self.throughput_qps.max(other.throughput_qps),
            latency_ms: self.latency_ms.min(other.latency_ms),
            delay_ms: self.delay_ms.min(other.delay_ms),
        }
    }
}

/// Index, queries, cores, and what the answers must be.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) input: Input,
    executor: CpuExecutor,
    cores: Cores,
    pub(super) mode: Mode,
    k: usize,
    seed: u64,
    max_workers: usize,
    /// How long one measurement should last.
    seconds: f64,
    /// The index cut into as many parts as were asked for last.
    parts: RefCell<Option<(usize, Rc<PartitionedIndex>)>>,
}

/// Queries of one kind, with the answers' digests and how many of them one core answers a second.
#[derive(Debug)]
pub(super) struct Load {
    queries: Vec<Query>,
    digests: Vec<u64>,
    pub(super) alone: Measured,
}

impl Bench {
    /// Opens the input. Queries of one term are no lists to intersect; they are left out as in the paper.
    pub(super) fn new(context: &Context<'_>) -> Result<Self, ExperimentError> {
        let mut input = context.input(DOCS, QUERIES)?;
        input.queries.retain(|query| query.terms.len() > 1);
        if input.queries.is_empty() {
            return Err(ExperimentError::Input("no query has two terms of this index".to_owned()));
        }
        let executor = CpuExecutor::new(input.index.clone(), input.index.built_with());
        Ok(Self {
            input,
            executor,
            cores: Cores::of_this_machine(),
            mode: context.mode(Mode::And),
            k: context.k,
            seed: context.seed,
            max_workers: context.cores,
            seconds: context.seconds,
            parts: RefCell::default(),
        })
    }

    /// Those of `wanted` numbers of workers that this machine has cores for.
    pub(super) fn workers(&self, wanted: &[usize]) -> Vec<usize> {
        wanted.iter().copied().filter(|&workers| workers <= self.max_workers).collect()
    }

    /// The paper's eight workers, or as many as this machine has cores.
    pub(super) fn eight(&self) -> usize {
        PAPERS_CORES.min(self.max_workers)
    }

    /// Says what was measured on what, and what the machine lacks.
    pub(super) fn describe(&self, findings: &mut Findings) {
        findings.provenance("input", &self.input.name);
        findings.provenance("mode", self.mode.name());
        findings.provenance("k", self.k.to_string());
        let (cores, physical) = (self.cores.len(), self.cores.num_physical());
        findings.provenance("cores", format!("{cores}, {physical} of them whole; {} used", self.max_workers));
        if self.max_workers < PAPERS_CORES {
            findings.note(format!(
                "This machine has {} cores for the paper's {PAPERS_CORES}: lines named by fewer workers are what it \
                 can do, and don't stand beside the paper's.",
                self.max_workers
            ));
        } else if physical < cores {
            findings.note(format!(
                "{cores} cores are halves of {physical}: beyond {physical} workers, each adds a part of a core."
            ));
        }
    }

    /// A load of these queries: answers them all on one core, twice, so that everything is in memory.
    pub(super) fn load(&self, queries: Vec<Query>) -> Result<Load, ExperimentError> {
        let order: Vec<u32> = (0..queries.len() as u32).collect();
        let mut load = Load { queries, digests: Vec::new(), alone: Measured::default() };
        let stream = self.stream(&load, order);
        let first = serve(&mut inter_lanes(&self.executor, 1), &stream, &self.cores)?;
        let second = serve(&mut inter_lanes(&self.executor, 1), &stream, &self.cores)?;
        load.digests = first.iter().map(|one| one.digest).collect();
        load.alone = Measured::of(&second).better(Measured::of(&first));
        Ok(load)
    }

    /// All queries of the log.
    pub(super) fn whole_load(&self) -> Result<Load, ExperimentError> {
        self.load(self.input.queries.clone())
    }

    /// Throughput: all queries are there from the beginning.
    pub(super) fn saturate(&self, method: Method, workers: usize, load: &Load) -> Result<Measured, ExperimentError> {
        // Whole passes over the log, so that every measurement is of the same mixture.
        let expected_qps = load.alone.throughput_qps * workers as f64;
        let passes = (self.seconds * expected_qps / load.queries.len() as f64).round().max(1.0) as usize;
        let order = (0..passes).flat_map(|_| 0..load.queries.len() as u32).collect();
        self.measure(method, workers, load, &self.stream(load, order))
    }

    /// Latency of each query when there is no other.
    pub(super) fn one_at_a_time(
        &self,
        method: Method,
        workers: usize,
        load: &Load,
    ) -> Result<Measured, ExperimentError> {
        let mut stream = self.stream(load, (0..load.queries.len() as u32).collect());
        stream.most_at_once = 1;
        self.measure(method, workers, load, &stream)
    }

    /// Delay when queries come by a Poisson process, drawn from the load's.
    pub(super) fn at_rate(
        &self,
        method: Method,
        workers: usize,
        load: &Load,
        rate_qps: f64,
    ) -> Result<Measured, ExperimentError> {
        let n = ((self.seconds * rate_qps) as usize).max(200);
        let units = UnitTimes::of(&ArrivalProcess::Poisson, self.seed).take(n);
        let arrivals = units.map(|unit| Stretch::evenly(rate_qps).time(unit)).collect();
        let mut random = Random::new(self.seed, ORDER_STREAM);
        // A few long queries make most of the load: shuffled passes draw each of them equally often.
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

    /// Queries of a load, all there from the beginning.
    fn stream<'a>(&self, load: &'a Load, order: Vec<u32>) -> Stream<'a> {
        let (arrivals, most_at_once) = (Vec::new(), usize::MAX);
        Stream { queries: &load.queries, order, arrivals, most_at_once, mode: self.mode, k: self.k }
    }

    fn measure(
        &self,
        method: Method,
        workers: usize,
        load: &Load,
        stream: &Stream<'_>,
    ) -> Result<Measured, ExperimentError> {
        let served = self.serve(method, workers, stream)?;
        for (one, &query) in served.iter().zip(&stream.order) {
            if one.digest != load.digests[query as usize] {
                let label = &load.queries[query as usize].label;
                return Err(ExperimentError::Wrong(format!(
                    "query {label}: {method} gives another answer than one core"
                )));
            }
        }
        Ok(Measured::of(&served))
    }

    fn serve(&self, method: Method, workers: usize, stream: &Stream<'_>) -> Result<Vec<Served>, ExperimentError> {
        let (executor, cores) = (&self.executor, &self.cores);
        let gang =
            |gang: Result<Box<dyn Executor>, ExecError>| Ok::<_, ExperimentError>(serve(&mut [gang?], stream, cores)?);
        match method {
            Method::Inter => Ok(serve(&mut inter_lanes(executor, workers), stream, cores)?),
            Method::Adaptive => Ok(serve(&mut adaptive_lanes(executor, workers), stream, cores)?),
            Method::DocpUi => {
                gang(DocumentPartitioned::unified(executor, workers, cores, 0).map(|gang| Box::new(gang) as Box<_>))
            }
            Method::DocpPi => {
                let parts = self.parts(workers)?;
                gang(DocumentPartitioned::physical(executor, &parts, cores, 0).map(|gang| Box::new(gang) as Box<_>))
            }
            Method::Fgqp(threshold) => {
                // On a thread of its own: the producer is tied to a core, and the caller must not be.
                std::thread::scope(|scope| {
                    let producer = scope.spawn(|| {
                        let mut team = FineGrained::new(executor, workers, threshold, cores, 0)?;
                        cores.pin(0);
                        team.serve(stream)
                    });
                    Ok(producer.join().unwrap_or(Err(ExecError::Panicked))?)
                })
            }
        }
    }

    /// The index in so many parts: the lists that the log's queries ask for.
    fn parts(&self, workers: usize) -> Result<Rc<PartitionedIndex>, ExperimentError> {
        if let Some((number, parts)) = &*self.parts.borrow()
            && *number == workers
        {
            return Ok(Rc::clone(parts));
        }
        let terms = self.input.queries.iter().flat_map(|query| &query.terms);
        let asked: HashSet<TermId> = terms.map(|term| term.term).collect();
        let parts = PartitionedIndex::build(&self.input.index, workers, |term| asked.contains(&term))?;
        let parts = Rc::new(parts);
        self.parts.replace(Some((workers, Rc::clone(&parts))));
        Ok(parts)
    }

    /// Queries of `num_terms` terms: the log's, if it has enough of every length. Else a query of two terms of
    /// the log each, and further terms of the log that are at least as frequent as its rarest: long queries are
    /// long by common words.
    pub(super) fn queries_of_length(&self, num_terms: usize) -> Vec<Query> {
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

/// Lengths of queries that are compared.
pub(super) const LENGTHS: std::ops::RangeInclusive<usize> = 2..=10;
/// So many queries of a length are enough of the log's own.
const ENOUGH: usize = 100;
/// Random streams: the order of queries, and the terms of queries of a length.
const ORDER_STREAM: u64 = 0x7461_7469;
const LENGTH_STREAM: u64 = 0x6C65_6E00;
