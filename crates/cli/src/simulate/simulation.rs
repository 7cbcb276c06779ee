//! What is simulated, as the options say: all that is settled before the first run.

use super::inputs::{arrivals, counts, cpus_in_words, gpus_in_words, is_of_here, machine, named_rates, wants_gpu};
use super::{Arguments, Part};
use crate::options::{any_rate, check_processors, cluster_in_words, no_rates, own_rate};
use crate::{Failure, origin};
use tandem_core::base::machine::{Class, FaultPlan, Machine, PerClass};
use tandem_core::cost::{Cost, MachineFile, MachineModel, RecordedGpu, Workload};
use tandem_core::files::Provenance;
use tandem_core::lab::{
    Comparison, DELAY_QUERIES, Estimates, PolicyResults, QueryLengths, RunLength, in_stream, named_workload_in,
    settle_gpu_times, sim_queries,
};
use tandem_core::query::ArrivalProcess;
use tandem_core::sched::PolicyFactory;
use tandem_core::sim::{Arrivals, Experiment};

/// What is simulated.
pub(super) struct Simulation<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) workload_name: String,
    pub(super) workload: Workload,
    /// Whose times stand in the GPU's place, where it was not measured.
    pub(super) replayed: Option<RecordedGpu>,
    /// The machine file that is reckoned with.
    machine_file: Option<String>,
    process: ArrivalProcess,
    pub(super) comparison: Comparison,
}

impl<'a> Simulation<'a> {
    /// Reads and checks all that the options name.
    pub(super) fn new(arguments: &'a Arguments) -> Result<Self, Failure> {
        arguments.settings.checked()?;
        let deadline = arguments.deadline.checked()?;
        let objective = arguments.objective.checked()?;
        check_processors(&counts(arguments))?;
        let process = process(arguments)?;
        let estimates = Estimates::named(&arguments.estimates)?;
        let (workload_name, workload, replayed) = asked(arguments, &estimates)?;
        let file = arguments.machine.read(is_of_here(&workload))?;
        let model = machine_model(arguments, &workload, file.as_ref().map(|(_, file)| file), replayed.is_some())?;
        let queries = in_stream(&sim_queries(&workload, &estimates, &model.machine)?, &model);
        let estimated: Vec<PerClass<Cost>> = queries.iter().map(|query| query.estimate).collect();
        let lengths = QueryLengths::of(&workload, &estimated, &model);
        let policies = arguments.settings.policies(&arguments.policy, &model, &lengths)?;
        let cluster = arguments.cluster.cluster(&arguments.settings, &queries)?;
        let n = arguments.arrivals.num_queries()?.unwrap_or(DELAY_QUERIES);
        let (arrivals, recorded_qps) = arrivals(arguments, &process, &workload, n)?;
        let experiment = Experiment { model, queries, deadline, arrivals, cluster };
        let policies = policies.into_iter().map(|policy| Box::new(policy) as Box<dyn PolicyFactory>).collect();
        let comparison = Comparison {
            objective,
            length: RunLength::Enough { at_least: arguments.arrivals.num_queries()?.unwrap_or(0) },
            has_capacities: arguments.what.contains(&Part::Capacity),
            has_delays: arguments.what.contains(&Part::Delays),
            rates_qps: named_rates(arguments, recorded_qps)?,
            ..Comparison::new(experiment, policies).map_err(|_| no_rates())?
        };
        for &rate_qps in comparison.rates_qps.iter().flatten() {
            comparison.experiment.check_time(rate_qps, n)?;
        }
        let machine_file = file.map(|(name, _)| name);
        let simulation = Self { arguments, workload_name, workload, replayed, machine_file, process, comparison };
        arguments.logs.check(simulation.log_rows())?;
        Ok(simulation)
    }

    /// Rows of all logs, if each run of delays had one.
    fn log_rows(&self) -> usize {
        let Comparison { experiment, policies, rates_qps, .. } = &self.comparison;
        let queries: usize = experiment.arrivals.iter().map(Arrivals::len).sum();
        let num_rates = rates_qps.as_ref().map_or(Comparison::NUM_RATES, Vec::len);
        queries.saturating_mul(policies.len() * num_rates)
    }

    /// The lines at the head of every file.
    pub(super) fn provenance(&self) -> Provenance {
        let arguments = self.arguments;
        let provenance = Provenance::new()
            .with_command_and_machine()
            .with("workload", &self.workload_name)
            .with("mode", arguments.mode)
            .with("estimates", &arguments.estimates)
            .with("arrivals", arguments.arrivals.named(&self.process))
            .with("objective", self.comparison.objective.within(self.comparison.experiment.deadline));
        let file = self.machine_file.as_ref().map(|name| ("machine file", name.clone()));
        let gpu = self.replayed.as_ref().map(|source| ("gpu", format!("replay of {source}")));
        [file, gpu].into_iter().flatten().fold(provenance, |all, (key, value)| all.with(key, value))
    }

    /// What is simulated, in words, and how a recording was changed for the rates of these results.
    pub(super) fn title(&self, results: &PolicyResults) -> String {
        let Self { arguments, workload_name, workload, .. } = self;
        let experiment = &self.comparison.experiment;
        let mut title = format!(
            "{workload_name}, mode {}: {} queries; {}, {}; deadline {} ms; estimates: {}",
            arguments.mode,
            workload.rows.len(),
            cpus_in_words(arguments, workload, &experiment.model.machine),
            gpus_in_words(&experiment.model.machine),
            arguments.deadline.ms,
            arguments.estimates,
        );
        title.extend(self.machine_file.iter().map(|name| format!("; served as {name} says")));
        title.extend(self.replayed.iter().map(|source| format!("\nNo GPU was measured: its times are {source}.")));
        title.extend(experiment.cluster.iter().map(|cluster| format!("\n{}", cluster_in_words(&cluster.shape()))));
        let found = results.capacities.iter().map(|found| found.objective.qps);
        let rates: Vec<f64> =
            found.chain(results.played.iter().map(|run| run.rate_qps)).filter(|&qps| qps > 0.0).collect();
        let note = arguments.arrivals.process.note(&self.process, &rates);
        title.extend(note.filter(|_| arguments.arrivals.trace.is_none()).map(|note| format!("\n\n{note}")));
        title
    }
}

/// How queries arrive, read once, and whether that can be at the rates that are asked for.
fn process(arguments: &Arguments) -> Result<ArrivalProcess, Failure> {
    let process = arguments.arrivals.process.process()?;
    own_rate(&process, arguments.arrivals.rates()?.as_deref())?;
    if arguments.what.contains(&Part::Capacity) {
        any_rate(&process)?;
    }
    Ok(process)
}

/// The queries, their name, and whose times the GPU takes if not its own.
fn asked(arguments: &Arguments, estimates: &Estimates) -> Result<(String, Workload, Option<RecordedGpu>), Failure> {
    let (name, mut workload) = named_workload_in(arguments.workload.as_deref(), arguments.mode)?;
    origin::warn_of_another(estimates, &name, &workload);
    let replayed = settle_gpu_times(&name, &mut workload, arguments.gpu, wants_gpu(arguments))?;
    Ok((name, workload, replayed))
}

/// The machine with what batches, serving and faults cost.
fn machine_model(
    arguments: &Arguments,
    workload: &Workload,
    file: Option<&MachineFile>,
    gpu_is_replayed: bool,
) -> Result<MachineModel, Failure> {
    let machine = machine(arguments, workload, file.is_some())?;
    let faults = faults(arguments, &machine)?;
    let model = MachineModel { batches: workload.batches.batch_costs(), ..machine.into() };
    // Recorded times in a GPU's place are played as they are.
    let is_played = |class: Class| class.is_gpu() && gpu_is_replayed;
    let model = file.map(|file| file.model(&model, workload.contention.as_ref(), is_played)).unwrap_or(model);
    Ok(MachineModel { faults, ..model })
}

/// The fault plan. A lane that fails goes on with a CPU in its place, so that there must be costs on one.
fn faults(arguments: &Arguments, machine: &Machine) -> Result<FaultPlan, Failure> {
    if arguments.faults.faults.is_some() {
        if machine.count(Class::CPU) == 0 {
            let message = "--faults: lanes that fail go on with a CPU in their place: give --cpus at least 1";
            return Err(Failure::input(message));
        }
        if arguments.cluster.shape(&arguments.settings)?.is_some() {
            return Err(Failure::input("--faults: a plan is of one machine: leave --shards and --replicas out"));
        }
    }
    arguments.faults.plan(&arguments.settings, machine.len())
}
