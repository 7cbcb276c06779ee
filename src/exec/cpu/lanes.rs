//! Comparisons of a few numbers at once, as bits: bit i for the i-th.
//!
//! Four lanes are an instruction of every x86-64; where the caller is compiled for wider vectors, the compiler
//! may join two of them.

/// Numbers of one step in a block.
pub(super) const STEP: usize = 8;

/// Which of four documents are below `limit`; all are below 2^31.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn below_4(docs: &[u32; 4], limit: u32) -> u32 {
    use std::arch::x86_64::{_mm_castsi128_ps, _mm_cmplt_epi32, _mm_movemask_ps, _mm_set1_epi32};
    // SAFETY: these instructions are part of every x86-64.
    unsafe {
        _mm_movemask_ps(_mm_castsi128_ps(_mm_cmplt_epi32(bytemuck::cast(*docs), _mm_set1_epi32(limit as i32)))) as u32
    }
}

/// Which of four documents are below `limit`.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn below_4(docs: &[u32; 4], limit: u32) -> u32 {
    (0..).zip(docs).fold(0, |bits, (i, &doc)| bits | u32::from(doc < limit) << i)
}

/// Which of four scores are above `floor`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn above_4(scores: &[f32; 4], floor: f32) -> u32 {
    use std::arch::x86_64::{_mm_cmpgt_ps, _mm_movemask_ps, _mm_set1_ps};
    // SAFETY: these instructions are part of every x86-64.
    unsafe { _mm_movemask_ps(_mm_cmpgt_ps(bytemuck::cast(*scores), _mm_set1_ps(floor))) as u32 }
}

/// Which of four scores are above `floor`.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn above_4(scores: &[f32; 4], floor: f32) -> u32 {
    (0..).zip(scores).fold(0, |bits, (i, &score)| bits | u32::from(score > floor) << i)
}

/// Which of at most 64 documents are below `limit`; all are below 2^31. Their number is a multiple of 4.
#[inline(always)]
pub(super) fn below<const N: usize>(docs: &[u32; N], limit: u32) -> u64 {
    let (fours, _) = docs.as_chunks::<4>();
    fours.iter().enumerate().fold(0, |bits, (i, four)| bits | u64::from(below_4(four, limit)) << (4 * i))
}

/// Which of at most 64 scores are above `floor`. Their number is a multiple of 4.
#[inline(always)]
pub(super) fn above<const N: usize>(scores: &[f32; N], floor: f32) -> u64 {
    let (fours, _) = scores.as_chunks::<4>();
    fours.iter().enumerate().fold(0, |bits, (i, four)| bits | u64::from(above_4(four, floor)) << (4 * i))
}

/// Of every set of eight lanes, the lanes in it, ascending, a byte each.
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

/// Where eight lanes' documents come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Docs<'a> {
    /// They are these.
    These(&'a [u32; STEP]),
    /// They are this one and those that follow it.
    From(u32),
}

/// Adds `shares`, if there are any, to `scores` and writes the documents and sums of the lanes with a sum above `floor`
/// to the first places of `kept`; what it writes behind them is of no matter. Returns how many they are.
#[inline(always)]
pub(super) fn sift(
    docs: Docs<'_>,
    scores: &[f32; STEP],
    shares: Option<&[f32; STEP]>,
    floor: f32,
    kept: (&mut [u32; STEP], &mut [f32; STEP]),
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as has just been asked.
        return unsafe { sift_avx2(docs, scores, shares, floor, kept) };
    }
    sift_portable(docs, scores, shares, floor, kept)
}

#[inline(always)]
fn sift_portable(
    docs: Docs<'_>,
    scores: &[f32; STEP],
    shares: Option<&[f32; STEP]>,
    floor: f32,
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
        count += usize::from(score > floor);
    }
    count
}

// Not with POPCNT, which `sift` has not asked for: inlined where that is enabled, the count is one
// instruction all the same.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn sift_avx2(
    docs: Docs<'_>,
    scores: &[f32; STEP],
    shares: Option<&[f32; STEP]>,
    floor: f32,
    (kept_docs, kept_scores): (&mut [u32; STEP], &mut [f32; STEP]),
) -> usize {
    use std::arch::x86_64::*;
    let mut scores: __m256 = bytemuck::cast(*scores);
    if let Some(shares) = shares {
        scores = _mm256_add_ps(scores, bytemuck::cast(*shares));
    }
    let set = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(scores, _mm256_set1_ps(floor)));
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
    fn comparisons_are_those_of_each_lane() {
        let docs = [3, 9, 1, 7, 7, 2, 0, 8];
        let scores = docs.map(|doc| doc as f32 / 2.0);
        for limit in 0..11 {
            let expected = (0..8).filter(|&i| docs[i] < limit).map(|i| 1 << i).sum::<u64>();
            assert_eq!(below(&docs, limit), expected);
            assert_eq!(above(&scores, limit as f32 / 2.0 - 0.25), 255 & !expected);
        }
    }

    #[test]
    fn what_is_sifted_is_what_is_above_the_floor() {
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
