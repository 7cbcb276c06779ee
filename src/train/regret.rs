//! Regret in `train --report`: the loss of each policy by estimates, on a small and a large machine.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tandem_model::base::machine::Class;
use tandem_model::cost::{MachineProfile, Workload};
use tandem_model::files::{Digits, Provenance, Record, write_csv};
use tandem_model::sched::{BuiltIn, PolicyFactory, PolicyKind, PolicyOptions};
use tandem_model::study::{
    Estimates, GPU_LANE_DEPTH, NamedMachine, Regret, SimulatedMachine, StudyError, in_pieces, regret, regret_pieces,
};

use super::Arguments;
use crate::Failure;
use crate::defaults::Bars;
use crate::options::machine::mismatches;
use crate::origin::is_of_here;
use crate::output::{is_verbose, result_file};
use tandem_report::table::Table;

/// Runs at each rate.
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

#[derive(Serialize, Deserialize)]
struct Line {
    policy: String,
    cpus: usize,
    gpus: usize,
    exact_qps: Digits<6>,
    estimated_qps: Digits<6>,
    regret: Digits<4>,
    bound_qps: Digits<6>,
    exact_p99_ms: Digits<4>,
    estimated_p99_ms: Digits<4>,
    short_of_bound: Digits<4>,
    extrapolated: bool,
}

impl Record for Line {}

/// A machine with the policies that it can run.
struct OnMachine<'a> {
    machine: SimulatedMachine<'a>,
    policies: Vec<BuiltIn>,
}

/// The regret of a policy on a machine.
struct Found {
    cpus: usize,
    gpus: usize,
    is_extrapolated: bool,
    regret: Regret,
}

/// Simulates, prints, and writes `regret.csv` into `dir`.
pub(super) fn write(dir: &Path, names: &str, workload: &Workload, arguments: &Arguments) -> Result<(), Failure> {
    let file = arguments.machine.read(is_of_here(workload))?;
    let machines = machines(workload, arguments, file.as_ref());
    if machines.is_empty() {
        return Ok(());
    }
    let estimates = Estimates::Fitted(arguments.model);
    let deadline = arguments.deadline.checked()?;
    let file_name = file.as_ref().map_or("none (hand-offs and the dispatcher take no time)", |(name, _)| name);
    let extrapolated: Vec<String> = machines.iter().filter_map(|on| on.machine.warning()).collect();
    let warnings = mismatches(file.iter().map(|file| (file, workload)));
    let found =
        simulate(machines, |on, done| regret(workload, &estimates, &on.machine, &on.policies, deadline, &SEEDS, done))?;
    let path = dir.join("regret.csv");
    let provenance = Provenance::new()
        .with_command_and_machine()
        .with("workload", names)
        .with("model", arguments.model)
        .with("mode", arguments.mode)
        .with("deadline_ms", arguments.deadline.ms)
        .with("gpu_lane_depth", GPU_LANE_DEPTH)
        .with("machine profile", file_name);
    let provenance = warnings.iter().fold(provenance, |all, warning| all.with("warning", warning));
    write_csv(&path, &provenance, found.iter().map(line))?;
    result_file("regret", &path);
    warnings.iter().for_each(|warning| outln!("warning: {warning}"));
    if !is_verbose() {
        outln!("written: {}", path.display());
        return Ok(());
    }
    outln!(
        "\nregret of policies by estimates: capacity at p99 within {} ms, {}, mode {}, {} seeds; GPU lanes {GPU_LANE_DEPTH} batches \
         deep; machine profile: {file_name}\n\n{}",
        arguments.deadline.ms,
        names,
        arguments.mode,
        SEEDS.len(),
        table(&found),
    );
    extrapolated.iter().for_each(|warning| outln!("{warning}"));
    outln!("written: {}", path.display());
    Ok(())
}

/// Simulates all machines by `play`, which reports each completed piece.
fn simulate(
    machines: Vec<OnMachine<'_>>,
    play: impl Fn(&OnMachine<'_>, &(dyn Fn() + Sync)) -> Result<Vec<Regret>, StudyError>,
) -> Result<Vec<Found>, Failure> {
    let pieces: usize = machines.iter().map(|on| regret_pieces(on.policies.len(), SEEDS.len())).sum();
    let step = "simulating the regret of policies, with exact costs and with estimates (minutes)";
    in_pieces(&Bars::default(), step, pieces, |done| {
        let mut found = Vec::new();
        for on in machines {
            let of_machine = play(&on, done)?;
            let SimulatedMachine { cpus, gpus, .. } = on.machine;
            let is_extrapolated = on.machine.is_extrapolated();
            found.extend(of_machine.into_iter().map(|regret| Found { cpus, gpus, is_extrapolated, regret }));
        }
        Ok(found)
    })
}

fn table(found: &[Found]) -> Table {
    let mut table = Table::grouped([
        ("", &["policy", "cpus", "gpus"][..]),
        ("capacity, q/s", &["exact", "estimates", "bound"]),
        ("", &["regret", "short of bound"]),
        ("p99 ms at 95 %", &["exact", "estimates", "ratio"]),
    ])
    .with_keys(3);
    for Found { cpus, gpus, regret, .. } in found {
        table.row([
            regret.policy.clone(),
            cpus.to_string(),
            gpus.to_string(),
            format!("{:.0}", regret.exact.qps),
            format!("{:.0}", regret.estimated.qps),
            format!("{:.0}", regret.exact.bound_qps),
            format!("{:+.1} %", 100.0 * regret.share()),
            format!("{:.1} %", 100.0 * regret.short_of_bound()),
            format!("{:.3}", regret.exact_p99_ms),
            format!("{:.3}", regret.estimated_p99_ms),
            format!("{:.2}", regret.p99_ratio()),
        ]);
    }
    table
}

fn line(&Found { cpus, gpus, is_extrapolated, ref regret }: &Found) -> Line {
    Line {
        policy: regret.policy.clone(),
        cpus,
        gpus,
        exact_qps: Digits(regret.exact.qps),
        estimated_qps: Digits(regret.estimated.qps),
        regret: Digits(regret.share()),
        bound_qps: Digits(regret.exact.bound_qps),
        exact_p99_ms: Digits(regret.exact_p99_ms),
        estimated_p99_ms: Digits(regret.estimated_p99_ms),
        short_of_bound: Digits(regret.short_of_bound()),
        extrapolated: is_extrapolated,
    }
}

/// Whether any query was measured on a GPU.
pub(super) fn has_gpu_times(workload: &Workload) -> bool {
    workload.rows.iter().any(|row| row.measured[Class::GPU].is_some())
}

/// The requested machines: by default with a GPU if queries were measured on one.
fn machines<'a>(
    workload: &Workload,
    arguments: &Arguments,
    file: Option<&'a (String, MachineProfile)>,
) -> Vec<OnMachine<'a>> {
    let measured = usize::from(has_gpu_times(workload));
    let all_gpus = if arguments.regret_gpus.is_empty() { &[measured][..] } else { &arguments.regret_gpus };
    let mut machines = Vec::new();
    for &cpus in arguments.regret_cpus.iter().filter(|&&cpus| cpus > 0) {
        for &gpus in all_gpus {
            let profile = file.map(|(name, profile)| NamedMachine { name, profile });
            let machine = SimulatedMachine { profile, ..SimulatedMachine::new(cpus, gpus) };
            let model = machine.model(workload, &Estimates::Oracle);
            let has_batches = gpus > 0 && model.batches.iter().any(|(_, batches)| batches.is_some());
            let usual = |kind: &PolicyKind| !kind.is_for_comparison() && (has_batches || !kind.batches());
            let all = PolicyKind::ALL.into_iter().filter(usual).map(|kind| kind.with(PolicyOptions::default()));
            let policies: Vec<BuiltIn> = all.filter(|policy| policy.build(&model).is_ok()).collect();
            machines.push(OnMachine { machine, policies });
        }
    }
    machines
}
