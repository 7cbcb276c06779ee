//! Playing a trace: parsers, runs one after another, jobs by a policy.

use super::jobs::{IndexRun, IndexTrace};
use super::policy::{IndexPolicy, Kind, Rates, split};
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
    let mut outcome = IndexOutcome { text_bytes: trace.text_bytes(), ..IndexOutcome::default() };
    // When each parser may read again, when the disk is free, when the indexers are.
    let mut parser_free = vec![Nanos(0); machine.parsers];
    let (mut disk_free, mut indexers_free) = (Nanos(0), Nanos(0));
    for (number, run) in trace.runs.iter().enumerate() {
        let parser = &mut parser_free[number % machine.parsers];
        disk_free = plus((*parser).max(disk_free), run.reading);
        let parsed = plus(plus(disk_free, run.unpacking), run.parsing);
        let Some(policy) = policy else {
            *parser = parsed;
            outcome.all = outcome.all.max(parsed);
            continue;
        };
        // The buffer is taken once the run before is done, and the parser goes on.
        let taken = parsed.max(indexers_free);
        outcome.waiting = plus(outcome.waiting, taken.since(indexers_free));
        *parser = taken;
        let indexing = owners.index(run, policy, &mut outcome.moved_bytes);
        outcome.indexing = plus(outcome.indexing, indexing);
        indexers_free = plus(plus(plus(taken, run.preparing), indexing), run.collecting);
        outcome.all = indexers_free;
    }
    outcome
}

fn plus(a: Nanos, b: Nanos) -> Nanos {
    Nanos(a.0 + b.0)
}

/// Who has which group's trees, and what tokens took.
struct Owners {
    machine: IndexMachine,
    owners: Vec<usize>,
    /// Bytes of each group's trees now.
    tree_bytes: Vec<u64>,
    rates: Rates,
}

/// What a processor has to do in a run.
#[derive(Clone, Debug, Default)]
struct Load {
    /// A CPU: all of its jobs. A GPU: all of its warps' time over the number of warps.
    sum_ns: f64,
    /// A GPU: the longest warp.
    longest_ns: f64,
}

impl Load {
    fn ns(&self) -> f64 {
        self.sum_ns.max(self.longest_ns)
    }
}

impl Owners {
    fn new(trace: &IndexTrace, machine: IndexMachine) -> Self {
        let groups = trace.num_groups();
        // The sample is from all over the collection.
        let tokens: Vec<u64> =
            (0..groups).map(|group| trace.runs.iter().map(|run| run.jobs[group].tokens).sum()).collect();
        let owners = split(&tokens, machine.cpus, machine.gpus);
        Self { machine, owners, tree_bytes: vec![0; groups], rates: Rates::new(groups) }
    }

    fn kind(&self, processor: usize) -> Kind {
        if processor < self.machine.cpus { Kind::Cpu } else { Kind::Gpu }
    }

    fn processors(&self) -> usize {
        self.machine.cpus + self.machine.gpus
    }

    /// Indexes a run; returns how long it takes.
    fn index(&mut self, run: &IndexRun, policy: IndexPolicy, moved_bytes: &mut u64) -> Nanos {
        let ns = match policy {
            IndexPolicy::Split => self.as_owned(run),
            IndexPolicy::Mct => {
                let moves_ns = self.assign_by_completion(run, moved_bytes);
                moves_ns + self.as_owned(run)
            }
            IndexPolicy::Stealing => self.with_stealing(run, moved_bytes),
        };
        for (group, job) in run.jobs.iter().enumerate() {
            let kind = self.kind(self.owners[group]);
            self.rates.learn(kind, group, job.tokens, self.true_ns(run, group, kind));
            self.tree_bytes[group] = job.tree_bytes;
        }
        Nanos(ns.round() as u64)
    }

    /// What a job takes a class; a GPU's is its share of all warps.
    fn true_ns(&self, run: &IndexRun, group: usize, kind: Kind) -> f64 {
        let job = &run.jobs[group];
        match kind {
            Kind::Cpu => job.cpu.expect("a job without its time on a CPU").0 as f64,
            Kind::Gpu => {
                job.gpu.expect("a job without its time on a GPU").0.0 as f64 / f64::from(self.machine.gpu_warps)
            }
        }
    }

    /// Every job where its trees are.
    fn as_owned(&self, run: &IndexRun) -> f64 {
        let mut loads = vec![Load::default(); self.processors()];
        for (group, job) in run.jobs.iter().enumerate() {
            let owner = self.owners[group];
            let kind = self.kind(owner);
            let load = &mut loads[owner];
            load.sum_ns += self.true_ns(run, group, kind);
            if let (Kind::Gpu, Some((_, longest))) = (kind, job.gpu) {
                load.longest_ns = load.longest_ns.max(longest.0 as f64);
            }
        }
        loads.iter().map(Load::ns).fold(0.0, f64::max)
    }

    /// Gives each group, the largest first, to whom it is predicted to be done first; returns how long it takes to move trees,
    /// which is before the run.
    fn assign_by_completion(&mut self, run: &IndexRun, moved_bytes: &mut u64) -> f64 {
        let mut order: Vec<usize> = (0..run.jobs.len()).collect();
        order.sort_by_key(|&group| std::cmp::Reverse(run.jobs[group].tokens));
        let mut ready_ns = vec![0.0; self.processors()];
        let mut moving_ns = 0.0;
        for group in order {
            let tokens = run.jobs[group].tokens;
            if tokens == 0 {
                continue;
            }
            let move_ns = self.move_ns(group);
            let done_ns = |processor: usize| {
                let moves = if processor == self.owners[group] { 0.0 } else { move_ns };
                ready_ns[processor] + moves + self.rates.expect(self.kind(processor), group, tokens)
            };
            let first = (0..self.processors()).min_by(|&a, &b| done_ns(a).total_cmp(&done_ns(b))).unwrap_or_default();
            ready_ns[first] = done_ns(first);
            if first != self.owners[group] {
                *moved_bytes += self.tree_bytes[group];
                moving_ns += move_ns;
                self.owners[group] = first;
            }
        }
        moving_ns
    }

    /// Jobs as the groups are owned; a CPU that is done takes the largest job that waits from the processor with most left. A
    /// GPU's jobs are one launch: they don't wait.
    fn with_stealing(&mut self, run: &IndexRun, moved_bytes: &mut u64) -> f64 {
        let gpus_ns = self.gpu_loads(run);
        let cpus = self.machine.cpus;
        let expected = |owners: &Self, group: usize| owners.rates.expect(Kind::Cpu, group, run.jobs[group].tokens);
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); cpus];
        for (group, &owner) in self.owners.iter().enumerate() {
            if owner < cpus && run.jobs[group].tokens > 0 {
                waiting[owner].push(group);
            }
        }
        let mut left_ns = vec![0.0; cpus];
        for (cpu, groups) in waiting.iter_mut().enumerate() {
            groups.sort_by(|&a, &b| expected(self, a).total_cmp(&expected(self, b)));
            left_ns[cpu] = groups.iter().map(|&group| expected(self, group)).sum();
        }
        let mut free_ns = vec![0.0_f64; cpus];
        // Whoever is free first takes the next job, its own or another one's.
        while let Some(cpu) = (0..cpus).min_by(|&a, &b| free_ns[a].total_cmp(&free_ns[b])) {
            let victim = if waiting[cpu].is_empty() {
                (0..cpus).filter(|&other| !waiting[other].is_empty()).max_by(|&a, &b| left_ns[a].total_cmp(&left_ns[b]))
            } else {
                Some(cpu)
            };
            let Some(victim) = victim else { break };
            let Some(group) = waiting[victim].pop() else { break };
            left_ns[victim] -= expected(self, group);
            if victim != cpu {
                free_ns[cpu] += self.move_ns(group);
                *moved_bytes += self.tree_bytes[group];
                self.owners[group] = cpu;
            }
            free_ns[cpu] += self.true_ns(run, group, Kind::Cpu);
        }
        free_ns.into_iter().fold(gpus_ns, f64::max)
    }

    /// How long the GPU that has most takes.
    fn gpu_loads(&self, run: &IndexRun) -> f64 {
        let mut loads = vec![Load::default(); self.machine.gpus];
        for (group, job) in run.jobs.iter().enumerate() {
            if let (Some(gpu), Some((_, longest))) = (self.owners[group].checked_sub(self.machine.cpus), job.gpu) {
                loads[gpu].sum_ns += self.true_ns(run, group, Kind::Gpu);
                loads[gpu].longest_ns = loads[gpu].longest_ns.max(longest.0 as f64);
            }
        }
        loads.iter().map(Load::ns).fold(0.0, f64::max)
    }

    fn move_ns(&self, group: usize) -> f64 {
        self.tree_bytes[group] as f64 / self.machine.move_bytes_per_s * 1e9
    }
}
