//! M5 rules: model trees turned into rules, the cost model of Ding et al. 2009 (section 9, by Weka).
//!
//! A model tree asks questions like a regression tree, but its leaves hold linear models of the inputs on their path.
//! Rules are made one at a time: a tree is grown on the samples that no rule covers yet, its largest leaf becomes a
//! rule, and the samples that it covers are removed:
//!
//! ```text
//! if postings <= 181200 and terms > 2:  us = 31.2 + 0.0021 * postings + 4.1 * terms
//! else if shortest <= 5000:             us = 12.0 + 0.0030 * postings
//! else:                                 us = 90.4 + 0.0011 * postings + 0.0040 * shortest
//! ```
//!
//! As published, it reads the paper's four features and is fitted to microseconds, not to their logarithms, so relative
//! errors of short queries count little. It serves comparisons.
//!
//! | file | contents |
//! | --- | --- |
//! | `linear.rs` | linear models: least squares, without terms that raise the expected error |
//! | `grow.rs` | model trees: splits by standard deviation, pruned, smoothed |
//! | `rules.rs` | rules, their fit and their form in files |
//!
//! Source: Quinlan, "Learning with Continuous Classes", AI 1992; Wang and Witten, "Inducing Model Trees for Continuous
//! Classes", ECML 1997; Holmes, Hall and Frank, "Generating Rule Sets from Model Trees", AI 1999.

mod grow;
mod linear;
mod rules;

pub(crate) use rules::Rules;

/// Positions of the published features among the inputs.
pub(crate) const PUBLISHED: [usize; 4] = [0, 1, 2, 3];

type PublishedRow = [f64; PUBLISHED.len()];
