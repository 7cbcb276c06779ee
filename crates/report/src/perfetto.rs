//! Traces of runs for Perfetto (<https://ui.perfetto.dev>) and Chrome.
//!
//! ```text
//! process   a run: policy, rate, seed
//!  ├─ counter "waiting"    how many queries wait, by the class that they will run on
//!  ├─ thread "cpu 0"       ▐ query 17 ▌      ▐ query 12 ▌
//!  └─ thread "gpu 1"           ▐ batch of 31        ▌        a slice a batch, with its queries, waits, misses
//!     └─ "gpu 1, next"                ▐ batch of 8      ▌    one that is prepared while the other runs
//! ```
//!
//! The format is Chrome's trace events in JSON. Times are microseconds with three decimals, so that no nanosecond is
//! lost.
//! Source: "Trace Event Format", <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};

use tandem_model::base::ids::ProcessorId;
use tandem_model::base::machine::Class;
use tandem_model::base::time::Nanos;
use tandem_model::files::{Provenance, write_atomically};
use tandem_model::sched::{LogRow, RunLog};

/// A growing trace of runs.
#[derive(Clone, Debug, Default)]
pub struct PerfettoTrace {
    runs: usize,
    events: Vec<Value>,
}

/// A processor's lane, and the number of the track among overlapping batches.
type Track = (Class, ProcessorId, usize);

impl PerfettoTrace {
    /// Adds a run of this name.
    pub fn add(&mut self, name: &str, log: &RunLog) {
        self.runs += 1;
        let run = self.runs;
        self.events.push(json!({"ph": "M", "pid": run, "name": "process_name", "args": {"name": name}}));
        self.add_batches(run, log);
        self.add_waiting(run, log);
    }

    /// Writes the trace atomically.
    pub fn write(&self, path: &Path, provenance: &Provenance) -> io::Result<()> {
        let about: BTreeMap<&str, &str> = provenance.lines().collect();
        write_atomically(path, |out| {
            write!(out, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[", json!(about))?;
            for (i, event) in self.events.iter().enumerate() {
                write!(out, "{}\n{event}", if i == 0 { "" } else { "," })?;
            }
            out.write_all(b"\n]}\n")
        })
    }

    fn add_batches(&mut self, run: usize, log: &RunLog) {
        let mut rows: Vec<&LogRow> = log.rows.iter().collect();
        rows.sort_unstable_by_key(|row| (row.started, row.batch, row.job));
        let mut by_batch: BTreeMap<u32, Vec<&LogRow>> = BTreeMap::new();
        rows.iter().for_each(|row| by_batch.entry(row.batch).or_default().push(row));
        let mut batches: Vec<&[&LogRow]> = by_batch.values().map(Vec::as_slice).collect();
        batches.sort_by_key(|batch| batch[0].started);
        // End times of each processor's tracks.
        let mut taken: BTreeMap<(Class, ProcessorId), Vec<Nanos>> = BTreeMap::new();
        let mut threads: BTreeMap<Track, usize> = BTreeMap::new();
        for batch in batches {
            let first = batch[0];
            let tracks = taken.entry((first.class, first.processor)).or_default();
            let free = tracks.iter().position(|&until| until <= first.started);
            let track = free.unwrap_or_else(|| {
                tracks.push(Nanos::ZERO);
                tracks.len() - 1
            });
            tracks[track] = first.finished;
            let next = threads.len() + 1;
            let thread = *threads.entry((first.class, first.processor, track)).or_insert(next);
            self.events.push(slice(run, thread, batch));
        }
        for ((class, processor, track), thread) in threads {
            let behind = match track {
                0 => String::new(),
                1 => String::from(", next"),
                track => format!(", next {track}"),
            };
            let name = format!("{class} {processor}{behind}");
            let event = json!({"ph": "M", "pid": run, "tid": thread, "name": "thread_name", "args": {"name": name}});
            self.events.push(event);
            let index = processor.index() * 8 + track;
            let event = json!({"ph": "M", "pid": run, "tid": thread, "name": "thread_sort_index", "args": {"sort_index": index}});
            self.events.push(event);
        }
    }

    /// Adds the number of waiting queries after each change.
    fn add_waiting(&mut self, run: usize, log: &RunLog) {
        let mut steps: Vec<(Nanos, Class, i64)> = Vec::with_capacity(2 * log.rows.len());
        for row in &log.rows {
            steps.extend([(row.arrival, row.class, 1), (row.started, row.class, -1)]);
        }
        steps.sort_unstable();
        let mut waiting: BTreeMap<&str, i64> = steps.iter().map(|(_, class, _)| (class.name(), 0)).collect();
        for at_once in steps.chunk_by(|a, b| a.0 == b.0) {
            let before = waiting.clone();
            at_once.iter().for_each(|(_, class, step)| *waiting.entry(class.name()).or_default() += step);
            if waiting != before {
                let at = us(at_once[0].0);
                self.events.push(json!({"ph": "C", "pid": run, "ts": at, "name": "waiting", "args": waiting}));
            }
        }
    }
}

/// A batch, or a single query, on its lane.
fn slice(run: usize, thread: usize, batch: &[&LogRow]) -> Value {
    let first = batch[0];
    let name = match batch {
        [single] => format!("query {}", single.query),
        batch => format!("batch of {}", batch.len()),
    };
    let longest_wait = batch.iter().map(|row| row.started.since(row.arrival)).max().unwrap_or_default();
    let predicted = batch.iter().map(|row| row.predicted[row.class]).max().filter(|&predicted| predicted != Nanos::MAX);
    json!({
        "ph": "X",
        "pid": run,
        "tid": thread,
        "ts": us(first.started),
        "dur": us(first.finished.since(first.started)),
        "name": name,
        "cat": first.class.name(),
        "args": {
            "batch": first.batch,
            "queries": batch.len(),
            "query_ids": batch.iter().take(MOST_IDS).map(|row| row.query.0).collect::<Vec<_>>(),
            "longest_wait_us": us(longest_wait),
            "longest_predicted_alone_us": predicted.map(us),
            "missed": batch.iter().filter(|row| row.missed()).count(),
            "stolen": batch.iter().filter(|row| row.stolen).count(),
        },
    })
}

/// Maximum queries of a batch that are named.
const MOST_IDS: usize = 16;

fn us(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_model::base::ids::{JobId, QueryId};
    use tandem_model::base::machine::PerClass;

    fn row(job: u32, times: [u64; 3], class: Class, batch: u32) -> LogRow {
        LogRow {
            job: JobId(job),
            query: QueryId(100 + job),
            arrival: Nanos(times[0]),
            released: Nanos(times[0]),
            started: Nanos(times[1]),
            finished: Nanos(times[2]),
            processor: ProcessorId(u32::from(class.is_gpu())),
            class,
            batch,
            deadline: Nanos(2_500),
            priority: 0,
            predicted: PerClass::from_fn(|_| Nanos(700)),
            stolen: false,
            again: false,
            lanes: 1,
            helped: Nanos::ZERO,
        }
    }

    #[test]
    fn lanes_are_threads_batches_slices_and_queues_counters() {
        let rows = vec![
            row(0, [0, 0, 1001], Class::CPU, 0),
            row(1, [500, 1000, 3000], Class::GPU, 1),
            row(2, [600, 1000, 3000], Class::GPU, 1),
            row(3, [700, 2000, 4000], Class::GPU, 2),
        ];
        let mut trace = PerfettoTrace::default();
        trace.add("stealing at 5 q/s", &RunLog { rows, ..RunLog::default() });
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.json");
        trace.write(&path, &Provenance::new().with("command", "tandem \"x\"")).unwrap();
        let whole: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(whole["otherData"]["command"], "tandem \"x\"");
        let events = whole["traceEvents"].as_array().unwrap();
        let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
        let slices: Vec<_> = of("X")
            .iter()
            .map(|e| (e["name"].as_str().unwrap(), e["ts"].as_f64().unwrap(), e["dur"].as_f64().unwrap()))
            .collect();
        assert_eq!(slices, [("query 100", 0.0, 1.001), ("batch of 2", 1.0, 2.0), ("query 103", 2.0, 2.0)]);
        // The third batch overlaps the second on the same GPU, so it has its own track.
        let threads: Vec<_> = of("M")
            .iter()
            .filter(|e| e["name"] == "thread_name")
            .map(|e| e["args"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(threads, ["cpu 0", "gpu 1", "gpu 1, next"]);
        assert_eq!(of("X")[1]["args"]["missed"], 2);
        let counts: Vec<_> =
            of("C").iter().map(|e| (e["ts"].as_f64().unwrap(), e["args"]["gpu"].as_i64().unwrap())).collect();
        assert_eq!(counts, [(0.5, 1), (0.6, 2), (0.7, 3), (1.0, 1), (2.0, 0)]);
    }
}
