//! Gradient boosting: many small trees, each of which corrects those before it.
//!
//! The first estimate is the mean; each tree is fitted to what is left of the targets, and a part of what it says is added:
//!
//! ```text
//! ln(us) = 3.1  +  tree 1: lookups > 800? essential_postings > 2048? ...  ->  +0.42
//!               +  tree 2: shortest > 61?  expected_found > 10?      ...  ->  -0.11
//!               +  ...
//! ```
//!
//! Trees are *symmetric*: all nodes of a level ask the same question. Such a tree is a table: the answers are the bits of
//! a row's number, so that no branch depends on a query ([`SymmetricTrees`]), and a scheduler has its estimate in a few
//! hundred nanoseconds. Each of them is weaker than a tree that is free in its questions, and harder to overfit.
//!
//! What is left of a few samples is far more than of the others, whatever is asked. Of each tree's samples the tenth that is
//! furthest off counts as no further than the rest (Huber's loss).
//!
//! Known boosting libraries grow free trees (or wrap a C++ library); none gives trees of this form, so the fit is here
//! (`grow.rs`), a hundred lines on histograms.
//!
//! Source: Friedman, "Greedy Function Approximation: A Gradient Boosting Machine", Annals of Statistics 2001, which has
//! the loss, too; symmetric trees: Kohavi and Li, "Oblivious Decision Trees, Graphs, and Top-Down Pruning", IJCAI 1995, and
//! Prokhorenkova et al., "CatBoost: Unbiased Boosting with Categorical Features", NeurIPS 2018.

mod grow;
mod stored;
mod trees;

pub(in crate::cost) use grow::BoostingOptions;
pub(in crate::cost) use stored::StoredBoosting;
pub(in crate::cost) use trees::SymmetricTrees;
