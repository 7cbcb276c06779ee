//! `tandem profile --machine`: the costs of serving on this machine beyond the queries' own service times.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Arguments;
use crate::Failure;
use crate::defaults::Bars;
use crate::options::machine::MACHINE_FILE;
use crate::output::result;
use tandem_core::base::machine::{Class, Idle};
use tandem_core::cost::machine_file::{LaneFile, Quantile, RoundCost, Stalls};
use tandem_core::cost::{MachineFile, ProfileOptions};
use tandem_core::files::{Provenance, check_writable, this_machine, write_csv};
use tandem_core::index::Index;
use tandem_core::lab::{
    Estimates, GpuChoice, HostInfo, MachineSample, Multicore, Node, Processors, Wanted, measure_machine,
};
use tandem_core::query::{Mode, Query};
use tandem_core::search::cpu::Algorithm;
use tandem_report::machine::MachineSampleRow;
use tandem_report::table::Table;

/// Number of queries that keep lanes busy: short ones (AND) and long ones (OR).
const QUERIES: usize = 300;

/// The measurement of a machine.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MachineArguments {
    /// Measure the machine instead of the queries: the costs of serving beyond the queries' own service times. One file serves
    /// all workloads and policies of `simulate`, `capacity`, `validate` and others
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = MACHINE_FILE)]
    pub(super) machine: Option<PathBuf>,
    /// CSV file for the samples of --machine
    #[arg(long, value_name = "FILE", requires = "machine")]
    pub(super) samples: Option<PathBuf>,
}

/// Measures the machine, writes its file and prints it.
pub(super) fn run(
    arguments: &Arguments,
    path: &Path,
    index: &Arc<Index>,
    mut queries: Vec<Query>,
) -> Result<(), Failure> {
    queries.truncate(QUERIES);
    let file =
        measured(index, queries, arguments.settings.idle.unwrap_or_default(), arguments.machine.samples.as_deref())?;
    file.write(path)?;
    print(&file);
    result("machine", path.display().to_string());
    outln!("machine: {}", path.display());
    Ok(())
}

/// Checks that the files can be written.
pub(crate) fn check(arguments: &MachineArguments) -> Result<(), Failure> {
    for path in arguments.machine.iter().chain(&arguments.samples) {
        check_writable(path)?;
    }
    Ok(())
}

/// The file of this machine, whose lanes are kept busy with these queries.
fn measured(
    index: &Arc<Index>,
    queries: Vec<Query>,
    idle: Idle,
    samples: Option<&Path>,
) -> Result<MachineFile, Failure> {
    let host = HostInfo::detect();
    let gpus = host.gpus.min(1);
    let wanted = Wanted {
        algorithm: Algorithm::Auto,
        cpus: host.workers(gpus),
        multicore: Multicore::Inter,
        gpu: if gpus > 0 { GpuChoice::Real } else { GpuChoice::None },
        gpus,
        streams: 1,
    };
    let bars = Bars::default();
    let mut processors = Processors::open(wanted, index, None, &bars)?;
    let options = ProfileOptions { modes: vec![Mode::And, Mode::Or], repeats: 5, ..ProfileOptions::default() };
    let workload = processors.profile(&queries, index, &options, &bars)?;
    let gpu = processors.gpu_name();
    let mut node = Node::start(processors, "the machine's", workload, queries, index, &Estimates::Oracle)?;
    let provenance = Provenance::new().with_command_and_machine();
    let mut about: BTreeMap<String, String> =
        provenance.lines().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    about.insert(String::from("gpu"), gpu.unwrap_or_else(|| String::from("none")));
    about.insert(String::from("machine"), this_machine());
    let found = measure_machine(&mut node, idle, about, &bars)?;
    if let Some(path) = samples {
        write_csv(path, &provenance, found.samples.iter().map(row))?;
    }
    Ok(found.file)
}

fn row(sample: &MachineSample) -> MachineSampleRow {
    MachineSampleRow::of(sample)
}

/// The file in words and tables.
fn print(file: &MachineFile) {
    for (class, lanes) in &file.classes {
        print_lanes(*class, lanes);
    }
    let mut table = Table::new(["lanes", "dispatcher under", "round ns", "arrival ns", "batch ns", "answer ns"]);
    for point in &file.dispatcher.rounds {
        let named = point.policies.iter().map(|(name, cost)| (name.as_str(), cost));
        for (name, RoundCost { round_ns, arrival_ns, batch_ns, answer_ns }) in
            [("any", &point.any)].into_iter().chain(named)
        {
            let numbers = [round_ns, arrival_ns, batch_ns, answer_ns].map(|ns| format!("{ns:.0}"));
            table.row([point.lanes.to_string(), name.to_owned()].into_iter().chain(numbers));
        }
    }
    outln!("{table}");
    let Stalls { per_s, us } = &file.dispatcher.stalls;
    if *per_s > 0.0 {
        outln!("its core is taken away {per_s:.1} times a second; {}\n", stalls(us));
    }
}

fn print_lanes(class: Class, lanes: &LaneFile) {
    outln!(
        "{class}: in a stream {:.3} of what queries take alone; from one to the next {:.3}",
        lanes.stream,
        lanes.spacing
    );
    let mut table = Table::new(["in use", "times", "plus us"]);
    for point in &lanes.in_use {
        table.row([format!("{:.2}", point.share), format!("{:.3}", point.times), format!("{:.2}", point.plus_us)]);
    }
    outln!("{table}");
    let mut table = Table::new(["idle us", "hand over us", "times"]);
    for after in &lanes.after_idle {
        table.row([
            format!("{:.1}", after.idle_us),
            format!("{:.2}", after.hand_over_us),
            format!("{:.3}", after.times),
        ]);
    }
    outln!("{table}");
    let crowding: Vec<String> =
        lanes.crowding.iter().map(|point| format!("{} {:.3}", point.busy, point.times)).collect();
    outln!("hand back {:.2} us; by busy lanes, times that of one: {}", lanes.hand_back_us, crowding.join(", "));
    for (other, times) in &lanes.beside {
        outln!("while {other} lanes work: {times:.3} times");
    }
    let shares = |points: &[Quantile]| -> String {
        let points = points.iter().map(|point| format!("{:.0} % {:.2}", 100.0 * point.share, point.value));
        points.collect::<Vec<_>>().join(", ")
    };
    outln!("speed of a core, for {:.1} ms at a time: {}", lanes.speed_lasts_ms, shares(&lanes.speeds));
    outln!("one and the same query varies: {}", shares(&lanes.noise));
    outln!("stalls: {:.0} a second; {}\n", lanes.stalls.per_s, stalls(&lanes.stalls.us));
}

/// How long stalls last, in words.
fn stalls(us: &[Quantile]) -> String {
    let points = us.iter().map(|point| format!("{:.1} % {:.0} us", 100.0 * point.share, point.value));
    points.collect::<Vec<_>>().join(", ")
}
