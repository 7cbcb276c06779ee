//! `tandem recalibrate`: scales a model by the service times of live runs.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::json;

use super::Failure;
use super::output::result;
use tandem_core::base::ids::QueryId;
use tandem_core::cost::{ModelFile, Recalibration, Served, WorkloadRow, recalibrate};
use tandem_core::files::{Provenance, check_writable};
use tandem_core::lab::named_workload;
use tandem_core::query::Mode;
use tandem_core::sched::{LogRow, RunLog};
use tandem_report::table::Table;

/// Scale a model by the service times in the log of a live run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tandem recalibrate mine.json out/live/log.csv --workload mine.workload.csv")]
pub(super) struct Arguments {
    /// Model file to scale
    model: PathBuf,
    /// Logs of live runs: `log.csv` of `tandem live --log`
    #[arg(required = true)]
    logs: Vec<PathBuf>,
    /// Workload that was driven: a file, or the name of a shipped workload
    #[arg(long, value_name = "FILE")]
    workload: Option<String>,
    /// Model file to write
    #[arg(short, long, value_name = "FILE", default_value = "out/model.json")]
    out: PathBuf,
}

/// Multiple of the cross-validation error above which a new profile is advised.
const WORSE: f64 = 1.5;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check_writable(&arguments.out)?;
    let models = ModelFile::read(&arguments.model)?;
    let (name, workload) = named_workload(arguments.workload.as_deref())?;
    let rows: HashMap<QueryId, &WorkloadRow> = workload.rows.iter().map(|row| (row.query_id, row)).collect();
    let (mut served, mut warnings) = (Vec::new(), Vec::new());
    let (mut num_rows, mut unknown) = (0, 0);
    for path in &arguments.logs {
        let (log, head) = RunLog::read(path)?;
        let asked: Option<Mode> =
            head.get("mode").and_then(|name| Mode::ALL.into_iter().find(|mode| mode.name() == name));
        let of_log = head.lines().filter(|(key, _)| *key == "warning");
        warnings.extend(of_log.map(|(_, warning)| format!("{}: {warning}", path.display())));
        num_rows += log.rows.len();
        for row in alone(&log) {
            let Some(query) = rows.get(&row.query) else {
                unknown += 1;
                continue;
            };
            // Ids identify queries within one workload only.
            if let Some(asked) = asked.filter(|&asked| asked != query.mode) {
                let message = format!(
                    "{}: its queries were asked in mode {asked}, and query {} of {name} in mode {}: name the workload that was \
                     driven (--workload, of `live` too)",
                    path.display(),
                    row.query,
                    query.mode
                );
                return Err(Failure::input(message));
            }
            let us = row.finished.since(row.started).as_us();
            if us > 0.0 {
                served.push(Served { kind: row.class, mode: query.mode, inputs: query.inputs(), us });
            }
        }
    }
    if unknown > 0 {
        let message =
            format!("{unknown} queries of the logs are not in {name}: name the workload that was driven (--workload)");
        return Err(Failure::input(message));
    }
    let (mut scaled, found) = recalibrate(&models, &served);
    if found.is_empty() {
        let message = format!(
            "{} of {num_rows} queries were served alone on processors and in modes of which {} has models: fewer than 30 \
             of each tell nothing",
            served.len(),
            arguments.model.display(),
        );
        return Err(Failure::input(message));
    }
    if let Some(command) = Provenance::new().with_command_and_machine().get("command") {
        scaled.provenance.insert("recalibrated".to_owned(), command.to_owned());
    }
    scaled.write(&arguments.out)?;
    outln!("{} of {num_rows} queries were served alone and count\n", served.len());
    outln!("{}", table(&found));
    notes(&found, &models);
    // What other processes took is in the times of the queries, and from now on in the model.
    warnings.iter().for_each(|warning| outln!("warning: {warning}"));
    give(&found);
    outln!("models: {}", arguments.out.display());
    Ok(())
}

/// The rows of queries that ran alone, in order of arrival. Queries that ran twice are left out, because they took longer.
fn alone(log: &RunLog) -> impl Iterator<Item = &LogRow> {
    let mut sizes: HashMap<u32, u32> = HashMap::new();
    for row in &log.rows {
        *sizes.entry(row.batch).or_default() += 1;
    }
    log.rows.iter().filter(move |row| sizes[&row.batch] == 1 && !row.again)
}

fn table(found: &[Recalibration]) -> Table {
    let mut table = Table::grouped([
        ("", &["kind", "mode", "queries"][..]),
        ("estimates times", &["factor", "from", "to"]),
        ("error, %", &["before", "after"]),
    ]);
    for one in found {
        table.row([
            one.kind.to_string(),
            one.mode.to_string(),
            one.queries.to_string(),
            format!("{:.3}", one.factor),
            format!("{:.3}", one.interval.low),
            format!("{:.3}", one.interval.high),
            format!("{:.1}", 100.0 * one.error_before),
            format!("{:.1}", 100.0 * one.error_after),
        ]);
    }
    table
}

/// Notes below the table: drift during the logs, and models whose error a factor does not reduce.
fn notes(found: &[Recalibration], models: &ModelFile) {
    for one in found {
        if let Some((first, last)) = one.drift {
            outln!(
                "{}, {}: costs drift: at first queries took {first:.2} times the estimate, at last {last:.2} times",
                one.kind,
                one.mode,
            );
        }
        let evaluation = models.model(one.kind, one.mode).and_then(|model| model.evaluation.as_ref());
        if let Some(evaluation) = evaluation
            && one.error_after > WORSE * evaluation.mean_relative_error
        {
            outln!(
                "{}, {}: {:.0} % of error are left where the profile's queries had {:.0} %: profile again, and train",
                one.kind,
                one.mode,
                100.0 * one.error_after,
                100.0 * evaluation.mean_relative_error,
            );
        }
    }
}

fn give(found: &[Recalibration]) {
    let row = |one: &Recalibration| {
        json!({
            "kind": one.kind,
            "mode": one.mode.name(),
            "queries": one.queries,
            "factor": one.factor,
            "factor_low": one.interval.low,
            "factor_high": one.interval.high,
            "error_before": one.error_before,
            "error_after": one.error_after,
            "drift": one.drift,
        })
    };
    result("recalibrated", found.iter().map(row).collect::<Vec<_>>());
}
