//! All tables and figures of the five papers, in the papers' order, and statements in their texts.

use tandem_model::base::named::named_enum;

use crate::context::Context;
use crate::error::ExperimentError;
use crate::findings::Findings;

/// A table or figure of a paper, or statements in its text.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Name on the command line: the first author, and the table, the figure, or the subject of a statement in the text.
    pub name: &'static str,
    /// The paper.
    pub paper: &'static str,
    /// Subject of the table or figure.
    pub what: &'static str,
    /// Default input, which decides the duration.
    pub runs_on: &'static str,
    /// Use of a GPU.
    pub gpu: GpuUse,
    /// Whether this build can run the experiment.
    pub availability: Availability,
}

named_enum! {
    /// Use of a GPU by an experiment.
    pub enum GpuUse {
        /// The experiment uses no GPU.
        No = "no",
        /// Without a GPU some numbers are left empty.
        Adds = "adds",
        /// Without a GPU the experiment measures nothing.
        Needed = "needed",
    }
}

/// Whether this build can run an experiment.
#[derive(Clone, Copy, Debug)]
pub enum Availability {
    /// The experiment runs.
    Measured(Run),
    /// The experiment is missing for this reason.
    Lacks(&'static str),
}

/// Runs one experiment and adds its results to the findings.
pub type Run = fn(&Context<'_>, &mut Findings) -> Result<(), ExperimentError>;

// Default inputs. Machines with few cores get smaller indexes.
const GOV2_INDEX: &str = "index, 25.2 M docs";
const LARGE_INDEX: &str = "index, 10 M docs";
const SMALL_INDEX: &str = "index, 0.5 M docs";
const TEXT: &str = "text, made";
const COSTS: &str = "recorded costs";

const DING: &str = "Ding, He, Yan, Suel: Using graphics processors for high performance IR query processing (WWW 2009)";
const WANG: &str = "Wang et al.: Efficient GPU-based query processing with pruned list caching in search engines";
const HUANG: &str = "Huang et al.: GPU-accelerated block-max query processing";
const WEI: &str = "Wei, JaJa: A fast algorithm for constructing inverted files on heterogeneous platforms";
const TATIKONDA: &str =
    "Tatikonda, Cambazoglu, Junqueira: Posting list intersection on multicore architectures (SIGIR 2011)";

macro_rules! always {
    ($paper:ident::$module:ident) => {
        Availability::Measured(crate::$paper::experiments::$module::run)
    };
}

/// An experiment with GPU methods, which a build without GPU support lacks.
#[cfg(feature = "gpu")]
macro_rules! on_gpu {
    ($paper:ident::$module:ident) => {
        always!($paper::$module)
    };
}
#[cfg(not(feature = "gpu"))]
macro_rules! on_gpu {
    ($paper:ident::$module:ident) => {
        Availability::Lacks("this build has no GPU support (its feature `gpu` is off)")
    };
}

/// Each line holds the builds that have an experiment, its module, its input, its use of a GPU and its subject.
macro_rules! experiments {
    ($($paper:ident { $($builds:ident $folder:ident::$module:ident $runs_on:ident $gpu:ident $what:literal;)* })*) => {
        [$($(Experiment {
            name: concat!(stringify!($folder), "-", stringify!($module)),
            paper: $paper,
            what: $what,
            runs_on: $runs_on,
            gpu: GpuUse::$gpu,
            availability: $builds!($folder::$module),
        },)*)*]
    };
}

/// All experiments. A new one is a file with a function `run`, and a line here.
pub const EXPERIMENTS: [Experiment; 38] = experiments! {
    DING {
        always ding::fig3 GOV2_INDEX No "bytes per docID of each codec: Rice best, PForDelta with one width per list close";
        on_gpu ding::table1 GOV2_INDEX Adds "decode rate of Rice and PForDelta, on CPU and GPU";
        on_gpu ding::fig4 GOV2_INDEX Adds "decode rate against list length: the CPU wins on short lists";
        on_gpu ding::fig6 GOV2_INDEX Adds "time of intersection per integer, by length and levels of recursion";
        on_gpu ding::table2 GOV2_INDEX Adds "time per query of AND, OR and AND+OR, on CPU and GPU";
        on_gpu ding::table3 GOV2_INDEX Needed "GPU time by stage";
        always ding::fig7 COSTS No "delay against arrival rate for CPU, GPU, the better of both, and both at once";
        always ding::skipping SMALL_INDEX No "text: blocks skipped step by step, and document at a time";
        on_gpu ding::costs SMALL_INDEX Adds "text: time per query by number of terms and by size";
        always ding::quantised SMALL_INDEX No "text: cost of scores in OR, and quantised scores";
    }
    WANG {
        on_gpu wang::fig3 SMALL_INDEX No "visiting frequency along the most queried list";
        on_gpu wang::fig4 SMALL_INDEX Adds "the three parts of the throughput model, measured";
        on_gpu wang::fig5 SMALL_INDEX Needed "modelled and measured throughput against cache size";
        on_gpu wang::fig6 SMALL_INDEX Adds "time on the GPU and for post-processing against cache size";
        on_gpu wang::fig7 SMALL_INDEX No "megabytes moved under each cache policy";
        on_gpu wang::fig8 SMALL_INDEX Needed "throughput under each cache policy";
        on_gpu wang::fig9 SMALL_INDEX Needed "throughput and response time under a response limit";
        on_gpu wang::fig10 SMALL_INDEX Adds "GPU and combined mode against eight CPU threads";
    }
    HUANG {
        on_gpu huang::fig3 GOV2_INDEX Adds "time by query length on CPU and GPU, for each algorithm";
        on_gpu huang::fig4 GOV2_INDEX No "share of queries by length";
        on_gpu huang::table1 GOV2_INDEX Adds "time per query of AND, OR, WAND and BMW, on CPU and GPU";
        on_gpu huang::fig5 GOV2_INDEX Needed "share of initialisation, scoring and merging";
        on_gpu huang::fig6 GOV2_INDEX Needed "time against the length threshold between CPU and GPU";
        on_gpu huang::table2 GOV2_INDEX Needed "random halves against distribution by length";
        on_gpu huang::table3 GOV2_INDEX Needed "one GPU against four";
        on_gpu huang::fig7 GOV2_INDEX Adds "all five configurations side by side";
    }
    WEI {
        always wei::fig10 TEXT Adds "indexing rate by number of parsers, with and without GPUs";
        always wei::table4 TEXT Adds "indexing rate by indexers";
        always wei::fig11 TEXT Adds "indexing rate along the collection";
        always wei::table5 TEXT Needed "tokens, terms and characters by indexer";
        always wei::table6 TEXT Adds "indexing rate end to end, three collections";
        always wei::fig12 TEXT Adds "against two indexers on clusters";
        always wei::regrouping TEXT No "text: gain and cost of regrouping terms";
        always wei::caches TEXT No "text: worth of the caches in nodes";
    }
    TATIKONDA {
        always tatikonda::fig4 LARGE_INDEX No "throughput and latency of four ways to share queries among cores; FGQP's pool threshold";
        always tatikonda::fig5 LARGE_INDEX No "delay against arrival rate; latency and throughput by query length";
        always tatikonda::fig6 LARGE_INDEX No "delay against arrival rate for queries of 4 and 6 terms";
        always tatikonda::fig7 LARGE_INDEX No "cost of cutting queries into tasks, by skip block size";
    }
};

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
