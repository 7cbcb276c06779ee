//! A simulation as the options define it, before its first run.

use super::inputs::{arrivals, counts, cpus_in_words, gpus_in_words, named_rates, processors, wants_gpu};
use super::{Arguments, Part};
use crate::options::arrivals::{any_rate, own_rate};
use crate::options::machine::{check_processors, cluster_in_words, mismatches};
use crate::{Failure, origin};
use tandem_core::base::machine::{Class, FaultPlan, Machine, PerClass};
use tandem_core::cost::{Cost, MachineModel, MachineProfile, RecordedGpu, Workload};
use tandem_core::files::Provenance;
use tandem_core::lab::{
    Comparison, DELAY_QUERIES, Estimates, NamedMachine, PolicyResults, QueryLengths, RunLength, SimulatedMachine,
    settle_gpu_times, sim_queries,
};
use tandem_core::query::ArrivalProcess;
use tandem_core::sched::{PolicyFactory, PolicyKind, PolicyOptions};
use tandem_core::sim::{Arrivals, ClusterShape, Experiment};
use tandem_report::number::counted;

/// A simulation, ready to run.
pub(super) struct Simulation<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) workload_name: String,
    pub(super) workload: Workload,
    /// The source of replayed GPU times.
    pub(super) replayed: Option<RecordedGpu>,
    /// The machine profile, and the name of its file.
    machine_profile: Option<(String, MachineProfile)>,
    /// The estimates that policies see, and the reason if they are not those asked for.
    estimates: (Estimates, Option<String>),
    process: ArrivalProcess,
    pub(super) comparison: Comparison,
}

/// The policies that are played if none is named and the machine can run all of them: a single processor of each class, the
/// better one for each query, work stealing, and batches with CPU workers.
const USUAL: [PolicyKind; 5] =
    [PolicyKind::GpuOnly, PolicyKind::CpuOnly, PolicyKind::BestOf, PolicyKind::Stealing, PolicyKind::Combined];

fn is_possible(kind: PolicyKind, model: &MachineModel) -> bool {
    let has_batches = model.batches.iter().any(|(_, batches)| batches.is_some());
    (has_batches || !kind.batches()) && kind.with(PolicyOptions::default()).build(model).is_ok()
}

impl<'a> Simulation<'a> {
    /// Reads and checks all that the options name.
    pub(super) fn new(arguments: &'a Arguments) -> Result<Self, Failure> {
        arguments.settings.checked()?;
        let deadline = arguments.priorities.deadline(arguments.deadline)?;
        let objective = arguments.objective.checked()?;
        check_processors(&counts(arguments))?;
        let process = process(arguments)?;
        let named = Estimates::named(&arguments.estimates)?;
        let (workload_name, workload, replayed) = asked(arguments)?;
        let workload = arguments.settings.with_speed_up(workload);
        let (estimates, instead) = named.suited_to(&workload);
        origin::warn_of_another(&estimates, &workload_name, &workload);
        let machine_profile = arguments.machine.read(origin::is_of_here(&workload))?;
        let (cpus, gpus) = processors(arguments, &workload)?;
        let machine = simulated((cpus, gpus, arguments.streams), machine_profile.as_ref(), replayed.is_some());
        let faults = faults(arguments, &machine.processors())?;
        let model = MachineModel { faults, ..machine.model(&workload, &estimates) };
        let queries = sim_queries(&workload, &estimates, &model.machine)?;
        let estimated: Vec<PerClass<Cost>> = queries.iter().map(|query| query.estimate).collect();
        let lengths = QueryLengths::of(&workload, &estimated, &model);
        let usual: Vec<PolicyKind> = USUAL.into_iter().filter(|kind| is_possible(*kind, &model)).collect();
        let named = match arguments.policy.as_slice() {
            [] if usual.len() == USUAL.len() => &usual,
            named => named,
        };
        let policies = arguments.settings.policies(named, &model, &lengths)?;
        if arguments.priorities.priority.is_some() && arguments.cluster.shape(&arguments.settings)?.is_some() {
            return Err(Failure::input("--priority: one machine serves priorities: leave --shards and --replicas out"));
        }
        let cluster = arguments.cluster.cluster(&arguments.settings, &queries)?;
        let n = arguments.arrivals.num_queries()?.unwrap_or(DELAY_QUERIES);
        let (arrivals, recorded_qps) = arrivals(arguments, &process, &workload, n)?;
        let experiment = Experiment { model, queries, deadline, arrivals, cluster };
        let policies = policies.into_iter().map(|policy| Box::new(policy) as Box<dyn PolicyFactory>).collect();
        let comparison = Comparison {
            objective,
            length: RunLength::Enough { at_least: arguments.arrivals.num_queries()?.unwrap_or(0) },
            has_capacities: arguments.what.contains(&Part::Capacity),
            has_delays: arguments.what.contains(&Part::Delays) || arguments.what.contains(&Part::Gap),
            // Runs of a given length have that, and logs of all that is played would be large.
            covers_arrivals: arguments.arrivals.num_queries()?.is_none() && !arguments.logs.any(),
            rates_qps: named_rates(arguments, recorded_qps)?,
            ..Comparison::new(experiment, policies)
        };
        for &rate_qps in comparison.rates_qps.iter().flatten() {
            comparison.experiment.check_time(rate_qps, n)?;
        }
        let estimates = (estimates, instead);
        let simulation =
            Self { arguments, workload_name, workload, replayed, machine_profile, estimates, process, comparison };
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

    /// The machine that is simulated.
    fn machine(&self) -> SimulatedMachine<'_> {
        let machine = &self.comparison.experiment.model.machine;
        let (cpus, gpus) = (machine.count(Class::CPU), machine.num_devices(Class::GPU));
        simulated((cpus, gpus, self.arguments.streams), self.machine_profile.as_ref(), self.replayed.is_some())
    }

    /// `16 CPU workers, 1 GPU (lanes 4 batches deep)`, and the cluster if there is one.
    fn machine_in_words(&self) -> String {
        let Experiment { model, cluster, .. } = &self.comparison.experiment;
        let cpus = counted(model.machine.count(Class::CPU), "CPU worker", "CPU workers");
        let cluster = cluster.iter().map(|cluster| {
            let ClusterShape { shards, replicas, routing, .. } = cluster.shape();
            format!("; {} such machines: {shards} x {replicas}, {}", shards * replicas, routing.name())
        });
        format!("{cpus}, {}{}", gpus_in_words(&model.machine), cluster.collect::<String>())
    }

    /// The lines at the head of every file.
    pub(super) fn provenance(&self) -> Provenance {
        let arguments = self.arguments;
        let provenance = Provenance::new()
            .with_command_and_machine()
            .with("workload", &self.workload_name)
            .with("mode", self.workload.mode())
            .with("estimates", self.estimates.0.name())
            .with("arrivals", arguments.arrivals.named(&self.process))
            .with("objective", self.comparison.objective.within(self.comparison.experiment.deadline))
            .with("simulated", self.machine_in_words());
        let priorities = self.comparison.experiment.priorities().cloned();
        let provenance = priorities.into_iter().fold(provenance, |all, list| all.with("priorities", list));
        let assumed = arguments.settings.assumed_speed_up();
        let provenance = assumed.into_iter().fold(provenance, |all, list| all.with("speed_up", list));
        let provenance = self.machine().provenance(provenance);
        let provenance = self.other_queries().into_iter().fold(provenance, |all, warning| all.with("warning", warning));
        let gpu = self.replayed.as_ref().map(|source| format!("replay of {source}"));
        gpu.into_iter().fold(provenance, |all, gpu| all.with("gpu", gpu))
    }

    /// The warning about a machine profile of other queries.
    pub(super) fn other_queries(&self) -> Vec<String> {
        mismatches(self.machine_profile.iter().map(|file| (file, &self.workload)))
    }

    /// The warnings about the unit of service times and about a compressed recording.
    pub(super) fn caveats(&self, results: &PolicyResults) -> Vec<String> {
        let arrivals = &self.arguments.arrivals;
        let compressed = arrivals.process.caveat(&self.process, &rates(results)).filter(|_| arrivals.trace.is_none());
        self.workload.doubt().into_iter().chain(compressed).collect()
    }

    /// The simulation in words, with the replay of a recording at the rates of these results.
    pub(super) fn title(&self, results: &PolicyResults) -> String {
        let Self { arguments, workload_name, workload, .. } = self;
        let experiment = &self.comparison.experiment;
        let mut title = format!(
            "{workload_name}, mode {}: {} queries; {}, {}; {}; estimates: {}",
            workload.mode(),
            workload.rows.len(),
            cpus_in_words(arguments, workload, &experiment.model.machine),
            gpus_in_words(&experiment.model.machine),
            deadline_in_words(experiment),
            self.estimates.0.name(),
        );
        let caveats = self.caveats(results).into_iter().map(|caveat| format!("warning: {caveat}\n\n"));
        title.insert_str(0, &caveats.collect::<String>());
        title.extend(self.estimates.1.iter().map(|why| format!(" ({why})")));
        title.push_str(&match &self.machine_profile {
            Some((name, _)) => format!("; machine profile {name}"),
            None => String::from("; no machine profile, so that hand-offs and the dispatcher take no time"),
        });
        let machine = self.machine();
        title.extend(machine.warning().into_iter().chain(self.other_queries()).map(|warning| format!("\n{warning}.")));
        title
            .extend(self.replayed.iter().map(|source| format!("\nThe workload has no GPU times; replayed: {source}.")));
        title.extend(experiment.cluster.iter().map(|cluster| format!("\n{}", cluster_in_words(&cluster.shape()))));
        let note = arguments.arrivals.process.note(&self.process, &rates(results));
        title.extend(note.filter(|_| arguments.arrivals.trace.is_none()).map(|note| format!("\n\n{note}")));
        title
    }
}

/// The deadline, or the priorities with theirs.
fn deadline_in_words(experiment: &Experiment) -> String {
    match experiment.priorities() {
        Some(priorities) => format!("priorities {priorities}"),
        None => format!("deadline {} ms", experiment.deadline.as_ms()),
    }
}

/// The rates of the results.
fn rates(results: &PolicyResults) -> Vec<f64> {
    let found = results.capacities.iter().map(|found| found.qps);
    found.chain(results.played.iter().map(|run| run.rate_qps)).filter(|&qps| qps > 0.0).collect()
}

/// The arrival process, checked against the rates that are asked for.
fn process(arguments: &Arguments) -> Result<ArrivalProcess, Failure> {
    let process = arguments.arrivals.process.process(&arguments.settings)?;
    own_rate(&process, arguments.arrivals.rates()?.as_deref())?;
    if arguments.what.contains(&Part::Capacity) {
        any_rate(&process)?;
    }
    Ok(process)
}

/// The queries, their name, and the source of replayed GPU times.
fn asked(arguments: &Arguments) -> Result<(String, Workload, Option<RecordedGpu>), Failure> {
    let (name, mut workload) = origin::workload_in(arguments.workload.as_deref(), arguments.mode)?;
    let replayed = settle_gpu_times(&name, &mut workload, arguments.gpu, wants_gpu(arguments))?;
    Ok((name, workload, replayed))
}

/// The simulated machine of these numbers of CPU workers, GPUs and streams.
fn simulated(
    (cpus, gpus, streams): (usize, usize, usize),
    file: Option<&(String, MachineProfile)>,
    is_gpu_replayed: bool,
) -> SimulatedMachine<'_> {
    let profile = file.map(|(name, profile)| NamedMachine { name, profile });
    SimulatedMachine { cpus, gpus, streams, profile, is_gpu_replayed }
}

/// The fault plan. A CPU replaces a lane that fails, so that CPU costs must be known.
fn faults(arguments: &Arguments, machine: &Machine) -> Result<FaultPlan, Failure> {
    if arguments.faults.faults.is_some() {
        if machine.count(Class::CPU) == 0 {
            let message = "--faults: a CPU replaces a lane that fails: give --cpus at least 1";
            return Err(Failure::input(message));
        }
        if arguments.cluster.shape(&arguments.settings)?.is_some() {
            return Err(Failure::input("--faults: a plan applies to one machine: leave --shards and --replicas out"));
        }
    }
    arguments.faults.plan(&arguments.settings, machine.len())
}
