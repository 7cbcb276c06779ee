//! `--priority`: deadlines and importance by kind of query.

use std::sync::Arc;

use tandem_model::base::time::Nanos;
use tandem_model::sim::Arrivals;
use tandem_model::traffic::Priorities;

use super::question::DeadlineArgument;
use crate::failure::Failure;

/// The priorities of queries.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PriorityArgument {
    /// Priorities of queries, the most important first, each as NAME=TIME:SHARE: the time to its deadline (us, ms or s) and
    /// its share of the queries, as in `interactive=50ms:0.8,batch=2s:0.2`. The objective must hold for each of them. Shares
    /// are left out if --trace has a column `priority` with these names
    #[arg(long, value_name = "LIST", conflicts_with = "ms")]
    pub(crate) priority: Option<String>,
}

impl PriorityArgument {
    /// The priorities, if they are given.
    pub(crate) fn parsed(&self) -> Result<Option<Priorities>, Failure> {
        let parsed = self.priority.as_deref().map(Priorities::from_text).transpose();
        parsed.map_err(|why| Failure::input(format!("--priority: {why}")))
    }

    /// The longest time to a deadline: that of the priorities or, without them, of `deadline`.
    pub(crate) fn deadline(&self, deadline: DeadlineArgument) -> Result<Nanos, Failure> {
        match self.parsed()? {
            Some(priorities) => Ok(priorities.longest()),
            None => deadline.checked(),
        }
    }

    /// Gives these priorities to drawn arrivals.
    pub(crate) fn assign(&self, arrivals: Vec<Arrivals>) -> Result<Vec<Arrivals>, Failure> {
        let Some(priorities) = self.parsed()?.map(Arc::new) else { return Ok(arrivals) };
        let assigned: Vec<Arrivals> =
            arrivals.into_iter().map(|arrivals| arrivals.with_priorities(Some(Arc::clone(&priorities)))).collect();
        assigned.iter().try_for_each(check_assigned)?;
        Ok(assigned)
    }
}

/// Refuses arrivals with priorities whose shares are neither given nor known from a trace.
pub(crate) fn check_assigned(arrivals: &Arrivals) -> Result<(), Failure> {
    if arrivals.priorities().is_none_or(|priorities| priorities.are_assigned()) {
        return Ok(());
    }
    let why = "--priority: shares are missing, as in interactive=50ms:0.8,batch=2s:0.2 (only a trace with a column `priority` \
               names the priority of each query)";
    Err(Failure::input(why))
}
