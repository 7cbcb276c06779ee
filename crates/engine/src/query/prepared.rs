//! Queries that are ready to run.

use std::collections::BTreeMap;

use tandem_base::base::ids::{QueryId, TermId};

use crate::index::Index;

/// One distinct term of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryTerm {
    /// The term.
    pub term: TermId,
    /// Documents that contain it.
    pub doc_freq: u32,
    /// Its number of occurrences in the query, or its weight.
    pub qtf: u32,
}

/// Distinct terms of a query in one index, in the order in which every executor adds scores: ascending document
/// frequency, then term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Its number in its log.
    pub id: QueryId,
    /// Its name in its log, for TREC runs; the number where the log gives none.
    pub label: String,
    /// Its terms; at least one.
    pub terms: Vec<QueryTerm>,
    /// Terms of the log's query that are not in the index. AND ignores them, as the papers do.
    pub dropped_terms: u32,
}

impl Query {
    /// The most distinct terms that executors accept; a GPU accepts fewer.
    pub const MAX_TERMS: usize = 1024;

    /// Looks up `terms` in `index`; repeated terms count as weights. `None` if no term is in the index.
    pub fn prepare<S: AsRef<str>>(id: QueryId, label: &str, terms: &[S], index: &Index) -> Option<Self> {
        Self::counted(id, label, terms.iter().map(|term| (term, 1)), index)
    }

    /// Like [`prepare`](Self::prepare), from terms with their counts or weights.
    pub fn counted<S: AsRef<str>>(
        id: QueryId,
        label: &str,
        terms: impl IntoIterator<Item = (S, u32)>,
        index: &Index,
    ) -> Option<Self> {
        let mut counts = BTreeMap::new();
        let mut dropped_terms = 0;
        for (term, count) in terms {
            match index.term(term.as_ref()) {
                Some(term) => {
                    let sum: &mut u32 = counts.entry(term).or_default();
                    *sum = sum.saturating_add(count);
                }
                None => dropped_terms += 1,
            }
        }
        let mut terms: Vec<QueryTerm> = counts
            .into_iter()
            .map(|(term, qtf)| QueryTerm { term, doc_freq: index.list(term).doc_freq(), qtf })
            .collect();
        terms.sort_by_key(|t| (t.doc_freq, t.term));
        (!terms.is_empty()).then(|| Self { id, label: label.to_owned(), terms, dropped_terms })
    }
}
