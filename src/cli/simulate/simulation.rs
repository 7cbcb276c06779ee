//! What is simulated, as the options say: all that is settled before the first run.

use super::inputs::{
    DEFAULT_RATES, arrivals, counts, cpus_in_words, gpus_in_words, is_of_here, machine, named_rates, wants_gpu,
};
use super::{Arguments, Part};
use crate::cli::options::{any_rate, check_processors, cluster_in_words, no_rates, own_rate};
use crate::cli::{Failure, origin};
use crate::cost::{Cost, MachineFile, MachineModel, RecordedGpu, Workload};
use crate::files::Provenance;
use crate::lab::{Estimates, Objective, QueryLengths, in_stream, named_workload_in, settle_gpu_times, sim_queries};
use crate::machine::{Class, FaultPlan, Machine, PerClass};
use crate::query::ArrivalProcess;
use crate::sched::BuiltIn;
use crate::sim::{Arrivals, Experiment};

/// Queries of a run whose delays are told, where nothing else is asked for.
const DELAY_QUERIES: usize = 50_000;

/// What is simulated.
pub(super) struct Simulation<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) objective: Objective,
    pub(super) workload_name: String,
    pub(super) workload: Workload,
    /// Whose times stand in the GPU's place, where it was not measured.
    pub(super) replayed: Option<RecordedGpu>,
    /// The machine file that is reckoned with.
    machine_file: Option<String>,
    pub(super) process: ArrivalProcess,
    pub(super) experiment: Experiment,
    pub(super) policies: Vec<BuiltIn>,
    /// Above this rate no scheduler is stable in the long run.
    pub(super) region_qps: f64,
    /// Those that are named, or that arrivals have of their own.
    pub(super) rates: Option<Vec<f64>>,
}

impl<'a> Simulation<'a> {
    /// Reads and checks all that the options name.
    pub(super) fn new(arguments: &'a Arguments) -> Result<Self, Failure> {
        arguments.options.checked()?;
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
        let policies = arguments.options.policies(&arguments.policy, &model, &lengths)?;
        let cluster = arguments.cluster.cluster(&queries)?;
        let n = arguments.arrivals.num_queries()?.unwrap_or(DELAY_QUERIES);
        let (arrivals, recorded_qps) = arrivals(arguments, &process, &workload, n)?;
        let experiment = Experiment { model, queries, deadline, arrivals, cluster };
        let region_qps = experiment.region().ok_or_else(no_rates)?.rate_qps;
        let rates = named_rates(arguments, recorded_qps)?;
        let machine_file = file.map(|(name, _)| name);
        let simulation = Self {
            arguments,
            objective,
            workload_name,
            workload,
            replayed,
            machine_file,
            process,
            experiment,
            policies,
            region_qps,
            rates,
        };
        arguments.logs.check(simulation.log_rows())?;
        Ok(simulation)
    }

    /// Rows of all logs, if each run of delays had one.
    fn log_rows(&self) -> usize {
        let queries: usize = self.experiment.arrivals.iter().map(Arrivals::len).sum();
        let num_rates = self.rates.as_ref().map_or(DEFAULT_RATES as usize, Vec::len);
        queries.saturating_mul(self.policies.len() * num_rates)
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
            .with("objective", self.objective.within(self.experiment.deadline));
        let file = self.machine_file.as_ref().map(|name| ("machine file", name.clone()));
        let gpu = self.replayed.as_ref().map(|source| ("gpu", format!("replay of {source}")));
        [file, gpu].into_iter().flatten().fold(provenance, |all, (key, value)| all.with(key, value))
    }

    /// What is simulated, in words.
    pub(super) fn title(&self) -> String {
        let Self { arguments, workload_name, workload, experiment, .. } = self;
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
        if arguments.cluster.shape()?.is_some() {
            return Err(Failure::input("--faults: a plan is of one machine: leave --shards and --replicas out"));
        }
    }
    arguments.faults.plan(machine.len())
}
