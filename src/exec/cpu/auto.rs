//! Which algorithm a disjunction should run.

use super::algorithm::Algorithm;
use crate::query::QueryTerm;

/// The algorithm that should be the quickest for a query of these terms.
pub(super) fn choose(_terms: &[QueryTerm]) -> Algorithm {
    Algorithm::Ranges
}
