//! An index and a query log.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{Failure, defaults};
use tandem_core::index::{FILE_NAME, Index};

/// An index and a query log: those that the user names, or a synthetic index with queries of its own.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct IndexAndLog {
    /// Folder of the index; left out, a synthetic one, made in `out/` on first use
    pub(crate) index: Option<PathBuf>,
    /// Query log: one query a line, `id<TAB>query` or PISA's `id:query`, JSON lines with a `query`, or TREC topics; plain,
    /// .gz or .zst
    #[arg(long, value_name = "FILE")]
    pub(crate) queries: Option<PathBuf>,
}

impl IndexAndLog {
    /// The index, opened, and the path of the log; `purpose` is what a log is missed for.
    pub(crate) fn open(&self, purpose: &str) -> Result<(Arc<Index>, PathBuf), Failure> {
        match (&self.index, &self.queries) {
            (Some(index), Some(queries)) => Ok((Arc::new(Index::open(index)?), queries.clone())),
            (Some(index), None) => {
                // Whoever slips with its name should hear that first.
                if !index.join(FILE_NAME).exists() {
                    Index::open(index)?;
                }
                Err(Failure::input(format!("{purpose}? name a query log: --queries FILE")))
            }
            (None, queries) => {
                let (index, its_queries) = defaults::default_index()?;
                Ok((index, queries.clone().unwrap_or(its_queries)))
            }
        }
    }
}
