//! Every table and figure of the five papers, in the papers' order.

use super::{Context, ExperimentError, Findings, ding, tatikonda, wang, wei};

/// One table or figure.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// As on the command line: the first author and what the paper calls it.
    pub name: &'static str,
    /// The paper.
    pub paper: &'static str,
    /// What it shows.
    pub what: &'static str,
    /// What it runs on unless the user names something, which decides how long it takes.
    pub runs_on: &'static str,
    /// What a GPU has to do with it.
    pub gpu: GpuUse,
    /// What this version does about it.
    pub here: Here,
}

/// What a GPU has to do with a table or figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuUse {
    /// Nothing.
    No,
    /// Without one its columns are left empty.
    Adds,
    /// Without one there is nothing to measure.
    Needed,
}

impl GpuUse {
    /// `no`, `adds` or `needed`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Adds => "adds",
            Self::Needed => "needed",
        }
    }
}

/// What this version does about a table or figure.
#[derive(Clone, Copy, Debug)]
pub enum Here {
    /// Measures it.
    Measured(Run),
    /// Nothing, for the reason given, and what comes nearest to it: the end of a sentence.
    Lacks(&'static str),
}

/// Measures one table or figure.
pub type Run = fn(&Context<'_>) -> Result<Findings, ExperimentError>;

/// The synthetic indexes, of fewer documents on few cores, and what else there is to run on.
const INDEX_OF_GOV2: &str = "index, 25.2 M docs";
const INDEX_OF_TEN_MILLION: &str = "index, 10 M docs";
const INDEX_OF_HALF_A_MILLION: &str = "index, 0.5 M docs";
const TEXT: &str = "text, made";
const COSTS: &str = "recorded costs";

const DING: &str = "Ding, He, Yan, Suel: Using graphics processors for high performance IR query processing (WWW 2009)";
const WANG: &str = "Wang et al.: Efficient GPU-based query processing with pruned list caching in search engines";
const HUANG: &str = "Huang et al.: GPU-accelerated block-max query processing";
const WEI: &str = "Wei, JaJa: A fast algorithm for constructing inverted files on heterogeneous platforms";
const TATIKONDA: &str =
    "Tatikonda, Cambazoglu, Junqueira: Posting list intersection on multicore architectures (SIGIR 2011)";

/// An experiment with methods of GPUs: a build without GPU support lacks it.
#[cfg(feature = "gpu")]
macro_rules! on_gpu {
    ($paper:ident::$module:ident) => {
        Here::Measured(super::$paper::experiments::$module::run)
    };
}
#[cfg(not(feature = "gpu"))]
macro_rules! on_gpu {
    ($paper:ident::$module:ident) => {
        Here::Lacks("this build has no GPU support (its feature `gpu` is off)")
    };
}

/// All of them; a new experiment is a file, and a function in its line here.
pub const EXPERIMENTS: [Experiment; 33] = [
    Experiment {
        name: "ding-fig3",
        paper: DING,
        what: "bytes a docID of each codec: Rice best, PForDelta with one width a list close",
        runs_on: INDEX_OF_GOV2,
        gpu: GpuUse::No,
        here: Here::Measured(ding::experiments::fig3::run),
    },
    Experiment {
        name: "ding-table1",
        paper: DING,
        what: "decode rate of Rice and PForDelta, on CPU and GPU",
        runs_on: INDEX_OF_GOV2,
        gpu: GpuUse::Adds,
        here: on_gpu!(ding::table1),
    },
    Experiment {
        name: "ding-fig4",
        paper: DING,
        what: "decode rate against list length: the CPU wins on short lists",
        runs_on: INDEX_OF_GOV2,
        gpu: GpuUse::Adds,
        here: on_gpu!(ding::fig4),
    },
    Experiment {
        name: "ding-fig6",
        paper: DING,
        what: "time an integer of intersection, by length and levels of recursion",
        runs_on: INDEX_OF_GOV2,
        gpu: GpuUse::Adds,
        here: on_gpu!(ding::fig6),
    },
    Experiment {
        name: "ding-table2",
        paper: DING,
        what: "time a query of AND, OR and AND+OR, on CPU and GPU",
        runs_on: INDEX_OF_GOV2,
        gpu: GpuUse::Adds,
        here: on_gpu!(ding::table2),
    },
    Experiment {
        name: "ding-table3",
        paper: DING,
        what: "what the GPU's time goes to",
        runs_on: INDEX_OF_GOV2,
        gpu: GpuUse::Needed,
        here: on_gpu!(ding::table3),
    },
    Experiment {
        name: "ding-fig7",
        paper: DING,
        what: "delay against arrival rate for CPU, GPU, the better of both, and both at once",
        runs_on: COSTS,
        gpu: GpuUse::No,
        here: Here::Measured(ding::experiments::fig7::run),
    },
    Experiment {
        name: "wang-fig3",
        paper: WANG,
        what: "visiting frequency along the most queried list",
        runs_on: INDEX_OF_HALF_A_MILLION,
        gpu: GpuUse::No,
        here: Here::Measured(wang::experiments::fig3::run),
    },
    Experiment {
        name: "wang-fig4",
        paper: WANG,
        what: "the three parts of the throughput model, measured",
        runs_on: INDEX_OF_HALF_A_MILLION,
        gpu: GpuUse::Adds,
        here: Here::Measured(wang::experiments::fig4::run),
    },
    Experiment {
        name: "wang-fig5",
        paper: WANG,
        what: "modelled and measured throughput against cache size",
        runs_on: INDEX_OF_HALF_A_MILLION,
        gpu: GpuUse::Adds,
        here: Here::Measured(wang::experiments::fig5::run),
    },
    Experiment {
        name: "wang-fig6",
        paper: WANG,
        what: "time on the GPU and for post-processing against cache size",
        runs_on: INDEX_OF_HALF_A_MILLION,
        gpu: GpuUse::Adds,
        here: Here::Measured(wang::experiments::fig6::run),
    },
    Experiment {
        name: "wang-fig7",
        paper: WANG,
        what: "megabytes moved under each cache policy",
        runs_on: INDEX_OF_HALF_A_MILLION,
        gpu: GpuUse::No,
        here: Here::Measured(wang::experiments::fig7::run),
    },
    Experiment {
        name: "wang-fig8",
        paper: WANG,
        what: "throughput under each cache policy",
        runs_on: INDEX_OF_HALF_A_MILLION,
        gpu: GpuUse::Adds,
        here: Here::Measured(wang::experiments::fig8::run),
    },
    Experiment {
        name: "wang-fig9",
        paper: WANG,
        what: "throughput and response time under a response limit",
        runs_on: INDEX_OF_HALF_A_MILLION,
        gpu: GpuUse::Adds,
        here: Here::Measured(wang::experiments::fig9::run),
    },
    Experiment {
        name: "wang-fig10",
        paper: WANG,
        what: "GPU and combined mode against eight CPU threads",
        runs_on: INDEX_OF_HALF_A_MILLION,
        gpu: GpuUse::Adds,
        here: Here::Measured(wang::experiments::fig10::run),
    },
    Experiment {
        name: "huang-fig3",
        paper: HUANG,
        what: "time by query length on CPU and GPU, for each algorithm",
        runs_on: INDEX_OF_GOV2,
        gpu: GpuUse::Adds,
        here: on_gpu!(huang::fig3),
    },
    Experiment {
        name: "huang-fig4",
        paper: HUANG,
        what: "share of queries by length",
        runs_on: INDEX_OF_GOV2,
        gpu: GpuUse::No,
        here: on_gpu!(huang::fig4),
    },
    Experiment {
        name: "huang-table1",
        paper: HUANG,
        what: "time a query of AND, OR, WAND and BMW, on CPU and GPU",
        runs_on: INDEX_OF_GOV2,
        gpu: GpuUse::Adds,
        here: on_gpu!(huang::table1),
    },
    Experiment {
        name: "huang-fig5",
        paper: HUANG,
        what: "share of initialisation, scoring and merging",
        runs_on: INDEX_OF_GOV2,
        gpu: GpuUse::Needed,
        here: on_gpu!(huang::fig5),
    },
    Experiment {
        name: "huang-fig6",
        paper: HUANG,
        what: "time against the length threshold between CPU and GPU",
        runs_on: INDEX_OF_GOV2,
        gpu: GpuUse::Needed,
        here: on_gpu!(huang::fig6),
    },
    Experiment {
        name: "huang-table2",
        paper: HUANG,
        what: "random halves against distribution by length",
        runs_on: INDEX_OF_GOV2,
        gpu: GpuUse::Needed,
        here: on_gpu!(huang::table2),
    },
    Experiment {
        name: "huang-table3",
        paper: HUANG,
        what: "one GPU against four",
        runs_on: INDEX_OF_GOV2,
        gpu: GpuUse::Needed,
        here: on_gpu!(huang::table3),
    },
    Experiment {
        name: "huang-fig7",
        paper: HUANG,
        what: "all five configurations side by side",
        runs_on: INDEX_OF_GOV2,
        gpu: GpuUse::Adds,
        here: on_gpu!(huang::fig7),
    },
    Experiment {
        name: "wei-fig10",
        paper: WEI,
        what: "indexing rate by number of parsers, with and without GPUs",
        runs_on: TEXT,
        gpu: GpuUse::Adds,
        here: Here::Measured(wei::experiments::fig10::run),
    },
    Experiment {
        name: "wei-table4",
        paper: WEI,
        what: "indexing rate by indexers",
        runs_on: TEXT,
        gpu: GpuUse::Adds,
        here: Here::Measured(wei::experiments::table4::run),
    },
    Experiment {
        name: "wei-fig11",
        paper: WEI,
        what: "indexing rate along the collection",
        runs_on: TEXT,
        gpu: GpuUse::Adds,
        here: Here::Measured(wei::experiments::fig11::run),
    },
    Experiment {
        name: "wei-table5",
        paper: WEI,
        what: "tokens, terms and characters by indexer",
        runs_on: TEXT,
        gpu: GpuUse::Adds,
        here: Here::Measured(wei::experiments::table5::run),
    },
    Experiment {
        name: "wei-table6",
        paper: WEI,
        what: "indexing rate end to end, three collections",
        runs_on: TEXT,
        gpu: GpuUse::Adds,
        here: Here::Measured(wei::experiments::table6::run),
    },
    Experiment {
        name: "wei-fig12",
        paper: WEI,
        what: "against two indexers on clusters",
        runs_on: TEXT,
        gpu: GpuUse::Adds,
        here: Here::Measured(wei::experiments::fig12::run),
    },
    Experiment {
        name: "tatikonda-fig4",
        paper: TATIKONDA,
        what: "throughput and latency of four ways to share queries among cores; FGQP's pool threshold",
        runs_on: INDEX_OF_TEN_MILLION,
        gpu: GpuUse::No,
        here: Here::Measured(tatikonda::experiments::fig4::run),
    },
    Experiment {
        name: "tatikonda-fig5",
        paper: TATIKONDA,
        what: "delay against arrival rate; latency and throughput by query length",
        runs_on: INDEX_OF_TEN_MILLION,
        gpu: GpuUse::No,
        here: Here::Measured(tatikonda::experiments::fig5::run),
    },
    Experiment {
        name: "tatikonda-fig6",
        paper: TATIKONDA,
        what: "delay against arrival rate for queries of 4 and 6 terms",
        runs_on: INDEX_OF_TEN_MILLION,
        gpu: GpuUse::No,
        here: Here::Measured(tatikonda::experiments::fig6::run),
    },
    Experiment {
        name: "tatikonda-fig7",
        paper: TATIKONDA,
        what: "what cutting queries into tasks costs, by skip block size",
        runs_on: INDEX_OF_TEN_MILLION,
        gpu: GpuUse::No,
        here: Here::Measured(tatikonda::experiments::fig7::run),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_has_a_name_of_its_own() {
        for (i, experiment) in EXPERIMENTS.iter().enumerate() {
            assert!(EXPERIMENTS[..i].iter().all(|before| before.name != experiment.name), "{}", experiment.name);
        }
    }
}
