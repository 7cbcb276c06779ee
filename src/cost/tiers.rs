//! What queries cost where a part of an index lies in the host's memory, under any budget of GPU memory.
//!
//! Two ends are measured: all of the lists near, in GPU memory (`gpu_us`), and all far, in the host's (`gpu_far_us`). What lies
//! between follows from what share φ of a query's reads is far under a budget, which its [`FarCurve`] tells:
//!
//! ```text
//!   alone = near + φ · (far - near)         reads across the bus wait for each other, and for those of the device
//!   bus   = φ · reads · time of a read      in a full batch they don't: the bus is what they share
//!         ~ φ · (far - near) · bus_share    where a query's reads are not counted: before it has run
//! ```
//!
//! Time of a read and `bus_share` are fitted to batches with all lists far, in which the bus is all that counts. What a query adds to
//! the device's own work is the same under every budget. [`MeasuredTimes`](super::MeasuredTimes) plays the three.

use serde::{Deserialize, Serialize};

use super::service::check_crowding;
use super::{Cost, Workload, WorkloadRow, comment_line};
use crate::cache::FarCurve;
use crate::files::Provenance;
use crate::ids::QueryId;
use crate::machine::{Class, PerClass};
use crate::query::Mode;
use crate::time::Nanos;

/// The key of the comment line that holds the model.
const KEY: &str = "tiers_gpu";

/// What is known of a query whose lists lie in the host's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Far {
    /// Median service time alone on the GPU with all blocks of lists far, in microseconds.
    pub all_far_us: f64,
    /// How long it takes the bus in a large batch then, by what it reads; `None` where its reads were not counted.
    pub bus_us: Option<f64>,
    /// What share of its reads is far under a budget.
    pub curve: FarCurve,
}

/// A budget of GPU memory for an index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryBudget {
    /// So many bytes.
    Bytes(u64),
    /// Such a share of what the whole index takes there.
    Share(f64),
}

/// A budget in force.
#[derive(Clone, Debug, PartialEq)]
pub struct UnderBudget {
    /// In bytes.
    pub bytes: u64,
    /// The share of all rows that lies near.
    near_share: f64,
    /// What is known of a query before it has run.
    growth: Growth,
}

/// By mode: by how much queries take longer with all lists far, as a share of what they take with all near.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Growth([f64; 3]);

/// A workload's index between two memories, and what the bus between them costs its queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierModel {
    /// What lies in GPU memory under any budget,
    pub staying_bytes: u64,
    /// and what lies there as far as a budget holds it.
    pub rows_bytes: u64,
    /// How long the bus is taken, in a large batch, by each microsecond that a query alone takes longer with all lists far:
    /// `and` queries,
    pub bus_and: f64,
    /// `or` queries,
    pub bus_or: f64,
    /// `and-or` queries.
    pub bus_and_or: f64,
    /// How many times that it takes in smaller batches, whose reads wait for each other: `(n, crowding)`, n ascending.
    pub crowding: Vec<(u32, f64)>,
    /// Batches that were measured with all lists far.
    pub samples: usize,
    /// Mean of |predicted - measured| / measured, over large ones that the fit had not seen.
    pub mean_relative_error: f64,
}

/// Why nothing is known of a budget.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TierError {
    /// The workload was measured with all of the index in GPU memory only, or without a GPU.
    #[error(
        "nobody measured these queries with lists in the host's memory: `tandem profile --tiered` writes a workload that any \
         --gpu-memory can be simulated with"
    )]
    NotMeasured,
    /// The budget is smaller than what must lie there.
    #[error(
        "a budget of {budget_bytes} bytes is less than the {staying_bytes} that lie in GPU memory in any case (all of the index \
         takes {all_bytes})"
    )]
    TooSmall {
        /// What was asked for.
        budget_bytes: u64,
        /// What must lie there.
        staying_bytes: u64,
        /// What all of the index takes.
        all_bytes: u64,
    },
    /// The budget is smaller than what must lie there for pages to follow the queries.
    #[error(
        "a budget of {budget_bytes} bytes is less than the {least_bytes} that lie in GPU memory in any case where pages follow the \
         queries, headers twice (all of the index takes {all_bytes})"
    )]
    TooSmallToFollow {
        /// What was asked for.
        budget_bytes: u64,
        /// What must lie there, with one page.
        least_bytes: u64,
        /// What all of the index takes.
        all_bytes: u64,
    },
    /// Pages of one index, queries of another.
    #[error("the pages are of index {pages}, the workload was measured on {workload}")]
    PagesOfAnotherIndex {
        /// The pages' index,
        pages: String,
        /// and the workload's.
        workload: String,
    },
    /// A query whose lists are not all known.
    #[error(
        "the pages know nothing of query {query} (number {log_id} of its log), or of another one by that number: they are of another \
         log"
    )]
    PagesOfOtherQueries {
        /// The query.
        query: QueryId,
        /// Its number in the log that was profiled.
        log_id: u32,
    },
}

impl TierModel {
    /// What the whole index takes.
    #[must_use]
    pub fn all_bytes(&self) -> u64 {
        self.staying_bytes + self.rows_bytes
    }

    /// A budget in bytes.
    #[must_use]
    pub fn bytes(&self, budget: MemoryBudget) -> u64 {
        match budget {
            MemoryBudget::Bytes(bytes) => bytes,
            MemoryBudget::Share(share) => (self.all_bytes() as f64 * share).round() as u64,
        }
    }

    /// The share of all rows that lies near under a budget.
    ///
    /// # Errors
    /// [`TierError::TooSmall`].
    pub fn near_share(&self, budget: MemoryBudget) -> Result<f64, TierError> {
        let budget_bytes = self.bytes(budget);
        let Some(near_bytes) = budget_bytes.checked_sub(self.staying_bytes) else {
            let (staying_bytes, all_bytes) = (self.staying_bytes, self.all_bytes());
            return Err(TierError::TooSmall { budget_bytes, staying_bytes, all_bytes });
        };
        Ok((near_bytes as f64 / self.rows_bytes.max(1) as f64).min(1.0))
    }

    /// See [`bus_and`](Self::bus_and).
    #[must_use]
    pub fn bus_share(&self, mode: Mode) -> f64 {
        match mode {
            Mode::And => self.bus_and,
            Mode::Or => self.bus_or,
            Mode::AndOr => self.bus_and_or,
        }
    }

    /// How long a query takes the bus in a large batch with all lists far, which takes so much longer alone then: by its reads, unless
    /// it `is_estimate`, before they can be known.
    pub(super) fn bus_us(&self, mode: Mode, far: &Far, longer_us: f64, is_estimate: bool) -> f64 {
        let by_time_us = longer_us * self.bus_share(mode);
        if is_estimate { by_time_us } else { far.bus_us.unwrap_or(by_time_us) }
    }

    /// Whether every number makes sense.
    ///
    /// # Errors
    /// Names the first that does not, with what would.
    pub fn check(&self) -> Result<(), String> {
        let shares = [("bus_and", self.bus_and), ("bus_or", self.bus_or), ("bus_and_or", self.bus_and_or)];
        match shares.into_iter().find(|(_, share)| !(share.is_finite() && *share >= 0.0)) {
            Some((name, value)) => Err(format!("{name} is {value}, expected a number from 0")),
            None => check_crowding(&self.crowding),
        }
    }

    /// Takes the model out of the comment lines of a file: `tiers_gpu: {...}`.
    ///
    /// # Errors
    /// If such a line does not hold one: what is wrong.
    pub(super) fn take_from(provenance: &mut Provenance) -> Result<Option<Self>, String> {
        comment_line::take(provenance, KEY, Self::check)
    }

    /// The comment lines with one that says what this is, in the place of what one said before.
    pub(super) fn in_provenance(model: Option<&Self>, provenance: &Provenance) -> Provenance {
        comment_line::with(provenance, KEY, model)
    }
}

impl Workload {
    /// The same queries where no more of the index than `budget` lies in GPU memory: from here on their costs are those.
    ///
    /// # Errors
    /// If that was not measured, or the budget is too small.
    pub fn under(self, budget: MemoryBudget) -> Result<Self, TierError> {
        let tiers = self.tiers.as_ref().ok_or(TierError::NotMeasured)?;
        if self.rows.iter().any(|row| row.measured[Class::GPU].is_some() && row.far.is_none()) {
            return Err(TierError::NotMeasured);
        }
        let (bytes, near_share) = (tiers.bytes(budget), tiers.near_share(budget)?);
        let under = Some(UnderBudget { bytes, near_share, growth: Growth::of_rows(&self.rows) });
        let mut batches = self.batches.clone();
        if let Some(model) = &mut batches.0[Class::GPU] {
            model.cost.bus_crowding.clone_from(&tiers.crowding);
        }
        Ok(Self { under, batches, ..self })
    }

    /// The share of a query's reads that is far under the budget in force; none without one.
    #[must_use]
    pub fn far_share(&self, curve: &FarCurve) -> f64 {
        self.under.as_ref().map_or(0.0, |under| curve.far_share(under.near_share))
    }

    /// What a row's query costs that takes so many microseconds alone on each class, all of its lists being near; under a budget,
    /// what it takes longer is measured, or as much as its mode's queries do in the mean if `is_estimate`.
    #[must_use]
    pub fn row_costs(&self, row: &WorkloadRow, alone_us: PerClass<Option<f64>>, is_estimate: bool) -> PerClass<Cost> {
        let mut costs = self.batches.costs(row.mode, alone_us);
        if let (Some(under), Some(tiers), Some(far)) = (&self.under, &self.tiers, &row.far)
            && let (Some(alone_us), Some(near)) = (alone_us[Class::GPU], row.measured[Class::GPU])
        {
            let longer_us = match is_estimate {
                true => alone_us * under.growth.of(row.mode),
                false => (far.all_far_us - near.median_us).max(0.0),
            };
            let far_share = far.curve.far_share(under.near_share);
            let cost = &mut costs[Class::GPU];
            cost.alone += Nanos::from_us(far_share * longer_us);
            cost.bus = Nanos::from_us(far_share * tiers.bus_us(row.mode, far, longer_us, is_estimate));
        }
        costs
    }
}

impl Growth {
    pub(super) fn of_rows(rows: &[WorkloadRow]) -> Self {
        Self(Mode::ALL.map(|mode| {
            let (mut near_us, mut longer_us) = (0.0, 0.0);
            for row in rows.iter().filter(|row| row.mode == mode) {
                if let (Some(near), Some(far)) = (row.measured[Class::GPU], &row.far) {
                    near_us += near.median_us;
                    longer_us += (far.all_far_us - near.median_us).max(0.0);
                }
            }
            if near_us > 0.0 { longer_us / near_us } else { 0.0 }
        }))
    }

    pub(super) fn of(self, mode: Mode) -> f64 {
        self.0[mode.index()]
    }
}
