//! `tandem sweep`: simulations over a product of parameters, in parts for any number of machines.

mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use tandem_drive::lab::{GpuChoice, settle_gpu_times};
use tandem_model::base::interrupt::interrupt_flag;
use tandem_model::base::machine::Class;
use tandem_model::files::{Provenance, check_writable};
use tandem_model::sched::PolicyKind;
use tandem_model::study::sweep::{Axes, Point, Sweep, SweepFolder, SweepOptions, SweepRow, SweepWorkload};
use tandem_model::study::{
    Estimates, GPU_LANE_DEPTH, RunLength, StudyError, named_workload, named_workload_in, never_measured, short_runs,
    usual_policies,
};
use tandem_model::traffic::Mode;
use xxhash_rust::xxh3::xxh3_64;

use self::report::{answer, chart, table};
use super::defaults::progress;
use super::output::{result, result_file, say, say_screen};
use super::settings::{SetArguments, Settings};
use super::{interrupts, origin};
use crate::failure::Failure;
use crate::options::arrivals::{ArrivalArguments, any_rate, own_rate};
use crate::options::lists::{counts, numbers};
use crate::options::machine::{MAX_PROCESSORS, MachineProfileArgument, RoutingArgument, check_nodes, mismatches};
use crate::options::names::choice;
use crate::options::question::{DEFAULT_MS, ObjectiveArguments};

/// The largest accepted number of points.
const MAX_POINTS: usize = 100_000;
/// A deadline of a day.
const MAX_DEADLINE_MS: f64 = 86_400_000.0;
/// The largest accepted error of estimates.
const MAX_NOISE: f64 = 3.0;
/// The default seeds.
const SEEDS: &str = "1:10";

/// Simulate a product of machines, policies, deadlines, errors and clusters.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tandem sweep --policy mct,stealing,combined --cpus 1,2,4,8,16 -o sweep\n  tandem sweep --workload mine.csv --rate 2000 --replicas 1:16 -o machines"
)]
pub(super) struct Arguments {
    /// Measured queries: a workload file, a table of service times with a column such as `cpu_us`, `took` or
    /// `latency_ms` (docs/guide/files.md), or the name of a shipped workload [default: the shipped Wikipedia slice]
    #[arg(long, value_name = "FILE")]
    workload: Option<String>,
    /// How the terms of a query combine, separated by commas; selects rows of the workload [default: its only mode, else or]
    #[arg(long, value_parser = choice::<Mode>(), value_delimiter = ',')]
    mode: Vec<Mode>,
    /// Policies, separated by commas [default: cpu-only for machines without GPU; else gpu-only, cpu-only, best-of, stealing and
    /// combined]
    #[arg(long, value_name = "NAME", value_parser = choice::<PolicyKind>(), value_delimiter = ',')]
    policy: Vec<PolicyKind>,
    /// Numbers of CPU workers: numbers and FIRST:LAST, separated by commas [default: 1; with the profile of a server, as many as it
    /// answers at once]
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Numbers of GPUs, likewise [default: 1 if the workload has GPU times or --gpu is replay]
    #[arg(long, value_name = "LIST")]
    gpus: Option<String>,
    /// Numbers of streams of each GPU, likewise
    #[arg(long, value_name = "LIST", default_value = "1")]
    streams: String,
    /// Times from a query's arrival to its deadline, in milliseconds, separated by commas
    #[arg(long, value_name = "LIST", default_value_t = DEFAULT_MS.to_string())]
    deadline_ms: String,
    /// Additional errors of estimates, as the standard deviation of their logarithm, separated by commas
    #[arg(long, value_name = "LIST", default_value = "0")]
    noise: String,
    /// Numbers of shards, each on its own machine with the costs of the workload: numbers and FIRST:LAST, separated by commas
    #[arg(long, value_name = "LIST", default_value = "1")]
    shards: String,
    /// Numbers of machines per shard, likewise; with --rate, the result names the fewest that sustain it
    #[arg(long, value_name = "LIST", default_value = "1")]
    replicas: String,
    #[command(flatten)]
    routing: RoutingArgument,
    #[command(flatten)]
    arrivals: ArrivalArguments,
    #[command(flatten)]
    objective: ObjectiveArguments,
    /// Source of GPU times, as in `simulate`
    #[arg(long, value_parser = choice::<GpuChoice>(), default_value = GpuChoice::Auto.name(), hide_possible_values = true, value_name = "auto|real|replay|none")]
    gpu: GpuChoice,
    /// Cost estimates that policies see, before --noise is added, as in `simulate`
    #[arg(long, value_name = "WHAT", default_value = "model")]
    estimates: String,
    #[command(flatten)]
    machine: MachineProfileArgument,
    /// Folder of the sweep; points that it holds already are not simulated again
    #[arg(short, long, value_name = "DIR", default_value = "out/sweep")]
    out: PathBuf,
    /// Simulate only part I of N, counted from 1, and do not merge
    #[arg(long, value_name = "I/N", conflicts_with = "merge")]
    part: Option<String>,
    /// Only join the parts
    #[arg(long)]
    merge: bool,
    #[command(flatten)]
    settings: SetArguments,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let axes = axes(arguments)?;
    let part = arguments.part.as_deref().map(parse_part).transpose()?;
    check_writable(&arguments.out.join("sweep.csv"))?;
    let (digest, options, instead) = options(arguments, &axes)?;
    let process = options.process.clone();
    let estimates = options.estimates.name().to_owned();
    let machine_profile = options.profile.as_ref().map(|(name, _)| name.clone());
    let used = options.profile.iter().flat_map(|file| options.workloads.values().map(move |of| (file, &of.workload)));
    let other_queries = mismatches(used);
    let doubts: Vec<String> = options.workloads.values().filter_map(|of| of.workload.doubt()).collect();
    let sweep = Sweep::new(&axes, options)?;
    let (points, impossible): (Vec<Point>, Vec<Point>) =
        axes.points().into_iter().partition(|point| sweep.is_possible(point));
    if points.is_empty() {
        return Err(Failure::input(
            "no policy of the sweep can run on any of its machines: give --cpus, --gpus or --policy",
        ));
    }
    let folder = SweepFolder::new(&arguments.out, digest);
    let mut rows: Vec<Option<SweepRow>> = points.iter().map(|point| folder.read(point)).collect::<Result<_, _>>()?;
    let kept = rows.iter().flatten().count();
    if !arguments.merge {
        let mine = |number: usize| part.is_none_or(|(part, parts)| number % parts == part - 1);
        let missing: Vec<usize> =
            (0..points.len()).filter(|&at| rows[at].is_none() && mine(points[at].number)).collect();
        for (at, row) in play(&sweep, &folder, &points, &missing)? {
            rows[at] = Some(row);
        }
    }
    let there: Vec<SweepRow> = rows.into_iter().flatten().collect();
    let missing = points.len() - there.len();
    let mut text = format!("{} of {} points are simulated, {kept} of them by earlier runs", there.len(), points.len());
    if !impossible.is_empty() {
        text.push_str(&format!("; at {} more the machine cannot run the policy", impossible.len()));
    }
    text.push('\n');
    if missing > 0 {
        let merges = arguments.merge;
        text.push_str("the same command continues here");
        if merges {
            return Err(Failure::failed(format!("{text}: parts are joined once all points are simulated")));
        }
        return say(&format!("{text}; the parts are not joined yet\n"));
    }
    if part.is_some() {
        text.push_str("all points are simulated: --merge in place of --part joins the parts\n");
        return say(&text);
    }
    let rates: Vec<f64> =
        there.iter().filter_map(|row| row.rate_qps.map(|rate| rate.0).or(row.capacity_qps.map(|qps| qps.0))).collect();
    let caveat = arguments.arrivals.process.caveat(&process, &rates);
    let shares = there.iter().filter_map(|row| row.covered_share.map(|share| share.0));
    let short = short_runs("answers are likely too good", process.time_scale(), shares);
    let parts = there.iter().flat_map(|row| {
        let counts = [("gpus", row.gpus), ("streams", row.streams), ("shards", row.shards), ("replicas", row.replicas)];
        let counts = counts.map(|(dimension, count)| (dimension, count.to_string()));
        counts.into_iter().chain([("policy", row.policy.clone()), ("arrivals", process.kind().to_owned())])
    });
    let warnings: Vec<String> =
        doubts.into_iter().chain(other_queries).chain(caveat).chain(short).chain(never_measured(parts)).collect();
    result("warnings", &warnings);
    let file = machine_profile.as_deref().unwrap_or("none (hand-offs and the dispatcher take no time)");
    let provenance = Provenance::new()
        .with("command", command())
        .with("estimates", &estimates)
        .with("gpu_lane_depth", GPU_LANE_DEPTH)
        .with("machine profile", file);
    let provenance = warnings.iter().fold(provenance, |all, warning| all.with("warning", warning));
    folder.merge(&provenance, &there)?;
    result_file("sweep", &folder.merged());
    result("answer", answer(&there));
    let mut written = vec![folder.merged().display().to_string()];
    if let Some(chart) = chart(&there) {
        written.push(chart.write(&arguments.out.join("sweep"))?.display().to_string());
    }
    let instead = instead.map_or(String::new(), |why| format!(" ({why})"));
    let setting =
        format!("estimates: {estimates}{instead}; GPU lanes {GPU_LANE_DEPTH} batches deep; machine profile: {file}\n");
    let text_of_rows =
        warnings.iter().map(|warning| format!("warning: {warning}\n\n")).collect::<String>() + &table(&there);
    say_screen(&text_of_rows, &folder.merged().display().to_string())?;
    say(&format!("\n{setting}{text}written: {}\n", written.join(", ")))
}

/// The command without its part, so that all parts and the joined file name the same one.
fn command() -> String {
    Provenance::new().with_command_and_machine().get("command").map_or(String::new(), |command| {
        let mut words = Vec::new();
        let mut skip = false;
        for word in command.split(' ') {
            if std::mem::take(&mut skip) || word == "--merge" || word.starts_with("--part=") {
                continue;
            }
            skip = word == "--part";
            if !skip {
                words.push(word);
            }
        }
        words.join(" ")
    })
}

fn axes(arguments: &Arguments) -> Result<Axes, Failure> {
    if arguments.arrivals.trace.is_some() {
        return Err(Failure::input("--trace is one run at its own rate: `tandem simulate --trace` simulates it"));
    }
    let policies = arguments.settings.checked()?;
    let gpus = gpus(arguments)?;
    let (usual, _) = usual_policies(gpus.iter().any(|&gpus| gpus > 0));
    let kinds = if arguments.policy.is_empty() { usual.to_vec() } else { arguments.policy.clone() };
    let mut distinct: Vec<PolicyKind> = Vec::new();
    kinds.into_iter().for_each(|kind| {
        if !distinct.contains(&kind) {
            distinct.push(kind);
        }
    });
    let mut modes = arguments.mode.clone();
    modes.sort_unstable();
    modes.dedup();
    if modes.is_empty() {
        modes.push(named_workload_in(arguments.workload.as_deref(), None)?.1.mode());
    }
    let axes = Axes {
        modes,
        policies: distinct.into_iter().map(|kind| kind.with(policies)).collect(),
        cpus: match &arguments.cpus {
            Some(cpus) => counts("--cpus", cpus, 0, MAX_PROCESSORS)?,
            None => vec![arguments.machine.read(false)?.and_then(|(_, profile)| profile.server_lanes()).unwrap_or(1)],
        },
        gpus,
        streams: counts("--streams", &arguments.streams, 1, 64)?,
        deadlines_ms: numbers("--deadline-ms", &arguments.deadline_ms, 1e-6, MAX_DEADLINE_MS)?,
        noises: numbers("--noise", &arguments.noise, 0.0, MAX_NOISE)?,
        shards: counts("--shards", &arguments.shards, 1, MAX_PROCESSORS)?,
        replicas: counts("--replicas", &arguments.replicas, 1, MAX_PROCESSORS)?,
        rates_qps: arguments.arrivals.rates()?.unwrap_or_default(),
    };
    let most = |counts: &[usize]| counts.iter().copied().max().unwrap_or(1);
    check_nodes(most(&axes.shards), most(&axes.replicas))?;
    match axes.num_points() {
        Some(points) if points <= MAX_POINTS => Ok(axes),
        _ => Err(Failure::input(format!("the product of all lists has more than {MAX_POINTS} points"))),
    }
}

/// The numbers of GPUs, with the default of `simulate`.
fn gpus(arguments: &Arguments) -> Result<Vec<usize>, Failure> {
    if let Some(list) = &arguments.gpus {
        return counts("--gpus", list, 0, MAX_PROCESSORS);
    }
    Ok(vec![match arguments.gpu {
        GpuChoice::None => 0,
        GpuChoice::Replay | GpuChoice::Real => 1,
        GpuChoice::Auto => {
            let (_, workload) = named_workload(arguments.workload.as_deref())?;
            usize::from(workload.rows.iter().any(|row| row.measured[Class::GPU].is_some()))
        }
    }])
}

/// The constant options, a digest of everything that results depend on, and the reason if estimates are not those asked for.
fn options(arguments: &Arguments, axes: &Axes) -> Result<(String, SweepOptions, Option<String>), Failure> {
    let objective = arguments.objective.checked()?;
    let Settings { shard_costs, length_threshold, .. } = *arguments.settings;
    let routing = arguments.routing.routing;
    let (mut estimates, mut instead) = (Estimates::named(&arguments.estimates)?, None);
    let (mut is_of_here, mut is_gpu_replayed) = (true, false);
    let seeds = arguments.arrivals.seeds(SEEDS)?;
    let at_least = arguments.arrivals.num_queries()?.unwrap_or(0);
    let process = arguments.arrivals.process.process(&arguments.settings)?;
    match own_rate(&process, arguments.arrivals.rates()?.as_deref())? {
        Some(_) => {}
        None if axes.rates_qps.is_empty() => any_rate(&process)?,
        None => {}
    }
    let mut workloads = BTreeMap::new();
    let mut digest = format!(
        "{axes:?} {objective:?} {routing:?} {shard_costs:?} {process:?} {seeds:?} {at_least} {length_threshold:?}"
    );
    for &mode in &axes.modes {
        let (name, mut workload) = origin::workload_in(arguments.workload.as_deref(), Some(mode))?;
        let wants_gpu = axes.gpus.iter().any(|&gpus| gpus > 0);
        let replayed =
            settle_gpu_times(&name, &mut workload, arguments.gpu, wants_gpu && arguments.gpu != GpuChoice::None)?;
        is_gpu_replayed |= replayed.is_some();
        is_of_here &= origin::is_of_here(&workload);
        let (suited, why) = estimates.suited_to(&workload);
        (estimates, instead) = (suited, instead.or(why));
        digest.push_str(&format!(" {name} {:?}", workload.rows));
        workloads.insert(mode, SweepWorkload { name, workload });
    }
    let profile = arguments.machine.read(is_of_here)?;
    digest.push_str(&format!(" {estimates:?} {GPU_LANE_DEPTH} {profile:?}"));
    let digest = format!("{:016x}", xxh3_64(digest.as_bytes()));
    let options = SweepOptions {
        workloads,
        estimates,
        objective,
        process,
        seeds,
        length: RunLength::Enough { at_least },
        routing,
        shard_costs,
        length_threshold,
        profile,
        is_gpu_replayed,
    };
    Ok((digest, options, instead))
}

/// Simulates the missing points in any order, until all are done or an interrupt comes.
fn play(
    sweep: &Sweep,
    folder: &SweepFolder,
    points: &[Point],
    missing: &[usize],
) -> Result<Vec<(usize, SweepRow)>, Failure> {
    interrupts::catch();
    let stop = interrupt_flag();
    let progress = progress("sweep points", missing.len() as u64);
    // Points are taken in order, so that an interrupted sweep has done its beginning.
    let next = AtomicUsize::new(0);
    let worker = |_| {
        let mut done = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let Some(&at) = missing.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            let row = match sweep.play(&points[at]) {
                // The point is incomplete and will be simulated again.
                Err(StudyError::Interrupted) => break,
                row => row?,
            };
            folder.write(row.clone())?;
            progress.inc(1);
            done.push((at, row));
        }
        Ok::<_, StudyError>(done)
    };
    let threads = rayon::current_num_threads().max(1);
    let done: Vec<Result<Vec<(usize, SweepRow)>, StudyError>> = (0..threads).into_par_iter().map(worker).collect();
    progress.finish_and_clear();
    let done = done.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(done.into_iter().flatten().collect())
}

/// `2/8`.
fn parse_part(text: &str) -> Result<(usize, usize), Failure> {
    let parts = text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
    let is_part = |&(part, parts): &(usize, usize)| (1..=parts).contains(&part);
    let fault = || Failure::input(format!("--part: {text:?}, expected I/N with I from 1 to N"));
    parts.filter(is_part).ok_or_else(fault)
}
