//! Policies: who indexes which groups in a run.
//!
//! All three see the same: tokens of each group in this run, who has its trees and how large they are, and what a token of the
//! group took where it was indexed before. They differ in when they decide:
//!
//! | policy | decides |
//! | --- | --- |
//! | `split` | once, before the first run, from a sample: the paper's. CPUs have the popular groups, equal tokens each; GPUs the others, by number |
//! | `mct` | before each run: group after group, the largest first, to whoever is predicted to be done first, trees moved included |
//! | `stealing` | as it comes: as the split says, and who is done takes the largest group that waits, from whoever has most left |

use std::fmt;

/// Whom a run's groups are given to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPolicy {
    /// The paper's split, for good.
    Split,
    /// Minimum completion time.
    Mct,
    /// Work stealing among CPUs.
    Stealing,
}

impl IndexPolicy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Split, Self::Mct, Self::Stealing];

    /// The name, as in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Mct => "mct",
            Self::Stealing => "stealing",
        }
    }
}

impl fmt::Display for IndexPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Groups that are popular, of all: in the paper about a hundred slots, which have half of the tokens.
const POPULAR_TOKENS: f64 = 0.55;

/// Owners of groups by the paper's split: processors 0 to `cpus` - 1 are CPUs, GPUs follow. `tokens` are of a sample.
pub(super) fn split(tokens: &[u64], cpus: usize, gpus: usize) -> Vec<usize> {
    let mut by_tokens: Vec<usize> = (0..tokens.len()).collect();
    by_tokens.sort_by_key(|&group| std::cmp::Reverse(tokens[group]));
    let all: u64 = tokens.iter().sum();
    let mut owners: Vec<usize> = (0..tokens.len()).map(|group| cpus + group % gpus.max(1)).collect();
    let mut given = vec![(0, 0); cpus];
    let mut popular = 0;
    for &group in &by_tokens {
        let is_popular = gpus == 0 || (popular as f64) < POPULAR_TOKENS * all as f64;
        if cpus == 0 || !is_popular {
            break;
        }
        popular += tokens[group];
        let least = (0..cpus).min_by_key(|&cpu| given[cpu]).unwrap_or_default();
        owners[group] = least;
        given[least] = (given[least].0 + tokens[group], given[least].1 + 1);
    }
    owners
}

/// What a token of each group takes each class, in nanoseconds, as far as runs have told: estimates of what comes.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    /// By class, by group; 0 where nothing is known.
    seen: [Vec<f64>; 2],
    /// By class: tokens and nanoseconds of all groups.
    all: [(f64, f64); 2],
}

/// Which of the two classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cpu,
    Gpu,
}

impl Rates {
    pub(super) fn new(groups: usize) -> Self {
        Self { seen: [vec![0.0; groups], vec![0.0; groups]], all: [(0.0, 0.0); 2] }
    }

    /// Learns what a job took.
    pub(super) fn learn(&mut self, kind: Kind, group: usize, tokens: u64, ns: f64) {
        if tokens == 0 {
            return;
        }
        let rate = ns / tokens as f64;
        let seen = &mut self.seen[kind as usize][group];
        // Trees grow: what was last counts most.
        *seen = if *seen == 0.0 { rate } else { 0.5 * (*seen + rate) };
        let all = &mut self.all[kind as usize];
        *all = (all.0 + tokens as f64, all.1 + ns);
    }

    /// What a job of so many tokens is expected to take, in nanoseconds.
    pub(super) fn expect(&self, kind: Kind, group: usize, tokens: u64) -> f64 {
        let (all_tokens, all_ns) = self.all[kind as usize];
        // Before anything is known all classes are alike.
        let mean = if all_tokens > 0.0 { all_ns / all_tokens } else { 100.0 };
        let seen = self.seen[kind as usize][group];
        tokens as f64 * if seen > 0.0 { seen } else { mean }
    }
}
