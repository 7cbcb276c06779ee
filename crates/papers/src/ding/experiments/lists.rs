//! The lists that the experiments of Ding et al. share: those of the queries' terms.

use std::collections::BTreeSet;

use crate::Input;
use tandem_core::base::ids::TermId;

/// Documents of TREC GOV2, which the synthetic index stands for.
pub(super) const GOV2_DOCS: u32 = 25_200_000;

/// Distinct terms of the queries.
pub(super) fn terms(input: &Input) -> Vec<TermId> {
    let terms: BTreeSet<TermId> = input.queries.iter().flat_map(|query| &query.terms).map(|term| term.term).collect();
    terms.into_iter().collect()
}
