//! What `train --report` tells of regret: what each policy loses by estimates, on a small machine and a large one.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Arguments;
use crate::cli::Failure;
use crate::cli::output::result_file;
use crate::cost::{MachineModel, Workload};
use crate::files::{Digits, Provenance, Record, write_csv};
use crate::lab::{Estimates, Regret, regret};
use crate::machine::{Class, Machine};
use crate::report::table::Table;
use crate::sched::{BuiltIn, PolicyFactory, PolicyKind, PolicyOptions};

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
}

impl Record for Line {}

/// Simulates, prints, and writes `regret.csv` into `dir`.
pub(super) fn write(dir: &Path, names: &str, workload: &Workload, arguments: &Arguments) -> Result<(), Failure> {
    let gpus = usize::from(workload.rows.iter().any(|row| row.measured[Class::GPU].is_some()));
    let estimates = Estimates::Fitted(arguments.model);
    let mut lines = Vec::new();
    let mut table = Table::grouped([
        ("", &["policy", "cpus"][..]),
        ("capacity, q/s", &["exact", "estimates", "bound"]),
        ("", &["regret"]),
        ("p99 ms at 95 %", &["exact", "estimates"]),
    ])
    .with_keys(2);
    for &cpus in arguments.regret_cpus.iter().filter(|&&cpus| cpus > 0) {
        let machine = Machine::new(cpus, 0).with_gpus(gpus, 1, 1);
        let model = MachineModel { batches: workload.batches.batch_costs(), ..machine.clone().into() };
        let has_batches = model.batches.iter().any(|(_, batches)| batches.is_some());
        let all =
            PolicyKind::ALL.into_iter().filter(|kind| !kind.is_for_comparison() && (has_batches || !kind.batches()));
        let all = all.map(|kind| kind.with(PolicyOptions::default()));
        let policies: Vec<BuiltIn> = all.filter(|policy| policy.build(&model).is_ok()).collect();
        let deadline = arguments.deadline.checked()?;
        for Regret { policy, exact, estimated, exact_p99_ms, estimated_p99_ms } in
            regret(workload, &estimates, &machine, &policies, deadline, &SEEDS, &|| ())?
        {
            let lost = 1.0 - estimated.qps / exact.qps;
            table.row([
                policy.clone(),
                cpus.to_string(),
                format!("{:.0}", exact.qps),
                format!("{:.0}", estimated.qps),
                format!("{:.0}", exact.bound_qps),
                format!("{:+.1} %", 100.0 * lost),
                format!("{exact_p99_ms:.3}"),
                format!("{estimated_p99_ms:.3}"),
            ]);
            lines.push(Line {
                policy,
                cpus,
                gpus,
                exact_qps: Digits(exact.qps),
                estimated_qps: Digits(estimated.qps),
                regret: Digits(lost),
                bound_qps: Digits(exact.bound_qps),
                exact_p99_ms: Digits(exact_p99_ms),
                estimated_p99_ms: Digits(estimated_p99_ms),
            });
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    let path = dir.join("regret.csv");
    let provenance = Provenance::new()
        .with_command_and_machine()
        .with("workload", names)
        .with("model", arguments.model)
        .with("mode", arguments.mode)
        .with("deadline_ms", arguments.deadline.ms);
    write_csv(&path, &provenance, lines)?;
    result_file("regret", &path);
    outln!(
        "\nwhat estimates cost policies: capacity at p99 within {} ms, {}, mode {}, {} seeds\n\n{table}",
        arguments.deadline.ms,
        names,
        arguments.mode,
        SEEDS.len(),
    );
    outln!("written: {}", path.display());
    Ok(())
}
