//! Playing a trace: parsers, runs one after another, jobs by a policy.
//!
//! All that works does so at once, each thread as fast as the [`Company`](super::Company) of the others lets it: from one moment
//! at which something is done to the next, everything has come nearer to its end by the same time.

use super::jobs::{IndexRun, IndexTrace};
use super::owners::{Owners, RunLoads};
use super::policy::IndexPolicy;
use crate::time::Nanos;

/// Who works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IndexMachine {
    /// Threads that parse; at least 1.
    pub parsers: usize,
    /// Threads that index; with GPUs at least 1.
    pub cpus: usize,
    /// GPUs that index.
    pub gpus: usize,
    /// Warps of a GPU that index at once.
    pub gpu_warps: u32,
    /// Bytes a second at which trees move to another processor.
    pub move_bytes_per_s: f64,
}

impl IndexMachine {
    /// So many of each, with the paper's 480 warps a GPU, and trees that move at 10 GB/s.
    #[must_use]
    pub fn new(parsers: usize, cpus: usize, gpus: usize) -> Self {
        Self { parsers, cpus, gpus, gpu_warps: 480, move_bytes_per_s: 10e9 }
    }
}

/// How it went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IndexOutcome {
    /// Text indexed.
    pub text_bytes: u64,
    /// Until the last run was done.
    pub all: Nanos,
    /// Of it, indexing, from a run's first job to its last.
    pub indexing: Nanos,
    /// Of it, waiting for a parser.
    pub waiting: Nanos,
    /// Bytes of trees that moved.
    pub moved_bytes: u64,
}

impl IndexOutcome {
    /// Text a second, in bytes.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        self.text_bytes as f64 / self.all.as_secs()
    }
}

/// Plays all runs of a trace on a machine by a policy; without `policy` parsers alone. A trace without GPU times is played
/// on CPUs only.
///
/// # Panics
/// If there is no parser, or a policy and no indexer, or a job lacks the time of a class that there is.
#[must_use]
pub fn simulate_indexing(trace: &IndexTrace, machine: &IndexMachine, policy: Option<IndexPolicy>) -> IndexOutcome {
    assert!(machine.parsers > 0, "a machine without parsers");
    assert!(policy.is_none() || machine.cpus + machine.gpus > 0, "a machine without indexers");
    let mut owners = Owners::new(trace, *machine);
    let mut line = Line::new(machine.parsers, policy.is_none());
    let (mut moved_bytes, mut now_ns, mut indexing_ns, mut waiting_ns) = (0, 0.0, 0.0, 0.0);
    loop {
        line.read_in_turn(&trace.runs);
        if let (Some(policy), Some(run)) = (policy, line.take(&trace.runs)) {
            line.indexers = Indexers::of(run, owners.index(run, policy, &mut moved_bytes));
            // Whoever is free of its buffer reads.
            line.read_in_turn(&trace.runs);
        }
        let Some(step) = line.next_step(|threads| trace.company.times(threads)) else { break };
        match line.indexers {
            Indexers::Wait => waiting_ns += step.ns,
            Indexers::Index { .. } => indexing_ns += step.ns,
            Indexers::Prepare { .. } | Indexers::Collect { .. } => {}
        }
        now_ns += step.ns;
        line.advance(step);
    }
    let whole = |ns: f64| Nanos(ns.round() as u64);
    IndexOutcome {
        text_bytes: trace.text_bytes(),
        all: whole(now_ns),
        indexing: whole(indexing_ns),
        waiting: if policy.is_some() { whole(waiting_ns) } else { Nanos::ZERO },
        moved_bytes,
    }
}

/// Work that is shorter has been done: what is left of sums of nanoseconds.
const NOTHING_NS: f64 = 1e-3;

/// What a parser is at, and what is left of it, in work of a thread that is alone.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Parser {
    /// Waiting for its turn to read.
    Free,
    /// Reading, while no other parser reads, a run of which so much is to be parsed then.
    Read { left_ns: f64, then_ns: f64 },
    /// Decompressing and parsing.
    Parse { left_ns: f64 },
    /// Waiting until its buffer is taken.
    Full,
}

/// What indexers are at, likewise.
#[derive(Clone, Debug)]
enum Indexers {
    /// Waiting for a parser.
    Wait,
    /// Preparing, on one thread, what will be indexed and then collected.
    Prepare { left_ns: f64, loads: RunLoads, collecting_ns: f64 },
    /// Indexing.
    Index { loads: RunLoads, collecting_ns: f64 },
    /// Collecting, on one thread.
    Collect { left_ns: f64 },
}

/// A stretch of time in which nobody begins or ends anything.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// How long it is.
    ns: f64,
    /// What a thread does in it.
    work_ns: f64,
}

/// All who work.
struct Line {
    parsers: Vec<Parser>,
    /// Whether nobody takes what they have parsed: it is dropped.
    is_alone: bool,
    indexers: Indexers,
    /// Runs are read in order, and taken in order.
    next_read: usize,
    next_run: usize,
}

impl Indexers {
    fn of(run: &IndexRun, loads: RunLoads) -> Self {
        Self::Prepare { left_ns: run.preparing.0 as f64, loads, collecting_ns: run.collecting.0 as f64 }
    }

    /// What each thread has left, and a GPU, which nobody slows.
    fn left_ns(&self) -> (&[f64], f64) {
        match self {
            Self::Wait => (&[], 0.0),
            Self::Prepare { left_ns, .. } | Self::Collect { left_ns } => (std::slice::from_ref(left_ns), 0.0),
            Self::Index { loads, .. } if loads.moving_ns > NOTHING_NS => (std::slice::from_ref(&loads.moving_ns), 0.0),
            Self::Index { loads, .. } => (&loads.cpus_ns, loads.gpus_ns),
        }
    }

    /// Whether nothing is left of what they are at.
    fn are_done(&self) -> bool {
        let (threads_ns, gpus_ns) = self.left_ns();
        threads_ns.iter().chain([&gpus_ns]).all(|&left_ns| left_ns <= NOTHING_NS)
    }

    fn advance(&mut self, step: Step) {
        match self {
            Self::Wait => return,
            Self::Prepare { left_ns, .. } | Self::Collect { left_ns } => *left_ns -= step.work_ns,
            Self::Index { loads, .. } if loads.moving_ns > NOTHING_NS => loads.moving_ns -= step.work_ns,
            Self::Index { loads, .. } => {
                loads.cpus_ns.iter_mut().for_each(|left_ns| *left_ns -= step.work_ns);
                loads.gpus_ns -= step.ns;
            }
        }
        if self.are_done() {
            *self = match std::mem::replace(self, Self::Wait) {
                Self::Prepare { loads, collecting_ns, .. } => Self::Index { loads, collecting_ns },
                Self::Index { collecting_ns, .. } => Self::Collect { left_ns: collecting_ns },
                Self::Wait | Self::Collect { .. } => Self::Wait,
            };
        }
    }
}

impl Line {
    fn new(parsers: usize, is_alone: bool) -> Self {
        Self { parsers: vec![Parser::Free; parsers], is_alone, indexers: Indexers::Wait, next_read: 0, next_run: 0 }
    }

    /// The parser whose turn it is reads the next run, once no other reads.
    fn read_in_turn(&mut self, runs: &[IndexRun]) {
        let is_reading = self.parsers.iter().any(|parser| matches!(parser, Parser::Read { .. }));
        let turn = self.next_read % self.parsers.len();
        if let (false, Parser::Free, Some(run)) = (is_reading, self.parsers[turn], runs.get(self.next_read)) {
            let then_ns = (run.unpacking.0 + run.parsing.0) as f64;
            self.parsers[turn] = Parser::Read { left_ns: run.reading.0 as f64, then_ns };
            self.next_read += 1;
        }
    }

    /// Takes the next run's buffer, if it is full and the indexers wait for it.
    fn take<'a>(&mut self, runs: &'a [IndexRun]) -> Option<&'a IndexRun> {
        let turn = self.next_run % self.parsers.len();
        if !matches!(self.indexers, Indexers::Wait) || self.parsers[turn] != Parser::Full {
            return None;
        }
        self.parsers[turn] = Parser::Free;
        self.next_run += 1;
        runs.get(self.next_run - 1)
    }

    /// How long it takes until something is done, by how many times as long work takes on so many threads; `None` if nobody works.
    fn next_step(&self, times: impl Fn(usize) -> f64) -> Option<Step> {
        let (cpus_ns, gpus_ns) = self.indexers.left_ns();
        let parsing = self.parsers.iter().filter_map(|parser| match *parser {
            Parser::Read { left_ns, .. } | Parser::Parse { left_ns } => Some(left_ns),
            Parser::Free | Parser::Full => None,
        });
        let left: Vec<f64> = parsing.chain(cpus_ns.iter().copied().filter(|&left_ns| left_ns > NOTHING_NS)).collect();
        let is_indexing = !matches!(self.indexers, Indexers::Wait);
        if left.is_empty() && !is_indexing {
            return None;
        }
        let times = times(left.len());
        let mut ns = left.into_iter().fold(f64::INFINITY, f64::min) * times;
        if gpus_ns > NOTHING_NS {
            ns = ns.min(gpus_ns);
        } else if is_indexing && self.indexers.are_done() {
            // Indexers that have nothing to do in a phase are done with it at once.
            ns = 0.0;
        }
        Some(Step { ns, work_ns: ns / times })
    }

    /// Brings everything nearer to its end.
    fn advance(&mut self, step: Step) {
        let after = |left_ns: f64| left_ns - step.work_ns;
        let parsed = if self.is_alone { Parser::Free } else { Parser::Full };
        for parser in &mut self.parsers {
            *parser = match *parser {
                Parser::Read { left_ns, then_ns } if after(left_ns) <= NOTHING_NS => Parser::Parse { left_ns: then_ns },
                Parser::Read { left_ns, then_ns } => Parser::Read { left_ns: after(left_ns), then_ns },
                Parser::Parse { left_ns } if after(left_ns) <= NOTHING_NS => parsed,
                Parser::Parse { left_ns } => Parser::Parse { left_ns: after(left_ns) },
                waiting @ (Parser::Free | Parser::Full) => waiting,
            };
        }
        self.indexers.advance(step);
    }
}
