//! What simulations have found: played, kept, told.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::Part;
use super::inputs::rates_around;
use super::report::{capacity_table, delay_chart, delay_table, loss_table};
use super::simulation::Simulation;
use crate::cli::kept::Kept;
use crate::cli::run_logs::KeptRuns;
use crate::cli::{Failure, origin};
use crate::files::Provenance;
use crate::lab::{Capacities, CapacitySearch, LabError, RunLength, play_all};
use crate::live;
use crate::report::capacity::{CapacityRow, write_capacities};
use crate::report::faults::{FaultRow, write_faults};
use crate::report::source::Source;
use crate::report::summary::{SummaryRow, write_summaries};
use crate::sched::PolicyFactory;
use crate::sim::{SimError, simulate};

/// Where rates are not named, delays of a policy are told up to so many times its capacity: beyond they only grow.
const HOPELESS: f64 = 1.5;

/// What was found, up to the end or to an interrupt.
#[derive(Default)]
pub(super) struct Found {
    capacities: Vec<Capacities>,
    /// The rates that runs were to be played at, and the runs that were.
    rates: Vec<f64>,
    summaries: Vec<SummaryRow>,
    /// The lanes that failed in them.
    faults: Vec<FaultRow>,
    /// What the user has to know beyond the tables.
    notes: Vec<String>,
}

impl Found {
    /// Whether there is nothing to tell.
    pub(super) fn is_empty(&self) -> bool {
        self.capacities.is_empty() && self.summaries.is_empty() && self.notes.is_empty()
    }

    /// Searches and plays what is asked for, up to an interrupt or a failure: what was found by then is here.
    pub(super) fn play(&mut self, simulation: &Simulation<'_>) -> Result<(), Failure> {
        let what = &simulation.arguments.what;
        if what.contains(&Part::Capacity) {
            self.search(simulation)?;
        }
        if what.contains(&Part::Delays) && !live::interrupted() {
            self.play_delays(simulation)?;
        }
        Ok(())
    }

    fn search(&mut self, simulation: &Simulation<'_>) -> Result<(), Failure> {
        let at_least = simulation.arguments.arrivals.num_queries()?.unwrap_or(0);
        let length = RunLength::Enough { at_least };
        let search = match CapacitySearch::new(&simulation.experiment, simulation.objective, length) {
            Ok(search) => search.beside_no_miss(),
            // What there is of delays is told all the same.
            Err(e @ LabError::TooFewArrivals { .. }) if simulation.arguments.what.len() > 1 => {
                self.notes.push(format!("no capacity: {e}"));
                return Ok(());
            }
            Err(e) => return Err(e.into()),
        };
        let policies = factories(simulation);
        let progress = progress_bar("capacities", policies.len() * search.seeds());
        let found = search.of_each(&policies, &|| progress.inc(1));
        progress.finish_and_clear();
        for found in found {
            match found {
                Ok(capacities) => self.capacities.push(capacities),
                Err(SimError::Interrupted) => {}
                Err(e) => return Err(e.into()),
            }
        }
        if self.capacities.len() < policies.len() {
            let (known, all) = (self.capacities.len(), policies.len());
            self.notes.push(format!("interrupted: the capacities of {known} of {all} policies are known"));
        }
        Ok(())
    }

    fn play_delays(&mut self, simulation: &Simulation<'_>) -> Result<(), Failure> {
        let Simulation { experiment, rates, region_qps, .. } = simulation;
        let rates_are_named = rates.is_some();
        self.rates = rates.clone().unwrap_or_else(|| rates_around(&self.capacities, *region_qps));
        let is_hopeless = |policy: &str, rate_qps: f64| {
            let mut found = self.capacities.iter().map(|found| &found.objective);
            found.any(|found| found.policy == policy && rate_qps > found.qps * HOPELESS)
        };
        let wanted = |policy: &str, rate_qps| rates_are_named || !is_hopeless(policy, rate_qps);
        let policies = factories(simulation);
        let lines = policies.iter().flat_map(|policy| self.rates.iter().map(|&rate_qps| (policy.name(), rate_qps)));
        let runs = lines.filter(|&(policy, rate_qps)| wanted(policy, rate_qps)).count() * experiment.arrivals.len();
        let progress = progress_bar("delays", runs);
        let played = play_all(experiment, &policies, &self.rates, wanted, &|| progress.inc(1))?;
        progress.finish_and_clear();
        if live::interrupted() {
            self.notes.push(format!("interrupted: {} of {runs} runs are played", played.len()));
        }
        for run in played {
            let of_run = (run.policy.as_str(), run.rate_qps, run.seed);
            self.faults.extend(run.faults.iter().map(|fault| FaultRow::of(of_run, fault)));
            self.summaries.push(SummaryRow::of(Source::Simulated, run));
        }
        Ok(())
    }

    /// Writes it. What can be written is, whatever else can't.
    pub(super) fn keep(&mut self, simulation: &Simulation<'_>) -> Kept {
        let provenance = simulation.provenance();
        let arguments = simulation.arguments;
        let mut kept = Kept::new();
        if !self.summaries.is_empty() {
            let path = arguments.out.join("summary.csv");
            kept.rows("summary", &path, write_summaries(&path, &provenance, &self.summaries));
        }
        if !self.capacities.is_empty() {
            let path = arguments.out.join("capacity.csv");
            let rows = self.capacities.iter().flat_map(Capacities::iter);
            let row = |capacity: &crate::lab::Capacity| CapacityRow::simulated(capacity.clone());
            kept.rows("capacity", &path, write_capacities(&path, &provenance, &rows.map(row).collect::<Vec<_>>()));
        }
        if arguments.faults.faults.is_some() && !self.summaries.is_empty() {
            let path = arguments.out.join("faults.csv");
            kept.rows("faults", &path, write_faults(&path, &provenance, &self.faults));
        }
        if arguments.what.contains(&Part::Plot) && !self.summaries.is_empty() {
            kept.files(self.draw(simulation));
        }
        if arguments.logs.any() {
            kept.files(self.keep_logs(simulation, &provenance));
        }
        kept
    }

    fn draw(&self, simulation: &Simulation<'_>) -> std::io::Result<Vec<PathBuf>> {
        let Simulation { arguments, workload_name, workload, replayed, policies, region_qps, .. } = simulation;
        let chart = arguments.out.join("delay");
        let what = origin::in_words(workload_name, &workload.provenance, arguments.mode, replayed.is_some());
        let drawn = delay_chart(&self.summaries, policies, &self.rates, Some(*region_qps), arguments.deadline.ms, what);
        drawn.write(&chart)?;
        Ok(vec![chart.with_extension("svg"), chart.with_extension("png")])
    }

    /// Plays every run once more for its log, up to an interrupt, and gives the files.
    fn keep_logs(&mut self, simulation: &Simulation<'_>, provenance: &Provenance) -> Result<Vec<PathBuf>, Failure> {
        let Simulation { arguments, experiment, policies, .. } = simulation;
        let num_runs = policies.len() * self.rates.len() * experiment.arrivals.len();
        let mut kept = KeptRuns::new(&arguments.logs, &arguments.out, num_runs == 1);
        for policy in policies {
            for &rate_qps in &self.rates {
                for arrivals in &experiment.arrivals {
                    if live::interrupted() {
                        self.notes.push(String::from("interrupted: the logs of some runs are missing"));
                        return kept.finish(provenance);
                    }
                    let log = simulate(experiment.run(policy, rate_qps, arrivals)?)?;
                    let run = (policy.name(), rate_qps, arrivals.seed);
                    kept.keep(run, provenance, &log, |path, of_run| log.write(path, of_run))?;
                }
            }
        }
        kept.finish(provenance)
    }

    /// All of it, for people.
    pub(super) fn in_words(&self, simulation: &Simulation<'_>) -> String {
        let Simulation { arguments, policies, experiment, process, .. } = simulation;
        let mut text = format!("{}\n\n", simulation.title());
        let found = self.capacities.iter().map(|found| found.objective.qps);
        let played = self.summaries.iter().map(|row| row.rate_qps);
        let rates: Vec<f64> = found.chain(played).filter(|&qps| qps > 0.0).collect();
        let note = arguments.arrivals.process.note(process, &rates);
        text.extend(note.filter(|_| arguments.arrivals.trace.is_none()).map(|note| format!("{note}\n\n")));
        if !self.capacities.is_empty() {
            text.push_str(&capacity_table(&self.capacities));
        }
        text.extend(self.notes.iter().map(|note| format!("{note}\n")));
        if !self.summaries.is_empty() {
            text.push_str(&delay_table(&self.summaries, policies, &self.rates, experiment));
            text.push_str(&loss_table(&self.summaries, arguments.faults.faults.is_some()));
        }
        text
    }
}

fn factories<'s>(simulation: &'s Simulation<'_>) -> Vec<&'s dyn PolicyFactory> {
    simulation.policies.iter().map(|policy| policy as &dyn PolicyFactory).collect()
}

/// Drawn only where it takes more than a moment, and only on terminals.
fn progress_bar(what: &'static str, runs: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len} runs, {eta} left");
    let bar = ProgressBar::new(runs as u64).with_message(what);
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
