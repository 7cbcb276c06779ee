//! M5 rules: model trees read off as rules, the cost model of Ding et al. 2009 (section 9, by Weka).
//!
//! A model tree asks as a regression tree does, but its leaves hold linear models of what was asked on the way. Rules come
//! of it one at a time: a tree is grown on what no rule covers yet, its largest leaf becomes a rule, and what that covers is
//! put aside:
//!
//! ```text
//! if postings <= 181200 and terms > 2:  us = 31.2 + 0.0021 * postings + 4.1 * terms
//! else if shortest <= 5000:             us = 12.0 + 0.0030 * postings
//! else:                                 us = 90.4 + 0.0011 * postings + 0.0040 * shortest
//! ```
//!
//! As published, it sees the four features of the paper and is fitted to microseconds, not to their logarithms: short
//! queries' relative errors count for little in it. It is here to be compared with.
//!
//! | file | what |
//! | --- | --- |
//! | `linear.rs` | linear models: least squares, terms dropped while that lowers the error that is expected |
//! | `grow.rs` | model trees: splits by standard deviation, pruned, smoothed |
//! | `rules.rs` | rules, their fit and their form in files |
//!
//! Source: Quinlan, "Learning with Continuous Classes", AI 1992; Wang and Witten, "Inducing Model Trees for Continuous
//! Classes", ECML 1997; Holmes, Hall and Frank, "Generating Rule Sets from Model Trees", AI 1999.

mod grow;
mod linear;
mod rules;

pub(in crate::cost) use rules::Rules;

/// The published features: positions among the inputs.
pub(super) const PUBLISHED: [usize; 4] = [0, 1, 2, 3];

/// A query as the rules see it.
type Row = [f64; PUBLISHED.len()];
