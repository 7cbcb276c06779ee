//! Columns decoded by x86 processors with AVX2 (all since 2015).
//!
//! A group's eight values of *w* bits lie in *w* bytes, the last four from bit 4*w* on. Two loads of 16 bytes bring
//! four values to each half of a vector. A shuffle gives each value the four bytes that hold it, and a shift and a mask
//! leave its bits. Tables by width, up to 25 bits, hold shuffles and shifts. Narrow groups take shortcuts. Up to 8
//! bits, one `pdep` spreads eight frequencies over eight bytes. Up to 10 bits, eight gaps and their sums fit 16-bit
//! lanes, so that two groups are summed at once.
//!
//! Loads extend past the column, so [`READ_AHEAD`] further bytes must follow it. Other results equal those of
//! [`ColumnCode::unpack`]. [Runs](run) are unpacked in the same way, eight values at a time from any bit on.

mod run;

use std::arch::x86_64::*;
use std::sync::LazyLock;

use super::column::{ColumnCode, GROUP_LEN, GROUPS};
use crate::index::BLOCK_LEN;

pub(crate) use run::{RunOf, unpack_run};

/// The widest group whose values fit windows of four bytes, for any first bit.
const MAX_WIDTH: u8 = 25;
/// The widest group that fits eight bytes.
const MAX_PDEP_WIDTH: u8 = 8;
/// The widest group whose values fit windows of two bytes. Eleven bits do not fit; twelve would, but are rare alone.
const MAX_SHORT_WIDTH: u8 = 10;
/// Bytes from a column's start that its decoder may read.
pub(crate) const READ_AHEAD: usize = 8 + GROUPS * MAX_WIDTH as usize + 32;

/// Decodes documents. Returns false if this processor or file can't be decoded here.
#[inline]
pub(crate) fn decode_docs(code: ColumnCode, bytes: &[u8], base: u32, docs: &mut [u32; BLOCK_LEN]) -> bool {
    let can = is_x86_feature_detected!("avx2") && code.widest() <= MAX_WIDTH && bytes.len() >= READ_AHEAD;
    if can && code.widest() <= MAX_SHORT_WIDTH {
        // SAFETY: the processor has AVX2; the other conditions are the function's.
        unsafe { docs_of_short_groups(code, bytes, base, docs) };
    } else if can {
        // SAFETY: the processor has AVX2; the other conditions are the function's.
        unsafe { docs_of_groups(code, bytes, base, docs) };
    }
    can
}

/// Decodes frequencies. Returns false if this processor or file can't be decoded here.
#[inline]
pub(crate) fn decode_freqs(code: ColumnCode, bytes: &[u8], freqs: &mut [u32; BLOCK_LEN]) -> bool {
    let can = is_x86_feature_detected!("avx2") && code.widest() <= MAX_WIDTH && bytes.len() >= READ_AHEAD;
    if can && code.widest() <= MAX_PDEP_WIDTH && *HAS_FAST_PDEP {
        // SAFETY: the processor has AVX2 and BMI2; no group is wider than 8 bits, and the bytes are
        // as many as it asks for.
        unsafe { freqs_of_narrow_groups(code, bytes, freqs) };
    } else if can {
        // SAFETY: the processor has AVX2; the other conditions are the function's.
        unsafe { freqs_of_groups(code, bytes, freqs) };
    }
    can
}

/// Decodes one value of a column, or returns `None` if this processor or file can't be decoded here.
#[inline]
pub(crate) fn value_at(code: ColumnCode, bytes: &[u8], position: usize) -> Option<u32> {
    let can = is_x86_feature_detected!("avx2") && code.widest() <= MAX_WIDTH && bytes.len() >= READ_AHEAD;
    // SAFETY: the processor has AVX2; the other conditions are the function's.
    can.then(|| unsafe { value_of_groups(code, bytes, position % BLOCK_LEN) })
}

/// Whether `pdep` takes a few cycles. AMD's processors before Zen 3 take hundreds.
static HAS_FAST_PDEP: LazyLock<bool> = LazyLock::new(|| {
    // SAFETY: every processor with `cpuid` has leaves 0 and 1. The functions are safe in newer versions of Rust only.
    #[allow(unused_unsafe)]
    let (vendor, signature) = unsafe { (std::arch::x86_64::__cpuid(0), std::arch::x86_64::__cpuid(1).eax) };
    let family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
    let is_amd = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() == b"AuthenticAMD";
    let is_hygon = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() == b"HygonGenuine";
    is_x86_feature_detected!("bmi2") && !is_hygon && !(is_amd && family < 0x19)
});

/// Tables to unpack a group of one width.
#[repr(C, align(32))]
#[derive(Clone, Copy)]
struct Unpacking {
    /// The byte, of the 16 in this half, that each byte of a vector takes, or 0x80 for none.
    shuffle: [u8; 32],
    shifts: [u32; 8],
    masks: [u32; 8],
}

static UNPACKINGS: [Unpacking; MAX_WIDTH as usize + 1] = {
    let mut table = [Unpacking { shuffle: [0x80; 32], shifts: [0; 8], masks: [0; 8] }; MAX_WIDTH as usize + 1];
    let mut width = 0;
    while width < table.len() {
        let mut value = 0;
        while value < GROUP_LEN {
            // The upper half is loaded from byte width / 2 on, so its first bit is bit 0 or 4.
            let bit = if value < 4 { value * width } else { 4 * width % 8 + (value - 4) * width };
            let mut byte = 0;
            while byte < 4 {
                if bit / 8 + byte < 16 {
                    table[width].shuffle[4 * value + byte] = (bit / 8 + byte) as u8;
                }
                byte += 1;
            }
            table[width].shifts[value] = bit as u32 % 8;
            table[width].masks[value] = (1 << width) - 1;
            value += 1;
        }
        width += 1;
    }
    table
};

/// Tables to unpack a narrow group to 16-bit lanes. One multiplication shifts each value to the top of its window,
/// another shifts it down.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct ShortUnpacking {
    shuffle: [u8; 16],
    up: [u16; 8],
    down: [u16; 8],
}

static SHORT_UNPACKINGS: [ShortUnpacking; MAX_SHORT_WIDTH as usize + 1] = {
    let mut table = [ShortUnpacking { shuffle: [0; 16], up: [0; 8], down: [0; 8] }; MAX_SHORT_WIDTH as usize + 1];
    // Width 0 multiplies by zero.
    let mut width = 1;
    while width < table.len() {
        let mut value = 0;
        while value < GROUP_LEN {
            let bit = value * width;
            table[width].shuffle[2 * value] = (bit / 8) as u8;
            table[width].shuffle[2 * value + 1] = (bit / 8 + 1) as u8;
            // A value of 9 bits begins at bit 7 of a byte at the latest, one of 10 bits at bit 6: both end by bit 16.
            table[width].up[value] = 1 << (16 - width - bit % 8);
            table[width].down[value] = 1 << width;
            value += 1;
        }
        width += 1;
    }
    table
};

/// The bits of eight bytes that take a group's bits, by width.
static SPREADS: [u64; MAX_PDEP_WIDTH as usize + 1] = {
    let mut table = [0; MAX_PDEP_WIDTH as usize + 1];
    let mut width = 0;
    while width < table.len() {
        table[width] = ((1 << width) - 1) * 0x0101_0101_0101_0101;
        width += 1;
    }
    table
};

/// Tables to split a control: the byte that each byte takes, the shift of each four bytes, and a mask.
#[repr(C, align(16))]
struct ControlForm {
    shuffle: [u8; 16],
    shifts: [u32; 4],
    mask: u32,
}

/// Forms of two bits per group and of four.
static CONTROL_FORMS: [ControlForm; 2] = [
    ControlForm { shuffle: [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3], shifts: [0, 2, 4, 6], mask: 0x0303_0303 },
    ControlForm { shuffle: [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7], shifts: [0, 0, 4, 4], mask: 0x0f0f_0f0f },
];

/// The widths of a column's groups, one byte each, none above the widest.
#[target_feature(enable = "avx2")]
#[inline]
fn widths(code: ColumnCode, bytes: &[u8]) -> __m128i {
    let control: &[u8; 8] = bytes.first_chunk().expect("a column is followed by more");
    let form = &CONTROL_FORMS[usize::from(code.has_wide_control())];
    // SAFETY: each load is of an array of its size; those of the form are aligned as it is.
    let (control, shuffle, shifts) = unsafe {
        let (shuffle, shifts): (*const __m128i, *const __m128i) =
            (form.shuffle.as_ptr().cast(), form.shifts.as_ptr().cast());
        (_mm_loadl_epi64(control.as_ptr().cast()), _mm_load_si128(shuffle), _mm_load_si128(shifts))
    };
    let behind = _mm_srlv_epi32(_mm_shuffle_epi8(control, shuffle), shifts);
    let behind = _mm_and_si128(behind, _mm_set1_epi32(form.mask as i32));
    _mm_subs_epu8(_mm_set1_epi8(code.widest() as i8), behind)
}

/// From byte 16 - n on, n set bytes are followed by zero bytes.
static SET_BYTES: [u8; 2 * GROUPS] = {
    let mut bytes = [0; 2 * GROUPS];
    let mut at = 0;
    while at < GROUPS {
        bytes[at] = 0xff;
        at += 1;
    }
    bytes
};

/// # Safety
/// No group is wider than 25 bits, there are [`READ_AHEAD`] bytes, and `position` is one of a block.
#[target_feature(enable = "avx2")]
unsafe fn value_of_groups(code: ColumnCode, bytes: &[u8], position: usize) -> u32 {
    let (group, in_group) = (position / GROUP_LEN, position % GROUP_LEN);
    let widths = widths(code, bytes);
    // SAFETY: 16 bytes from byte 16 - group on are in the array.
    let before = unsafe { _mm_loadu_si128(SET_BYTES.as_ptr().add(GROUPS - group).cast()) };
    let sums = _mm_sad_epu8(_mm_and_si128(widths, before), _mm_setzero_si128());
    let before = (_mm_cvtsi128_si64(sums) + _mm_extract_epi64::<1>(sums)) as usize;
    let half = if group < 8 { _mm_cvtsi128_si64(widths) } else { _mm_extract_epi64::<1>(widths) };
    let width = (half >> (8 * (group % 8)) & 0xff) as usize;
    let bit = in_group * width;
    // SAFETY: 16 groups of 25 bytes and the control leave more than 8 bytes of what can be read.
    let window = unsafe {
        let first: *const u64 = bytes.as_ptr().add(code.control_bytes() + before + bit / 8).cast();
        first.read_unaligned() >> (bit % 8)
    };
    window as u32 & ((1 << width) - 1)
}

/// Repeats the body for each group, with its number as a constant.
macro_rules! each_group {
    ($group:ident => $body:block) => { each_group!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15: $group $body) };
    ($($number:literal)*: $group:ident $body:block) => {
        $({
            const $group: usize = $number;
            $body
        })*
    };
}

/// Repeats the body for each two groups.
macro_rules! each_pair {
    ($first:ident, $second:ident => $body:block) => { each_pair!(0 2 4 6 8 10 12 14: $first $second $body) };
    ($($number:literal)*: $first:ident $second:ident $body:block) => {
        $({
            const $first: usize = $number;
            const $second: usize = $number + 1;
            $body
        })*
    };
}

struct Groups<'a> {
    bytes: &'a [u8],
    widths: [u64; 2],
    at: usize,
}

impl<'a> Groups<'a> {
    #[target_feature(enable = "avx2")]
    #[inline]
    fn new(code: ColumnCode, bytes: &'a [u8]) -> Self {
        let widths = widths(code, bytes);
        let widths = [_mm_cvtsi128_si64(widths) as u64, _mm_extract_epi64::<1>(widths) as u64];
        Self { bytes, widths, at: code.control_bytes() }
    }

    /// Address and width of group number `GROUP`, which must be the next.
    ///
    /// # Safety
    /// The group begins inside `bytes`.
    #[inline(always)]
    unsafe fn next<const GROUP: usize>(&mut self) -> (*const u8, usize) {
        let width = (self.widths[GROUP / 8] >> (8 * (GROUP % 8)) & 0xff) as usize;
        // SAFETY: as the caller has it.
        let group = unsafe { self.bytes.as_ptr().add(self.at) };
        self.at += width;
        (group, width)
    }
}

/// The values of the group at `group`.
///
/// # Safety
/// `width` is at most 25, and 32 bytes from `group` on can be read.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn unpack((group, width): (*const u8, usize)) -> __m256i {
    // SAFETY: the table has 26 rows, aligned to 32 bytes; the second load ends at byte 12 + 16 at most.
    unsafe {
        let unpacking = UNPACKINGS.as_ptr().add(width);
        let (low, high) = (_mm_loadu_si128(group.cast()), _mm_loadu_si128(group.add(width / 2).cast()));
        let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
        let windows = _mm256_shuffle_epi8(both, _mm256_load_si256((&raw const (*unpacking).shuffle).cast()));
        let shifted = _mm256_srlv_epi32(windows, _mm256_load_si256((&raw const (*unpacking).shifts).cast()));
        _mm256_and_si256(shifted, _mm256_load_si256((&raw const (*unpacking).masks).cast()))
    }
}

/// The addend of the next group's values: the document before the group, plus 1 for each value up to it.
struct Before(__m256i);

impl Before {
    #[target_feature(enable = "avx2")]
    #[inline]
    fn new(base: u32) -> Self {
        Self(_mm256_add_epi32(_mm256_set1_epi32(base as i32), _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8)))
    }

    /// The documents of the next group, given its gaps minus one.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn sum_up(&mut self, gaps: __m256i) -> __m256i {
        // Sums within each half, then the lower half's total added to the upper half.
        let sums = _mm256_add_epi32(gaps, _mm256_slli_si256::<4>(gaps));
        let sums = _mm256_add_epi32(sums, _mm256_slli_si256::<8>(sums));
        let totals = _mm256_shuffle_epi32::<0xff>(sums);
        let swapped = _mm256_permute2x128_si256::<0x01>(totals, totals);
        let lower_total = _mm256_blend_epi32::<0xf0>(_mm256_setzero_si256(), swapped);
        self.add(_mm256_add_epi32(sums, lower_total), _mm256_add_epi32(totals, swapped))
    }

    /// The documents of the next group, given the prefix sums of its gaps minus one, and their total in all lanes.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn add(&mut self, sums: __m256i, total: __m256i) -> __m256i {
        let docs = _mm256_add_epi32(sums, self.0);
        self.0 = _mm256_add_epi32(self.0, _mm256_add_epi32(total, _mm256_set1_epi32(GROUP_LEN as i32)));
        docs
    }
}

/// # Safety
/// No group is wider than 25 bits, and there are [`READ_AHEAD`] bytes.
#[target_feature(enable = "avx2")]
unsafe fn docs_of_groups(code: ColumnCode, bytes: &[u8], base: u32, docs: &mut [u32; BLOCK_LEN]) {
    let mut groups = Groups::new(code, bytes);
    let mut before = Before::new(base);
    let docs = docs.as_chunks_mut::<GROUP_LEN>().0;
    each_group!(GROUP => {
        // SAFETY: 16 groups of 25 bytes and the control leave 32 bytes of what can be read.
        let gaps = unsafe { unpack(groups.next::<GROUP>()) };
        store(&mut docs[GROUP], before.sum_up(gaps));
    });
}

/// The values of a narrow group.
///
/// # Safety
/// The width is at most 10, and 16 bytes from the group on can be read.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn unpack_short((group, width): (*const u8, usize)) -> __m128i {
    // SAFETY: the table has 11 rows, aligned to 64 bytes.
    unsafe {
        let unpacking = SHORT_UNPACKINGS.as_ptr().add(width);
        let shuffle = _mm_load_si128((&raw const (*unpacking).shuffle).cast());
        let windows = _mm_shuffle_epi8(_mm_loadu_si128(group.cast()), shuffle);
        let high = _mm_mullo_epi16(windows, _mm_load_si128((&raw const (*unpacking).up).cast()));
        _mm_mulhi_epu16(high, _mm_load_si128((&raw const (*unpacking).down).cast()))
    }
}

/// # Safety
/// No group is wider than 10 bits, and there are [`READ_AHEAD`] bytes.
#[target_feature(enable = "avx2")]
unsafe fn docs_of_short_groups(code: ColumnCode, bytes: &[u8], base: u32, docs: &mut [u32; BLOCK_LEN]) {
    let mut groups = Groups::new(code, bytes);
    let mut before = Before::new(base);
    let docs = docs.as_chunks_mut::<GROUP_LEN>().0;
    each_pair!(FIRST, SECOND => {
        // SAFETY: 16 groups of 10 bytes and the control leave more than 16 bytes of what can be read.
        let (first, second) =
            unsafe { (unpack_short(groups.next::<FIRST>()), unpack_short(groups.next::<SECOND>())) };
        let gaps = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(first), second);
        // Sums stay within each half. Eight gaps of 10 bits sum up to 13 bits.
        let sums = _mm256_add_epi16(gaps, _mm256_slli_si256::<2>(gaps));
        let sums = _mm256_add_epi16(sums, _mm256_slli_si256::<4>(sums));
        let sums = _mm256_add_epi16(sums, _mm256_slli_si256::<8>(sums));
        let totals = _mm256_shuffle_epi8(sums, _mm256_set1_epi32(LAST_LANE));
        let [first, second] = [_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums)];
        let (first, first_total) = (_mm256_cvtepu16_epi32(first), _mm256_permute2x128_si256::<0x00>(totals, totals));
        let (second, second_total) = (_mm256_cvtepu16_epi32(second), _mm256_permute2x128_si256::<0x11>(totals, totals));
        store(&mut docs[FIRST], before.add(first, first_total));
        store(&mut docs[SECOND], before.add(second, second_total));
    });
}

/// Shuffles the last 16-bit lane of a half, its bytes 14 and 15, to the lower two bytes of four.
const LAST_LANE: i32 = 0x8080_0f0e_u32 as i32;

/// # Safety
/// The conditions of [`docs_of_groups`] hold.
#[target_feature(enable = "avx2")]
unsafe fn freqs_of_groups(code: ColumnCode, bytes: &[u8], freqs: &mut [u32; BLOCK_LEN]) {
    let mut groups = Groups::new(code, bytes);
    let freqs = freqs.as_chunks_mut::<GROUP_LEN>().0;
    each_group!(GROUP => {
        // SAFETY: 16 groups of 25 bytes and the control leave 32 bytes of what can be read.
        let values = unsafe { unpack(groups.next::<GROUP>()) };
        store(&mut freqs[GROUP], _mm256_add_epi32(values, _mm256_set1_epi32(1)));
    });
}

/// # Safety
/// No group is wider than 8 bits, and there are [`READ_AHEAD`] bytes.
#[target_feature(enable = "avx2,bmi2")]
unsafe fn freqs_of_narrow_groups(code: ColumnCode, bytes: &[u8], freqs: &mut [u32; BLOCK_LEN]) {
    let mut groups = Groups::new(code, bytes);
    let freqs = freqs.as_chunks_mut::<GROUP_LEN>().0;
    each_group!(GROUP => {
        // SAFETY: 16 groups of 8 bytes and the control leave more than 8 bytes of what can be read;
        // the table has 9 rows.
        let values = unsafe {
            let (group, width) = groups.next::<GROUP>();
            _pdep_u64(group.cast::<u64>().read_unaligned(), *SPREADS.get_unchecked(width))
        };
        let values = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(values as i64));
        store(&mut freqs[GROUP], _mm256_add_epi32(values, _mm256_set1_epi32(1)));
    });
}

#[target_feature(enable = "avx2")]
#[inline]
fn store(group: &mut [u32; GROUP_LEN], values: __m256i) {
    // SAFETY: the group has 32 bytes.
    unsafe { _mm256_storeu_si256(group.as_mut_ptr().cast(), values) };
}
