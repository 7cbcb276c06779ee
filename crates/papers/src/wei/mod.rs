//! Wei, JaJa: A fast algorithm for constructing inverted files on heterogeneous platforms (IPDPS 2011).
//!
//! | folder | contents |
//! | --- | --- |
//! | `trie/` | the paper's indexer: a trie of B-trees, on CPU cores and GPUs; kernels in `kernels/wei/` |
//! | `experiments/` | the paper's tables and figures |

pub(crate) mod experiments;
pub mod trie;
