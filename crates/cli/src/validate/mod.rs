//! `tandem validate`: the lab's whole loop, and what it predicted beside what it measured.
//!
//! ```text
//! index ─▶ profile here ─▶ train ─▶ simulate ─▶ predicted capacity ─┐
//!             ├─▶ how much slower while serving ─────┘              │
//!             └──────▶ drive live, at rates around it ─▶ measured ──┴─▶ validation.csv, plots
//! ```

mod node;
mod tables;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::Failure;
use super::defaults::Bars;
use super::interrupts;
use super::kept::Kept;
use super::options::{
    DeadlineArgument, GpuArguments, GpuMemoryArguments, MachineFileArgument, ObjectiveArguments, SearchArguments,
    check_k, check_seconds, workers_here,
};
use super::settings::SetArguments;
use crate::options::names::choice;
use node::Validated;
use tandem_core::base::machine::Class;
use tandem_core::base::time::Nanos;
use tandem_core::cost::MachineModel;
use tandem_core::files::check_writable;
use tandem_core::lab::{
    self, Compared, Criterion, GpuChoice, LabError, LoggedRun, ServiceRow, Validation, ValidationCapacityRow,
    ValidationOptions, ValidationRow,
};
use tandem_core::live;
use tandem_core::sched::{PolicyFactory, PolicyKind};
use tandem_report::compared::{write_queries, write_runs, write_validity};
use tandem_report::summary::{Source, SummaryRow, write_summaries};
use tandem_report::validation::{delay_chart, write_validation, write_validation_capacity, write_validation_service};

/// The whole loop: index, profile, train, simulate, drive live, compare.
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
    /// What `profile` measured of these queries on this index; left out, they are measured now
    #[arg(long, value_name = "FILE", requires = "index", conflicts_with_all = ["limit", "repeats"])]
    workload: Option<PathBuf>,
    #[command(flatten)]
    search: SearchArguments,
    /// Policies to compare, between commas [default: gpu-only, cpu-only, best-of, stealing, and combined where batches were
    /// measured; without a GPU lane cpu-only and mct]
    #[arg(long = "policy", value_name = "NAME", value_parser = choice::<PolicyKind>(), value_delimiter = ',')]
    policies: Vec<PolicyKind>,
    /// What stands in the GPU's place
    #[arg(long, value_parser = choice::<GpuChoice>(), default_value = GpuChoice::Auto.name())]
    gpu: GpuChoice,
    #[command(flatten)]
    gpus: GpuArguments,
    #[command(flatten)]
    gpu_memory: GpuMemoryArguments,
    /// CPU workers [default: one for each core that is left beside the driver and the GPUs' lanes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,
    /// Take --cpus beyond the cores of this machine
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    deadline: DeadlineArgument,
    #[command(flatten)]
    objective: ObjectiveArguments,
    /// Length of a live run near the predicted capacity, five deadlines at least; those far below it take half as long, and none has
    /// more than 1.5 million queries unless the deadline asks for them, and never more than 10 million
    #[arg(long, value_name = "S", default_value_t = 1.5)]
    seconds: f64,
    /// Live runs that are to count at each of the rates at which delays are compared: a fifth, half and four fifths of the
    /// predicted capacity; 0 for none
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=100))]
    runs: u32,
    /// Repetitions of the profile
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: u16,
    /// Draws the index, the arrivals and the queries
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    machine: MachineFileArgument,
    /// Where results go
    #[arg(short, long, value_name = "DIR", default_value = "out/validate")]
    out: PathBuf,
    /// Also write the log of every run
    #[arg(long)]
    log: bool,
    #[command(flatten)]
    settings: SetArguments,
}

/// The longest run, an hour.
const MAX_SECONDS: f64 = 3600.0;
/// What came of all policies.
#[derive(Default)]
struct Results {
    rows: Vec<ValidationRow>,
    capacities: Vec<ValidationCapacityRow>,
    service: Vec<ServiceRow>,
    compared: Vec<Compared>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let started = Instant::now();
    let deadline = check(arguments)?;
    let mut validated = Validated::start(arguments)?;
    // Until here nothing was measured that an interrupt should keep.
    interrupts::catch();
    let mut results = Results::default();
    let validated_all = validate(arguments, &mut validated, deadline, &mut results);
    if results.rows.is_empty() && results.compared.is_empty() {
        validated_all?;
        return Err(match live::interrupted() {
            true => Failure::interrupted(format!(
                "interrupted before any live run had ended: {} has what queries cost and what was learnt from that, no more",
                arguments.out.display()
            )),
            false => Failure::failed("no live run finished: nothing to compare"),
        });
    }
    outln!("\n{}", tables::delays(&results.rows));
    if !results.compared.is_empty() {
        outln!("{}", tables::validity(&results.compared, arguments.runs));
    }
    let asked = options(arguments, deadline)?;
    let criterion = asked.objective.within(deadline);
    outln!("{}", tables::capacities(&results.capacities, &criterion, asked.lasts_s()));
    validated.print_gpu_note();
    // Whatever has failed, what was measured before is kept.
    let written = write_results(arguments, &validated, &results, &criterion);
    outln!("Took {:.0} s.", started.elapsed().as_secs_f64());
    validated_all.and(written)
}

/// How it is to be done.
fn options(arguments: &Arguments, deadline: Nanos) -> Result<ValidationOptions, Failure> {
    let objective = arguments.objective.checked()?;
    let (seconds, seed, repeats) = (arguments.seconds, arguments.seed, arguments.runs);
    Ok(ValidationOptions { deadline, objective, seconds, seed, repeats })
}

/// Every policy that the machine can run, up to an interrupt or a failure: what comes of each goes to `results`.
fn validate(
    arguments: &Arguments,
    validated: &mut Validated,
    deadline: Nanos,
    results: &mut Results,
) -> Result<(), Failure> {
    let lengths = validated.node.lengths();
    let policies = arguments.settings.suited_to(&lengths)?;
    let options = options(arguments, deadline)?;
    let provenance = validated.provenance();
    let mut keep = |kept: LoggedRun<'_>| {
        if !arguments.log {
            return Ok(());
        }
        let source = if kept.is_live { Source::Live } else { Source::Simulated };
        let name = format!("{}-{:.0}-{source}.log.csv", kept.policy, kept.rate_qps);
        let provenance = provenance.clone().with("policy", kept.policy).with("rate_qps", kept.rate_qps);
        kept.log.write(&arguments.out.join("logs").join(name), &provenance.with("source", source))
    };
    let machine = validated.node.machine().clone();
    let usual = usual_policies(validated.node.model());
    let chosen = if arguments.policies.is_empty() { &usual } else { &arguments.policies };
    let bars = Bars::default();
    let mut validation = Validation::new(&mut validated.node, options, &bars, &mut keep);
    for &policy in chosen {
        if policy.required_classes().iter().any(|&kind| machine.count(kind) == 0) {
            errln!("{policy}: left out, it needs a GPU");
            continue;
        }
        let mut found = lab::Validated::default();
        let policy = policy.with(policies).with_lengths(lengths.blocks.clone());
        let done = validation.policy(&policy, &mut found);
        let policy = policy.name();
        if found.late_runs > 0 {
            errln!(
                "warning: {policy}: something else kept this machine busy in {} of {} live runs, and measured delays \
                 include it\n  (1 % of the queries came later than they should have by more than 1 % of the deadline)",
                found.late_runs,
                found.runs
            );
        }
        results.rows.extend(found.rows);
        results.compared.extend(found.compared);
        results.capacities.extend(found.capacity);
        results.service = validation.service().to_vec();
        match done {
            Err(LabError::Interrupted) => {
                errln!("interrupted: writing what was measured so far");
                break;
            }
            done => done?,
        }
    }
    Ok(())
}

/// What is compared where no policy is named: those of Ding et al. and the best that batches, or what needs no GPU.
fn usual_policies(model: &MachineModel) -> Vec<PolicyKind> {
    let has_gpu = model.machine.count(Class::GPU) > 0;
    let batches = model.batches[Class::GPU].is_some();
    let of_two = [PolicyKind::GpuOnly, PolicyKind::CpuOnly, PolicyKind::BestOf, PolicyKind::Stealing];
    match (has_gpu, batches) {
        (true, true) => of_two.into_iter().chain([PolicyKind::Combined]).collect(),
        (true, false) => of_two.to_vec(),
        (false, _) => vec![PolicyKind::CpuOnly, PolicyKind::Mct],
    }
}

/// CPU workers.
fn workers(arguments: &Arguments) -> Result<usize, Failure> {
    workers_here(arguments.cpus.map(usize::from), arguments.force, arguments.gpu, arguments.gpus.counts())
}

/// Checks what can be before the index is made, and gives the deadline.
fn check(arguments: &Arguments) -> Result<Nanos, Failure> {
    check_seconds(arguments.seconds, MAX_SECONDS)?;
    check_k(arguments.search.k)?;
    arguments.settings.checked()?;
    arguments.objective.checked()?;
    arguments.gpu.check()?;
    arguments.machine.check()?;
    workers(arguments)?;
    let needs_gpu = |policy: &PolicyKind| policy.required_classes().contains(&Class::GPU);
    let names_some = !arguments.policies.is_empty();
    if names_some && arguments.gpu == GpuChoice::None && arguments.policies.iter().all(needs_gpu) {
        return Err(Failure::input("nothing to compare: these policies need a GPU, and --gpu is none"));
    }
    check_writable(&arguments.out.join("validation.csv"))?;
    arguments.deadline.checked()
}

fn write_results(
    arguments: &Arguments,
    validated: &Validated,
    results: &Results,
    criterion: &Criterion,
) -> Result<(), Failure> {
    let out = &arguments.out;
    let provenance = validated.provenance();
    let mut kept = Kept::new();
    let mut keep = |name: &str, write: &dyn Fn(&Path) -> io::Result<()>| {
        let path = out.join(format!("{name}.csv"));
        kept.rows(name, &path, write(&path));
    };
    let both = |row: &ValidationRow| {
        [(Source::Simulated, row.predicted), (Source::Live, row.measured)].map(|(source, summary)| {
            let (policy, rate_qps, seed) = (row.policy.clone(), row.rate_qps, arguments.seed);
            SummaryRow { source, policy, rate_qps, seed, summary, covered_share: None }
        })
    };
    let summaries: Vec<SummaryRow> = results.rows.iter().flat_map(both).collect();
    keep("validation", &|path| write_validation(path, &provenance, criterion, &results.rows));
    keep("validation_capacity", &|path| write_validation_capacity(path, &provenance, &results.capacities));
    keep("validation_service", &|path| write_validation_service(path, &provenance, &results.service));
    keep("validation_runs", &|path| write_runs(path, &provenance, &results.compared));
    keep("validation_validity", &|path| write_validity(path, &provenance, &results.compared));
    keep("validation_queries", &|path| write_queries(path, &provenance, &results.compared));
    keep("summary", &|path| write_summaries(path, &provenance, &summaries));
    let picture = delay_chart(&results.rows, criterion, &validated.title()).write(&out.join("validation"));
    kept.files(picture.map(|_| Vec::new()));
    kept.finish()?;
    let measured =
        if arguments.workload.is_none() { "\n  here.workload.csv           what each query cost alone" } else { "" };
    outln!(
        "Written to {}:\n  \
         validation.csv, .svg        the delays above, and their picture\n  \
         validation_capacity.csv     the capacities above, and how many queries a run had\n  \
         validation_service.csv      what queries cost in each run and in each backlog between\n  \
         validation_runs.csv         each repeated run: where its delays come from, and what disturbed it\n  \
         validation_validity.csv     where to trust predictions, by policy and load\n  \
         validation_queries.csv      query by query, predicted and measured\n  \
         summary.csv                 the runs in all numbers that `simulate` and `live` give{measured}\n  \
         model.json                  what was learnt from what queries cost alone",
        out.display()
    );
    Ok(())
}
