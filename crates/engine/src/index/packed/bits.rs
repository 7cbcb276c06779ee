//! Streams of bits: values of any width in sequence, least significant bit first, across bytes.

/// Appends values to a vector of bytes. A stream ends at a whole byte.
#[derive(Debug)]
pub(crate) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Bits that do not fill a word yet, fewer than 32.
    pending: u64,
    num_pending: u32,
}

impl<'a> BitWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, pending: 0, num_pending: 0 }
    }

    /// Appends the low `width` bits of `value`, at most 32. Its other bits must be 0.
    #[inline]
    pub(crate) fn write(&mut self, value: u32, width: u32) {
        debug_assert!(width == 32 || value >> width == 0, "{value} in {width} bits");
        self.pending |= u64::from(value) << self.num_pending;
        self.num_pending += width;
        if self.num_pending >= 32 {
            self.out.extend_from_slice(&(self.pending as u32).to_le_bytes());
            self.pending >>= 32;
            self.num_pending -= 32;
        }
    }

    /// Pads the stream with zero bits to a whole byte.
    pub(crate) fn finish(self) {
        let bytes = self.num_pending.div_ceil(8) as usize;
        self.out.extend_from_slice(&self.pending.to_le_bytes()[..bytes]);
    }
}

/// The value of `width` bits, at most 32, that begins at bit `bit`; bits past the end of `bytes` are zero.
#[inline]
pub(crate) fn read_bits(bytes: &[u8], bit: usize, width: u32) -> u32 {
    read_window(bytes, bit) as u32 & low_mask(width)
}

/// 57 bits or more from bit `bit` on; bits past the end of `bytes` are zero.
#[inline]
pub(crate) fn read_window(bytes: &[u8], bit: usize) -> u64 {
    let rest = bytes.get(bit / 8..).unwrap_or_default();
    let window = rest.first_chunk().map_or_else(|| last_window(rest), |chunk| u64::from_le_bytes(*chunk));
    window >> (bit % 8)
}

/// Reads fewer than eight bytes, padded with zeros.
#[cold]
fn last_window(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |window, &byte| window << 8 | u64::from(byte))
}

#[inline]
pub(crate) fn low_mask(width: u32) -> u32 {
    ((1_u64 << width) - 1) as u32
}

/// Bits that `value` takes: 0 for 0.
#[inline]
pub(crate) fn bit_width(value: u32) -> u32 {
    u32::BITS - value.leading_zeros()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_written_is_read(values in proptest::collection::vec((any::<u32>(), 0_u32..=32), 0..200)) {
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            for &(value, width) in &values {
                writer.write(value & low_mask(width), width);
            }
            writer.finish();
            let mut bit = 0;
            for &(value, width) in &values {
                prop_assert_eq!(read_bits(&bytes, bit, width), value & low_mask(width));
                bit += width as usize;
            }
            prop_assert_eq!(bytes.len(), bit.div_ceil(8));
            prop_assert_eq!(read_bits(&bytes, bit + 64, 32), 0);
        }
    }
}
