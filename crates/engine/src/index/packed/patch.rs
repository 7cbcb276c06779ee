//! Widths of values, with exceptions.
//!
//! One large value would widen a whole run. A run may instead take a smaller width and store the high bits of the few
//! values that exceed it, its **exceptions**, separately:
//!
//! ```text
//! values      3   1   0   2  77   1            77 takes 7 bits, the others 2
//! 2 bits      3   1   0   2   1   1            6 x 2 bits and 77's low two
//! exceptions  (4, 19)                          position 4: 19 << 2 more
//! ```
//!
//! Exceptions are a stream of bits: their number minus one (5), the width of the high bits minus one (5), then the
//! position (7) and the high bits of each, ascending by position.
//! Source: Yan, Ding and Suel, "Inverted Index Compression and Query Processing with Optimized Document Ordering",
//! WWW 2009 (OptPFD, whose exceptions are coded otherwise).

use super::bits::{BitWriter, bit_width, low_mask, read_bits, read_window};

const MAX_EXCEPTIONS: usize = 32;
/// Bits before the first exception.
const HEAD_BITS: usize = 10;
const POSITION_BITS: u32 = 7;

/// The packing of a run of values, stored in six bits: 0 to 32 is a width, 33 to 62 a width of 0 to 29 with
/// exceptions. 63 is never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(u8);

impl Code {
    /// A code that is never written.
    pub(crate) const INVALID: Self = Self(63);
    /// Width 0: all values are 0.
    pub(crate) const NOTHING: Self = Self(0);
    pub(crate) const BITS: u32 = 6;
    /// The largest width with exceptions.
    const MAX_PATCHED_WIDTH: u32 = 29;

    fn plain(width: u32) -> Self {
        Self(width as u8)
    }

    fn patched(width: u32) -> Self {
        Self(33 + width as u8)
    }

    /// The code in the low six bits of `stored`.
    #[inline]
    pub(crate) fn from_stored(stored: u32) -> Self {
        Self(stored as u8 & 63)
    }

    #[inline]
    pub(crate) fn stored(self) -> u32 {
        u32::from(self.0)
    }

    /// Bits of each value, without the high bits of exceptions.
    #[inline]
    pub(crate) fn width(self) -> u32 {
        match self.0 {
            width @ 0..=32 => u32::from(width),
            63 => 0,
            patched => u32::from(patched - 33),
        }
    }

    #[inline]
    pub(crate) fn has_exceptions(self) -> bool {
        self.0 > 32 && self.0 < 63
    }

    /// The code that packs `values` into the fewest bits, and their number. Exceptions must save `least_saving` bits.
    pub(crate) fn choose(values: &[u32], least_saving: usize) -> (Self, usize) {
        let widest = bit_width(values.iter().fold(0, |all, value| all | value));
        let plain_bits = values.len() * widest as usize;
        let (mut best, mut best_bits) = (Self::plain(widest), plain_bits.saturating_sub(least_saving));
        for width in (0..widest.min(Self::MAX_PATCHED_WIDTH + 1)).rev() {
            let exceptions: u32 = values.iter().map(|&value| u32::from(value >> width != 0)).sum();
            if exceptions as usize > MAX_EXCEPTIONS {
                break;
            }
            let entry_bits = POSITION_BITS + widest - width;
            let bits = values.len() * width as usize + HEAD_BITS + (exceptions * entry_bits) as usize;
            if bits < best_bits {
                (best, best_bits) = (Self::patched(width), bits);
            }
        }
        if best.has_exceptions() { (best, best_bits) } else { (best, plain_bits) }
    }

    pub(crate) fn write_exceptions(self, values: &[u32], out: &mut BitWriter<'_>) {
        if !self.has_exceptions() {
            return;
        }
        let width = self.width();
        let count = values.iter().filter(|&&value| value >> width != 0).count();
        let high_width = bit_width(values.iter().fold(0, |all, value| all | value)) - width;
        out.write(count as u32 - 1, 5);
        out.write(high_width - 1, 5);
        for (position, &value) in values.iter().enumerate() {
            if value >> width != 0 {
                out.write(position as u32, POSITION_BITS);
                out.write(value >> width, high_width);
            }
        }
    }

    #[inline]
    pub(crate) fn low(self, value: u32) -> u32 {
        value & low_mask(self.width())
    }

    /// The exceptions at bit `bit` of `bytes`, which are none if the code has none.
    #[inline]
    pub(crate) fn exceptions(self, bytes: &[u8], bit: usize) -> Exceptions<'_> {
        if !self.has_exceptions() {
            return Exceptions { bytes, bit, left: 0, shift: 0, high_width: 0 };
        }
        let head = read_bits(bytes, bit, HEAD_BITS as u32);
        let (left, high_width) = ((head & 31) + 1, (head >> 5) + 1);
        Exceptions { bytes, bit: bit + HEAD_BITS, left, shift: self.width(), high_width }
    }
}

/// Iterates over exceptions: positions below 128, ascending unless the file is damaged, and what to add there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exceptions<'a> {
    bytes: &'a [u8],
    bit: usize,
    left: u32,
    shift: u32,
    high_width: u32,
}

impl Exceptions<'_> {
    /// The bit after the last exception.
    pub(crate) fn end(&self) -> usize {
        self.bit + (self.left * (POSITION_BITS + self.high_width)) as usize
    }
}

impl Iterator for Exceptions<'_> {
    type Item = (usize, u32);

    #[inline]
    fn next(&mut self) -> Option<(usize, u32)> {
        self.left = self.left.checked_sub(1)?;
        let entry = read_window(self.bytes, self.bit);
        let position = entry as u32 & low_mask(POSITION_BITS);
        let high = (entry >> POSITION_BITS) as u32 & low_mask(self.high_width);
        self.bit += (POSITION_BITS + self.high_width) as usize;
        Some((position as usize, high << self.shift))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_codes_are_stored_in_six_bits() {
        for stored in 0..64 {
            let code = Code::from_stored(stored);
            assert_eq!(code.stored(), stored);
            assert!(code.width() <= 32 && (code.width() <= Code::MAX_PATCHED_WIDTH || !code.has_exceptions()));
        }
    }

    #[test]
    fn exceptions_are_chosen_where_they_save_and_come_back() {
        for (len, every, large) in
            [(128, 40, 1_u32 << 31), (128, 5, 900), (100, 99, 77), (128, 1, 3), (1, 1, 8), (20, 7, u32::MAX - 1)]
        {
            let values: Vec<u32> =
                (0..len).map(|i| if i % every == every / 2 { large } else { i as u32 % 4 }).collect();
            let (code, bits) = Code::choose(&values, 0);
            assert!(bits <= len * bit_width(large) as usize);
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            values.iter().for_each(|&value| writer.write(code.low(value), code.width()));
            code.write_exceptions(&values, &mut writer);
            writer.finish();
            assert_eq!(bytes.len(), bits.div_ceil(8), "{code:?}");
            let mut got: Vec<u32> =
                (0..len).map(|i| read_bits(&bytes, i * code.width() as usize, code.width())).collect();
            let exceptions = code.exceptions(&bytes, len * code.width() as usize);
            assert_eq!(exceptions.end(), bits);
            exceptions.for_each(|(position, high)| got[position] += high);
            assert_eq!(got, values);
        }
        assert_eq!(Code::choose(&[0; 128], 0), (Code::plain(0), 0));
        assert!(Code::choose(&[1, 1, 1, 200], 1000).0.width() == 8);
    }
}
