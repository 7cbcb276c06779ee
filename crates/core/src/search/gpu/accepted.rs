//! Limits of the kernels. A CPU takes longer queries and more results.

use crate::query::Query;
use crate::search::{self, ExecError};

/// The most terms of a query, `MAX_TERMS` in tandem.cuh.
pub const MAX_TERMS: usize = 64;

/// The largest `k`, `MAX_K` in tandem.cuh.
pub const MAX_K: usize = 1000;

/// Checks a query and its `k` against the limits of the kernels.
///
/// # Errors
/// [`ExecError::BeyondGpu`] if only a CPU can take it, else the errors of [`search::check`].
pub fn check(query: &Query, k: usize) -> Result<(), ExecError> {
    search::check(query, k)?;
    let within = |what, count, most, cpu_most| {
        if count <= most { Ok(()) } else { Err(ExecError::BeyondGpu { what, count, most, cpu_most }) }
    };
    within("k is", k, MAX_K, search::MAX_K)?;
    within("the number of the query's terms is", query.terms.len(), MAX_TERMS, Query::MAX_TERMS)
}
