//! Who indexes which groups of slots: jobs given out run after run, trees that move.

use super::jobs::{IndexRun, IndexTrace};
use super::pipeline::IndexMachine;
use super::policy::{IndexPolicy, Kind, Rates, split};

/// Who has which group's trees, and what tokens took.
pub(super) struct Owners {
    machine: IndexMachine,
    owners: Vec<usize>,
    /// Bytes of each group's trees now.
    tree_bytes: Vec<u64>,
    rates: Rates,
}

/// What processors have to do in a run, in work of a thread that is alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RunLoads {
    /// First, on one thread: moving trees.
    pub(super) moving_ns: f64,
    /// Then each CPU.
    pub(super) cpus_ns: Vec<f64>,
    /// Beside them the GPU that takes longest.
    pub(super) gpus_ns: f64,
}

impl Owners {
    /// Groups that are split by their tokens in all of the collection.
    pub(super) fn new(trace: &IndexTrace, machine: IndexMachine) -> Self {
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

    /// Gives out the jobs of a run; returns what each processor has to do.
    pub(super) fn index(&mut self, run: &IndexRun, policy: IndexPolicy, moved_bytes: &mut u64) -> RunLoads {
        let loads = match policy {
            IndexPolicy::Split => self.as_owned(run, 0.0),
            IndexPolicy::Mct => {
                let moves_ns = self.assign_by_completion(run, moved_bytes);
                self.as_owned(run, moves_ns)
            }
            IndexPolicy::Stealing => self.with_stealing(run, moved_bytes),
        };
        for (group, job) in run.jobs.iter().enumerate() {
            let kind = self.kind(self.owners[group]);
            self.rates.learn(kind, group, job.tokens, self.true_ns(run, group, kind));
            self.tree_bytes[group] = job.tree_bytes;
        }
        loads
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

    /// Every job where its trees are, once they have moved for so long.
    fn as_owned(&self, run: &IndexRun, moving_ns: f64) -> RunLoads {
        let mut cpus_ns = vec![0.0; self.machine.cpus];
        for (group, &owner) in self.owners.iter().enumerate() {
            if owner < self.machine.cpus {
                cpus_ns[owner] += self.true_ns(run, group, Kind::Cpu);
            }
        }
        RunLoads { moving_ns, cpus_ns, gpus_ns: self.gpus_ns(run) }
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
    fn with_stealing(&mut self, run: &IndexRun, moved_bytes: &mut u64) -> RunLoads {
        let gpus_ns = self.gpus_ns(run);
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
        let mut cpus_ns = vec![0.0_f64; cpus];
        // Whoever is free first takes the next job, its own or another one's.
        while let Some(cpu) = (0..cpus).min_by(|&a, &b| cpus_ns[a].total_cmp(&cpus_ns[b])) {
            let victim = if waiting[cpu].is_empty() {
                (0..cpus).filter(|&other| !waiting[other].is_empty()).max_by(|&a, &b| left_ns[a].total_cmp(&left_ns[b]))
            } else {
                Some(cpu)
            };
            let Some(victim) = victim else { break };
            let Some(group) = waiting[victim].pop() else { break };
            left_ns[victim] -= expected(self, group);
            if victim != cpu {
                cpus_ns[cpu] += self.move_ns(group);
                *moved_bytes += self.tree_bytes[group];
                self.owners[group] = cpu;
            }
            cpus_ns[cpu] += self.true_ns(run, group, Kind::Cpu);
        }
        RunLoads { moving_ns: 0.0, cpus_ns, gpus_ns }
    }

    /// How long the GPU takes that has most: all of its warps' time over the number of warps, or its longest warp.
    fn gpus_ns(&self, run: &IndexRun) -> f64 {
        let mut loads = vec![(0.0, 0.0_f64); self.machine.gpus];
        for (group, job) in run.jobs.iter().enumerate() {
            if let (Some(gpu), Some((_, longest))) = (self.owners[group].checked_sub(self.machine.cpus), job.gpu) {
                let (all_ns, longest_ns) = &mut loads[gpu];
                *all_ns += self.true_ns(run, group, Kind::Gpu);
                *longest_ns = longest_ns.max(longest.0 as f64);
            }
        }
        loads.into_iter().map(|(all_ns, longest_ns)| longest_ns.max(all_ns)).fold(0.0, f64::max)
    }

    fn move_ns(&self, group: usize) -> f64 {
        self.tree_bytes[group] as f64 / self.machine.move_bytes_per_s * 1e9
    }
}
