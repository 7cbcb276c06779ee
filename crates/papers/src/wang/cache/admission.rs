//! Static admission: an order learned from a log, cut where the budget ends.

use super::qtf::by_frequency;
use super::qtf_df::by_frequency_over_length;
use super::vfb::by_visits;
use super::{CacheError, Prefixes, Sizes, Visits};

/// By what lists, or blocks of them, are admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AdmissionPolicy {
    /// Blocks by how many queries visit them, at most this share (λ) of a list: Wang et al.
    Vfb {
        /// Above 0 and at most 1.
        share: f64,
    },
    /// Whole lists by how many queries name them: Baeza-Yates and Saint-Jean 2003.
    Qtf,
    /// Whole lists by how many queries name them over their length: Baeza-Yates et al. 2007.
    QtfDf,
}

impl AdmissionPolicy {
    /// The name, as the paper has it.
    #[must_use]
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

/// One step of an order: the list, and how much of it is held from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) list: u32,
    pub(super) postings: u32,
}

/// A policy's order over all lists, worked out once; each budget takes the beginning of it.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    steps: Vec<Step>,
}

impl Admission {
    /// The order of `policy` after what a training log did.
    ///
    /// # Errors
    /// [`CacheError::BadShare`] if λ is none.
    pub(crate) fn new(policy: AdmissionPolicy, visits: &Visits, sizes: &dyn Sizes) -> Result<Self, CacheError> {
        let steps = match policy {
            AdmissionPolicy::Vfb { share } if !(share > 0.0 && share <= 1.0) => {
                return Err(CacheError::BadShare(share));
            }
            AdmissionPolicy::Vfb { share } => by_visits(visits, sizes, share),
            AdmissionPolicy::Qtf => by_frequency(visits, sizes),
            AdmissionPolicy::QtfDf => by_frequency_over_length(visits, sizes),
        };
        Ok(Self { steps })
    }

    /// What is held of each list with `budget_bytes`. What doesn't fit any more is passed over, and the list with it; later
    /// ones that fit are taken.
    #[must_use]
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
