//! The runs of one command: driving them, and what is kept of each.

use std::path::Path;

use super::lab::Lab;
use super::{Arguments, Plan};
use crate::cli::Failure;
use crate::cli::output::say;
use crate::cli::run_logs::log_path;
use crate::cost::Cost;
use crate::files::Provenance;
use crate::ids::QueryId;
use crate::live::{self, Ending, GpuLane, LiveOutcome, LiveRun};
use crate::machine::{Class, PerClass};
use crate::query::at_rate;
use crate::report::live::{LiveSummaryRow, write_live_summaries};
use crate::report::number;
use crate::report::source::Source;
use crate::report::summary::{Summary, SummaryRow};
use crate::report::table::Table;
use crate::sched::{BuiltIn, LogRow, PolicyFactory};
use crate::sim::Arrivals;
use crate::time::Nanos;

/// A run is given up when its oldest query is older than this many deadlines.
const HOPELESS_DEADLINES: f64 = 4.0;

/// The runs of one command.
pub(super) struct Session<'a> {
    arguments: &'a Arguments,
    lab: Lab,
    rows: Vec<LiveSummaryRow>,
    /// What the user has to know beyond the table.
    notes: Vec<String>,
    is_single: bool,
}

impl<'a> Session<'a> {
    pub(super) fn new(arguments: &'a Arguments, lab: Lab, runs: usize) -> Self {
        Self { arguments, lab, rows: Vec::new(), notes: Vec::new(), is_single: runs == 1 }
    }

    /// Drives every plan through every policy, up to the end or to the first run that is interrupted or fails.
    pub(super) fn drive_all(
        &mut self,
        policies: &[BuiltIn],
        plans: &[Plan],
        estimates: &[(QueryId, PerClass<Cost>)],
    ) -> Result<(), Failure> {
        let runs = policies.len() * plans.len();
        let mut done = 0;
        for policy in policies {
            for plan in plans {
                errln!(
                    "run {} of {runs}: {}, {} queries a second",
                    done + 1,
                    policy.name(),
                    number::text(plan.rate_qps, 6)
                );
                let outcome = self.drive(policy, plan, estimates)?;
                done += 1;
                self.note(policy, plan, &outcome);
                if self.arguments.log {
                    self.write_log(policy, plan, &outcome)?;
                }
                self.rows.extend(self.row(policy, plan, &outcome));
                match outcome.ending {
                    Ending::Complete | Ending::Overloaded => {}
                    Ending::Interrupted => {
                        self.notes
                            .push(format!("interrupted in run {done} of {runs}; the table holds what was measured"));
                        return Ok(());
                    }
                    Ending::Failed(e) => return Err(Failure::failed(format!("run {done} of {runs}: {e}"))),
                }
            }
        }
        Ok(())
    }

    fn drive(
        &mut self,
        policy: &BuiltIn,
        plan: &Plan,
        estimates: &[(QueryId, PerClass<Cost>)],
    ) -> Result<LiveOutcome, Failure> {
        let deadline = self.deadline();
        let Arrivals { unit, queries, .. } = &plan.arrivals;
        let jobs = live::plan(at_rate(unit, plan.rate_qps).zip(queries.iter().copied()), estimates, deadline);
        let policy = policy.build(self.lab.fleet.model())?;
        let run = LiveRun {
            policy,
            jobs: &jobs,
            abandon_after: Some(deadline.scaled(HOPELESS_DEADLINES)),
            keep_journal: false,
        };
        Ok(live::run(&mut self.lab.fleet, run)?)
    }

    fn deadline(&self) -> Nanos {
        Nanos::from_ms(self.arguments.deadline.ms)
    }

    fn note(&mut self, policy: &BuiltIn, plan: &Plan, outcome: &LiveOutcome) {
        let run = format!("{} at {} q/s", policy.name(), number::text(plan.rate_qps, 6));
        let LiveOutcome { unreleased, unfinished, .. } = *outcome;
        if unreleased + unfinished > 0 {
            let why = match outcome.ending {
                Ending::Overloaded => "given up: its backlog was hopeless; ",
                _ => "",
            };
            let lost = format!("{unfinished} queries did not finish, {unreleased} were not released");
            self.notes.push(format!("{run}: {why}{lost}; delays are those of the others"));
        }
        self.notes.extend(outcome.lag_warning(self.deadline()).map(|warning| format!("warning: {run}: {warning}")));
    }

    /// The run's line; `None` if nothing has finished.
    fn row(&self, policy: &BuiltIn, plan: &Plan, outcome: &LiveOutcome) -> Option<LiveSummaryRow> {
        let summary = Summary::of_log(&outcome.log, self.lab.fleet.machine())?;
        let (rate_qps, seed) = (plan.rate_qps, plan.arrivals.seed);
        Some(LiveSummaryRow {
            row: SummaryRow { source: Source::Live, policy: policy.name().to_owned(), rate_qps, seed, summary },
            lag_p50_ms: outcome.lag.p50.as_ms(),
            lag_p99_ms: outcome.lag.p99.as_ms(),
            handoff_p50_us: outcome.handoff[Class::CPU].p50.as_us(),
            unfinished: outcome.unfinished,
            unreleased: outcome.unreleased,
            overloaded: outcome.overloaded(),
            gpu: self.lab.fleet.gpu().name(),
        })
    }

    /// Writes `summary.csv`: the runs that have finished.
    pub(super) fn write(&self, path: &Path) -> Result<(), Failure> {
        Ok(write_live_summaries(path, &self.provenance(), &self.rows)?)
    }

    fn provenance(&self) -> Provenance {
        Provenance::new()
            .with_command_and_machine()
            .with("workload", &self.lab.workload_name)
            .with("mode", self.arguments.mode)
            .with("estimates", &self.arguments.estimates)
            .with("gpu", &self.lab.gpu_words)
    }

    fn write_log(&self, policy: &BuiltIn, plan: &Plan, outcome: &LiveOutcome) -> Result<(), Failure> {
        let gpu_is_replayed = self.lab.fleet.gpu() == GpuLane::Replay;
        let lane = |row: &LogRow| match row.class {
            Class::GPU if gpu_is_replayed => GpuLane::Replay.name(),
            _ => GpuLane::Real.name(),
        };
        let seed = plan.arrivals.seed;
        let path = log_path(&self.arguments.out, self.is_single, policy.name(), plan.rate_qps, seed);
        let provenance = self
            .provenance()
            .with("policy", policy.name())
            .with("rate_qps", number::text(plan.rate_qps, 9))
            .with("seed", seed);
        Ok(outcome.log.write_with_lanes(&path, &provenance, lane)?)
    }

    pub(super) fn print(&self, summary_path: &Path) -> Result<(), Failure> {
        let headings = [
            "policy",
            "qps",
            "finished",
            "mean ms",
            "p50 ms",
            "p99 ms",
            "max ms",
            "missed",
            "cpu busy",
            "gpu busy",
            "lag p99 ms",
        ];
        let mut table = Table::new(headings);
        let share = |share: Option<f64>| share.map_or(String::from("-"), |share| format!("{:.1} %", share * 100.0));
        for LiveSummaryRow { row, lag_p99_ms, .. } in &self.rows {
            let s = &row.summary;
            table.row([
                row.policy.to_owned(),
                number::text(row.rate_qps, 6),
                s.queries.to_string(),
                format!("{:.3}", s.mean_ms),
                format!("{:.3}", s.p50_ms),
                format!("{:.3}", s.p99_ms),
                format!("{:.3}", s.max_ms),
                s.missed.to_string(),
                share(s.utilisation[Class::CPU]),
                share(s.utilisation[Class::GPU]),
                format!("{lag_p99_ms:.3}"),
            ]);
        }
        let notes: String = self.notes.iter().map(|note| format!("{note}\n")).collect();
        let logs = match (self.arguments.log, self.is_single) {
            (false, _) => String::new(),
            (true, true) => format!(", {}", self.arguments.out.join("log.csv").display()),
            (true, false) => format!(", {}", self.arguments.out.join("log").display()),
        };
        say(&format!("\n{table}\n{notes}written: {}{logs}\n", summary_path.display()))
    }
}
