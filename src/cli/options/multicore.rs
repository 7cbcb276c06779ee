//! `--multicore`: how CPU cores share queries.

use crate::cli::Failure;
use crate::exec::Executor;
use crate::exec::cpu::CpuExecutor;
use crate::exec::cpu::multicore::{
    Cores, DocumentPartitioned, FineGrained, PartitionedIndex, adaptive_lanes, inter_lanes,
};
use crate::index::Index;

/// How CPU cores share queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum Multicore {
    /// Each core answers whole queries: a processor each
    Inter,
    /// As `inter`, and cores without a query help with long ones
    Adaptive,
    /// All cores answer one query, each on its range of the documents: one processor
    DocpUi,
    /// As `docp-ui`, each core with an index of its range
    DocpPi,
    /// All cores answer one query, cut into small tasks: one processor
    Fgqp,
}

impl Multicore {
    /// The CPU lanes that `cores` cores make; the first runs on the machine's core `first_core`.
    pub(in crate::cli) fn lanes(
        self,
        executor: &CpuExecutor,
        index: &Index,
        cores: usize,
        first_core: usize,
    ) -> Result<Vec<Box<dyn Executor>>, Failure> {
        let machine = Cores::of_this_machine();
        if cores == 0 {
            return Ok(Vec::new());
        }
        Ok(match self {
            Self::Inter => inter_lanes(executor, cores),
            Self::Adaptive => adaptive_lanes(executor, cores),
            Self::DocpUi => vec![Box::new(DocumentPartitioned::unified(executor, cores, &machine, first_core)?)],
            Self::DocpPi => {
                let parts = PartitionedIndex::build(index, cores, |_| true)?;
                vec![Box::new(DocumentPartitioned::physical(executor, &parts, &machine, first_core)?)]
            }
            // One query at a time: the pool holds no others, whatever its threshold.
            Self::Fgqp => vec![Box::new(FineGrained::new(executor, cores, 0, &machine, first_core)?)],
        })
    }
}
