//! Summaries, CSV files and plots.

mod effectiveness;
mod trec;

pub use effectiveness::{Effectiveness, Judgements, Qrels, average_precision, ndcg};
pub use trec::{Ranking, write_run_csv, write_run_trec};
