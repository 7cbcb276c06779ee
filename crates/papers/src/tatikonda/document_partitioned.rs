//! DOCP: all cores work on the same query, each on a range of the documents.
//!
//! With one index (DOCP-UI) each core starts in the middle of the lists after one search per list. With an index per
//! range (DOCP-PI) lists start at the range. A query takes as long as its slowest range, for which all cores wait.

use std::sync::Arc;

use super::partitioned_index::PartitionedIndex;
use tandem_core::base::machine::Class;
use tandem_core::query::{Mode, Query};
use tandem_core::search::cpu::executor::CpuExecutor;
use tandem_core::search::cpu::multicore::cores::Cores;
use tandem_core::search::cpu::multicore::pool::Partition;
use tandem_core::search::cpu::multicore::pool::{Schedule, TaskPool};
use tandem_core::search::cpu::multicore::team::Team;
use tandem_core::search::cpu::multicore::worker::Worker;
use tandem_core::search::{ExecError, Execution, Executor, Hit};

/// Searches with all cores of a team, each on its own documents.
#[derive(Debug)]
pub struct DocumentPartitioned {
    team: Team,
    name: &'static str,
}

impl DocumentPartitioned {
    /// DOCP-UI: `workers` cores share the index of `executor`. The caller is one of them and should run on core
    /// `first_core`; the others run on the following cores.
    ///
    /// # Errors
    /// Fails if the system provides no thread.
    ///
    /// # Panics
    /// Panics if there is no worker.
    pub fn unified(
        executor: &CpuExecutor,
        workers: usize,
        cores: &Cores,
        first_core: usize,
    ) -> Result<Self, ExecError> {
        let workers = (0..workers).map(|number| Worker::new(number, 1, executor.clone_for_worker(), None));
        Self::spawn(workers.collect(), cores, first_core, "DOCP-UI")
    }

    /// DOCP-PI: a core per part of `parts`, which were made from the index of `executor`.
    ///
    /// # Errors
    /// Fails if the system provides no thread.
    pub fn physical(
        executor: &CpuExecutor,
        parts: &PartitionedIndex,
        cores: &Cores,
        first_core: usize,
    ) -> Result<Self, ExecError> {
        let workers = parts.parts.iter().enumerate().map(|(number, part)| {
            let own = executor.with_index(Arc::clone(&part.index));
            Worker::new(number, 1, own, Some(Arc::clone(&part.terms)))
        });
        Self::spawn(workers.collect(), cores, first_core, "DOCP-PI")
    }

    fn spawn(
        mut workers: Vec<Worker>,
        cores: &Cores,
        first_core: usize,
        name: &'static str,
    ) -> Result<Self, ExecError> {
        assert!(!workers.is_empty(), "a team of nobody");
        let pool =
            TaskPool::new(1, workers.len(), Partition::Documents { parts: workers.len() as u32 }, Schedule::Static);
        let worker = workers.remove(0);
        Ok(Self { team: Team::spawn(pool, worker, workers, cores, first_core)?, name })
    }
}

impl Executor for DocumentPartitioned {
    fn class(&self) -> Class {
        Class::CPU
    }

    fn device(&self) -> String {
        format!("{}, {} by {}", self.team.worker.executor.device(), self.team.num_cores(), self.name)
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        self.team.search(query, mode, k, hits)?;
        Ok(Execution::default())
    }

    fn num_cores(&self) -> usize {
        self.team.num_cores()
    }
}
