//! Which way to share work among GPUs is quicker.
//!
//! One GPU takes a fixed time for a query and a time for each posting of its lists; both are fitted. With G GPUs
//!
//! ```text
//! by queries      one query      fixed + each · postings            many     (fixed + each · postings) / G a query
//! by documents    one query      fixed + each · postings / G + merge   many     fixed + each · postings / G
//! ```
//!
//! So many queries together are never quicker by documents, and an index that doesn't fit a GPU can't be shared otherwise.

/// How GPUs share work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each has the whole index.
    ByQueries,
    /// Each has the lists of a range of documents.
    ByDocuments,
}

/// What one GPU takes for a query, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryCost {
    /// Whatever its lists are.
    pub fixed_us: f64,
    /// For each posting in them.
    pub posting_us: f64,
}

/// Microseconds that merging the results of several GPUs takes, and waiting for the slowest.
const MERGE_US: f64 = 2.0;

impl QueryCost {
    /// The line through these measurements, (postings, microseconds), with the least squares; flat where all queries are
    /// equally long, and never falling.
    #[must_use]
    pub fn fit(measured: &[(u64, f64)]) -> Self {
        let n = measured.len().max(1) as f64;
        let mean_postings = measured.iter().map(|&(postings, _)| postings as f64).sum::<f64>() / n;
        let mean_us = measured.iter().map(|&(_, us)| us).sum::<f64>() / n;
        let (mut product, mut square) = (0.0, 0.0);
        for &(postings, us) in measured {
            let distance = postings as f64 - mean_postings;
            product += distance * (us - mean_us);
            square += distance * distance;
        }
        let posting_us = if square > 0.0 { (product / square).max(0.0) } else { 0.0 };
        Self { fixed_us: (mean_us - posting_us * mean_postings).max(0.0), posting_us }
    }

    /// Predicted microseconds a query of so many postings on `gpus` GPUs, many together or one alone.
    #[must_use]
    pub fn predict_us(&self, layout: Layout, gpus: usize, postings: u64, together: bool) -> f64 {
        let gpus = gpus.max(1) as f64;
        let scored = self.posting_us * postings as f64;
        match (layout, together) {
            (Layout::ByQueries, false) => self.fixed_us + scored,
            (Layout::ByQueries, true) => (self.fixed_us + scored) / gpus,
            (Layout::ByDocuments, false) => self.fixed_us + scored / gpus + if gpus > 1.0 { MERGE_US } else { 0.0 },
            (Layout::ByDocuments, true) => self.fixed_us + scored / gpus,
        }
    }
}

/// The layout that is predicted to be quicker for queries of so many postings; by documents if the index, `index_bytes` on a
/// GPU, exceeds what is free there.
#[must_use]
pub fn choose(
    cost: &QueryCost,
    gpus: usize,
    postings: u64,
    together: bool,
    index_bytes: u64,
    free_bytes: u64,
) -> Layout {
    let predict = |layout| cost.predict_us(layout, gpus, postings, together);
    if index_bytes > free_bytes || predict(Layout::ByDocuments) < predict(Layout::ByQueries) {
        Layout::ByDocuments
    } else {
        Layout::ByQueries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fitted_line_is_the_one_that_measurements_lie_on() {
        let measured: Vec<(u64, f64)> = (1..50).map(|i| (i * 1000, 20.0 + 0.004 * (i * 1000) as f64)).collect();
        let cost = QueryCost::fit(&measured);
        assert!((cost.fixed_us - 20.0).abs() < 1e-6 && (cost.posting_us - 0.004).abs() < 1e-9, "{cost:?}");
        assert_eq!(QueryCost::fit(&[(5, 3.0), (5, 5.0)]), QueryCost { fixed_us: 4.0, posting_us: 0.0 });
        // Noise that makes long queries look cheaper does not make them so.
        assert_eq!(QueryCost::fit(&[(1, 5.0), (1000, 3.0)]).posting_us, 0.0);
    }

    #[test]
    fn long_lone_queries_and_large_indexes_go_by_documents_and_all_else_by_queries() {
        let cost = QueryCost { fixed_us: 20.0, posting_us: 1e-6 };
        let layout = |postings, together, index_bytes| choose(&cost, 2, postings, together, index_bytes, 100);
        assert_eq!(layout(1_000_000, false, 50), Layout::ByQueries);
        assert_eq!(layout(10_000_000, false, 50), Layout::ByDocuments);
        assert_eq!(layout(10_000_000, true, 50), Layout::ByQueries);
        assert_eq!(layout(1_000, true, 101), Layout::ByDocuments);
    }
}
