//! The live runs of a command, and their results.

use tandem_drive::lab::{LiveReport, LiveRunSpec, Node};
use tandem_drive::live::{Ending, GapOf, GpuLane, LiveOutcome};
use tandem_model::base::ids::ProcessorId;
use tandem_model::base::machine::{Class, LaneFault};
use tandem_model::base::time::Nanos;
use tandem_model::files::Provenance;
use tandem_model::sched::{BuiltIn, PolicyFactory, Shed};
use tandem_model::study::{Criterion, Difference, Summary, driven_pairs, short_runs};
use tandem_model::traffic::TimeScale;

use super::node::gpu_in_words;
use super::{Arguments, Plan};
use crate::failure::Failure;
use crate::output::{is_verbose, say, say_screen};
use crate::pairs;
use crate::result_writer::ResultWriter;
use crate::run_logs::KeptRuns;
use tandem_report::faults::{FaultRow, write_faults};
use tandem_report::number;
use tandem_report::priorities::{PriorityRow, priority_table, write_priorities};
use tandem_report::summary::{LiveSummaryRow, Source, SummaryRow, write_live_summaries};
use tandem_report::table::Table;

/// The shortest time by which a policy of a comparison may fall behind.
const LEAST_PATIENCE: Nanos = Nanos(1_000_000_000);

/// The runs of one command.
pub(super) struct Session<'a> {
    arguments: &'a Arguments,
    criterion: Criterion,
    node: Node,
    workload_name: String,
    /// Queries of a run whose log is kept.
    keep: usize,
    rows: Vec<LiveSummaryRow>,
    /// The rate and the summary of each run.
    driven: Vec<(f64, Option<Summary>)>,
    priorities: Vec<PriorityRow>,
    faults: Vec<FaultRow>,
    /// The slowest change in the arrivals.
    time_scale: Option<TimeScale>,
    /// Notes below the table, and warnings, which the files repeat.
    notes: Vec<String>,
    warnings: Vec<String>,
    kept: KeptRuns<'a>,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        arguments: &'a Arguments,
        criterion: Criterion,
        node: Node,
        workload_name: String,
        (runs, keep): (usize, usize),
    ) -> Self {
        let kept = KeptRuns::new(&arguments.logs, &arguments.out, runs == 1);
        let (rows, driven, priorities, faults) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self {
            arguments,
            criterion,
            node,
            workload_name,
            keep,
            rows,
            driven,
            priorities,
            faults,
            time_scale: None,
            notes: Vec::new(),
            warnings: Vec::new(),
            kept,
        }
    }

    /// Drives the runs, up to the end or to the first one that is interrupted or fails.
    pub(super) fn drive_all(&mut self, turns: &[(&BuiltIn, &Plan)]) -> Result<(), Failure> {
        let runs = turns.len();
        self.time_scale = turns.first().and_then(|(_, plan)| plan.arrivals.time_scale());
        for (done, &(policy, plan)) in (1..).zip(turns) {
            errln!("run {done} of {runs}: {}, {} queries per second", policy.name(), number::text(plan.rate_qps, 6));
            let mut drive = LiveRunSpec::new(plan.rate_qps, &plan.arrivals, self.criterion);
            drive.keep = self.keep;
            // Delays after a planned fault are measured to their end, and dropped queries are no backlog.
            drive.gives_up = self.arguments.faults.faults.is_none() && policy.sheds() == Shed::Nothing;
            if !self.arguments.compare.is_empty() {
                // Both policies of a pair serve all queries, unless one of them falls behind by the length of a run.
                let length = Nanos::from_secs(plan.arrivals.len() as f64 / plan.rate_qps);
                (drive.gives_up, drive.abandon_after) = (false, Some(length.max(LEAST_PATIENCE)));
            }
            let report = self.node.drive(policy, drive)?;
            self.note(policy, plan, &report);
            let warning = self.warning(policy, plan, &report);
            self.rows.extend(self.row(policy, plan, &report));
            self.driven.push((plan.rate_qps, report.summary));
            let of_run = (policy.name(), plan.rate_qps, plan.arrivals.seed);
            self.priorities.extend(PriorityRow::of_run(Source::Live, of_run, &report.priorities));
            let outcome = report.outcome;
            self.faults.extend(outcome.log.faults.iter().map(|fault| FaultRow::of(of_run, fault)));
            self.keep_log(policy, plan, &outcome, warning.as_deref())?;
            self.warnings.extend(warning);
            match outcome.ending {
                Ending::Complete | Ending::Overloaded => {}
                Ending::Interrupted => {
                    self.notes.push(format!("interrupted in run {done} of {runs}; the table has the results so far"));
                    return Ok(());
                }
                Ending::Failed(e) => return Err(Failure::failed(format!("run {done} of {runs}: {e}"))),
            }
        }
        Ok(())
    }

    /// The differences of the two policies of a comparison, by the pairs whose runs both answered queries.
    fn differences(&self) -> Vec<Difference> {
        let Some(&(rate_qps, _)) = self.driven.first().filter(|_| !self.arguments.compare.is_empty()) else {
            return Vec::new();
        };
        // Of four runs A B B A, the last pair is in the reverse order.
        let pair = |(at, runs): (usize, &[(f64, Option<Summary>)])| match (runs, at % 2) {
            (&[(_, Some(a)), (_, Some(b))], 0) | (&[(_, Some(b)), (_, Some(a))], _) => Some([a, b]),
            _ => None,
        };
        let pairs: Vec<[Summary; 2]> = self.driven.chunks(2).enumerate().filter_map(pair).collect();
        driven_pairs(rate_qps, &pairs)
    }

    fn note(&mut self, policy: &BuiltIn, plan: &Plan, LiveReport { outcome, summary, .. }: &LiveReport) {
        let run = run_in_words(policy, plan);
        for LaneFault { processor, at, kind, queries, is_retired, what } in &outcome.log.faults {
            let lost = number::counted(*queries, "query", "queries");
            let then = if *is_retired { "a CPU continues in its place" } else { "it runs again" };
            let at_ms = at.as_ms();
            self.notes.push(format!(
                "{run}: {kind} on lane {processor} after {at_ms:.1} ms: {lost} ran again on a CPU, {then} ({what})"
            ));
        }
        let before = |lane: &ProcessorId| !outcome.log.faults.iter().any(|fault| fault.processor == *lane);
        for lane in self.node.lane_pool().retired().into_iter().filter(before) {
            self.notes.push(format!("{run}: a CPU replaced lane {lane}, which had failed before"));
        }
        let dropped = summary.map_or(0, |summary| summary.shed);
        if dropped > 0 {
            let dropped = number::counted(dropped, "query", "queries");
            self.notes.push(format!("{run}: {dropped} dropped, late when a processor took them up"));
        }
        let LiveOutcome { unreleased, unfinished, .. } = *outcome;
        if unreleased + unfinished > 0 {
            let why = match outcome.ending {
                Ending::Overloaded => "stopped, because it had missed the objective and its backlog grew; ",
                _ => "",
            };
            self.notes.push(format!(
                "{run}: {why}{unfinished} queries had no answer and count with their age, {unreleased} were not released and do \
                 not count"
            ));
        }
    }

    /// Says that the driver was late, so that measured delays include other work of the machine.
    fn warning(&self, policy: &BuiltIn, plan: &Plan, LiveReport { outcome, load, .. }: &LiveReport) -> Option<String> {
        let late = outcome.lag_warning(self.criterion.deadline)?;
        Some(format!("{}: {late}; during the run {}", run_in_words(policy, plan), load.words()))
    }

    /// The run's line; `None` if nothing has finished.
    fn row(&self, policy: &BuiltIn, plan: &Plan, report: &LiveReport) -> Option<LiveSummaryRow> {
        let LiveReport { outcome, summary, verdict, is_paused, load, .. } = report;
        let summary = (*summary)?;
        let (rate_qps, seed) = (plan.rate_qps, plan.arrivals.seed);
        Some(LiveSummaryRow {
            row: SummaryRow {
                source: Source::Live,
                policy: policy.name().to_owned(),
                rate_qps,
                seed,
                summary,
                covered_share: Some(plan.arrivals.covered_share(rate_qps)),
            },
            lag_p50_ms: outcome.lag.p50.as_ms(),
            lag_p99_ms: outcome.lag.p99.as_ms(),
            handoff_p50_us: outcome.handoff[Class::CPU].p50.as_us(),
            unfinished: outcome.unfinished,
            unreleased: outcome.unreleased,
            overloaded: outcome.overloaded(),
            gpu: self.node.lane_pool().gpu().name(),
            verdict: *verdict,
            is_paused: *is_paused,
            gaps: [GapOf::Driver, GapOf::Lanes].map(|of| outcome.course.gaps(of)),
            others_cores: load.others,
            steal_cores: load.steal,
        })
    }

    /// Writes `summary.csv`, the completed runs; `faults.csv`, their failed lanes, if any failed or were planned to; and the
    /// trace of their logs. An error with one file does not keep the others from being written.
    fn write(&mut self) -> ResultWriter {
        let provenance = self.all_warnings().fold(self.provenance(), |all, warning| all.with("warning", warning));
        let mut kept = ResultWriter::new();
        let summary = self.arguments.out.join("summary.csv");
        kept.rows("summary", &summary, write_live_summaries(&summary, &provenance, &self.rows));
        let differences = self.differences();
        if let [first, second] = self.arguments.compare[..]
            && !differences.is_empty()
        {
            pairs::write(&mut kept, &self.arguments.out, &provenance, [first.name(), second.name()], &differences);
        }
        if !self.priorities.is_empty() {
            let path = self.arguments.out.join("priorities.csv");
            kept.rows("priorities", &path, write_priorities(&path, &provenance, &self.priorities));
        }
        if self.arguments.faults.faults.is_some() || !self.faults.is_empty() {
            let faults = self.arguments.out.join("faults.csv");
            kept.rows("faults", &faults, write_faults(&faults, &provenance, &self.faults));
        }
        let none = KeptRuns::new(&self.arguments.logs, &self.arguments.out, false);
        kept.files(std::mem::replace(&mut self.kept, none).finish(&provenance));
        kept
    }

    /// Writes and prints the results.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let kept = self.write();
        let printed = self.print(&kept);
        kept.finish().and(printed)
    }

    fn provenance(&self) -> Provenance {
        let priorities = self.arguments.priorities.priority.iter();
        priorities
            .fold(Provenance::new(), |all, list| all.with("priorities", list))
            .with_command_and_machine()
            .with("workload", &self.workload_name)
            .with("mode", self.arguments.mode)
            .with("estimates", &self.arguments.estimates)
            .with("gpu", gpu_in_words(&self.node))
            .with("objective", self.criterion)
    }

    fn keep_log(
        &mut self,
        policy: &BuiltIn,
        plan: &Plan,
        outcome: &LiveOutcome,
        warning: Option<&str>,
    ) -> Result<(), Failure> {
        let gpu_is_replayed = self.node.lane_pool().gpu() == GpuLane::Replay;
        let lane = |_: ProcessorId, class: Class| match class {
            Class::GPU if gpu_is_replayed => GpuLane::Replay.name(),
            _ => GpuLane::Real.name(),
        };
        let run = (policy.name(), plan.rate_qps, plan.arrivals.seed);
        let log = &outcome.log;
        let provenance = warning.into_iter().fold(self.provenance(), |all, warning| all.with("warning", warning));
        self.kept.keep(run, &provenance, log, |path, of_run| log.write_with_lanes(path, of_run, lane))
    }

    /// The verdict of a run, the machine's gaps in it, and what it does not test.
    fn words(&self, LiveSummaryRow { verdict, is_paused, gaps: [driver, lanes], .. }: &LiveSummaryRow) -> String {
        let words = verdict.words();
        let words = if *is_paused { words.replacen("missed", "paused", 1) } else { words };
        let longer = if driver.time > lanes.time { driver } else { lanes };
        let paused = match longer.count {
            0 => String::new(),
            count => format!("; {} of {:.0} ms", number::counted(count as usize, "gap", "gaps"), longer.time.as_ms()),
        };
        let untested = self.criterion.untested(verdict.planned);
        format!("{words}{}{untested}{paused}", if untested.is_empty() { "" } else { "; " })
    }

    /// The warnings, with one if runs did not cover their arrivals.
    fn all_warnings(&self) -> impl Iterator<Item = String> {
        let shares = self.rows.iter().filter_map(|line| line.row.covered_share);
        let short = short_runs("delays are likely too low", self.time_scale, shares);
        self.warnings.iter().cloned().chain(short)
    }

    /// The notes and warnings, after the table of a comparison.
    fn notes_in_words(&self) -> String {
        let differences = self.differences();
        let table = match self.arguments.compare[..] {
            [first, second] if !differences.is_empty() => {
                format!("\n{}", pairs::table([first.name(), second.name()], &differences, "pair"))
            }
            _ => String::new(),
        };
        let warnings = self.all_warnings().map(|warning| format!("warning: {warning}\n"));
        let notes = self.notes.iter().map(|note| format!("{note}\n"));
        std::iter::once(table).chain(notes).chain(warnings).collect()
    }

    /// Prints a line per run.
    fn print(&self, kept: &ResultWriter) -> Result<(), Failure> {
        let columns = || COLUMNS.iter().filter(|(_, is_on_screen, _)| *is_on_screen || is_verbose());
        let mut table = Table::new(columns().map(|(heading, ..)| *heading)).with_keys(2);
        for line in &self.rows {
            table.row(columns().map(|(_, _, cell)| cell(self, line)));
        }
        let (table, notes) = (table.without_empty_columns(), self.notes_in_words());
        let priorities = priority_table(&self.priorities);
        say_screen(&format!("\n{table}objective: {}\n{priorities}{notes}", self.criterion), "the folder of results")?;
        say(&format!("{}\n", kept.in_words()))
    }
}

/// A column of the table: its heading, whether the first screen has it, and the text of a run.
type Column = (&'static str, bool, fn(&Session<'_>, &LiveSummaryRow) -> String);

const COLUMNS: [Column; 18] = [
    ("policy", true, |_, line| line.row.policy.clone()),
    ("q/s", true, |_, line| number::text(line.row.rate_qps, 6)),
    ("finished", false, |_, line| line.row.summary.queries.to_string()),
    ("mean ms", true, |_, line| number::text(line.row.summary.mean_ms, 3)),
    ("p50 ms", false, |_, line| number::text(line.row.summary.p50_ms, 3)),
    ("p95 ms", false, |_, line| number::text(line.row.summary.p95_ms, 3)),
    ("p99 ms", true, |_, line| number::text(line.row.summary.p99_ms, 3)),
    ("p99.9 ms", true, |_, line| number::text(line.row.summary.p999_ms, 3)),
    ("longest ms", true, |_, line| number::text(line.row.summary.max_ms, 3)),
    ("late", false, |_, line| line.row.summary.missed.to_string()),
    ("late %", true, |_, line| number::text(100.0 * line.verdict.late_share(), 2)),
    ("cpu busy %", false, |_, line| number::optional(busy_percent(line, Class::CPU), 3)),
    ("gpu busy %", false, |_, line| number::optional(busy_percent(line, Class::GPU), 3)),
    ("busy %", true, |_, line| {
        let busiest = Class::ALL.into_iter().filter_map(|class| busy_percent(line, class)).reduce(f64::max);
        busiest.map_or(String::from("-"), |busy| format!("{busy:.0}"))
    }),
    ("lag p99 ms", false, |_, line| number::text(line.lag_p99_ms, 3)),
    ("others' cores", false, |_, line| number::optional(line.others_cores, 2)),
    ("gpu", true, |_, line| String::from(if line.gpu == GpuLane::Replay.name() { line.gpu } else { "" })),
    ("objective", true, |session, line| session.words(line)),
];

fn busy_percent(line: &LiveSummaryRow, class: Class) -> Option<f64> {
    line.row.summary.utilisation[class].map(|share| 100.0 * share)
}

fn run_in_words(policy: &BuiltIn, plan: &Plan) -> String {
    format!("{} at {} q/s", policy.name(), number::text(plan.rate_qps, 6))
}
