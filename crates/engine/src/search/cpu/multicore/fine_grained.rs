//! FGQP: fine-grained query partitioning.
//!
//! A query is cut along its rarest list, every few blocks, and the many small tasks wait in a pool. Each core takes the next
//! task when it finishes one.
//!
//! The paper's task lists the needed skip blocks of every list, and every skip block makes a task. Here a task is a range
//! of documents that follows from its number, found by one search per list, and there are a few tasks per core.

use tandem_base::base::machine::Class;
use tandem_base::traffic::Mode;

use crate::query::Query;
use crate::search::cpu::executor::CpuExecutor;
use crate::search::cpu::multicore::cores::Cores;
use crate::search::cpu::multicore::pool::partition::Partition;
use crate::search::cpu::multicore::pool::slot::{Schedule, TaskPool};
use crate::search::cpu::multicore::team::Team;
use crate::search::cpu::multicore::worker::Worker;
use crate::search::{ExecError, Execution, Executor, Hit};

/// The most tasks of one query per core. The last core is then late by a sixteenth of a share on average.
const TASKS_A_CORE: usize = 8;

/// Searches with all cores of a team, which take small tasks from a pool.
#[derive(Debug)]
pub struct FineGrained {
    team: Team,
}

impl FineGrained {
    /// `workers` cores, of which the caller's should be `first_core` and the others follow it. Fails if the system
    /// refuses a thread. Panics if there is no worker.
    pub fn new(executor: &CpuExecutor, workers: usize, cores: &Cores, first_core: usize) -> Result<Self, ExecError> {
        assert!(workers > 0, "a team of nobody");
        let partition = Partition { most_tasks: workers * TASKS_A_CORE };
        let pool = TaskPool::new(1, workers, partition, Schedule::Dynamic);
        let worker = |number| Worker::new(number, 1, executor.clone_for_worker());
        let team = Team::spawn(pool, worker(0), (1..workers).map(worker).collect(), cores, first_core)?;
        Ok(Self { team })
    }
}

impl Executor for FineGrained {
    fn class(&self) -> Class {
        Class::CPU
    }

    fn device(&self) -> String {
        format!("{}, {} by FGQP", self.team.worker.executor.device(), self.team.num_cores())
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        self.team.search(query, mode, k, hits)?;
        Ok(Execution::default())
    }

    fn num_cores(&self) -> usize {
        self.team.num_cores()
    }
}
