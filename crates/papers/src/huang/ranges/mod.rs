//! Top-k queries by document ranges as published by Huang et al.: AND, OR, WAND and Block-Max WAND on GPUs, and on one
//! thread of a CPU.
//!
//! The documents of the collection are cut into P ranges of ⌈N/P⌉. The owner of a range processes it document at a time
//! with a top-k of its own, independently of the others. Then the P top-k are merged:
//!
//! ```text
//!             0            d            2d           3d           N        d = ⌈N / P⌉
//! term a      |##|###|##|##|#|###|##|###|##|##|#|####|##|###|##|##|        blocks of 64 postings: least and greatest
//! term b      |######|#########|##########|########|#########|####|        document, best score
//!             └─ owner 0 ──┴─ owner 1 ──┴─ owner 2 ──┴─ owner 3 ──┘
//!                 top-k        top-k        top-k        top-k  ──insertion merge──▶ top-k
//! ```
//!
//! Both owners decode a block across their border. On a GPU a query is a thread block and an owner a thread
//! (`kernels/huang/`). On the CPU one thread owns all documents. Each part exists in Rust, for the CPU's column and as
//! the twin of the kernels, and in CUDA:
//!
//! | step | Rust | CUDA |
//! | --- | --- | --- |
//! | the index: NewPFD blocks of 64 | [`list`], [`index`] | `huang.cuh` |
//! | a cursor over a list within a range | [`cursor`] | `cursor.cuh` |
//! | the four strategies | [`strategy`] | `and.cu`, `or.cu`, `wand.cu`, `bmw.cu` |
//! | top-k of a range, merging | [`top_k`] | `top_k.cuh`, `merge.cuh` |
//! | batches: copied lists, limits | [`batch`] | |
//! | several GPUs: dealing of batches | [`deal`] | |
//!
//! Documents and bits of scores are the same for every P, strategy of disjunction, batch and number of GPUs: terms are
//! added in the query's order, and equal scores go to the smaller document.
//!
//! Source: Huang, Ren, Zhao, Stones, Zhang, Wang, Liu, "GPU-Accelerated Block-Max Query Processing", 2017.

pub(crate) mod batch;
pub(crate) mod cursor;
pub(crate) mod deal;
pub(crate) mod gpu;
pub(crate) mod index;
pub(crate) mod list;
pub(crate) mod range;
pub(crate) mod scan;
pub(crate) mod search;
pub(crate) mod strategy;
#[cfg(test)]
mod tests;
pub(crate) mod top_k;
