//! Inner loops for x86 processors with AVX2, BMI and POPCNT (all since 2015).
//!
//! Unpacking processes two rows of a block at once, one in each half of a 32-byte vector. A **row** is four numbers,
//! one per lane.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_cvtepu16_epi32, _mm_set_epi64x, _mm_setzero_si128, _mm256_add_epi32, _mm256_and_si256,
    _mm256_cvtepu8_epi32, _mm256_or_si256, _mm256_set1_epi32, _mm256_setr_epi32, _mm256_setr_m128i, _mm256_sllv_epi32,
    _mm256_srlv_epi32, _pdep_u64,
};

use tandem_engine::index::BLOCK_LEN;

use super::portable::{self, Zeros};

/// Rows in half a block.
const HALF: usize = 16;

/// Returns whether this processor runs the functions of this file.
#[inline]
pub(crate) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

type Unpack = unsafe fn(&[[u32; 4]], &mut [u32; BLOCK_LEN]);

macro_rules! by_width {
    ($($width:literal)*) => { [$(rows::<$width>),*] };
}

static UNPACK: [Unpack; 33] =
    by_width!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
#[inline]
pub(crate) fn unpack(words: &[u32], width: u8, out: &mut [u32; BLOCK_LEN]) {
    // SAFETY: the features that the function needs are those of this one.
    unsafe { UNPACK[usize::from(width)](words.as_chunks().0, out) }
}

/// Repeats the body for each row of half a block with constant shifts and places, because the compiler does not unroll
/// a loop.
macro_rules! unrolled {
    ($row:ident => $body:block) => { unrolled!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15: $row $body) };
    ($($number:literal)*: $row:ident $body:block) => {
        $({
            const $row: usize = $number;
            $body
        })*
    };
}

/// Unpacks a block of width `W`. Each element of `words` is a word of all four lanes.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn rows<const W: usize>(words: &[[u32; 4]], out: &mut [u32; BLOCK_LEN]) {
    let words: &[[u32; 4]; W] = words[..W].try_into().expect("W words were taken");
    let pairs: &mut [[u32; 8]; HALF] = out.as_chunks_mut().0.try_into().expect("a block has 32 rows");
    let mask = _mm256_set1_epi32(((1_u64 << W) - 1) as u32 as i32);
    unrolled!(ROW => {
        let mut numbers = two_rows::<W>(words, 2 * ROW, 2 * ROW + 1);
        if W < 32 {
            numbers = _mm256_and_si256(numbers, mask);
        }
        pairs[ROW] = bytemuck::cast(numbers);
    });
}

/// Returns two rows with arbitrary bits above their `W` bits.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
#[inline]
fn two_rows<const W: usize>(words: &[[u32; 4]; W], low_row: usize, high_row: usize) -> __m256i {
    let (low, high) = (low_row * W, high_row * W);
    let shifts = |low: usize, high: usize| {
        let (low, high) = (low as i32, high as i32);
        _mm256_setr_epi32(low, low, low, low, high, high, high, high)
    };
    let at = |low: usize, high: usize| {
        let word = |at: usize| -> __m128i { words.get(at).map_or(_mm_setzero_si128(), |word| bytemuck::cast(*word)) };
        _mm256_setr_m128i(word(low), word(high))
    };
    let numbers = _mm256_srlv_epi32(at(low / 32, high / 32), shifts(low % 32, high % 32));
    // A shift by 32 gives 0, so that the next word adds nothing if a row ends inside its word.
    if low % 32 + W > 32 || high % 32 + W > 32 {
        let next = _mm256_sllv_epi32(at(low / 32 + 1, high / 32 + 1), shifts(32 - low % 32, 32 - high % 32));
        return _mm256_or_si256(numbers, next);
    }
    numbers
}

/// Unpacks four or two numbers at once: `pdep` spreads the bits of an eight-byte window over lanes of 16 or 32 bits.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
#[inline]
pub(crate) fn unpack_horizontal(words: &[u32], width: u8, out: &mut [u32]) {
    // A window begins at a whole byte, so that 57 of its bits are valid.
    let done = match width {
        0..=14 => spread::<4>(words, width, out, |window, mask| {
            let lanes = _pdep_u64(window, mask * 0x0001_0001_0001_0001);
            bytemuck::cast(_mm_cvtepu16_epi32(_mm_set_epi64x(0, lanes as i64)))
        }),
        15..=28 => spread::<2>(words, width, out, |window, mask| {
            let lanes = _pdep_u64(window, mask * 0x0000_0001_0000_0001);
            [lanes as u32, (lanes >> 32) as u32]
        }),
        _ => 0,
    };
    portable::unpack_horizontal_from(done, words, width, &mut out[done..]);
}

/// Unpacks `N` numbers at a time while eight bytes can be read; returns the number of unpacked numbers.
#[inline(always)]
fn spread<const N: usize>(words: &[u32], width: u8, out: &mut [u32], spread: impl Fn(u64, u64) -> [u32; N]) -> usize {
    let bytes: &[u8] = bytemuck::cast_slice(words);
    let mask = (1 << width) - 1;
    let mut bit = 0;
    let mut done = 0;
    for numbers in out.as_chunks_mut::<N>().0 {
        let Some(&window) = bytes.get(bit / 8..).and_then(<[u8]>::first_chunk) else {
            break;
        };
        *numbers = spread(u64::from_le_bytes(window) >> (bit % 8), mask);
        bit += N * usize::from(width);
        done += N;
    }
    done
}

/// Places of the set bits of each byte, lowest first.
static SET_BITS: [[u8; 8]; 256] = {
    let mut places = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut count = 0;
        let mut bit = 0;
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                places[byte][count] = bit;
                count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    places
};

/// Finds zeros byte by byte without branches: a table gives the places of a byte, eight at once.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
#[inline]
pub(crate) fn zeros(words: &[u32], start: usize, end: usize, len: usize, zeros: &mut Zeros) -> usize {
    let mut found = 0;
    for (bits, place) in portable::zero_words(words, start, end) {
        let mut place = _mm256_set1_epi32(place as i32);
        for byte in bits.to_le_bytes() {
            let places = _mm256_cvtepu8_epi32(_mm_set_epi64x(0, i64::from_le_bytes(SET_BITS[usize::from(byte)])));
            let out: &mut [u32; 8] = zeros[found..].first_chunk_mut().expect("room for 64 more than asked for");
            *out = bytemuck::cast(_mm256_add_epi32(places, place));
            found += byte.count_ones() as usize;
            place = _mm256_add_epi32(place, _mm256_set1_epi32(8));
        }
        if found >= len {
            break;
        }
    }
    found
}
