//! Static admission: an order of lists or blocks learned from a log, cut at the end of a budget.
//!
//! VFB orders blocks by their visiting frequency. Queries end early and seldom reach the end of a long list, whose room is
//! better used for the beginnings of others. Of blocks with equally many visits, the one whose list more queries name comes
//! first. Counts never rise along a list, so that the admitted blocks of a list are a beginning of it.
//!
//! Qtf orders whole lists by the number of queries that name them; QtfDf divides that number by the length.

use std::cmp::Reverse;

use super::prefixes::Prefixes;
use super::sizes::Sizes;
use super::visits::{CACHE_BLOCK_LEN, Visits};
use crate::error::CacheError;

/// The order in which lists or blocks are admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AdmissionPolicy {
    /// Blocks by the number of queries that visit them, up to a share of each list (Wang et al.).
    Vfb {
        /// The share λ, above 0 and at most 1.
        share: f64,
    },
    /// Whole lists by the number of queries that name them (Baeza-Yates and Saint-Jean 2003).
    Qtf,
    /// Whole lists by the number of queries that name them over their length (Baeza-Yates et al. 2007).
    QtfDf,
}

impl AdmissionPolicy {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Vfb { .. } => "VFB",
            Self::Qtf => "Qtf",
            Self::QtfDf => "QtfDf",
        }
    }
}

impl std::fmt::Display for AdmissionPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Vfb { share } => write!(f, "VFB, λ {share}"),
            _ => f.write_str(self.name()),
        }
    }
}

/// A step of an order: from this step on, the first `postings` of the list are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    list: u32,
    postings: u32,
}

/// The order of a policy over all lists. Each budget takes a beginning of it.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    steps: Vec<Step>,
}

impl Admission {
    /// Learns the order of `policy` from the visits of a training log. [`CacheError::BadShare`] if λ is out of range.
    pub(crate) fn new(policy: AdmissionPolicy, visits: &Visits, sizes: &dyn Sizes) -> Result<Self, CacheError> {
        let mut lists: Vec<u32> = (0..sizes.num_lists() as u32).collect();
        match policy {
            AdmissionPolicy::Vfb { share } if !(share > 0.0 && share <= 1.0) => {
                return Err(CacheError::BadShare(share));
            }
            AdmissionPolicy::Vfb { share } => return Ok(Self { steps: by_visits(visits, sizes, share) }),
            AdmissionPolicy::Qtf => lists.sort_by_key(|&list| Reverse(visits.named(list))),
            AdmissionPolicy::QtfDf => lists.sort_by(|&a, &b| {
                // The comparison of a/b with c/d as ad with cb is exact.
                let parts = |list: u32| (u64::from(visits.named(list)), u64::from(sizes.len(list)));
                let ((named_a, len_a), (named_b, len_b)) = (parts(a), parts(b));
                (named_b * len_a).cmp(&(named_a * len_b))
            }),
        }
        let steps = lists.into_iter().map(|list| Step { list, postings: sizes.len(list) });
        Ok(Self { steps: steps.filter(|step| step.postings > 0).collect() })
    }

    /// Returns the contents of a cache of `budget_bytes`. The first step of a list that does not fit closes the list; later
    /// steps of other lists are taken if they fit.
    pub(crate) fn within(&self, budget_bytes: u64, sizes: &dyn Sizes) -> Prefixes {
        let mut prefixes = Prefixes::none(sizes.num_lists());
        let mut is_closed = vec![false; sizes.num_lists()];
        for step in &self.steps {
            if is_closed[step.list as usize] {
                continue;
            }
            let held = sizes.bytes(step.list, prefixes.postings(step.list));
            let more = sizes.bytes(step.list, step.postings) - held;
            if prefixes.bytes() + more > budget_bytes {
                is_closed[step.list as usize] = true;
            } else {
                prefixes.extend(step.list, step.postings, more);
            }
        }
        prefixes
    }
}

/// Orders all blocks up to `share` of each list, where the last block is cut.
fn by_visits(visits: &Visits, sizes: &dyn Sizes, share: f64) -> Vec<Step> {
    let mut blocks = Vec::new();
    for list in 0..sizes.num_lists() as u32 {
        let most = (f64::from(sizes.len(list)) * share).floor() as u32;
        let named = visits.named(list);
        for (block, count) in (0..).zip(visits.of_blocks(list)) {
            if block * CACHE_BLOCK_LEN >= most {
                break;
            }
            let postings = ((block + 1) * CACHE_BLOCK_LEN).min(most);
            blocks.push((Reverse(count), Reverse(named), Step { list, postings }));
        }
    }
    blocks.sort_unstable_by_key(|&(count, named, step)| (count, named, step.list, step.postings));
    blocks.into_iter().map(|(.., step)| step).collect()
}
