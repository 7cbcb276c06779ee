//! Answers, compared to the bit.

use crate::ExperimentError;
use crate::huang::ranges::strategy::Strategy;
use tandem_core::query::Query;
use tandem_core::search::{Answers, Hit};

/// Checks a batch's answers; `expected` has as many hits of each query or more.
///
/// # Errors
/// [`ExperimentError::Wrong`] if one differs.
pub(super) fn check<'a>(
    strategy: Strategy,
    k: usize,
    queries: impl Iterator<Item = (&'a Query, &'a Vec<Hit>)>,
    found: &Answers,
) -> Result<(), ExperimentError> {
    for ((query, expected), found) in queries.zip(found.iter()) {
        let expected = &expected[..k.min(expected.len())];
        let same = |(a, b): (&Hit, &Hit)| a.doc == b.doc && a.score.to_bits() == b.score.to_bits();
        if expected.len() != found.len() || !expected.iter().zip(found).all(same) {
            return Err(ExperimentError::Wrong(format!(
                "query {} gets other results on the GPU: {}, top {k}",
                query.label,
                strategy.name()
            )));
        }
    }
    Ok(())
}
