//! `tandem validate`: the lab's whole loop, and what it predicted beside what it measured.
//!
//! ```text
//! index ─▶ profile here ─▶ train ─▶ simulate ─▶ predicted capacity ─┐
//!             ├─▶ how much slower while serving ─────┘              │
//!             └──────▶ drive live, at rates around it ─▶ measured ──┴─▶ validation.csv, plots
//! ```

mod calibration;
mod lab;
mod measure;
mod tables;

use std::path::PathBuf;
use std::time::Instant;

use super::Failure;
use super::interrupts;
use super::options::{DeadlineArgument, GpuChoice, PolicyArguments, check_k, check_seconds};
use crate::cost::TrainOptions;
use crate::exec::cpu::Algorithm;
use crate::files::{Provenance, check_writable};
use crate::live;
use crate::machine::Class;
use crate::query::Mode;
use crate::report::source::Source;
use crate::report::summary::{SummaryRow, write_summaries};
use crate::report::validation::{
    ValidationCapacityRow, ValidationRow, delay_chart, write_validation, write_validation_capacity,
    write_validation_service,
};
use crate::sched::PolicyKind;
use crate::time::Nanos;
use lab::Lab;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Folder of the index to validate on, with --queries; left out, a synthetic one, made in the output folder
    #[arg(requires = "queries")]
    index: Option<PathBuf>,
    /// Query log: one query a line, `id<TAB>query`, or JSON lines
    #[arg(long, value_name = "FILE", requires = "index")]
    queries: Option<PathBuf>,
    /// Documents of the synthetic index
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1000..))]
    docs: u32,
    /// Queries to measure, from the beginning of the log
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(20..))]
    limit: u32,
    /// How the terms of a query combine
    #[arg(long, value_enum, default_value_t = Mode::Or)]
    mode: Mode,
    /// How the CPU finds the best documents with any of the words; all give the same result
    #[arg(long, value_enum, default_value_t = Algorithm::Auto)]
    algorithm: Algorithm,
    /// Documents that a query asks for
    #[arg(short, value_name = "K", default_value_t = 10)]
    k: usize,
    /// Policies to compare
    #[arg(long = "policy", value_enum, value_delimiter = ',', default_value = "gpu-only,cpu-only,best-of,stealing")]
    policies: Vec<PolicyKind>,
    /// What stands in the GPU's place
    #[arg(long, value_enum, default_value_t = GpuChoice::Auto)]
    gpu: GpuChoice,
    /// CPU workers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: u16,
    #[command(flatten)]
    deadline: DeadlineArgument,
    /// Length of a live run at the predicted capacity; slower rates take longer for the same queries
    #[arg(long, value_name = "S", default_value_t = 1.5)]
    seconds: f64,
    /// Repetitions of the profile
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: u16,
    /// Draws the index, the arrivals and the queries
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Where results go
    #[arg(short, long, value_name = "DIR", default_value = "out/validate")]
    out: PathBuf,
    /// Also write the log of every run
    #[arg(long)]
    log: bool,
    #[command(flatten)]
    options: PolicyArguments,
}

/// The longest run, an hour.
const MAX_SECONDS: f64 = 3600.0;
/// Rates to drive live, as shares of the predicted capacity.
const SHARES: [f64; 7] = [0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25];

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let started = Instant::now();
    let deadline = check(arguments)?;
    let mut lab = Lab::set_up(arguments)?;
    // Until here nothing was measured that an interrupt should keep.
    interrupts::catch();
    lab.print_models(&TrainOptions::default())?;

    let mut rows = Vec::new();
    let mut capacities = Vec::new();
    for &policy in &arguments.policies {
        if policy.required_classes().iter().any(|&kind| lab.machine().count(kind) == 0) {
            errln!("{policy}: left out, it needs a GPU");
            continue;
        }
        let found = measure::validate_policy(&mut lab, policy, arguments, deadline)?;
        rows.extend(found.rows);
        capacities.extend(found.capacity);
        if live::interrupted() {
            errln!("interrupted: writing what was measured so far");
            break;
        }
    }
    if rows.is_empty() {
        return Err(Failure::failed("no live run finished: nothing to compare"));
    }
    outln!("\n{}", tables::delays(&rows));
    outln!("{}", tables::capacities(&capacities, arguments.deadline.ms));
    lab.print_gpu_note();
    write_results(arguments, &lab, &rows, &capacities, deadline)?;
    outln!("Took {:.0} s.", started.elapsed().as_secs_f64());
    Ok(())
}

/// Checks what can be before the index is made, and gives the deadline.
fn check(arguments: &Arguments) -> Result<Nanos, Failure> {
    check_seconds(arguments.seconds, MAX_SECONDS)?;
    check_k(arguments.k)?;
    arguments.options.checked()?;
    arguments.gpu.check()?;
    let needs_gpu = |policy: &PolicyKind| policy.required_classes().contains(&Class::GPU);
    if arguments.gpu == GpuChoice::None && arguments.policies.iter().all(needs_gpu) {
        return Err(Failure::input("nothing to compare: these policies need a GPU, and --gpu is none"));
    }
    check_writable(&arguments.out.join("validation.csv"))?;
    arguments.deadline.checked()
}

fn write_results(
    arguments: &Arguments,
    lab: &Lab,
    rows: &[ValidationRow],
    capacities: &[ValidationCapacityRow],
    deadline: Nanos,
) -> Result<(), Failure> {
    let out = &arguments.out;
    let provenance = lab.provenance();
    write_validation(&out.join("validation.csv"), &provenance, rows)?;
    write_validation_capacity(&out.join("validation_capacity.csv"), &provenance, capacities)?;
    write_validation_service(&out.join("validation_service.csv"), &provenance, lab.service())?;
    let summaries: Vec<SummaryRow> = rows
        .iter()
        .flat_map(|row| {
            [(Source::Simulated, row.predicted), (Source::Live, row.measured)].map(|(source, summary)| SummaryRow {
                source,
                policy: row.policy.clone(),
                rate_qps: row.rate_qps,
                seed: arguments.seed,
                summary,
            })
        })
        .collect();
    write_summaries(&out.join("summary.csv"), &provenance, &summaries)?;
    delay_chart(rows, deadline, &lab.title()).write(&out.join("validation"))?;
    outln!(
        "Written to {}:\n  \
         validation.csv, .svg, .png  the delays above, and their picture\n  \
         validation_capacity.csv     the capacities above, and how many queries a run had\n  \
         validation_service.csv      what queries cost in each run and in each backlog between\n  \
         summary.csv                 the runs in all numbers that `simulate` and `live` give\n  \
         here.workload.csv           what each query cost alone\n  \
         model.json                  what was learnt from that",
        out.display()
    );
    Ok(())
}

/// The lines at the head of every file of a run.
fn provenance(seed: u64, index: &str, gpu: &str) -> Provenance {
    Provenance::new().with_command_and_machine().with("seed", seed).with("index", index).with("gpu", gpu)
}
