//! Files of runs: a line per run, a line per query, histograms, and the profile.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use serde::Serialize;
use tandem_model::base::stats::significant;
use tandem_model::base::time::Nanos;
use tandem_model::files::{Digits, Provenance, write_atomically, write_csv};
use tandem_model::study::Criterion;

use crate::profile::{QueryTime, Rung, ServerProfile};
use crate::run::{Ending, Outcome, PERCENTILES, Record, Run, percentile_ms};

/// Most queries of a run that `requests.csv` lists; of longer runs every second, fourth and so on.
const MOST_LISTED: usize = 1_000_000;

/// A line of `requests.csv`.
#[derive(Serialize, serde::Deserialize)]
struct RequestLine {
    query_id: u32,
    intended_us: Digits<12>,
    sent_us: Digits<12>,
    finished_us: Digits<12>,
    latency_us: Digits<9>,
    service_us: Digits<9>,
    outcome: String,
    hits: u32,
    server_ms: Option<Digits<6>>,
}

impl tandem_model::files::Record for RequestLine {}

/// Writes the queries of a run.
///
/// # Errors
/// Those of the file system.
pub fn write_requests(path: &Path, provenance: &Provenance, run: &Run) -> io::Result<()> {
    let us = |ns: u64| Digits(Nanos(ns).as_us());
    let line = |record: &Record| RequestLine {
        query_id: record.query,
        intended_us: us(record.intended),
        sent_us: us(record.sent),
        finished_us: us(record.finished),
        latency_us: Digits(record.latency().as_us()),
        service_us: Digits(record.service().as_us()),
        outcome: record.outcome.name().to_owned(),
        hits: record.hits,
        server_ms: Some(record.server_ms).filter(|ms| ms.is_finite()).map(|ms| Digits(ms.into())),
    };
    let every = run.records.len().div_ceil(MOST_LISTED).next_power_of_two().max(1);
    let provenance = provenance.clone().with("every", every);
    write_csv(path, &provenance, run.records.iter().step_by(every).map(line))
}

/// The statistics of a run, in the form of files; the run itself may be dropped.
#[derive(Clone, Debug)]
pub struct RunReport {
    values: Vec<String>,
    seconds: f64,
    latency: Histogram<u64>,
    service: Histogram<u64>,
}

impl RunReport {
    /// The statistics of a run under a criterion.
    #[must_use]
    pub fn of(run: &Run, criterion: &Criterion) -> Self {
        let (latency, service) = (run.histogram(Record::latency), run.histogram(Record::service));
        let values = run_values(run, criterion, [&latency, &service]);
        Self { values, seconds: run.seconds.max(0.0), latency, service }
    }

    /// Its line of `runs.csv` for programs, with numbers as numbers.
    #[must_use]
    pub fn json(&self) -> BTreeMap<String, serde_json::Value> {
        let value = |text: &String| match text.as_str() {
            "" => serde_json::Value::Null,
            text => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        };
        run_columns().into_iter().zip(self.values.iter().map(value)).collect()
    }
}

/// Writes a line per run: counts by outcome, and percentiles of latency and service time.
///
/// # Errors
/// Those of the file system.
pub fn write_runs(path: &Path, provenance: &Provenance, runs: &[RunReport]) -> io::Result<()> {
    write_atomically(path, |out| {
        provenance.write_to(out)?;
        writeln!(out, "{}", run_columns().join(","))?;
        runs.iter().try_for_each(|run| writeln!(out, "{}", run.values.join(",")))
    })
}

/// The columns of `runs.csv`.
fn run_columns() -> Vec<String> {
    let mut columns: Vec<String> =
        ["rate_qps", "seconds", "planned", "warm_up", "not_sent", "ending", "throughput_qps"].map(String::from).into();
    columns.extend(Outcome::ALL.map(|outcome| outcome.name().replace('-', "_")));
    columns.extend(["empty", "missed", "held", "lateness_p99_us", "is_rejected", "warm_up_p50_ms"].map(String::from));
    for what in ["latency", "service"] {
        columns.extend(PERCENTILES.map(|percentile| format!("{what}_p{}_ms", percentile.to_string().replace('.', ""))));
    }
    columns
}

fn run_values(run: &Run, criterion: &Criterion, histograms: [&Histogram<u64>; 2]) -> Vec<String> {
    let verdict = run.verdict(criterion);
    let digits = |value: f64| significant(value, 6).to_string();
    let or_empty = |value: Option<f64>| value.map_or(String::new(), digits);
    let ending = match run.ending {
        Ending::Complete => "complete",
        Ending::ServerGone => "server-gone",
        Ending::Interrupted => "interrupted",
    };
    let mut values = vec![
        digits(run.rate_qps),
        digits(run.seconds),
        run.planned.to_string(),
        run.warm_up.len().to_string(),
        run.not_sent().to_string(),
        ending.to_owned(),
        digits(run.throughput_qps()),
    ];
    values.extend(Outcome::ALL.map(|outcome| run.count(outcome).to_string()));
    let warm_up = Run { records: run.warm_up.clone(), warm_up: Vec::new(), ..run.clone() };
    values.extend([
        run.empty().to_string(),
        verdict.missed.to_string(),
        verdict.holds().to_string(),
        or_empty(run.lateness_p99().map(Nanos::as_us)),
        run.is_rejected(criterion, &verdict).to_string(),
        or_empty(percentile_ms(&warm_up.histogram(Record::latency), 50.0)),
    ]);
    for histogram in histograms {
        values.extend(PERCENTILES.map(|percentile| or_empty(percentile_ms(histogram, percentile))));
    }
    values
}

/// Writes latencies and service times of runs as an HdrHistogram log, in nanoseconds, with tags `latency` and
/// `service`.
///
/// # Errors
/// Those of the file system.
pub fn write_histograms(path: &Path, provenance: &Provenance, runs: &[RunReport]) -> io::Result<()> {
    write_atomically(path, |out| {
        let mut serializer = V2DeflateSerializer::new();
        let mut builder = IntervalLogWriterBuilder::new();
        for (key, value) in provenance.lines() {
            builder.add_comment(&format!("{key}: {value}"));
        }
        // Values are nanoseconds, and the column of the maximum milliseconds.
        builder.with_max_value_divisor(1e6);
        let mut log = builder.begin_log_with(out, &mut serializer)?;
        let mut start = Duration::ZERO;
        for run in runs {
            let length = Duration::from_secs_f64(run.seconds);
            for (name, histogram) in [("latency", &run.latency), ("service", &run.service)] {
                let written = log.write_histogram(histogram, start, length, Tag::new(name));
                written.map_err(|e| io::Error::other(e.to_string()))?;
            }
            start += length;
        }
        Ok(())
    })
}

/// A line of `service_times.csv`, own service times, which `simulate`, `sweep` and `plan` read with `--workload`.
#[derive(Serialize, serde::Deserialize)]
struct ServiceLine {
    query_id: u32,
    cpu_us: Digits<6>,
}

impl tandem_model::files::Record for ServiceLine {}

/// A line of `ladder.csv`.
#[derive(Serialize, serde::Deserialize)]
struct LadderLine {
    clients: usize,
    qps: Digits<6>,
    p50_ms: Option<Digits<6>>,
    p99_ms: Option<Digits<6>>,
    rejected: usize,
    failed: usize,
}

impl tandem_model::files::Record for LadderLine {}

/// Writes the profile into a folder: `service_times.csv`, `ladder.csv` and `machine.json`. Returns the paths.
///
/// # Errors
/// Those of the file system.
pub fn write_profile(out: &Path, provenance: &Provenance, profile: &ServerProfile) -> io::Result<Vec<PathBuf>> {
    let paths = ["service_times.csv", "ladder.csv", "machine.json"].map(|name| out.join(name));
    let service = |time: &QueryTime| ServiceLine { query_id: time.query, cpu_us: Digits(time.median_us) };
    write_csv(&paths[0], provenance, profile.queries.iter().map(service))?;
    let ladder = |rung: &Rung| LadderLine {
        clients: rung.clients,
        qps: Digits(rung.qps),
        p50_ms: rung.p50_ms.map(Digits),
        p99_ms: rung.p99_ms.map(Digits),
        rejected: rung.rejected,
        failed: rung.failed,
    };
    write_csv(&paths[1], provenance, profile.ladder.iter().map(ladder))?;
    let mut file = profile.machine_profile();
    file.provenance = provenance.lines().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    file.write(&paths[2])?;
    Ok(paths.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_model::study::Objective;

    #[test]
    fn histograms_are_read_back_and_every_column_has_a_value() {
        let record = |job: u32| Record {
            job,
            query: 0,
            intended: 0,
            sent: 500_000,
            finished: 2_000_000,
            lateness: 0,
            outcome: Outcome::Answered,
            hits: 1,
            server_ms: f32::NAN,
        };
        let run = Run {
            rate_qps: 100.0,
            planned: 50,
            records: (0..50).map(record).collect(),
            warm_up: Vec::new(),
            seconds: 0.5,
            ending: Ending::Complete,
            failure: None,
        };
        let report = RunReport::of(&run, &Objective::default().within(Nanos::from_ms(5.0)));
        assert_eq!(report.values.len(), run_columns().len());
        assert_eq!((&report.json()["answered"], &report.json()["held"]), (&50.into(), &true.into()));
        let none = run.records.iter().map(|&one| Record { outcome: Outcome::OtherStatus, ..one }).collect();
        let none = RunReport::of(&Run { records: none, ..run }, &Objective::default().within(Nanos::from_ms(5.0)));
        for (column, value) in none.json() {
            let is_time = column.ends_with("_ms");
            assert_eq!(value.is_null(), is_time, "{column} is {value}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.hlog");
        write_histograms(&path, &Provenance::new(), &[report]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let read: Vec<_> = hdrhistogram::serialization::interval_log::IntervalLogIterator::new(&bytes)
            .filter_map(|entry| match entry.unwrap() {
                hdrhistogram::serialization::interval_log::LogEntry::Interval(interval) => {
                    Some((interval.tag().unwrap().as_str().to_owned(), interval.max()))
                }
                _ => None,
            })
            .collect();
        assert_eq!(read.len(), 2);
        assert!(read[0].0 == "latency" && (read[0].1 - 2.0).abs() < 0.01, "{read:?}");
        assert!(read[1].0 == "service" && (read[1].1 - 1.5).abs() < 0.01, "{read:?}");
    }
}
