//! `tandem profile --machine`: the costs of serving on this machine beyond the queries' own service times.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tandem_drive::lab::{GpuChoice, HostInfo, Multicore, Node, Processors, Wanted, measure_machine};
use tandem_drive::profile::ProfileOptions;
use tandem_engine::index::Index;
use tandem_engine::query::Query;
use tandem_engine::search::cpu::Algorithm;
use tandem_model::base::machine::{Class, Idle};
use tandem_model::cost::machine_profile::{LaneProfile, Power, Slowdown, Spread};
use tandem_model::cost::{Decisions, MachineProfile};
use tandem_model::files::{Provenance, this_machine};
use tandem_model::study::{Estimates, about_queries};
use tandem_model::traffic::Mode;

use super::Arguments;
use crate::defaults::Bars;
use crate::failure::Failure;
use crate::options::machine::MACHINE_PROFILE;
use crate::output::result;
use tandem_report::table::Table;

/// Number of queries that keep lanes busy. Fewer would stay in the caches of cores.
const QUERIES: usize = 1000;

/// The measurement of a machine.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MachineArguments {
    /// Measure the machine instead of the queries, in a minute: the costs of serving beyond the queries' own service times.
    /// `simulate`, `capacity` and `validate` take the file
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = MACHINE_PROFILE)]
    pub(super) machine: Option<PathBuf>,
}

/// Measures the machine, writes its profile and prints a summary.
pub(super) fn run(
    arguments: &Arguments,
    path: &Path,
    index: &Arc<Index>,
    mut queries: Vec<Query>,
) -> Result<(), Failure> {
    queries.truncate(QUERIES);
    let profile = measured(index, queries, &arguments.mode, arguments.settings.idle.unwrap_or_default())?;
    profile.write(path)?;
    print(&profile);
    result("machine", path.display().to_string());
    outln!("machine: {}", path.display());
    Ok(())
}

/// The profile of this machine, whose lanes are kept busy with these queries.
fn measured(index: &Arc<Index>, queries: Vec<Query>, modes: &[Mode], idle: Idle) -> Result<MachineProfile, Failure> {
    let bars = Bars::default();
    let (mut node, gpu) = start_node(index, queries, modes, &bars)?;
    let provenance = Provenance::new().with_command_and_machine();
    let mut about: BTreeMap<String, String> =
        provenance.lines().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    about.insert(String::from("gpu"), gpu.unwrap_or_else(|| String::from("none")));
    about.insert(String::from("machine"), this_machine());
    about.extend(about_queries(node.workload()));
    Ok(measure_machine(&mut node, idle, about, &bars)?)
}

/// The numbers of CPU lanes and GPU lanes that are measured: all, but one GPU at most.
fn lanes_of_this_machine() -> (usize, usize) {
    let host = HostInfo::detect();
    let gpus = host.gpus.min(1);
    (host.workers(gpus), gpus)
}

/// All processors of this machine, but one GPU at most, with the measured times of these queries, and the GPU's name.
pub(crate) fn start_node(
    index: &Arc<Index>,
    queries: Vec<Query>,
    modes: &[Mode],
    bars: &Bars,
) -> Result<(Node, Option<String>), Failure> {
    let (cpus, gpus) = lanes_of_this_machine();
    let wanted = Wanted {
        algorithm: Algorithm::Auto,
        cpus,
        multicore: Multicore::Inter,
        gpu: if gpus > 0 { GpuChoice::Real } else { GpuChoice::None },
        gpus,
        streams: 1,
    };
    let mut processors = Processors::open(wanted, index, None, bars)?;
    let modes = Mode::ALL.into_iter().filter(|mode| modes.contains(mode)).collect();
    let options = ProfileOptions { modes, repeats: 3, ..ProfileOptions::default() };
    let workload = processors.profile(&queries, index, &options, bars)?;
    let gpu = processors.gpu_name();
    let node = Node::start(processors, "the machine's", workload, queries, index, &Estimates::Oracle)?;
    Ok((node, gpu))
}

/// A summary of the profile in tables.
fn print(profile: &MachineProfile) {
    for (class, lanes) in &profile.classes {
        print_lanes(*class, lanes);
    }
    let mut table = Table::new(["dispatcher's policy", "round ns", "arrival ns", "batch ns", "answer ns"]);
    let named = profile.dispatcher.policies.iter().map(|(name, costs)| (name.as_str(), costs));
    for (name, &Decisions { round, arrival, batch, answer }) in
        [("any", &profile.dispatcher.any)].into_iter().chain(named)
    {
        table.row([name.to_owned()].into_iter().chain([round, arrival, batch, answer].map(|time| time.0.to_string())));
    }
    outln!("{table}");
}

fn print_lanes(class: Class, lanes: &LaneProfile) {
    let LaneProfile { each_us, hand_over_us, hand_back_us, after_idle, beside, slowdown, power } = lanes;
    outln!(
        "{class}: {each_us:.2} us per query at any length; work begins {hand_over_us:.2} us after its start, and its end is noticed \
         after {hand_back_us:.2} us"
    );
    let idle: Vec<String> = after_idle.iter().map(|(us, times)| format!("{times:.3} after {us:.0} us")).collect();
    outln!("factor on a query after an idle time: {}", idle.join(", "));
    let mut table = Table::new(["queries", "busy lanes", "time", "spread", "device time", "spacing"]);
    for Slowdown { queries, busy, work, device, spacing, spread, .. } in slowdown {
        let on_device = if *queries > 1 { format!("{device:.3}") } else { String::from("-") };
        let spread = match spread {
            Spread::Deviation(deviation) => format!("{:.1} %", 100.0 * deviation),
            Spread::Factors(_) => String::from("as seen"),
        };
        let (work, spacing) = (format!("{work:.3}"), format!("{spacing:.3}"));
        table.row([queries.to_string(), busy.to_string(), work, spread, on_device, spacing]);
    }
    outln!("{table}times: measured over predicted; spacing: time between two ends over the longer of both times\n");
    if let Some(Power { idle_watts, busy_watts, query_mj: _ }) = power {
        let busy = busy_watts.iter().map(|(queries, watts)| format!(", {watts:.0} W in batches of {queries}"));
        outln!("power of a device: {idle_watts:.0} W idle{}\n", busy.collect::<String>());
    }
    for (other, beside) in beside {
        outln!(
            "with {} busy {other} lanes: {:.3} times the time, {:.3} times the device time\n",
            beside.lanes,
            beside.work,
            beside.device
        );
    }
}
