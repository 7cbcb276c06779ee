//! BM25 shares of a run of postings at once.
//!
//! A share is a gathered norm, a conversion, a product, a sum and a quotient. All but the gather are vector operations
//! for eight postings:
//!
//! ```text
//! docs   7  9 40 41 ...      norms[doc]   one load each, most from the L1 cache
//! freqs  1  3  1  2 ...      (weight * tf) / (tf + norm)   each step rounded once: the bits of `Bm25::score`
//! ```
//!
//! One body is compiled twice, with AVX2 and without. The compiler may neither reorder nor fuse float operations, so
//! both give the same bits.

use crate::index::Bm25;

/// Writes the share of each posting, `Bm25::score(weight, freq, norms[doc])`, to the same place of `out`. Panics if the
/// slices differ in length, or a document has no norm.
#[inline]
pub(crate) fn score_block(docs: &[u32], freqs: &[u32], weight: f32, norms: &[f32], out: &mut [f32]) {
    assert!(docs.len() == freqs.len() && docs.len() == out.len(), "one frequency and one share for each document");
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the line above checked for AVX2.
        return unsafe { score_avx2(docs, freqs, weight, norms, out) };
    }
    score(docs, freqs, weight, norms, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn score_avx2(docs: &[u32], freqs: &[u32], weight: f32, norms: &[f32], out: &mut [f32]) {
    score(docs, freqs, weight, norms, out);
}

#[inline(always)]
fn score(docs: &[u32], freqs: &[u32], weight: f32, norms: &[f32], out: &mut [f32]) {
    // One vectorised check for all documents costs less than the loads; separate checks cost more.
    let largest = docs.iter().fold(0, |largest, &doc| largest.max(doc)) as usize;
    assert!(docs.is_empty() || largest < norms.len(), "document {largest} of {} has no norm", norms.len());
    for ((share, &doc), &freq) in out.iter_mut().zip(docs).zip(freqs) {
        // SAFETY: no document exceeds the largest, which the assertion checked.
        let norm = unsafe { *norms.get_unchecked(doc as usize) };
        *share = Bm25::score(weight, freq, norm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_bodies_give_the_bits_of_bm25_score() {
        let norms: Vec<f32> = (0..5000_u32).map(|i| 0.3 + (i * 7919 % 1013) as f32 / 97.0).collect();
        for len in [0, 1, 7, 8, 9, 127, 128] {
            let docs: Vec<u32> = (0..len).map(|i| i * 39 + i % 3).collect();
            let freqs: Vec<u32> =
                (0..len).map(|i| [1, 2, 3, 255, 1 << 24, (1 << 24) + 1, u32::MAX][i as usize % 7]).collect();
            for weight in [1.0e-6, 0.37, 12.5] {
                let expected: Vec<u32> = (docs.iter().zip(&freqs))
                    .map(|(&doc, &freq)| Bm25::score(weight, freq, norms[doc as usize]).to_bits())
                    .collect();
                type Body = fn(&[u32], &[u32], f32, &[f32], &mut [f32]);
                for body in [score as Body, score_block as Body] {
                    let mut out = vec![0.0; len as usize];
                    body(&docs, &freqs, weight, &norms, &mut out);
                    assert!(out.iter().map(|share| share.to_bits()).eq(expected.iter().copied()), "length {len}");
                }
            }
        }
    }
}
