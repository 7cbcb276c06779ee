//! Huang, Ren, Zhao, Stones, Zhang, Wang, Liu: GPU-accelerated block-max query processing (2017).
//!
//! | folder | contents |
//! | --- | --- |
//! | `ranges/` | the paper's system: AND, OR, WAND and BMW by document ranges on CPU and GPUs; kernels in `kernels/huang/` |
//! | `experiments/` | the paper's tables and figures |

pub(crate) mod experiments;
mod ranges;
