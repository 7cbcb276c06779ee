//! Keeps those of eight documents whose scores are above a threshold, without a branch per document.
//!
//! ```text
//! scores    2.1  0.4  3.3  0.9  1.8  0.2  0.1  2.2        threshold 1.0
//! above     x         x         x              x          as bits: 1001 0101, the row of a table
//! kept      2.1  3.3  1.8  2.2  .    .    .    .          one shuffle by that row
//! ```

use super::comparison::STEP;

/// For every set of eight lanes, its lanes in ascending order, one byte each.
static LANES_OF: [u64; 256] = {
    let mut table = [0; 256];
    let mut set = 0;
    while set < table.len() {
        let (mut lane, mut count) = (0, 0);
        while lane < STEP {
            if set >> lane & 1 == 1 {
                table[set] |= (lane as u64) << (8 * count);
                count += 1;
            }
            lane += 1;
        }
        set += 1;
    }
    table
};

/// The documents of eight lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Docs<'a> {
    /// These documents.
    These(&'a [u32; STEP]),
    /// Consecutive documents from this one on.
    From(u32),
}

/// Adds `shares`, if given, to `scores`, and writes the documents and sums of lanes with a sum above `threshold` to the
/// first places of `kept`. Later places are unspecified. Returns their number.
#[inline(always)]
pub(crate) fn sift(
    docs: Docs<'_>,
    scores: &[f32; STEP],
    shares: Option<&[f32; STEP]>,
    threshold: f32,
    kept: (&mut [u32; STEP], &mut [f32; STEP]),
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the line above checked for AVX2.
        return unsafe { sift_avx2(docs, scores, shares, threshold, kept) };
    }
    sift_portable(docs, scores, shares, threshold, kept)
}

#[inline(always)]
fn sift_portable(
    docs: Docs<'_>,
    scores: &[f32; STEP],
    shares: Option<&[f32; STEP]>,
    threshold: f32,
    (kept_docs, kept_scores): (&mut [u32; STEP], &mut [f32; STEP]),
) -> usize {
    let mut count = 0;
    for lane in 0..STEP {
        let score = scores[lane] + shares.map_or(0.0, |shares| shares[lane]);
        kept_docs[count % STEP] = match docs {
            Docs::These(docs) => docs[lane],
            Docs::From(first) => first + lane as u32,
        };
        kept_scores[count % STEP] = score;
        count += usize::from(score > threshold);
    }
    count
}

// POPCNT is not enabled here because `sift` does not check for it. Inlined into a caller with POPCNT, the count still
// becomes one instruction.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn sift_avx2(
    docs: Docs<'_>,
    scores: &[f32; STEP],
    shares: Option<&[f32; STEP]>,
    threshold: f32,
    (kept_docs, kept_scores): (&mut [u32; STEP], &mut [f32; STEP]),
) -> usize {
    use std::arch::x86_64::*;
    let mut scores: __m256 = bytemuck::cast(*scores);
    if let Some(shares) = shares {
        scores = _mm256_add_ps(scores, bytemuck::cast(*shares));
    }
    let set = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(scores, _mm256_set1_ps(threshold)));
    let from = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(LANES_OF[set as usize % LANES_OF.len()] as i64));
    *kept_docs = bytemuck::cast(match docs {
        Docs::These(docs) => _mm256_permutevar8x32_epi32(bytemuck::cast(*docs), from),
        Docs::From(first) => _mm256_add_epi32(_mm256_set1_epi32(first as i32), from),
    });
    *kept_scores = bytemuck::cast(_mm256_permutevar8x32_ps(scores, from));
    set.count_ones() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sifted_is_what_is_above_the_threshold() {
        let docs = [3, 9, 11, 17, 18, 22, 40, 41];
        let shares = [0.25, 1.0, 0.0, 0.5, 0.5, 0.25, 2.0, 0.0];
        for set in 0..256_u32 {
            let scores: [f32; STEP] = std::array::from_fn(|lane| (set >> lane & 1) as f32);
            for (docs, shares) in
                [(Docs::These(&docs), Some(&shares)), (Docs::From(70), Some(&shares)), (Docs::From(1), None)]
            {
                let doc = |lane: usize| match docs {
                    Docs::These(docs) => docs[lane],
                    Docs::From(first) => first + lane as u32,
                };
                let score = |lane: usize| scores[lane] + shares.map_or(0.0, |shares| shares[lane]);
                let expected: Vec<(u32, f32)> =
                    (0..STEP).filter(|&lane| score(lane) > 0.75).map(|lane| (doc(lane), score(lane))).collect();
                for sift in [sift, sift_portable] {
                    let (mut kept_docs, mut kept_scores) = ([0; STEP], [0.0; STEP]);
                    let count = sift(docs, &scores, shares, 0.75, (&mut kept_docs, &mut kept_scores));
                    let kept: Vec<(u32, f32)> = kept_docs.into_iter().zip(kept_scores).take(count).collect();
                    assert_eq!(kept, expected, "{set:b}");
                }
            }
        }
    }
}
