//! Sweep results on disk: a file per point, and `sweep.csv` with all of them.

use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Point;
use crate::files::{CsvReader, Digits, File, InputError, Provenance, Record, write_csv};

/// The provenance key of the sweep's digest.
const DIGEST: &str = "sweep";

/// The result of a point: a line of `sweep.csv`. Columns without a value are empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepRow {
    /// The number of the point.
    pub point: usize,
    /// The workload's name.
    pub workload: String,
    /// Query mode: how terms combine.
    pub mode: String,
    /// Scheduling policy.
    pub policy: String,
    /// Number of CPU workers per node.
    pub cpus: usize,
    /// Number of GPUs per node.
    pub gpus: usize,
    /// Number of streams per GPU.
    pub streams: usize,
    /// Deadline after arrival, in milliseconds.
    pub deadline_ms: Digits<12>,
    /// Standard deviation of the noise on the logarithm of estimates.
    pub noise: Digits<6>,
    /// Number of index shards.
    pub shards: usize,
    /// Number of nodes per shard.
    pub replicas: usize,
    /// The choice of a node for a query.
    pub routing: String,
    /// The objective of each run.
    pub objective: String,
    /// Number of runs with different seeds.
    pub seeds: usize,
    /// Number of queries per run.
    pub queries: usize,
    /// Above this rate no scheduler is stable.
    pub region_qps: Digits<6>,
    /// The highest rate that held.
    pub capacity_qps: Option<Digits<6>>,
    /// The lower end of the 95 % interval of the capacity.
    pub low_qps: Option<Digits<6>>,
    /// The upper end of the 95 % interval of the capacity.
    pub high_qps: Option<Digits<6>>,
    /// The next higher rate of the search, which failed.
    pub failing_qps: Option<Digits<6>>,
    /// The rate of the delay columns.
    pub rate_qps: Option<Digits<9>>,
    /// The mean delay over seeds.
    pub mean_ms: Option<Digits<6>>,
    /// The lower end of the 95 % interval of the mean delay.
    pub mean_low_ms: Option<Digits<6>>,
    /// The upper end of the 95 % interval of the mean delay.
    pub mean_high_ms: Option<Digits<6>>,
    /// The median delay: the median over seeds.
    pub p50_ms: Option<Digits<6>>,
    /// The 95th percentile of the delay: the median over seeds.
    pub p95_ms: Option<Digits<6>>,
    /// The 99th percentile of the delay: the median over seeds.
    pub p99_ms: Option<Digits<6>>,
    /// The 99.9th percentile of the delay: the median over seeds.
    pub p999_ms: Option<Digits<6>>,
    /// The longest delay: the median over seeds.
    pub max_ms: Option<Digits<6>>,
    /// The share of queries that missed their deadline.
    pub missed_share: Option<Digits<6>>,
    /// Number of runs that met the objective.
    pub held: Option<usize>,
    /// The share of the work that the machines can do which the rate, or the capacity, offers.
    pub utilisation: Option<Digits<4>>,
    /// Whether the machines sustain the rate: their capacity reaches it. It is known if replicas vary.
    pub sustained: Option<bool>,
    /// Whether they also sustain it if they are as slow as one machine in ten.
    pub sustained_with_spread: Option<bool>,
    /// Half-width of the capacity's interval over seeds, as a share of the capacity.
    pub seeds_error: Option<Digits<3>>,
    /// Half-width of the capacity's interval over query samples, as a share; `low_qps` to `high_qps` has both errors.
    pub query_error: Option<Digits<3>>,
    /// Number of measured queries.
    pub measured_queries: usize,
    /// Most CPU workers that were busy at once when the machine was measured.
    pub measured_cpus: usize,
    /// Whether the point has more CPU workers than were measured.
    pub extrapolated: bool,
    /// The share of the slowest change in the arrivals that a run covered; below 1 there is no interval.
    pub covered_share: Option<Digits<4>>,
}

impl Record for SweepRow {}

/// The result folder of one sweep.
#[derive(Clone, Debug)]
pub struct SweepFolder {
    path: PathBuf,
    digest: String,
}

impl SweepFolder {
    /// The folder at `path` for the sweep with this digest.
    #[must_use]
    pub fn new(path: &Path, digest: String) -> Self {
        Self { path: path.to_owned(), digest }
    }

    /// The path of the merged results.
    #[must_use]
    pub fn merged(&self) -> PathBuf {
        self.path.join("sweep.csv")
    }

    /// The path of a point's result.
    #[must_use]
    pub fn of_point(&self, number: usize) -> PathBuf {
        self.path.join("points").join(format!("{number:06}.csv"))
    }

    /// The stored result of a point; `None` if there is none.
    ///
    /// # Errors
    /// If the file belongs to another sweep, or is no result.
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

    /// Stores the result of a point atomically.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, row: SweepRow) -> io::Result<()> {
        let path = self.of_point(row.point);
        write_csv(&path, &Provenance::new().with(DIGEST, &self.digest), std::iter::once(row))
    }

    /// Writes all results to one file, in order of their points.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn merge(&self, provenance: &Provenance, rows: &[SweepRow]) -> io::Result<()> {
        write_csv(&self.merged(), &provenance.clone().with(DIGEST, &self.digest), rows.iter().cloned())
    }
}
