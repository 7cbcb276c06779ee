//! What sweeps have found, on disk: a file a point, and all of them as `sweep.csv`.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Point;
use crate::files::{CsvReader, Digits, InputError, Provenance, Record, write_csv};

/// The key under which files say which sweep they are of.
const DIGEST: &str = "sweep";

/// A point's answer: a line of `sweep.csv`. What was not asked for is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepRow {
    /// Its number.
    pub point: usize,
    /// The workload's name.
    pub workload: String,
    /// How the terms of queries combine.
    pub mode: String,
    /// Who schedules.
    pub policy: String,
    /// CPU workers of a node.
    pub cpus: usize,
    /// GPUs of a node.
    pub gpus: usize,
    /// Streams of a GPU.
    pub streams: usize,
    /// Time from arrival to deadline.
    pub deadline_ms: Digits<12>,
    /// By how much the logarithm of an estimate deviates.
    pub noise: Digits<6>,
    /// Parts of the index.
    pub shards: usize,
    /// Nodes for each part.
    pub replicas: usize,
    /// What runs must come up to.
    pub objective: String,
    /// Runs, with different seeds.
    pub seeds: usize,
    /// Queries of each run.
    pub queries: usize,
    /// Above this rate nobody is stable in the long run.
    pub region_qps: Digits<6>,
    /// The highest rate that held,
    pub capacity_qps: Option<Digits<6>>,
    /// the 95 % interval of the capacity, from
    pub low_qps: Option<Digits<6>>,
    /// and to,
    pub high_qps: Option<Digits<6>>,
    /// and the next rate of the search, which failed.
    pub failing_qps: Option<Digits<6>>,
    /// The rate whose delays follow.
    pub rate_qps: Option<Digits<9>>,
    /// Mean delay over the seeds,
    pub mean_ms: Option<Digits<6>>,
    /// where it surely lies,
    pub mean_low_ms: Option<Digits<6>>,
    /// from and to.
    pub mean_high_ms: Option<Digits<6>>,
    /// Percentiles: medians over the seeds.
    pub p50_ms: Option<Digits<6>>,
    /// As above.
    pub p95_ms: Option<Digits<6>>,
    /// As above.
    pub p99_ms: Option<Digits<6>>,
    /// The share of all queries that missed their deadline.
    pub missed_share: Option<Digits<6>>,
    /// Runs that came up to the objective.
    pub held: Option<usize>,
    /// Half the width of the capacity's interval over seeds, as a share of it,
    pub seeds_error: Option<Digits<3>>,
    /// and of that over samples of as many queries: `low_qps` to `high_qps` has both.
    pub query_error: Option<Digits<3>>,
    /// Measured queries.
    pub measured_queries: usize,
    /// CPU workers that were busy at once, at most, when it was measured how far they slow each other down.
    pub measured_cpus: usize,
    /// Whether there are more of them here.
    pub extrapolated: bool,
    /// The share that a run played of the slowest change in its arrivals: below 1 there is no interval.
    pub covered_share: Option<Digits<4>>,
}

impl Record for SweepRow {
    const REMOVED: &'static [&'static str] = &["gpu_memory_mb", "gpu_memory_epoch"];
    const REMEDY: &'static str = "play the sweep again with this version, into another folder";
}

/// A folder of one sweep's results.
#[derive(Clone, Debug)]
pub struct SweepFolder {
    path: PathBuf,
    digest: String,
}

impl SweepFolder {
    /// The folder at `path`, for the sweep of this digest.
    #[must_use]
    pub fn new(path: &Path, digest: String) -> Self {
        Self { path: path.to_owned(), digest }
    }

    /// Where all results together are written.
    #[must_use]
    pub fn merged(&self) -> PathBuf {
        self.path.join("sweep.csv")
    }

    /// Where the result of a point is written.
    #[must_use]
    pub fn of_point(&self, number: usize) -> PathBuf {
        self.path.join("points").join(format!("{number:06}.csv"))
    }

    /// The answer to a point, if it is there; `None` if it is not.
    ///
    /// # Errors
    /// If the file is of another sweep, or holds something else.
    pub fn read(&self, point: &Point) -> Result<Option<SweepRow>, InputError> {
        let path = self.of_point(point.number);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(InputError::file(&path, e.to_string())),
        };
        let mut rows = CsvReader::<SweepRow, _>::new(&path, BufReader::new(file))?;
        let Some(row) = rows.next_row()? else { return Err(rows.error("no row: was it written by something else?")) };
        if row.provenance().get(DIGEST) != Some(&self.digest) {
            return Err(row.error("this is of another sweep: name another folder, or remove this one"));
        }
        if row.value.point != point.number {
            return Err(row.error_at("point", format!("`point` is {}, expected {}", row.value.point, point.number)));
        }
        Ok(Some(row.value))
    }

    /// Keeps the answer to a point, whole or not at all.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, row: SweepRow) -> io::Result<()> {
        let path = self.of_point(row.point);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        write_csv(&path, &Provenance::new().with(DIGEST, &self.digest), std::iter::once(row))
    }

    /// Writes all answers together, in order of their points.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn merge(&self, provenance: &Provenance, rows: &[SweepRow]) -> io::Result<()> {
        write_csv(&self.merged(), &provenance.clone().with(DIGEST, &self.digest), rows.iter().cloned())
    }
}
