//! PageRank: read from a file, or drawn where there is no link to rank by.

use std::io::BufRead;
use std::path::Path;

use crate::ExperimentError;
use tandem_core::base::random::{Random, ln};
use tandem_core::files::open_text;

/// The stream of the draws.
const PAGE_RANK_STREAM: u64 = 11;
/// The tail of PageRank on the web: the share of pages above x falls as x^-1.1 (Pandurangan, Raghavan, Upfal 2002).
const TAIL: f64 = 1.1;

/// One number from 0 to 1 a document, the largest being 1.
///
/// Drawn ones follow the web's power law and are the logarithms of that: a linear share of the power law itself would
/// leave all documents but a handful at nothing.
pub(super) fn draw(num_docs: u32, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed, PAGE_RANK_STREAM);
    let ranks: Vec<f64> = (0..num_docs).map(|_| -ln(random.unit()) / TAIL).collect();
    scaled(&ranks)
}

/// Reads one number of at least 0 a line, in the order of the index's documents; only their ratios count.
///
/// # Errors
/// With file and line, if one is no such number, or they are not as many as there are documents.
pub(super) fn read(path: &Path, num_docs: u32) -> Result<Vec<f32>, ExperimentError> {
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
