//! Vector instructions, each with a portable twin that gives the same bits.
//!
//! Loops that gain from vectors have one body that is compiled twice, with AVX2 and without. The compiler may neither
//! reorder nor fuse float operations, so both give the same bits.
//!
//! [`sift`] keeps those of eight documents whose scores are above a threshold, without a branch per document:
//!
//! ```text
//! scores    2.1  0.4  3.3  0.9  1.8  0.2  0.1  2.2        threshold 1.0
//! above     x         x         x              x          as bits: 1001 0101, the row of a table
//! kept      2.1  3.3  1.8  2.2  .    .    .    .          one shuffle by that row
//! ```

/// Proof that this processor has AVX2, POPCNT and BMI1 (all since 2013).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    #[inline(always)]
    pub(crate) fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("popcnt")
            && std::arch::is_x86_feature_detected!("bmi1")
        {
            return Some(Self(()));
        }
        None
    }
}

/// Numbers taken per step.
pub(crate) const STEP: usize = 8;

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

#[derive(Clone, Copy, Debug)]
pub(crate) enum Docs<'a> {
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

pub(crate) const WORD_DOCS: usize = 64;
/// Frequencies of a word, and eight more that a step may read.
pub(crate) const WORD_FREQS: usize = WORD_DOCS + 8;

/// For each byte, the index of each document's frequency among the next ones; 128 for an absent document.
pub(crate) static EXPANSIONS: [[u8; 8]; 256] = {
    let mut table = [[128; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut posting) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[byte][bit] = posting;
                posting += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// For each byte of bits, the number of bits set in earlier bytes.
#[inline(always)]
pub(crate) fn bits_before(bits: u64) -> [u8; 8] {
    let pairs = bits - (bits >> 1 & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let bytes = (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    bytes.wrapping_mul(0x0101_0101_0101_0100).to_le_bytes()
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

    #[test]
    fn bits_are_counted_byte_by_byte() {
        for bits in [0, 1, u64::MAX, 0x8000_0000_0000_0001, 0x0123_4567_89ab_cdef, 0xff00_ff00_ff00_ff00] {
            for (byte, before) in bits_before(bits).into_iter().enumerate() {
                assert_eq!(u32::from(before), (bits & ((1 << (8 * byte)) - 1)).count_ones(), "{bits:x}");
            }
        }
    }
}
