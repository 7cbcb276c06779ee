//! What lies in GPU memory follows the queries that run: their costs follow, too.
//!
//! ```text
//!   index, log ──▶ IndexPages (a file beside the workload) ──▶ which queries read which pages
//!   workload ────▶ costs near and far ────────────────────┐        │
//!   budget, epoch ────────────────────────────────────────┴──▶ Following ──▶ Follower, one a GPU: what is near when a batch starts
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | `pages` | [`IndexPages`]: the pages of an index, as far as some queries read them |
//! | `pages_csv` | their file |
//! | `demands` | [`Demands`]: what each row of a workload reads |
//! | `follower` | what lies near on one GPU while a run is played, and the bus that pages come by |
//! | `retold` | [`Retold`]: what a live run's queries found near |

mod demands;
mod follower;
mod pages;
mod pages_csv;
mod retold;
#[cfg(test)]
mod tests;

pub use demands::Demands;
pub(super) use follower::{Bus, Follower};
pub use pages::{IndexPages, ListOfPages, PageLayout};
pub use retold::Retold;

use std::fmt;
use std::sync::Arc;

use super::tiers::Growth;
use super::{Cost, TierError, Workload};
use crate::cache::{OnlineOptions, OnlineTier, Pages};
use crate::exec::ROW_BYTES;
use crate::machine::{Class, PerClass};
use crate::time::Nanos;

/// How long a page takes to be decided on: 11 to 13 ms for 180,000 pages beside an H200 (docs/gpu.md).
const DECIDE_NS_PER_PAGE: f64 = 65.0;

/// Pages that follow the queries, and what that means for the costs of a workload's rows.
#[derive(Clone, PartialEq)]
pub struct Following {
    /// What lies near at first, and how it changes.
    tier: OnlineTier,
    demands: Demands,
    /// By row: what its query takes longer on a GPU with all of its reads far, in truth,
    far: Vec<Cost>,
    /// and as far as policies are told.
    expected_far: Vec<Cost>,
    /// Time of the bus for a page that comes,
    copy_page: Nanos,
    /// and of deciding which do, which nothing waits for.
    decide: Nanos,
}

impl fmt::Debug for Following {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Following")
            .field("options", self.tier.options())
            .field("rows", &self.far.len())
            .field("copy_page", &self.copy_page)
            .field("decide", &self.decide)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Following {
    /// `12 of 100 pages near at first, following the queries in epochs of 16`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (near, all) = self.num_near();
        write!(f, "{near} of {all} pages near at first, following the queries in epochs of {}", self.epoch_queries())
    }
}

/// How quickly what an epoch asks for is carried out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowingPace {
    /// Bytes a second of a copy from the host's memory that has the bus to itself; above 0, or infinite.
    pub copy_rate: f64,
    /// How long an epoch is decided.
    pub decide: Nanos,
}

impl FollowingPace {
    /// With copies of so many bytes a second, for an index of so many pages.
    #[must_use]
    pub fn new(copy_rate: f64, num_pages: u32) -> Self {
        Self { copy_rate, decide: Nanos((DECIDE_NS_PER_PAGE * f64::from(num_pages)) as u64) }
    }
}

impl Following {
    /// The queries of `workload`, whose rows are known to read `pages`, in a GPU's memory of `budget_bytes`. `far` and
    /// `expected_far` are what [`Workload::far_costs`] says of each row, in truth and as policies are told.
    ///
    /// # Errors
    /// If the pages are of another index or other queries, or the budget is too small for one page and what lies there in any case:
    /// headers twice, directories, norms.
    pub fn new(
        workload: &Workload,
        pages: &IndexPages,
        budget_bytes: u64,
        options: OnlineOptions,
        pace: FollowingPace,
        (far, expected_far): (Vec<Cost>, Vec<Cost>),
    ) -> Result<Self, TierError> {
        let demands = pages.demands(workload)?;
        let num_frames = Self::num_frames(workload, pages, budget_bytes)?;
        let mut tier = OnlineTier::new(Arc::new(pages.pages()), pages.lists.len(), num_frames, options);
        (0..).zip(&pages.lists).for_each(|(list, of_list)| tier.record(list, of_list.reads));
        let page_bytes = (ROW_BYTES * u64::from(pages.layout.page_rows)) as f64;
        let copy_page = Nanos::from_secs(page_bytes / pace.copy_rate);
        Ok(Self { tier, demands, far, expected_far, copy_page, decide: pace.decide })
    }

    /// How many pages lie near under a budget, by the executor's own reckoning: all of them where it holds all rows.
    fn num_frames(workload: &Workload, pages: &IndexPages, budget_bytes: u64) -> Result<u32, TierError> {
        let tiers = workload.tiers.as_ref().ok_or(TierError::NotMeasured)?;
        let PageLayout { num_pages, page_rows, headers_bytes } = pages.layout;
        if budget_bytes >= tiers.all_bytes() {
            return Ok(num_pages);
        }
        let least_bytes = tiers.staying_bytes + headers_bytes + ROW_BYTES * u64::from(page_rows);
        match budget_bytes.checked_sub(least_bytes) {
            Some(more_bytes) => Ok(Pages::frames_within(num_pages, page_rows, more_bytes, ROW_BYTES)),
            None => Err(TierError::TooSmallToFollow { budget_bytes, least_bytes, all_bytes: tiers.all_bytes() }),
        }
    }

    /// The same where queries take so many times as long alone, what they read far included; the bus is what it was.
    #[must_use]
    pub fn slower(&self, times: f64) -> Self {
        let longer = |cost: &Cost| Cost { alone: cost.alone.scaled(times), ..*cost };
        Self { far: self.far.iter().map(longer).collect(), ..self.clone() }
    }

    /// What the query in a row costs on a GPU while such a share of its reads is far, which costs `near` with none.
    #[must_use]
    pub fn cost(&self, row: u32, near: Cost, far_share: f64) -> Cost {
        Self::longer(near, self.far[row as usize], far_share)
    }

    /// The same of what policies are told.
    fn expected(&self, row: u32, near: Cost, far_share: f64) -> Cost {
        Self::longer(near, self.expected_far[row as usize], far_share)
    }

    fn longer(near: Cost, far: Cost, far_share: f64) -> Cost {
        let far = far.scaled(far_share);
        Cost { alone: near.alone + far.alone, added: near.added, bus: near.bus + far.bus }
    }

    /// The share of a row's reads that is far before anything has moved.
    #[must_use]
    pub fn first_far_share(&self, row: u32) -> f64 {
        self.tier.near().reads(self.demands.of(row)).far_share()
    }

    /// Queries of an epoch.
    #[must_use]
    pub fn epoch_queries(&self) -> u32 {
        self.tier.options().epoch_queries
    }

    /// The pages that are near at first, and all.
    #[must_use]
    pub fn num_near(&self) -> (u32, u32) {
        let num_pages = self.tier.pages().num_pages();
        let near = (0..num_pages).filter(|&page| self.tier.frame_of(page).is_some()).count();
        (near as u32, num_pages)
    }
}

impl Workload {
    /// By row: what its query takes longer on a GPU with all of its reads far, where `near` is what it costs with none: as measured, or
    /// as much as its mode's queries do in the mean if `is_estimate`.
    ///
    /// # Errors
    /// If that was not measured.
    pub fn far_costs(&self, near: &[PerClass<Cost>], is_estimate: bool) -> Result<Vec<Cost>, TierError> {
        let tiers = self.tiers.as_ref().ok_or(TierError::NotMeasured)?;
        let growth = Growth::of_rows(&self.rows);
        let far = |(row, near): (&super::WorkloadRow, &PerClass<Cost>)| {
            let Some(measured) = row.measured[Class::GPU] else { return Ok(Cost::default()) };
            let far = row.far.as_ref().ok_or(TierError::NotMeasured)?;
            let longer_us = match is_estimate {
                true => near[Class::GPU].alone.as_us() * growth.of(row.mode),
                false => (far.all_far_us - measured.median_us).max(0.0),
            };
            let bus = Nanos::from_us(tiers.bus_us(row.mode, far, longer_us, is_estimate));
            Ok(Cost { alone: Nanos::from_us(longer_us), added: Nanos::ZERO, bus })
        };
        self.rows.iter().zip(near).map(far).collect()
    }
}
