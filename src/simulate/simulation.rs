//! A simulation as the options define it, before its first run.

use tandem_drive::lab::settle_gpu_times;
use tandem_model::base::machine::{Class, FaultPlan, Machine, PerClass};
use tandem_model::cost::{Cost, MachineModel, MachineProfile, RecordedGpu, Workload};
use tandem_model::files::Provenance;
use tandem_model::sched::{PolicyFactory, PolicyKind, PolicyOptions};
use tandem_model::sim::{Arrivals, Cluster, ClusterShape, Experiment};
use tandem_model::study::{
    Comparison, DELAY_QUERIES, Estimates, Fleet, NamedMachine, Peak, PolicyResults, QueryLengths, RunLength,
    SimulatedMachine, avoids_peak, never_measured, peak, sim_queries, usual_policies,
};
use tandem_model::traffic::{ArrivalProcess, Recording, Replay};

use super::inputs::{arrivals, counts, cpus_in_words, gpus_in_words, named_rates, processors, wants_gpu};
use super::{Arguments, Part};
use crate::failure::Failure;
use crate::options::arrivals::{any_rate, own_rate};
use crate::options::machine::{check_processors, cluster_in_words, mismatches};
use crate::origin;
use crate::output::say;
use serde_json::{Value, json};
use tandem_report::number::{self, counted};

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
    shape: ClusterShape,
    pub(super) comparison: Comparison,
}

/// A time of a recording: seconds, or if they count from 1970 the time of day.
fn clock(seconds: f64) -> String {
    let day = seconds.rem_euclid(86_400.0) as u32;
    match seconds > EPOCH_S {
        true => format!("{:02}:{:02}:{:02} UTC", day / 3600, day / 60 % 60, day % 60),
        false => format!("{seconds:.1} s"),
    }
}

/// Later times of a recording count from 1970.
const EPOCH_S: f64 = 1e8;
/// Most queries of a recording that is played for its peak.
const MOST_PLAYED: f64 = 5e7;

/// A recording as the simulated machines serve it.
pub(super) struct PeakAnswer {
    policy: String,
    rate_qps: f64,
    peak: Peak,
    /// The fewest machines without late minutes.
    machines: Option<usize>,
    /// The share of queries that may be late.
    allowed: f64,
}

impl PeakAnswer {
    /// Some sentences.
    pub(super) fn words(&self) -> String {
        let Self { policy, peak, allowed, .. } = self;
        let percent = |share: f64| format!("{} %", number::text(100.0 * share, 3));
        let [rate, allowed] = [number::text(self.rate_qps, 4), percent(*allowed)];
        let Some((first, last)) = peak.late else {
            return format!(
                "Recording at {rate} q/s under {policy}: no minute has more than {allowed} late queries (worst: {}, longest wait \
                 {} s).",
                percent(peak.worst_share),
                number::text(peak.longest_s, 3)
            );
        };
        let clear = peak.clear_s.map_or(String::from("it was not gone at the end"), |seconds| {
            format!("the backlog was gone {} s later", number::text(seconds, 3))
        });
        let avoids = self.machines.map_or(String::from("no number of machines up to 1,024 avoids this"), |machines| {
            number::counted(machines, "machine avoids this", "machines avoid this")
        });
        format!(
            "Recording at {rate} q/s under {policy}: {} of the queries were late, the first at {} and the last at {}. The \
             longest delay was {} s at {}; {clear}. In the worst minute {} were late. {avoids}: at most \
             {allowed} late in any minute.",
            percent(peak.late_share),
            clock(first),
            clock(last),
            number::text(peak.longest_s, 3),
            clock(peak.longest_at_s),
            percent(peak.worst_share),
        )
    }

    /// The answer for programs.
    pub(super) fn json(&self) -> Value {
        let Self { policy, rate_qps, peak, machines, .. } = self;
        json!({
            "policy": policy, "rate_qps": rate_qps, "late_share": peak.late_share, "worst_minute_share": peak.worst_share,
            "first_late_s": peak.late.map(|(first, _)| first), "last_late_s": peak.late.map(|(_, last)| last),
            "longest_s": peak.longest_s, "longest_at_s": peak.longest_at_s, "clear_s": peak.clear_s,
            "machines_that_avoid_it": machines,
        })
    }
}

fn is_possible(kind: PolicyKind, model: &MachineModel) -> bool {
    let has_batches = model.batches.iter().any(|(_, batches)| batches.is_some());
    (has_batches || !kind.batches()) && kind.with(PolicyOptions::default()).build(model).is_ok()
}

impl<'a> Simulation<'a> {
    /// Reads and checks all that the options name.
    pub(super) fn new(arguments: &'a Arguments) -> Result<Self, Failure> {
        arguments.settings.checked()?;
        let deadline = arguments.priorities.deadline(arguments.deadline)?;
        let objective = arguments.objective.checked_for(arguments.priorities.parsed()?.as_ref())?;
        check_processors(&counts(arguments))?;
        let process = process(arguments)?;
        let named = Estimates::named(&arguments.estimates)?;
        let (workload_name, workload, replayed) = asked(arguments)?;
        let workload = arguments.settings.with_speed_up(workload);
        let (estimates, instead) = named.suited_to(&workload);
        origin::warn_of_another(&estimates, &workload_name, &workload);
        let machine_profile = arguments.machine.read(origin::is_of_here(&workload))?;
        let (cpus, gpus) = processors(arguments, &workload, machine_profile.as_ref().map(|(_, profile)| profile))?;
        let machine = simulated((cpus, gpus, arguments.streams), machine_profile.as_ref(), replayed.is_some());
        let faults = faults(arguments, &machine.processors())?;
        let model = MachineModel { faults, ..machine.model(&workload, &estimates) };
        let queries = sim_queries(&workload, &estimates, &model.machine)?;
        let estimated: Vec<PerClass<Cost>> = queries.iter().map(|query| query.estimate).collect();
        let lengths = QueryLengths::of(&workload, &estimated, &model);
        let (usual, _) = usual_policies(model.machine.num_devices(Class::GPU) > 0);
        let named = if arguments.compare.is_empty() { &arguments.policy } else { &arguments.compare };
        let named = match named.as_slice() {
            [] if usual.iter().all(|kind| is_possible(*kind, &model)) && usual.len() > 1 => usual,
            named => named,
        };
        let policies = arguments.settings.policies(named, &model, &lengths)?;
        let shape = arguments.cluster.shape(&arguments.settings)?;
        if arguments.priorities.priority.is_some() && shape.nodes() > 1 {
            return Err(Failure::input("--priority: one machine serves priorities: leave --shards and --replicas out"));
        }
        let cluster = Cluster::of(shape, &queries);
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
        let simulation = Self {
            arguments,
            workload_name,
            workload,
            replayed,
            machine_profile,
            estimates,
            process,
            shape,
            comparison,
        };
        arguments.logs.check(simulation.log_rows())?;
        Ok(simulation)
    }

    /// The machines as a fleet of any number.
    fn fleet(&self) -> Fleet {
        let Comparison { experiment, objective, length, .. } = &self.comparison;
        let machine = Experiment { cluster: None, ..experiment.clone() };
        Fleet { machine, shape: self.shape, objective: *objective, length: *length, scale: 1.0 }
    }

    /// When queries of a recording were late under the first policy, and how many machines avoid it. `None` for arrivals that
    /// are not played in the recording's own time, or of several rates.
    pub(super) fn peak(&self) -> Result<Option<PeakAnswer>, Failure> {
        let is_own_time = |of: &&Recording| matches!(of.replay(), Replay::Repeat | Replay::Intensify);
        let recording = self.process.recording().filter(is_own_time);
        let rate_qps = match self.comparison.rates_qps.as_deref() {
            Some([rate_qps]) => Some(*rate_qps),
            Some(_) => None,
            None => recording.map(Recording::rate_qps),
        };
        let policy = self.comparison.policies.first();
        let (Some(recording), Some(rate_qps), Some(policy)) = (recording, rate_qps, policy) else { return Ok(None) };
        if self.arguments.arrivals.trace.is_some() || recording.seconds() * rate_qps > MOST_PLAYED {
            return Ok(None);
        }
        let (fleet, groups) = (self.fleet(), self.shape.replicas);
        let peak = peak(&fleet, policy.as_ref(), (recording, rate_qps), groups)?;
        let from = groups + usize::from(peak.late.is_some());
        let avoids = match peak.late {
            None => Some(from),
            Some(_) => avoids_peak(&fleet, policy.as_ref(), (recording, rate_qps), from)?,
        };
        let machines = avoids.map(|groups| groups * self.shape.shards);
        let allowed = self.comparison.objective.within(self.comparison.experiment.deadline).late_share();
        Ok(Some(PeakAnswer { policy: policy.name().to_owned(), rate_qps, peak, machines, allowed }))
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

    /// What no live run of the record had.
    fn never_measured(&self, results: &PolicyResults) -> Option<String> {
        let experiment = &self.comparison.experiment;
        let policies =
            results.capacities.iter().map(|found| &found.policy).chain(results.played.iter().map(|run| &run.policy));
        let gpus = Class::ALL
            .into_iter()
            .filter(|class| class.is_gpu())
            .map(|class| experiment.model.machine.num_devices(class));
        let counts = [
            ("gpus", gpus.sum::<usize>()),
            ("streams", self.arguments.streams),
            ("shards", self.shape.shards),
            ("replicas", self.shape.replicas),
            ("priorities", if experiment.priorities().is_some() { 2 } else { 1 }),
        ];
        let arrivals = &self.arguments.arrivals;
        let process = if arrivals.trace.is_some() { "recorded" } else { self.process.kind() };
        let parts = counts.map(|(dimension, count)| (dimension, count.to_string())).into_iter();
        never_measured(
            parts.chain([("arrivals", process.to_owned())]).chain(policies.map(|policy| ("policy", policy.clone()))),
        )
    }

    /// The warnings about the unit of service times, a compressed recording, and what was never measured.
    pub(super) fn caveats(&self, results: &PolicyResults) -> Vec<String> {
        let arrivals = &self.arguments.arrivals;
        let compressed = arrivals.process.caveat(&self.process, &rates(results)).filter(|_| arrivals.trace.is_none());
        self.workload.doubt().into_iter().chain(compressed).chain(self.never_measured(results)).collect()
    }

    /// Prints what is simulated, at once.
    pub(super) fn say_title(&self) -> Result<(), Failure> {
        say(&format!("{}\n\n", self.title()))
    }

    /// The simulation in words.
    fn title(&self) -> String {
        let Self { arguments, workload_name, workload, .. } = self;
        let experiment = &self.comparison.experiment;
        let mut title = format!(
            "{workload_name}, mode {}: {} queries; {}, {}; {}; estimates: {}",
            workload.mode(),
            workload.rows.len(),
            cpus_in_words(
                arguments,
                workload,
                &experiment.model.machine,
                self.machine_profile.as_ref().map(|(_, profile)| profile),
            ),
            gpus_in_words(&experiment.model.machine),
            deadline_in_words(experiment),
            self.estimates.0.name(),
        );
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
        title
    }

    /// Warnings, and the replay of a recording at the rates of these results.
    pub(super) fn notes(&self, results: &PolicyResults) -> String {
        let arrivals = &self.arguments.arrivals;
        let replay = arrivals.process.note(&self.process, &rates(results)).filter(|_| arrivals.trace.is_none());
        let caveats = self.caveats(results).into_iter().map(|caveat| format!("warning: {caveat}\n\n"));
        caveats.chain(replay.map(|note| format!("{note}\n\n"))).collect()
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
        if arguments.cluster.shape(&arguments.settings)?.nodes() > 1 {
            return Err(Failure::input("--faults: a plan applies to one machine: leave --shards and --replicas out"));
        }
    }
    arguments.faults.plan(&arguments.settings, machine.len())
}
