//! How many queries cores answer while others index: measured for several splits of the cores, beside the straight line between
//! all cores answering and all cores indexing.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Arguments, Measurement, input};
use crate::build::BuildOptions;
use crate::cli::output::result_file;
use crate::cli::{Failure, defaults, interrupts};
use crate::corpus::{Tokenizer, Words};
use crate::files::{Digits, Provenance, Record, write_csv};
use crate::index::Bm25;
use crate::measure::{SharedCores, SharedWork, share_cores};
use crate::query::Mode;
use crate::report::plot::{LineChart, Point, Series, Stroke};
use crate::report::table::Table;

const K: usize = 10;
const MODE: Mode = Mode::Or;
/// A split takes so long, and until its last build is done.
const TIME: Duration = Duration::from_secs(2);
/// Splits of the cores beside all for queries, at most.
const SPLITS: usize = 8;

/// A line of `ingest.csv`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct IngestRow {
    ingest_threads: usize,
    query_threads: usize,
    /// Text indexed a second, measured, and as many threads' share of what all of them index alone.
    ingest_mb_per_s: Digits<6>,
    predicted_ingest_mb_per_s: Digits<6>,
    /// Queries answered a second, measured, and as many threads' share of what all of them answer alone.
    measured_qps: Digits<6>,
    predicted_qps: Digits<6>,
}

impl Record for IngestRow {}

pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    if arguments.ingest.is_empty() {
        return Err(Failure::input("--what ingest: what is to be indexed? name text: --ingest FILE"));
    }
    let (index, queries) = input(arguments)?;
    interrupts::catch();
    let build = |threads| {
        let tokenizer = Tokenizer::new(Words::Unicode);
        BuildOptions { tokenizer, bm25: Bm25::default(), threads, memory_bytes: None }
    };
    std::fs::create_dir_all(&arguments.out)?;
    let scratch = tempfile::tempdir_in(&arguments.out)?;
    let work = SharedWork {
        index: &index,
        queries: &queries,
        mode: MODE,
        k: K,
        text: &arguments.ingest,
        build: &build,
        scratch: scratch.path(),
        time: TIME,
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut splits: Vec<usize> = (0..=SPLITS).map(|split| split * threads / SPLITS).collect();
    splits.dedup();
    let bar = defaults::progress("splits of the cores", splits.len() as u64);
    let mut measured = Vec::new();
    for ingest_threads in splits {
        measured.push(share_cores(&work, threads - ingest_threads, ingest_threads)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let rows = rows(&measured);
    let csv = arguments.out.join("ingest.csv");
    let provenance = Provenance::new()
        .with_command_and_machine()
        .with("docs", index.num_docs())
        .with("queries", format!("{} in turn, {MODE}, k={K}", queries.len()))
        .with("tokenizer", build(threads).tokenizer.name());
    write_csv(&csv, &provenance, rows.iter().cloned())?;
    result_file("ingest", &csv);
    draw(&rows, &arguments.out)?;
    let text = format!("ingest: {MODE}, k={K}, {threads} threads, of which some index\n{}", table(&rows));
    Ok((text, measurements(&rows)))
}

/// What was measured, beside the share that each number of threads would have of what all do alone.
fn rows(measured: &[SharedCores]) -> Vec<IngestRow> {
    let all = |threads: fn(&SharedCores) -> usize, rate: fn(&SharedCores) -> f64| {
        // The ends: nobody indexes, nobody answers.
        let end = measured.iter().max_by_key(|cores| threads(cores));
        end.map_or(0.0, |cores| rate(cores) / threads(cores).max(1) as f64)
    };
    let qps = all(|cores| cores.query_threads, |cores| cores.queries_per_s);
    let bytes_per_s = all(|cores| cores.ingest_threads, |cores| cores.ingest_bytes_per_s);
    let row = |cores: &SharedCores| IngestRow {
        ingest_threads: cores.ingest_threads,
        query_threads: cores.query_threads,
        ingest_mb_per_s: Digits(cores.ingest_bytes_per_s / 1e6),
        predicted_ingest_mb_per_s: Digits(bytes_per_s * cores.ingest_threads as f64 / 1e6),
        measured_qps: Digits(cores.queries_per_s),
        predicted_qps: Digits(qps * cores.query_threads as f64),
    };
    measured.iter().map(row).collect()
}

fn table(rows: &[IngestRow]) -> Table {
    let heads = ["index", "answer", "MB/s", "predicted", "error", "q/s", "predicted", "error"];
    let mut table = Table::new(heads).with_keys(2);
    let error = |predicted: f64, measured: f64| {
        if measured > 0.0 { format!("{:+.1} %", 100.0 * (predicted / measured - 1.0)) } else { String::new() }
    };
    for row in rows {
        let (mb, predicted_mb) = (row.ingest_mb_per_s.0, row.predicted_ingest_mb_per_s.0);
        let (qps, predicted_qps) = (row.measured_qps.0, row.predicted_qps.0);
        table.row([
            row.ingest_threads.to_string(),
            row.query_threads.to_string(),
            format!("{mb:.1}"),
            format!("{predicted_mb:.1}"),
            error(predicted_mb, mb),
            format!("{qps:.0}"),
            format!("{predicted_qps:.0}"),
            error(predicted_qps, qps),
        ]);
    }
    table
}

fn draw(rows: &[IngestRow], out: &Path) -> Result<(), Failure> {
    let line = |name: &str, stroke, point: fn(&IngestRow) -> (f64, f64)| {
        let point = |row: &IngestRow| {
            let (x, y) = point(row);
            Point { x, y, ..Point::default() }
        };
        Series { name: name.to_owned(), points: rows.iter().map(point).collect(), stroke, colour: Some(0) }
    };
    let chart = LineChart {
        title: String::from("Queries answered while text is indexed on the same cores"),
        subtitle: format!("{MODE}, k={K}, a thread a core"),
        x_label: String::from("text indexed (MB/s)"),
        y_label: String::from("queries per second"),
        series: vec![
            line("measured", Stroke::Solid, |row| (row.ingest_mb_per_s.0, row.measured_qps.0)),
            line("a share of each end", Stroke::Dashed, |row| (row.predicted_ingest_mb_per_s.0, row.predicted_qps.0)),
        ],
        ..LineChart::default()
    };
    Ok(chart.write(&out.join("ingest"))?)
}

fn measurements(rows: &[IngestRow]) -> Vec<Measurement> {
    let of_row = |row: &IngestRow| {
        let name = format!("{} index, {} answer", row.ingest_threads, row.query_threads);
        let measurement = |metric, value| Measurement { part: "ingest", name: name.clone(), metric, value };
        [measurement("queries_per_s", row.measured_qps.0), measurement("text_mb_per_s", row.ingest_mb_per_s.0)]
    };
    rows.iter().flat_map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_all_threads_do_alone() {
        let cores = |ingest_threads, queries_per_s, ingest_bytes_per_s| SharedCores {
            query_threads: 4 - ingest_threads,
            ingest_threads,
            queries_per_s,
            ingest_bytes_per_s,
        };
        let rows = rows(&[cores(0, 800.0, 0.0), cores(1, 500.0, 90e6), cores(4, 0.0, 320e6)]);
        let predicted: Vec<_> = rows.iter().map(|row| (row.predicted_qps.0, row.predicted_ingest_mb_per_s.0)).collect();
        assert_eq!(predicted, [(800.0, 0.0), (600.0, 80.0), (0.0, 320.0)]);
        assert!(table(&rows).to_string().contains("+20.0 %"), "{}", table(&rows));
    }
}
