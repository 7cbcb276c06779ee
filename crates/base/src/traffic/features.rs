//! Features of a query that are known before it runs and predict its cost.

use serde::{Deserialize, Serialize};

use crate::base::ids::BLOCK_LEN;

/// List-length features. The first four are those of Ding et al. 2009, section 9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Features {
    /// Distinct terms found in the index.
    pub terms: u32,
    /// Postings in the shortest list.
    pub shortest: u64,
    /// Postings in the second shortest list; the shortest again for a query of one term.
    pub second_shortest: u64,
    /// Postings in all lists.
    pub postings: u64,
    /// Postings in the longest list.
    pub longest: u64,
    /// Blocks in all lists, which a GPU decodes for OR.
    pub blocks: u64,
    /// Upper bound of the blocks that AND decodes: in each further list at most one for each posting of the shortest.
    pub and_blocks: u64,
    /// Documents that AND would find if terms were independent. NaN where only the first four features are certain
    /// ([`is_complete`](Self::is_complete)).
    pub expected_matches: f64,
}

impl Features {
    /// The length of [`Features::vector`].
    pub const COUNT: usize = 8;
    /// Their column names, in order.
    pub const NAMES: [&'static str; Self::COUNT] =
        ["terms", "shortest", "second_shortest", "postings", "longest", "blocks", "and_blocks", "expected_matches"];

    /// The features of lists of these lengths, ascending, in a collection of `num_docs`.
    pub fn from_lengths(lengths: &[u64], num_docs: u64) -> Self {
        let block_len = BLOCK_LEN as u64;
        let shortest = lengths.first().copied().unwrap_or(0);
        let rest = lengths.get(1..).unwrap_or_default();
        let own_blocks = shortest.div_ceil(block_len);
        Self {
            terms: lengths.len() as u32,
            shortest,
            second_shortest: rest.first().copied().unwrap_or(shortest),
            postings: lengths.iter().sum(),
            longest: lengths.last().copied().unwrap_or(0),
            blocks: lengths.iter().map(|n| n.div_ceil(block_len)).sum(),
            and_blocks: own_blocks + rest.iter().map(|n| n.div_ceil(block_len).min(shortest)).sum::<u64>(),
            expected_matches: rest
                .iter()
                .fold(shortest as f64, |matches, &n| matches * n as f64 / num_docs.max(1) as f64),
        }
    }

    /// Whether all features are known. A workload file may have the published columns only, which don't determine the
    /// others for queries of many terms. Such a query can be played, but no model can predict its cost.
    pub fn is_complete(&self) -> bool {
        !self.expected_matches.is_nan()
    }

    /// The features as numbers, in the order of [`Features::NAMES`].
    pub fn vector(&self) -> [f64; Self::COUNT] {
        [
            f64::from(self.terms),
            self.shortest as f64,
            self.second_shortest as f64,
            self.postings as f64,
            self.longest as f64,
            self.blocks as f64,
            self.and_blocks as f64,
            self.expected_matches,
        ]
    }
}
