//! `tandem trace`: draws arrivals of the queries of a workload.

use std::path::PathBuf;

use serde_json::json;
use tandem_model::base::ids::QueryId;
use tandem_model::files::{Provenance, check_writable};
use tandem_model::traffic::{Mode, Trace, TraceSummary};

use super::origin;
use super::output::result;
use super::settings::SetArguments;
use crate::failure::Failure;
use crate::options::arrivals::{ProcessArguments, own_rate};
use crate::options::lists::parse_rate;
use crate::options::names::choice;

/// Draw random arrivals of queries, and write them to a trace file.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tandem trace --arrivals bursty --rate 500 -o bursts.trace.csv\n  tandem simulate --trace bursts.trace.csv"
)]
pub(super) struct Arguments {
    /// Workload whose queries arrive: a file, or the name of a shipped workload [default: the shipped Wikipedia slice]
    #[arg(long, value_name = "FILE", conflicts_with = "ids")]
    workload: Option<String>,
    /// How the terms of a query combine; selects rows of the workload [default: its only mode, else or]
    #[arg(long, value_parser = choice::<Mode>(), conflicts_with = "ids")]
    mode: Option<Mode>,
    /// Draw from the query ids 0 to M - 1 instead of a workload
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..))]
    ids: Option<u32>,
    /// Mean rate in queries per second [default: 100, or the rate of a recording that is played in real time]
    #[arg(long, value_name = "R")]
    rate: Option<String>,
    /// Number of arrivals
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=100_000_000)
    )]
    num_queries: u32,
    /// Seed of arrivals and queries
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    process: ProcessArguments,
    #[command(flatten)]
    settings: SetArguments,
    /// Trace file to write
    #[arg(short, long, value_name = "FILE", default_value = "out/arrivals.trace.csv")]
    out: PathBuf,
}

/// The default mean rate.
const DEFAULT_RATE_QPS: f64 = 100.0;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let asked = arguments.rate.as_deref().map(parse_rate).transpose();
    let asked = asked.map_err(|what| Failure::input(format!("--rate: {what}")))?;
    let process = arguments.process.process(&arguments.settings)?;
    let rate_qps = own_rate(&process, asked.as_ref().map(std::slice::from_ref))?.or(asked).unwrap_or(DEFAULT_RATE_QPS);
    check_writable(&arguments.out)?;
    let (source, ids) = queries(arguments)?;
    let mut trace = Trace::draw(&ids, &process, rate_qps, arguments.seed, arguments.num_queries as usize);
    trace.provenance = Provenance::new()
        .with_command_and_machine()
        .with("seed", arguments.seed)
        .with("rate_qps", rate_qps)
        .with("arrivals", arguments.process.named(&process))
        .with("queries", format!("{} of {source}", ids.len()));
    trace.write(&arguments.out)?;

    let summary = TraceSummary::of(&trace);
    outln!(
        "arrivals          {:>12}  {}, seed {}",
        summary.arrivals,
        arguments.process.named(&process),
        arguments.seed
    );
    let note = arguments.process.note(&process, &[rate_qps]);
    let caveat = arguments.process.caveat(&process, &[rate_qps]).map(|caveat| format!("warning: {caveat}"));
    note.into_iter().chain(caveat).for_each(|note| errln!("{note}"));
    outln!("queries           {:>12}  of {source}", ids.len());
    outln!("span              {:>12.3}  s", summary.span.as_secs());
    let is_far = (summary.rate_qps / rate_qps - 1.0).abs() > 0.05;
    let reason = if is_far { " (few bursts or arrivals; more of them come closer)" } else { "" };
    outln!("mean rate         {:>12.3}  q/s, {rate_qps} asked{reason}", summary.rate_qps);
    let gaps = "squared coefficient of variation (Poisson: 1)";
    outln!("gaps              {:>12}  {gaps}", decimals(summary.gap_variation));
    let counts = "variance over mean (Poisson: 1)";
    outln!("arrivals per s    {:>12}  {counts}", decimals(summary.count_dispersion));
    outln!("busiest second    {:>12}  arrivals", summary.busiest_second);
    outln!("trace             {}", arguments.out.display());
    let found = json!({
        "path": arguments.out.display().to_string(),
        "arrivals": summary.arrivals,
        "queries": ids.len(),
        "seed": arguments.seed,
        "span_s": summary.span.as_secs(),
        "asked_rate_qps": rate_qps,
        "mean_rate_qps": summary.rate_qps,
        "gap_variation": summary.gap_variation,
        "count_dispersion": summary.count_dispersion,
        "busiest_second_arrivals": summary.busiest_second,
    });
    result("trace", found);
    Ok(())
}

/// The source of query ids, and the ids.
fn queries(arguments: &Arguments) -> Result<(String, Vec<QueryId>), Failure> {
    if let Some(count) = arguments.ids {
        return Ok((format!("ids 0 to {}", count - 1), (0..count).map(QueryId).collect()));
    }
    let (name, workload) = origin::workload_in(arguments.workload.as_deref(), arguments.mode)?;
    Ok((format!("{name}, mode {}", workload.mode()), workload.rows.iter().map(|row| row.query_id).collect()))
}

/// Three decimals, or a dash if there are too few arrivals.
fn decimals(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}
