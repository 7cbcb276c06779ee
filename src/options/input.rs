//! An index and a query log.

use std::path::PathBuf;
use std::sync::Arc;

use tandem_engine::index::{FILE_NAME, Index};
use tandem_engine::query::{LogFormat, LogOptions};

use super::names::choice;
use crate::defaults;
use crate::failure::Failure;

/// An index and a query log: those that the user names, or a synthetic index with its queries.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct IndexAndLog {
    /// Folder of the index [default: a synthetic index, made in `out/` on first use]
    pub(crate) index: Option<PathBuf>,
    /// Query log in any common form, plain or compressed: one query per line, columns, JSON, TREC topics, slow logs
    #[arg(long, value_name = "FILE")]
    pub(crate) queries: Option<PathBuf>,
    #[command(flatten)]
    form: LogForm,
}

/// The form of a query log whose lines are ambiguous.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LogForm {
    /// Form of the query log [default: recognised from its lines]
    #[arg(long, value_name = "FORM", requires = "queries", value_parser = choice::<LogFormat>())]
    log_format: Option<LogFormat>,
    /// Column of the query log that holds the query, counted from 1 [default: recognised from its lines]
    #[arg(long, value_name = "N", requires = "queries", value_parser = clap::value_parser!(u16).range(1..))]
    column: Option<u16>,
}

impl LogForm {
    /// The form for the reader of logs.
    pub(crate) fn options(&self) -> LogOptions {
        LogOptions { format: self.log_format, column: self.column.map(usize::from), limit: None }
    }
}

impl IndexAndLog {
    /// The form that the user states.
    pub(crate) fn form(&self) -> LogOptions {
        self.form.options()
    }

    /// The opened index and the path of the log. `purpose` says in the error why a log is needed.
    pub(crate) fn open(&self, purpose: &str) -> Result<(Arc<Index>, PathBuf), Failure> {
        match (&self.index, &self.queries) {
            (Some(index), Some(queries)) => Ok((Arc::new(Index::open(index)?), queries.clone())),
            (Some(index), None) => {
                // A wrong name of the index is reported first.
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
