//! The CPU side of Ding et al.: exhaustive, a document at a time, on lists packed by PForDelta in blocks.

use std::sync::Arc;

use super::conjunction::intersect;
use super::disjunction::unite;
use super::lists::CodedLists;
use tandem_core::base::machine::Class;
use tandem_core::query::{Mode, Query};
use tandem_core::search::{ExecError, Execution, Executor, Hit, TopK, check};

/// Searches coded lists on the caller's core. Queries may only ask for terms whose lists were coded.
#[derive(Debug)]
pub(crate) struct DaatExecutor {
    lists: Arc<CodedLists>,
    best: TopK,
}

impl DaatExecutor {
    /// Searches these lists.
    pub(crate) fn new(lists: Arc<CodedLists>) -> Self {
        Self { lists, best: TopK::default() }
    }
}

impl Executor for DaatExecutor {
    fn class(&self) -> Class {
        Class::CPU
    }

    fn device(&self) -> String {
        format!("one core, a document at a time, lists in {}", self.lists.codec())
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        check(query, k)?;
        hits.clear();
        if mode != Mode::Or {
            self.best.reset(k);
            intersect(&self.lists, &query.terms, &mut self.best);
            self.best.drain_into(hits);
        }
        if mode == Mode::Or || (mode == Mode::AndOr && hits.len() < k) {
            self.best.reset(k);
            unite(&self.lists, &query.terms, &mut self.best);
            self.best.drain_into(hits);
        }
        Ok(Execution::default())
    }
}
