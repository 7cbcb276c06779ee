//! Timing and checks of answers that experiments share.

use std::time::Instant;

use crate::Result;
#[cfg(feature = "gpu")]
use tandem_engine::search::Hit;

/// Returns the shortest of `repeats` durations of `work`, in microseconds.
pub(crate) fn fastest_us(repeats: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut fastest = f64::INFINITY;
    for _ in 0..repeats {
        let began = Instant::now();
        work()?;
        fastest = fastest.min(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(fastest)
}

/// Returns whether documents and the bits of scores are equal.
#[cfg(feature = "gpu")]
pub(crate) fn are_equal(a: &[Hit], b: &[Hit]) -> bool {
    let same = |(a, b): (&Hit, &Hit)| a.doc == b.doc && a.score.to_bits() == b.score.to_bits();
    a.len() == b.len() && a.iter().zip(b).all(same)
}
