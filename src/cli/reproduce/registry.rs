//! Every table and figure of the five papers, in the papers' order.

use super::findings::Findings;
use super::input::Context;
use crate::cli::Failure;

/// One table or figure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Experiment {
    /// As on the command line: the first author and what the paper calls it.
    pub(super) name: &'static str,
    /// The paper.
    pub(super) paper: &'static str,
    /// What it shows.
    pub(super) what: &'static str,
    /// Measures it, where this version can.
    pub(super) run: Option<Run>,
}

/// Measures one table or figure.
pub(super) type Run = fn(&Context<'_>) -> Result<Findings, Failure>;

const DING: &str = "Ding, He, Yan, Suel: Using graphics processors for high performance IR query processing (WWW 2009)";
const WANG: &str = "Wang et al.: Efficient GPU-based query processing with pruned list caching in search engines";
const HUANG: &str = "Huang et al.: GPU-accelerated block-max query processing";
const WEI: &str = "Wei, JaJa: A fast algorithm for constructing inverted files on heterogeneous platforms";
const TATIKONDA: &str =
    "Tatikonda, Cambazoglu, Junqueira: Posting list intersection on multicore architectures (SIGIR 2011)";

/// All of them; a new experiment is a file, and a function in its line here.
pub(super) const EXPERIMENTS: [Experiment; 33] = [
    Experiment {
        name: "ding-fig3",
        paper: DING,
        what: "bytes a docID of each codec: Rice best, PForDelta with one width a list close",
        run: Some(super::ding_fig3::run),
    },
    Experiment {
        name: "ding-table1",
        paper: DING,
        what: "decode rate of Rice and PForDelta, on CPU and GPU",
        run: Some(super::ding_table1::run),
    },
    Experiment {
        name: "ding-fig4",
        paper: DING,
        what: "decode rate against list length: the CPU wins on short lists",
        run: Some(super::ding_fig4::run),
    },
    Experiment {
        name: "ding-fig6",
        paper: DING,
        what: "time an integer of intersection, by length and levels of recursion",
        run: Some(super::ding_fig6::run),
    },
    Experiment {
        name: "ding-table2",
        paper: DING,
        what: "time a query of AND, OR and AND+OR, on CPU and GPU",
        run: Some(super::ding_table2::run),
    },
    Experiment {
        name: "ding-table3",
        paper: DING,
        what: "what the GPU's time goes to",
        run: Some(super::ding_table3::run),
    },
    Experiment {
        name: "ding-fig7",
        paper: DING,
        what: "delay against arrival rate for CPU, GPU, the better of both, and both at once",
        run: None,
    },
    Experiment { name: "wang-fig3", paper: WANG, what: "visiting frequency along the most queried list", run: None },
    Experiment { name: "wang-fig4", paper: WANG, what: "the three parts of the throughput model, measured", run: None },
    Experiment {
        name: "wang-fig5",
        paper: WANG,
        what: "modelled and measured throughput against cache size",
        run: None,
    },
    Experiment {
        name: "wang-fig6",
        paper: WANG,
        what: "time on the GPU and for post-processing against cache size",
        run: None,
    },
    Experiment { name: "wang-fig7", paper: WANG, what: "megabytes moved under each cache policy", run: None },
    Experiment { name: "wang-fig8", paper: WANG, what: "throughput under each cache policy", run: None },
    Experiment {
        name: "wang-fig9",
        paper: WANG,
        what: "throughput and response time under a response limit",
        run: None,
    },
    Experiment { name: "wang-fig10", paper: WANG, what: "GPU and combined mode against eight CPU threads", run: None },
    Experiment {
        name: "huang-fig3",
        paper: HUANG,
        what: "time by query length on CPU and GPU, for each algorithm",
        run: None,
    },
    Experiment { name: "huang-fig4", paper: HUANG, what: "share of queries by length", run: None },
    Experiment {
        name: "huang-table1",
        paper: HUANG,
        what: "time a query of AND, OR, WAND and BMW, on CPU and GPU",
        run: None,
    },
    Experiment { name: "huang-fig5", paper: HUANG, what: "share of initialisation, scoring and merging", run: None },
    Experiment {
        name: "huang-fig6",
        paper: HUANG,
        what: "time against the length threshold between CPU and GPU",
        run: None,
    },
    Experiment { name: "huang-table2", paper: HUANG, what: "random halves against distribution by length", run: None },
    Experiment { name: "huang-table3", paper: HUANG, what: "one GPU against four", run: None },
    Experiment { name: "huang-fig7", paper: HUANG, what: "all five configurations side by side", run: None },
    Experiment {
        name: "wei-fig10",
        paper: WEI,
        what: "indexing rate by number of parsers, with and without GPUs",
        run: None,
    },
    Experiment { name: "wei-table4", paper: WEI, what: "indexing rate by indexers", run: None },
    Experiment { name: "wei-fig11", paper: WEI, what: "indexing rate along the collection", run: None },
    Experiment { name: "wei-table5", paper: WEI, what: "tokens, terms and characters by indexer", run: None },
    Experiment { name: "wei-table6", paper: WEI, what: "indexing rate end to end, three collections", run: None },
    Experiment { name: "wei-fig12", paper: WEI, what: "against two indexers on clusters", run: None },
    Experiment {
        name: "tatikonda-fig4",
        paper: TATIKONDA,
        what: "throughput and latency of four ways to share queries among cores; FGQP's pool threshold",
        run: Some(super::tatikonda_fig4::run),
    },
    Experiment {
        name: "tatikonda-fig5",
        paper: TATIKONDA,
        what: "delay against arrival rate; latency and throughput by query length",
        run: Some(super::tatikonda_fig5::run),
    },
    Experiment {
        name: "tatikonda-fig6",
        paper: TATIKONDA,
        what: "delay against arrival rate for queries of 4 and 6 terms",
        run: Some(super::tatikonda_fig6::run),
    },
    Experiment {
        name: "tatikonda-fig7",
        paper: TATIKONDA,
        what: "what cutting queries into tasks costs, by skip block size",
        run: Some(super::tatikonda_fig7::run),
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
