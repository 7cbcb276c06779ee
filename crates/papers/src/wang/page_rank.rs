//! PageRank from a file, or drawn if there is none.

use std::io::BufRead;
use std::path::Path;

use tandem_model::base::random::{Random, ln};
use tandem_model::files::open_text;

use crate::{ExperimentError, Result};

/// Random stream of drawn PageRanks.
const PAGE_RANK_STREAM: u64 = 11;
/// Exponent of the tail of PageRank on the web: the share of pages above x falls as x^-1.1 (Pandurangan, Raghavan,
/// Upfal 2002).
const TAIL: f64 = 1.1;

/// Draws a number from 0 to 1 per document, each equally likely, as PageRanks normalised by rank are.
pub(crate) fn draw_uniform(num_docs: u32, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed, PAGE_RANK_STREAM);
    (0..num_docs).map(|_| random.unit() as f32).collect()
}

/// Draws a number from 0 to 1 per document; the largest is 1.
///
/// Drawn numbers are logarithms of the web's power law. Scaling the power law itself linearly would leave almost all
/// documents near 0.
pub(crate) fn draw(num_docs: u32, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed, PAGE_RANK_STREAM);
    let ranks: Vec<f64> = (0..num_docs).map(|_| -ln(random.unit()) / TAIL).collect();
    scaled(&ranks)
}

/// Reads one number of at least 0 per line, in the order of the index's documents; only their ratios count. Names file
/// and line if a line is not such a number, or if the count differs from the documents.
pub(crate) fn read(path: &Path, num_docs: u32) -> Result<Vec<f32>> {
    let fault = |message: String| ExperimentError::Input(format!("{}:{message}", path.display()));
    let text = open_text(path).map_err(|e| ExperimentError::Input(e.to_string()))?;
    let mut ranks = Vec::with_capacity(num_docs as usize);
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.map_err(|e| fault(format!("{line}: {e}")))?;
        let rank = text.trim().parse::<f64>().ok().filter(|rank| rank.is_finite() && *rank >= 0.0);
        let Some(rank) = rank else {
            return Err(fault(format!("{line}:1: PageRank is {text:?}, expected a number of at least 0")));
        };
        ranks.push(rank);
    }
    if ranks.len() != num_docs as usize {
        return Err(fault(format!(" {} numbers, expected one for each of the {num_docs} documents", ranks.len())));
    }
    Ok(scaled(&ranks))
}

fn scaled(ranks: &[f64]) -> Vec<f32> {
    let largest = ranks.iter().copied().fold(0.0, f64::max);
    let scale = if largest > 0.0 { 1.0 / largest } else { 0.0 };
    ranks.iter().map(|rank| (rank * scale) as f32).collect()
}
