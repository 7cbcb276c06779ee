//! The cut of a query into tasks.
//!
//! A task is a range of documents. Tasks are numbered in ascending order, so a run of neighbouring tasks is a range,
//! too.

use std::ops::Range;

use tandem_base::base::ids::DocId;

use super::claims::MAX_TASKS;
use crate::index::Index;
use crate::query::QueryTerm;
use crate::search::cpu::executor::Pass;

/// The least blocks of the leading list per AND task: 256 postings, half a skip block of Tatikonda et al. Searching
/// them takes microseconds, and starting a task takes tenths of one. Smaller tasks cost noticeably; larger ones leave
/// cores idle on queries with a short rarest list.
const AND_BLOCKS: usize = 2;
/// The least blocks of the leading list per OR task. An OR adds up all lists in bulk, which needs long tasks.
const OR_BLOCKS: usize = 32;

/// The cut of queries by blocks of one list: AND's rarest, which leads the search, or OR's longest, which holds most of the
/// work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partition {
    /// The most useful tasks. Each task has to find its beginning in every list.
    pub(crate) most_tasks: usize,
}

impl Partition {
    /// The number of tasks of a pass over these lists, at least 1.
    pub(crate) fn num_tasks(self, index: &Index, terms: &[QueryTerm], pass: Pass) -> u32 {
        let num_blocks = leader(index, terms, pass).len();
        num_blocks.div_ceil(blocks_a_task(num_blocks, self.most_tasks, pass)).max(1) as u32
    }

    pub(crate) fn range(self, index: &Index, terms: &[QueryTerm], pass: Pass, tasks: Range<u32>) -> Range<DocId> {
        let last_docs = leader(index, terms, pass);
        let step = blocks_a_task(last_docs.len(), self.most_tasks, pass);
        let bound = |task: u32| match task as usize * step {
            0 => DocId(0),
            // The last task includes documents after the list's end, for the other lists.
            blocks if blocks >= last_docs.len() => DocId::END,
            blocks => DocId(last_docs[blocks - 1] + 1),
        };
        bound(tasks.start)..bound(tasks.end)
    }
}

/// The last documents of the leading list's blocks.
fn leader<'a>(index: &'a Index, terms: &[QueryTerm], pass: Pass) -> &'a [u32] {
    let leader = match pass {
        Pass::And => terms.first(),
        Pass::Or => terms.last(),
    };
    leader.map_or(&[], |term| index.list(term.term).last_docs())
}

fn blocks_a_task(num_blocks: usize, most_tasks: usize, pass: Pass) -> usize {
    let blocks = match pass {
        Pass::And => AND_BLOCKS,
        Pass::Or => OR_BLOCKS,
    };
    blocks.max(num_blocks.div_ceil(most_tasks.min(MAX_TASKS)))
}
