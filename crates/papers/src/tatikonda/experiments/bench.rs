//! What figures 4, 5 and 6 of Tatikonda et al. share: ways to serve streams of queries on this machine's cores.
//!
//! Each way is a method on one of two **engines**: the paper's own lists and steps ([`published`](crate::tatikonda::published)),
//! whose numbers stand beside the paper's, and Tandem's index and operators. Both must give the same answers. Gains are
//! told against one core of the same engine.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use crate::codec::Pfor;
use crate::ding::daat::{Advance, CodedLists};
use crate::tatikonda::document_partitioned::DocumentPartitioned;
use crate::tatikonda::partitioned_index::PartitionedIndex;
use crate::tatikonda::published::{Core, Gang, serve_by_tasks};
use crate::{Context, ExperimentError, Findings, Input};
use tandem_core::base::ids::TermId;
use tandem_core::base::random::Random;
use tandem_core::base::time::Nanos;
use tandem_core::query::{ArrivalProcess, Mode, Query, Stretch, UnitTimes};
use tandem_core::search::cpu::CpuExecutor;
use tandem_core::search::cpu::multicore::{Cores, FineGrained, Served, Stream, adaptive_lanes, inter_lanes, serve};
use tandem_core::search::{ExecError, Executor};

/// Documents of the synthetic index: some minutes for all four figures on sixteen cores, and queries of a few
/// milliseconds. The paper's crawl had 77 million, and its queries took 9 ms.
pub(super) const DOCS: u32 = 10_000_000;
/// Queries of its log that are used.
pub(super) const QUERIES: usize = 1000;
/// Cores of the paper's machine.
pub(super) const PAPERS_CORES: usize = 8;
/// The pool's threshold in the paper, unless it says otherwise.
pub(super) const PAPERS_THRESHOLD: usize = 5;
/// Queries that are answered one at a time take so many times as long as one measurement, at most.
const QUIET_MEASUREMENTS: f64 = 2.0;

/// Whose lists and steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Engine {
    /// The paper's.
    Published,
    /// Tandem's index and operators.
    Tandem,
}

/// A way to share queries among cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Inter,
    DocpUi,
    DocpPi,
    /// With the pool's threshold.
    Fgqp(usize),
    /// Tandem's own.
    Adaptive,
}

/// A method on an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) engine: Engine,
    pub(super) method: Method,
}

impl Way {
    pub(super) const fn published(method: Method) -> Self {
        Self { engine: Engine::Published, method }
    }

    pub(super) const fn tandem(method: Method) -> Self {
        Self { engine: Engine::Tandem, method }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.engine == Engine::Tandem {
            f.write_str("Tandem, ")?;
        }
        match self.method {
            Method::Inter => f.write_str("INTER"),
            Method::DocpUi => f.write_str("DOCP-UI"),
            Method::DocpPi => f.write_str("DOCP-PI"),
            Method::Fgqp(threshold) => write!(f, "FGQP(γ={threshold})"),
            Method::Adaptive => f.write_str("adaptive"),
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
    /// The log's lists as the paper has them; `None` for modes other than its AND.
    lists: Option<Arc<CodedLists>>,
    /// The index cut into as many parts as were asked for last, for each engine.
    parts: RefCell<Option<(usize, Rc<PartitionedIndex>)>>,
    coded_parts: RefCell<Option<(usize, Vec<Arc<CodedLists>>)>>,
}

/// Queries of one kind, with the answers' digests and what one core makes of them.
#[derive(Debug)]
pub(super) struct Load {
    queries: Vec<Query>,
    digests: Vec<u64>,
    alone: [Measured; 2],
}

impl Load {
    /// Enough of them for a mean.
    fn some_queries(&self) -> impl Iterator<Item = &Query> {
        self.queries.iter().take(200)
    }

    /// What one core makes of them, one after another.
    pub(super) fn alone(&self, engine: Engine) -> Measured {
        self.alone[engine as usize]
    }
}

impl Bench {
    /// Opens the input. Queries of one term are no lists to intersect; they are left out as in the paper.
    pub(super) fn new(context: &Context<'_>) -> Result<Self, ExperimentError> {
        Self::on(context.input(DOCS, QUERIES)?, context)
    }

    /// As [`new`](Self::new), on another input.
    pub(super) fn on(mut input: Input, context: &Context<'_>) -> Result<Self, ExperimentError> {
        input.queries.retain(|query| query.terms.len() > 1);
        if input.queries.is_empty() {
            return Err(ExperimentError::Input("no query has two terms of this index".to_owned()));
        }
        let executor = CpuExecutor::new(input.index.clone(), input.index.built_with());
        let mode = context.mode(Mode::And);
        let all_docs = 0..input.index.num_docs();
        // "The default skip block size is set to 512".
        let lists = (mode == Mode::And)
            .then(|| CodedLists::encode(&input.index, &asked(&input.queries), Box::new(Pfor::<512>), all_docs))
            .transpose()?
            .map(Arc::new);
        Ok(Self {
            input,
            executor,
            cores: Cores::of_this_machine(),
            mode,
            lists,
            k: context.k,
            seed: context.seed,
            max_workers: context.cores,
            seconds: context.seconds,
            parts: RefCell::default(),
            coded_parts: RefCell::default(),
        })
    }

    /// The ways of `wanted` that answer queries of this mode: the paper's know AND alone.
    pub(super) fn ways(&self, wanted: &[Way]) -> Vec<Way> {
        wanted.iter().copied().filter(|way| way.engine == Engine::Tandem || self.lists.is_some()).collect()
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
        if let Some(lists) = &self.lists {
            findings.note(format!(
                "Lines without a name before them are the paper's methods: lists in {}, Small Adaptive, block after \
                 block. \"Tandem\" is the lab's index and operators. Each is told against one core of its own.",
                lists.codec()
            ));
        } else {
            findings.note(format!("The paper's methods know AND alone: for {}, there are Tandem's only.", self.mode));
        }
    }

    /// A load of these queries: answers them all on one core of each engine, twice, so that everything is in memory.
    pub(super) fn load(&self, queries: Vec<Query>) -> Result<Load, ExperimentError> {
        let order: Vec<u32> = (0..queries.len() as u32).collect();
        let mut load = Load { queries, digests: Vec::new(), alone: [Measured::default(); 2] };
        let stream = self.stream(&load, order);
        let first = serve(&mut inter_lanes(&self.executor, 1), &stream, &self.cores)?;
        let second = serve(&mut inter_lanes(&self.executor, 1), &stream, &self.cores)?;
        let tandem = Measured::of(&second).better(Measured::of(&first));
        load.digests = first.iter().map(|one| one.digest).collect();
        load.alone[Engine::Tandem as usize] = tandem;
        for way in self.ways(&[Way::published(Method::Inter)]) {
            let order = (0..load.queries.len() as u32).collect();
            let published = self.measure(way, 1, &load, &self.stream(&load, order))?;
            load.alone[Engine::Published as usize] = published;
        }
        Ok(load)
    }

    /// All queries of the log.
    pub(super) fn whole_load(&self) -> Result<Load, ExperimentError> {
        self.load(self.input.queries.clone())
    }

    /// Throughput: all queries are there from the beginning.
    pub(super) fn saturate(&self, way: Way, workers: usize, load: &Load) -> Result<Measured, ExperimentError> {
        // Whole passes over the log, so that every measurement is of the same mixture.
        let expected_qps = load.alone(way.engine).throughput_qps * workers as f64;
        let passes = (self.seconds * expected_qps / load.queries.len() as f64).round().max(1.0) as usize;
        let order = (0..passes).flat_map(|_| 0..load.queries.len() as u32).collect();
        self.measure(way, workers, load, &self.stream(load, order))
    }

    /// Latency of each query when there is no other: of the log's first, as many for every way of the engine.
    pub(super) fn one_at_a_time(&self, way: Way, workers: usize, load: &Load) -> Result<Measured, ExperimentError> {
        let most = QUIET_MEASUREMENTS * self.seconds * load.alone(way.engine).throughput_qps;
        let mut stream = self.stream(load, (0..load.queries.len() as u32).take(most.ceil() as usize).collect());
        stream.most_at_once = 1;
        self.measure(way, workers, load, &stream)
    }

    /// How much quicker so many ranges of documents are than one core at most: each timed alone, a query's slowest range
    /// against all of them together. `None` where there are no lists of the paper's.
    pub(super) fn slowest_range_bound(&self, load: &Load, workers: usize) -> Option<f64> {
        let lists = self.lists.as_ref()?;
        let num_docs = u64::from(lists.num_docs());
        let bound = |part: usize| (num_docs * part as u64 / workers as u64) as u32;
        let ranges = (0..workers).map(|part| bound(part)..bound(part + 1));
        let mut cores: Vec<Core> =
            ranges.map(|docs| Core::new(Arc::clone(lists), docs, Advance::BlockByBlock)).collect();
        let (mut all, mut slowest) = (0.0, 0.0);
        for query in load.some_queries() {
            let times = cores.iter_mut().map(|core| core.time_us(&query.terms, self.k));
            let (sum, most) = times.fold((0.0, 0.0_f64), |(sum, most), us| (sum + us, most.max(us)));
            all += sum;
            slowest += most;
        }
        Some(all / slowest)
    }

    /// Tasks that FGQP cuts of a query, in the mean.
    pub(super) fn tasks_a_query(&self, load: &Load) -> Option<f64> {
        let lists = self.lists.as_ref()?;
        let rarest = load.queries.iter().filter_map(|query| query.terms.first());
        let tasks: usize = rarest.map(|term| lists.cursor(term.term).num_blocks()).sum();
        Some(tasks as f64 / load.queries.len() as f64)
    }

    /// Microseconds of some queries on one core that passes over blocks by their skips, and on one that decodes all.
    pub(super) fn skipping(&self, load: &Load) -> Option<(f64, f64)> {
        let lists = self.lists.as_ref()?;
        let time_us = |advance| {
            let mut core = Core::new(Arc::clone(lists), 0..lists.num_docs(), advance);
            load.some_queries().map(|query| core.time_us(&query.terms, self.k)).sum::<f64>()
        };
        Some((time_us(Advance::BySkips), time_us(Advance::BlockByBlock)))
    }

    /// Delay when queries come by a Poisson process, drawn from the load's.
    pub(super) fn at_rate(
        &self,
        way: Way,
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
        self.measure(way, workers, load, &Stream { arrivals, ..self.stream(load, order) })
    }

    /// Queries of a load, all there from the beginning.
    fn stream<'a>(&self, load: &'a Load, order: Vec<u32>) -> Stream<'a> {
        let (arrivals, most_at_once) = (Vec::new(), usize::MAX);
        Stream { queries: &load.queries, order, arrivals, most_at_once, mode: self.mode, k: self.k }
    }

    fn measure(&self, way: Way, workers: usize, load: &Load, stream: &Stream<'_>) -> Result<Measured, ExperimentError> {
        let served = match (way.engine, &self.lists) {
            (Engine::Published, Some(lists)) => self.serve_published(way.method, lists, workers, stream)?,
            _ => self.serve_tandem(way.method, workers, stream)?,
        };
        for (one, &query) in served.iter().zip(&stream.order) {
            if one.digest != load.digests[query as usize] {
                let label = &load.queries[query as usize].label;
                return Err(ExperimentError::Wrong(format!("query {label}: {way} gives another answer than one core")));
            }
        }
        Ok(Measured::of(&served))
    }

    fn serve_published(
        &self,
        method: Method,
        lists: &Arc<CodedLists>,
        workers: usize,
        stream: &Stream<'_>,
    ) -> Result<Vec<Served>, ExperimentError> {
        let cores = &self.cores;
        let range = |part: usize| {
            let bound = |part| (u64::from(lists.num_docs()) * part as u64 / workers as u64) as u32;
            bound(part)..bound(part + 1)
        };
        let core = |lists: &Arc<CodedLists>, part| Core::new(Arc::clone(lists), range(part), Advance::BlockByBlock);
        let gang = |parts: Vec<Core>| -> Result<Vec<Served>, ExperimentError> {
            let gang: Box<dyn Executor> = Box::new(Gang::spawn(parts, cores)?);
            Ok(serve(&mut [gang], stream, cores)?)
        };
        match method {
            Method::Inter | Method::Adaptive => {
                let mut lanes: Vec<Box<dyn Executor>> =
                    (0..workers).map(|_| Box::new(Core::whole(lists)) as Box<_>).collect();
                Ok(serve(&mut lanes, stream, cores)?)
            }
            Method::DocpUi => gang((0..workers).map(|part| core(lists, part)).collect()),
            Method::DocpPi => {
                let parts = self.coded_parts(workers, range)?;
                gang(parts.iter().enumerate().map(|(part, lists)| core(lists, part)).collect())
            }
            Method::Fgqp(threshold) => on_its_own_thread(|| serve_by_tasks(lists, workers, threshold, stream, cores)),
        }
    }

    fn serve_tandem(
        &self,
        method: Method,
        workers: usize,
        stream: &Stream<'_>,
    ) -> Result<Vec<Served>, ExperimentError> {
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
            Method::Fgqp(threshold) => on_its_own_thread(|| {
                let mut team = FineGrained::new(executor, workers, threshold, cores, 0)?;
                cores.pin(0);
                team.serve(stream)
            }),
        }
    }

    /// The coded lists in so many parts.
    fn coded_parts(
        &self,
        workers: usize,
        range: impl Fn(usize) -> std::ops::Range<u32>,
    ) -> Result<Vec<Arc<CodedLists>>, ExperimentError> {
        if let Some((number, parts)) = &*self.coded_parts.borrow()
            && *number == workers
        {
            return Ok(parts.clone());
        }
        let terms = asked(&self.input.queries);
        let part =
            |part| CodedLists::encode(&self.input.index, &terms, Box::new(Pfor::<512>), range(part)).map(Arc::new);
        let parts = (0..workers).map(part).collect::<Result<Vec<_>, _>>()?;
        self.coded_parts.replace(Some((workers, parts.clone())));
        Ok(parts)
    }

    /// The index in so many parts: the lists that the log's queries ask for.
    fn parts(&self, workers: usize) -> Result<Rc<PartitionedIndex>, ExperimentError> {
        if let Some((number, parts)) = &*self.parts.borrow()
            && *number == workers
        {
            return Ok(Rc::clone(parts));
        }
        let asked: HashSet<TermId> = asked(&self.input.queries).into_iter().collect();
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

/// The terms of queries, each once.
pub(super) fn asked(queries: &[Query]) -> Vec<TermId> {
    let terms: BTreeSet<TermId> = queries.iter().flat_map(|query| &query.terms).map(|term| term.term).collect();
    terms.into_iter().collect()
}

/// Runs a method whose producer is tied to a core: the caller must not be.
fn on_its_own_thread<T: Send>(work: impl FnOnce() -> Result<T, ExecError> + Send) -> Result<T, ExperimentError> {
    Ok(std::thread::scope(|scope| scope.spawn(work).join().unwrap_or(Err(ExecError::Panicked)))?)
}

/// Lengths of queries that are compared.
pub(super) const LENGTHS: std::ops::RangeInclusive<usize> = 2..=10;
/// So many queries of a length are enough of the log's own.
const ENOUGH: usize = 100;
/// Random streams: the order of queries, and the terms of queries of a length.
const ORDER_STREAM: u64 = 0x7461_7469;
const LENGTH_STREAM: u64 = 0x6C65_6E00;
