//! Inner loops of decoding in the fastest form for this processor.
//!
//! Each loop has a [`portable`] twin with the same results; the choice is made at run time.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod portable;

pub(crate) use portable::{MAX_ZEROS, Zeros};

use tandem_engine::index::BLOCK_LEN;

/// Calls the function of `avx2` if this processor runs it, else that of `portable`.
macro_rules! best {
    ($function:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if avx2::is_available() {
            // SAFETY: the processor has the features that all functions of `avx2` are compiled for.
            return unsafe { avx2::$function($($argument),*) };
        }
        portable::$function($($argument),*)
    }};
}

/// Unpacks 128 numbers of `width` bits, packed in four lanes. Panics if `words` is short of `4 * width`, or `width`
/// exceeds 32.
#[inline]
pub(crate) fn unpack(words: &[u32], width: u8, out: &mut [u32; BLOCK_LEN]) {
    best!(unpack(words, width, out))
}

/// Unpacks consecutive numbers of `width` bits, at most 32, from `words`, which holds them all.
#[inline]
pub(crate) fn unpack_horizontal(words: &[u32], width: u8, out: &mut [u32]) {
    best!(unpack_horizontal(words, width, out))
}

/// Writes the places of zeros in bits `start..end` of `words`, counted from `start`, until there are at least `len`.
/// Returns the number of found zeros; later entries are unspecified. Panics if the range exceeds `words`, or `len`
/// exceeds 128.
#[inline]
pub(crate) fn zeros(words: &[u32], start: usize, end: usize, len: usize, zeros: &mut Zeros) -> usize {
    best!(zeros(words, start, end, len, zeros))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    fn noise(len: usize, seed: u64) -> Vec<u32> {
        let mut state = seed;
        std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        })
        .take(len)
        .collect()
    }

    #[test]
    fn every_width_unpacks_to_the_same_bits() {
        if !avx2::is_available() {
            crate::skipped::skipped("no AVX2");
            return;
        }
        for width in 0..=32_u8 {
            let words = noise(4 * usize::from(width), width.into());
            let (mut fast, mut portable) = ([1; BLOCK_LEN], [2; BLOCK_LEN]);
            unpack(&words, width, &mut fast);
            portable::unpack(&words, width, &mut portable);
            assert_eq!(fast, portable, "width {width}");
        }
    }

    #[test]
    fn numbers_one_after_another_unpack_to_the_same_bits() {
        for width in 0..=32_u8 {
            for len in 0..=BLOCK_LEN {
                let words = noise((len * usize::from(width)).div_ceil(32), len as u64);
                let (mut fast, mut portable) = (vec![1; len], vec![2; len]);
                unpack_horizontal(&words, width, &mut fast);
                portable::unpack_horizontal(&words, width, &mut portable);
                assert_eq!(fast, portable, "{len} of width {width}");
            }
        }
    }

    #[test]
    fn zeros_are_those_found_one_by_one() {
        for (seed, density) in [(1, 1), (2, 3), (3, 8)] {
            // Ones prevail: a bit is zero only if it is zero in several draws.
            let words: Vec<u32> =
                (0..20).map(|i| (0..density).fold(0, |word, draw| word | noise(draw + 1, seed + i)[draw])).collect();
            for start in 0..130 {
                for end in (start..words.len() * 32).step_by(7) {
                    let expected: Vec<u32> = (start..end)
                        .filter(|bit| words[bit / 32] >> (bit % 32) & 1 == 0)
                        .map(|bit| (bit - start) as u32)
                        .collect();
                    let len = expected.len().min(BLOCK_LEN);
                    for function in [super::zeros, portable::zeros] {
                        let mut places = [0; MAX_ZEROS];
                        let found = function(&words, start, end, len, &mut places);
                        assert!(found >= len && found <= expected.len(), "{found} of {len}");
                        assert_eq!(places[..len], expected[..len], "{start}..{end}");
                    }
                }
            }
        }
    }
}
