//! Top-k queries by document ranges, as Huang et al. published them: AND, OR, WAND and Block-Max WAND on one GPU or
//! several, and on one thread of a CPU.
//!
//! The documents of the collection are cut into P ranges of ⌈N/P⌉. Whoever owns a range goes through it a document at a
//! time, with a top-k of its own, as if there were no other; then the P top-k are merged:
//!
//! ```text
//!             0            d            2d           3d           N        d = ⌈N / P⌉
//! term a      |##|###|##|##|#|###|##|###|##|##|#|####|##|###|##|##|        blocks of 64 postings: least and greatest
//! term b      |######|#########|##########|########|#########|####|        document, best score
//!             └─ owner 0 ──┴─ owner 1 ──┴─ owner 2 ──┴─ owner 3 ──┘
//!                 top-k        top-k        top-k        top-k  ──insertion merge──▶ top-k
//! ```
//!
//! A block across a border is decoded by both owners. On a GPU a query is a thread block and an owner a thread
//! (`kernels/huang/`); on the CPU one thread is the owner of all documents. Each piece is here in Rust, which is what the
//! CPU's column measures and what the kernels are compared with, and there in CUDA:
//!
//! | step | here | there |
//! | --- | --- | --- |
//! | the index: NewPFD blocks of 64 | [`list`], [`index`] | `ranges.cuh` |
//! | a cursor over a list within a range | [`cursor`] | `cursor.cuh` |
//! | the four strategies | [`and`], [`or`], [`wand`], [`bmw`] | `and.cu`, `or.cu`, `wand.cu`, `bmw.cu` |
//! | top-k of a range, merging | [`top_k`] | `top_k.cuh`, `merge.cuh` |
//! | batches: what travels, when they close | [`batch`] | |
//! | several GPUs: batches dealt out | [`deal`] | |
//!
//! Documents and bits of scores are the same for every P, strategy of disjunction, batch and number of GPUs: a document's
//! terms are added in the query's order, and equal scores go to the smaller document.
//!
//! Source: Huang, Ren, Zhao, Stones, Zhang, Wang, Liu, "GPU-Accelerated Block-Max Query Processing", 2017.

pub(crate) mod and;
pub(crate) mod batch;
pub(crate) mod bmw;
pub(crate) mod cursor;
pub(crate) mod deal;
pub(crate) mod gpu;
pub(crate) mod index;
pub(crate) mod list;
pub(crate) mod or;
pub(crate) mod range;
pub(crate) mod search;
pub(crate) mod strategy;
#[cfg(test)]
mod tests;
pub(crate) mod top_k;
pub(crate) mod wand;
