//! `--set KEY=VALUE`: rare tuning. `tandem help settings` prints all keys.
//!
//! [`Settings`] is the table of keys: one field each, with its meaning, the type that it parses to, its default, and as its
//! heading the commands that read it. What most users of a command need is an option; the rest are settings.

use std::ops::Deref;
use std::path::PathBuf;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser};
use tandem_drive::lab::Multicore;
use tandem_engine::search::cpu::Algorithm;
use tandem_model::base::machine::{FaultPlan, Idle};
use tandem_model::cost::{SpeedUp, Workload};
use tandem_model::sched::{PolicyOptions, Shed, StealGuard};
use tandem_model::sim::ShardCosts;
use tandem_model::traffic::Burstiness;

use super::output::say;
use crate::failure::Failure;
use crate::options::lists::{shard_costs, speed_up, watchdog_ms};
use crate::options::names::choice;

// Headings of settings: the commands that read them.
const POLICIES: &str = "Settings of capacity, simulate, sweep, live, validate";
const ARRIVALS: &str = "Settings of trace, capacity, simulate, sweep, live";
const CLUSTERS: &str = "Settings of simulate, sweep";
const FAULTS: &str = "Settings of simulate, live";
const GPU_MEMORY: &str = "Settings of capacity, search, profile, live, validate";
const IDLE: &str = "Settings of profile, live";
const DRIVEN: &str = "Settings of capacity, live, validate";
const LIVE: &str = "Settings of live";
const RECORD: &str = "Settings of capacity, validate";
const RECORDED: &str = "Settings of validate";

/// The values of all settings. Each command reads its own.
#[derive(Clone, Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, help_template = "{all-args}")]
pub(super) struct Settings {
    /// stealing: a query waits for one class of processors if its predicted cost there is lower by this factor
    #[arg(long, help_heading = POLICIES, value_name = "RATIO", default_value_t = PolicyOptions::default().threshold_ratio)]
    pub(super) threshold_ratio: f64,
    /// stealing: a query that has waited this share of the time to its deadline runs next on its preferred class
    #[arg(long, help_heading = POLICIES, value_name = "SHARE", default_value_t = PolicyOptions::default().urgent_share)]
    pub(super) urgent_share: f64,
    /// stealing: weight of the predicted cost in the order of a queue; 0 ignores it
    #[arg(long, help_heading = POLICIES, value_name = "WEIGHT", default_value_t = PolicyOptions::default().cost_weight)]
    pub(super) cost_weight: f64,
    /// stealing: weight of the deadline in the order of a queue
    #[arg(long, help_heading = POLICIES, value_name = "WEIGHT", default_value_t = PolicyOptions::default().deadline_weight)]
    pub(super) deadline_weight: f64,
    /// stealing: weight of the time that a query gains on this class against the other one
    #[arg(long, help_heading = POLICIES, value_name = "WEIGHT", default_value_t = PolicyOptions::default().affinity_weight)]
    pub(super) affinity_weight: f64,
    /// stealing: condition under which an idle processor steals
    #[arg(long, help_heading = POLICIES, value_name = "GUARD", value_parser = choice::<StealGuard>(), default_value = PolicyOptions::default().steal_guard.name())]
    pub(super) steal_guard: StealGuard,
    /// Policies with batches: the largest number of queries in a batch
    #[arg(long, help_heading = POLICIES, value_name = "N", default_value_t = PolicyOptions::default().batch_limit)]
    pub(super) batch_limit: u32,
    /// Policies with batches: the longest duration of a batch, as a share of the time to its queries' deadlines
    #[arg(long, help_heading = POLICIES, value_name = "SHARE", default_value_t = PolicyOptions::default().batch_share)]
    pub(super) batch_share: f64,
    /// window: a batch closes when its oldest query has waited this long, in microseconds
    #[arg(long, help_heading = POLICIES, value_name = "US", default_value_t = PolicyOptions::default().window_us)]
    pub(super) window_us: f64,
    /// window: a batch closes when it holds this many queries
    #[arg(long, help_heading = POLICIES, value_name = "N", default_value_t = PolicyOptions::default().window_queries)]
    pub(super) window_queries: u32,
    /// length-based: queries whose lists have fewer blocks of 128 postings go to GPUs [default: estimated so that both sides
    /// are equally loaded]
    #[arg(long, help_heading = POLICIES, value_name = "BLOCKS")]
    pub(super) length_threshold: Option<u32>,
    /// cached-first: queries that may wait per CPU worker before GPUs take some of them
    #[arg(long, help_heading = POLICIES, value_name = "N", default_value_t = PolicyOptions::default().patience)]
    pub(super) patience: u32,
    /// Assumed speed-up of a query on 1, 2, 3... CPU workers, separated by commas, for policies that run a query on several
    /// [default: that of the workload, which `profile --speed-up` measures]
    #[arg(long, help_heading = POLICIES, value_name = "LIST", value_parser = speed_up)]
    pub(super) speed_up: Option<SpeedUp>,
    /// Queries that are dropped when a processor would start them; objectives count them as late
    #[arg(long, help_heading = POLICIES, value_name = "WHICH", value_parser = choice::<Shed>(), default_value = PolicyOptions::default().shed.name())]
    pub(super) shed: Shed,
    /// --arrivals bursty: mean length of a burst in seconds
    #[arg(long, help_heading = ARRIVALS, value_name = "S", default_value_t = Burstiness::default().seconds())]
    pub(super) burst_s: f64,
    /// --arrivals bursty: the rate in bursts divided by the rate between bursts
    #[arg(long, help_heading = ARRIVALS, value_name = "RATIO", default_value_t = Burstiness::default().ratio())]
    pub(super) burst_ratio: f64,
    /// --arrivals bursty: the share of the time within bursts
    #[arg(long, help_heading = ARRIVALS, value_name = "SHARE", default_value_t = Burstiness::default().share())]
    pub(super) burst_share: f64,
    /// Cost of a query on other shards: `alike=S`, the measured cost times a lognormal factor with a standard deviation of S
    /// in its logarithm; or `independent`, the cost of another query
    #[arg(long, help_heading = CLUSTERS, value_name = "WHAT", default_value = "alike=0.1", value_parser = shard_costs)]
    pub(super) shard_costs: ShardCosts,
    /// Longest time of a batch in milliseconds; after it a spare CPU replaces the lane
    #[arg(long, help_heading = FAULTS, value_name = "MS", default_value_t = FaultPlan::WATCHDOG.as_ms(), value_parser = watchdog_ms)]
    pub(super) watchdog_ms: f64,
    /// --gpu-memory: query log that determines the most read parts of lists [default: the queries themselves]
    #[arg(long, help_heading = GPU_MEMORY, value_name = "FILE")]
    pub(super) gpu_memory_log: Option<PathBuf>,
    /// Drive more CPU workers than this machine has cores
    #[arg(long, help_heading = DRIVEN, value_name = "BOOL", action = ArgAction::Set, default_value_t = false)]
    pub(super) force: bool,
    /// --record: whether a constant of this program is fitted to these runs
    #[arg(long, help_heading = RECORD, value_name = "BOOL", action = ArgAction::Set, default_value_t = false)]
    pub(super) fitted: bool,
    /// --recorded: accept the errors of today, so that later ones are compared with them
    #[arg(long, help_heading = RECORDED, value_name = "BOOL", action = ArgAction::Set, default_value_t = false)]
    pub(super) accept: bool,
    /// --recorded: predict without these numbers of the machine profile, each in turn, and count what gets worse: `all`, or some of
    /// each, hand-off, after-idle, busy-lanes, batch-sizes, beside, spread, device, prepared, spacing, dispatcher, policies
    #[arg(long, help_heading = RECORDED, value_name = "NUMBERS", value_delimiter = ',')]
    pub(super) without: Vec<String>,
    /// Waiting of lanes and the driver between queries [default: as in the machine profile; without one, and for
    /// `profile --machine`, spin]
    #[arg(long, help_heading = IDLE, value_name = "HOW", value_parser = choice::<Idle>())]
    pub(super) idle: Option<Idle>,
    /// Streams of each GPU, which answer queries concurrently
    #[arg(long, help_heading = LIVE, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) streams: u16,
    /// Algorithm by which the CPU finds the best documents with any of the terms; all give the same result
    #[arg(long, help_heading = LIVE, value_name = "NAME", value_parser = choice::<Algorithm>(), default_value = Algorithm::Auto.name())]
    pub(super) algorithm: Algorithm,
    /// How CPU workers share queries
    #[arg(long, help_heading = LIVE, value_name = "METHOD", value_parser = choice::<Multicore>(), default_value = Multicore::Inter.name())]
    pub(super) multicore: Multicore,
    /// Lanes wait for the predicted time of each batch instead of searching: scheduling is real, query costs are known
    #[arg(long, help_heading = LIVE, value_name = "BOOL", action = ArgAction::Set, default_value_t = false)]
    pub(super) time_warp: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self::parse_from(std::iter::empty::<&str>())
    }
}

impl Settings {
    /// The assumed speed-up, as the head of a file names it.
    pub(super) fn assumed_speed_up(&self) -> Option<String> {
        let by_lanes = &self.speed_up.as_ref()?.sizes.first()?.by_lanes;
        let listed: Vec<String> = by_lanes.iter().map(ToString::to_string).collect();
        Some(format!("assumed for queries of all sizes: {}", listed.join(", ")))
    }

    /// The workload with the assumed speed-up, if there is one.
    pub(super) fn with_speed_up(&self, workload: Workload) -> Workload {
        let speed_up = self.speed_up.clone().or(workload.speed_up);
        Workload { speed_up, ..workload }
    }

    /// The bursts of `--arrivals bursty`.
    pub(super) fn burstiness(&self) -> Result<Burstiness, Failure> {
        let &Self { burst_s, burst_ratio, burst_share, .. } = self;
        if !(burst_s > 0.0 && burst_s <= MAX_BURST_S) {
            return Err(Failure::setting("burst-s", burst_s, &format!("above 0, at most {MAX_BURST_S}")));
        }
        if !(1.0..=MAX_BURST_RATIO).contains(&burst_ratio) {
            return Err(Failure::setting("burst-ratio", burst_ratio, &format!("1 to {MAX_BURST_RATIO}")));
        }
        Burstiness::new(burst_ratio, burst_share, burst_s)
            .ok_or_else(|| Failure::setting("burst-share", burst_share, "between 0 and 1"))
    }
}

/// The longest mean length of bursts: a day.
const MAX_BURST_S: f64 = 86_400.0;
/// The largest ratio of rates in and between bursts.
const MAX_BURST_RATIO: f64 = 1e6;

/// Removed options with their replacements. The key of a setting is its former option, too.
const GONE: [(&str, &str); 2] = [("--p99", "--objective p99"), ("--miss-share", "--objective miss-share=X")];

/// The settings of one command: `--set`, once for each key.
#[derive(Clone, Debug)]
pub(super) struct SetArguments(Settings);

impl Deref for SetArguments {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.0
    }
}

impl Args for SetArguments {
    fn augment_args(command: clap::Command) -> clap::Command {
        let name = command.get_name().to_owned();
        command.arg(
            Arg::new("set")
                .long("set")
                .value_name("KEY=VALUE")
                .action(ArgAction::Append)
                .value_parser(move |text: &str| checked(&name, text))
                .help("Rare tuning, once per key; `tandem help settings` lists keys, meanings and defaults"),
        )
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SetArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = matches.get_many::<String>("set").into_iter().flatten();
        let fault = |what: String| clap::Error::raw(ErrorKind::ArgumentConflict, format!("{what}\n"));
        // Each was checked alone, so that only repeated keys are left to find.
        let settings = Settings::try_parse_from(given).map_err(|e| fault(format!("--set: {}", reason(&e))))?;
        if settings.gpu_memory_log.is_some() && !matches.contains_id("gpu_memory") {
            return Err(fault(String::from("--set gpu-memory-log: needs --gpu-memory BYTES")));
        }
        Ok(Self(settings))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The table, in which a value follows its key.
fn table() -> clap::Command {
    Settings::command().mut_args(|setting| setting.require_equals(true))
}

/// The commands that read a setting, between commas.
fn readers(setting: &Arg) -> &str {
    setting.get_help_heading().and_then(|heading| heading.strip_prefix("Settings of ")).unwrap_or_default()
}

/// One `KEY=VALUE` of a command, as an argument of [`Settings`].
fn checked(command: &str, text: &str) -> Result<String, String> {
    let table = table();
    let key = text.split('=').next().unwrap_or_default();
    let reads = |setting: &&Arg| readers(setting).split(", ").any(|reader| reader == command);
    let likeness = |setting: &&Arg| setting.get_long().map_or(0.0, |long| strsim::jaro_winkler(key, long));
    let Some(setting) = table.get_arguments().find(|setting| setting.get_long() == Some(key)) else {
        let nearest = table.get_arguments().filter(reads).max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        let nearest = nearest.and_then(Arg::get_long).unwrap_or_default();
        return Err(format!("{command} has no setting {key:?}, the nearest is {nearest} (see `tandem help settings`)"));
    };
    if !reads(&setting) {
        return Err(format!("{command} does not read {key}: {} do (see `tandem help settings`)", readers(setting)));
    }
    let argument = format!("--{text}");
    let fault = |e: clap::Error| format!("{key}: {} (see `tandem help settings`)", reason(&e));
    table.try_get_matches_from([&argument]).map(|_| argument.clone()).map_err(fault)
}

/// The fault of a value, without clap's words about options.
fn reason(e: &clap::Error) -> String {
    match (e.get(ContextKind::ValidValue), std::error::Error::source(e)) {
        (Some(ContextValue::Strings(values)), _) if !values.is_empty() => format!("expected {}", values.join(" or ")),
        (_, Some(why)) => why.to_string(),
        _ if e.kind() == ErrorKind::ArgumentConflict => String::from("a key is given twice"),
        _ => String::from("expected KEY=VALUE"),
    }
}

/// The error, or for a former option the way to write it now.
pub(super) fn explained(e: clap::Error) -> clap::Error {
    let Some(ContextValue::String(option)) = e.get(ContextKind::InvalidArg) else { return e };
    if e.kind() != ErrorKind::UnknownArgument {
        return e;
    }
    let table = Settings::command();
    let now = match GONE.iter().find(|(gone, _)| gone == option) {
        Some((_, now)) => (*now).to_owned(),
        None => {
            let key = option.strip_prefix("--");
            let setting = table.get_arguments().find(|setting| key.is_some() && setting.get_long() == key);
            let Some((key, setting)) = key.zip(setting) else { return e };
            format!("--set {key}=VALUE, a setting of {} (see `tandem help settings`)", readers(setting))
        }
    };
    clap::Error::raw(ErrorKind::UnknownArgument, format!("{option} is no option: it is now {now}\n"))
}

/// List the keys of --set: what each means, its default, and the commands that read it.
#[derive(Debug, clap::Args)]
#[command(after_help = listing())]
pub(super) struct Arguments {}

pub(super) fn run(_: &Arguments) -> Result<(), Failure> {
    say(&listing().to_string())
}

/// All settings by the commands that read them.
fn listing() -> StyledStr {
    let options = table().term_width(78).render_long_help().to_string();
    options.replace("      --", "  --set ").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_reader_a_unit_and_a_meaning() {
        let table = table();
        let settings: Vec<&Arg> = table.get_arguments().collect();
        assert!((1..=30).contains(&settings.len()), "{} settings", settings.len());
        let commands = crate::command();
        for setting in settings {
            assert!(setting.get_help().is_some() && setting.get_value_names().is_some(), "{setting}");
            for reader in readers(setting).split(", ") {
                let command = commands.find_subcommand(reader).unwrap_or_else(|| panic!("{setting}: no {reader}"));
                assert!(command.get_arguments().any(|option| option.get_id() == "set"), "{reader} has no --set");
            }
        }
    }

    #[test]
    fn what_is_wrong_with_a_setting_names_a_key_and_the_help() {
        for (command, text, expected) in [
            ("simulate", "batch-limt=3", "simulate has no setting \"batch-limt\", the nearest is batch-limit"),
            ("live", "", "live has no setting \"\", the nearest is "),
            ("live", "shard-costs=independent", "live does not read shard-costs: simulate, sweep do"),
            ("search", "patience=1", "search does not read patience: "),
            ("simulate", "patience=x", "patience: invalid digit found in string"),
            ("simulate", "patience", "patience: expected KEY=VALUE"),
            ("simulate", "patience=", "patience: "),
            ("simulate", "shed=early", "shed: expected nothing or late"),
            ("sweep", "shard-costs=alike=-1", "shard-costs: \"alike=-1\", expected independent, or alike=S"),
            ("live", "watchdog-ms=NaN", "watchdog-ms: expected 1 to 600000"),
            ("live", "time-warp=maybe", "time-warp: expected true or false"),
        ] {
            let message = checked(command, text).unwrap_err();
            assert!(message.starts_with(expected) && message.contains("`tandem help settings`"), "{text}: {message}");
        }
        assert_eq!(checked("sweep", "shard-costs=independent").unwrap(), "--shard-costs=independent");
        assert_eq!(checked("live", "cost-weight=-1").unwrap(), "--cost-weight=-1");
    }
}
