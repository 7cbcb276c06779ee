//! Columns of 128 values in **groups** of eight, each group as narrow as its own largest value allows.
//!
//! One large value among 128 would widen them all. Here it widens eight:
//!
//! ```text
//! values    3 1 0 2 1 0 3 1 | 2 0 77 1 0 0 1 3 | 1 0 0 1 0 0 1 0 | ...
//! width            2        |         7        |        1        |           bits, and bytes: eight values of w bits
//! ```
//!
//! A group of width *w* takes *w* bytes, so every group begins at a whole byte. Decoding runs the same instructions for
//! all widths: there is no branch to mispredict and nothing to patch afterwards. Widths are stored before the groups as
//! differences to the widest: two bits each, or four if that is shorter. A group whose difference does not fit takes
//! more than it must.
//!
//! ```text
//! bytes  4 or 8     w0      w1            w15        none of all that if the widest is 0
//!        control   group   group   ...   group
//! ```
//!
//! With two bits, byte *j* of the control has groups *j*, *j* + 4, *j* + 8, *j* + 12 from its lowest bits on; with
//! four, groups *j* and *j* + 8. Shifts of whole vectors separate them. Compare Delbru, Campinas and Tummarello,
//! "Searching Web Data: An Entity Retrieval and High-Performance Indexing Model", 2012 (AFOR: short frames with widths
//! of their own), and Lemire, Kurz and Rupp, "Stream VByte", 2018 (control apart from data).

use super::bits::{BitWriter, bit_width, read_bits, read_window};
use crate::index::BLOCK_LEN;

pub(crate) const GROUP_LEN: usize = 8;
pub(crate) const GROUPS: usize = BLOCK_LEN / GROUP_LEN;

/// The packing of a column, stored in seven bits: the widest group's width (6), and whether widths take four bits
/// (1). 63 stands for a bitset, which only documents may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnCode(u8);

impl ColumnCode {
    /// Documents are the set bits of a range.
    pub(crate) const BITSET: Self = Self(63);
    pub(crate) const BITS: u32 = 7;
    /// Set if widths take four bits.
    const WIDE_CONTROL: u8 = 1 << 6;

    /// The code in the low seven bits of `stored`.
    #[inline]
    pub(crate) fn from_stored(stored: u32) -> Self {
        Self(stored as u8 & 127)
    }

    #[inline]
    pub(crate) fn stored(self) -> u32 {
        u32::from(self.0)
    }

    /// Whether an encoder writes this code.
    pub(crate) fn is_valid(self) -> bool {
        self.widest() <= 32 || self == Self::BITSET
    }

    #[inline]
    pub(crate) fn widest(self) -> u8 {
        self.0 & 63
    }

    #[inline]
    pub(crate) fn has_wide_control(self) -> bool {
        self.0 & Self::WIDE_CONTROL != 0
    }

    /// Bytes before the groups.
    #[inline]
    pub(crate) fn control_bytes(self) -> usize {
        match (self.widest(), self.has_wide_control()) {
            (0, _) => 0,
            (_, false) => 4,
            (_, true) => 8,
        }
    }

    /// The stored width of a group that needs `needed` bits.
    fn width_of(self, needed: u8) -> u8 {
        needed.max(self.widest().saturating_sub(if self.has_wide_control() { 15 } else { 3 }))
    }

    /// The code that packs the values into the fewest bytes, and their number.
    pub(crate) fn choose(values: &[u32; BLOCK_LEN]) -> (Self, usize) {
        let needed = needed_widths(values);
        let widest = needed.iter().fold(0, |widest, &width| widest.max(width));
        if widest == 0 {
            return (Self(0), 0);
        }
        let bytes = |code: Self| {
            code.control_bytes() + needed.iter().map(|&needed| usize::from(code.width_of(needed))).sum::<usize>()
        };
        let (narrow, wide) = (Self(widest), Self(widest | Self::WIDE_CONTROL));
        if bytes(narrow) <= bytes(wide) { (narrow, bytes(narrow)) } else { (wide, bytes(wide)) }
    }

    pub(crate) fn write(self, values: &[u32; BLOCK_LEN], out: &mut Vec<u8>) {
        if self.widest() == 0 {
            return;
        }
        let widths = needed_widths(values).map(|needed| self.width_of(needed));
        let behind = widths.map(|width| self.widest() - width);
        if self.has_wide_control() {
            out.extend((0..8).map(|j| behind[j] | behind[j + 8] << 4));
        } else {
            out.extend((0..4).map(|j| behind[j] | behind[j + 4] << 2 | behind[j + 8] << 4 | behind[j + 12] << 6));
        }
        let mut writer = BitWriter::new(out);
        for (group, width) in values.as_chunks::<GROUP_LEN>().0.iter().zip(widths) {
            group.iter().for_each(|&value| writer.write(value, width.into()));
        }
        writer.finish();
    }

    /// The widths of groups 0 to 7 and of groups 8 to 15, one byte each.
    #[inline]
    fn widths(self, bytes: &[u8]) -> [u64; 2] {
        const TWO_BITS: u64 = 0x0303_0303;
        const FOUR_BITS: u64 = 0x0f0f_0f0f_0f0f_0f0f;
        let control = read_window(bytes, 0);
        let behind = if self.widest() == 0 {
            [0; 2]
        } else if self.has_wide_control() {
            [control & FOUR_BITS, control >> 4 & FOUR_BITS]
        } else {
            let quarter = |shift: u32| control >> shift & TWO_BITS;
            [quarter(0) | quarter(2) << 32, quarter(4) | quarter(6) << 32]
        };
        // A damaged difference may exceed the width.
        behind.map(|behind| u64::from_le_bytes(behind.to_le_bytes().map(|behind| self.widest().saturating_sub(behind))))
    }

    pub(crate) fn column_bytes(self, bytes: &[u8]) -> usize {
        let [low, high] = self.widths(bytes);
        self.control_bytes() + sum_bytes(low) + sum_bytes(high)
    }

    /// Unpacks the column at the start of `bytes`. Missing bytes count as zero.
    pub(crate) fn unpack(self, bytes: &[u8], values: &mut [u32; BLOCK_LEN]) {
        let widths = self.widths(bytes).map(u64::to_le_bytes);
        let mut bit = 8 * self.control_bytes();
        for (group, &width) in values.as_chunks_mut::<GROUP_LEN>().0.iter_mut().zip(widths.as_flattened()) {
            for value in group {
                *value = read_bits(bytes, bit, width.into());
                bit += usize::from(width);
            }
        }
    }

    #[inline]
    pub(crate) fn value_at(self, bytes: &[u8], position: usize) -> u32 {
        let [low, high] = self.widths(bytes);
        let (group, in_group) = (position / GROUP_LEN, position % GROUP_LEN);
        let (before, own) = if group < 8 { (0, low) } else { (sum_bytes(low), high) };
        let place = 8 * (group as u32 % 8);
        let width = own >> place & 0xff;
        let bytes_before = self.control_bytes() + before + sum_bytes(own & ((1 << place) - 1));
        read_bits(bytes, 8 * bytes_before + in_group * width as usize, width as u32)
    }
}

/// Bits that the largest value of each group needs.
fn needed_widths(values: &[u32; BLOCK_LEN]) -> [u8; GROUPS] {
    let groups = values.as_chunks::<GROUP_LEN>().0;
    std::array::from_fn(|group| bit_width(groups[group].iter().fold(0, |all, value| all | value)) as u8)
}

#[inline]
fn sum_bytes(word: u64) -> usize {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    let pairs = (word & EVEN) + (word >> 8 & EVEN);
    (pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48) as usize
}
