//! Conversion of documents and frequencies to the small numbers that codecs pack, and back.
//!
//! Documents ascend strictly, so that each is stored as its **gap** to the previous one, minus one; the first gap is
//! from -1. Frequencies are at least 1 and stored minus one. Both give mostly small numbers from 0 on.

use tandem_engine::index::sum_gaps;

use super::CodecError;
use super::error::MAX_LIST_LEN;

/// Type of the values of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// Strictly ascending documents.
    Docs,
    /// Frequencies of at least 1 in any order.
    Freqs,
}

impl Column {
    /// Returns the numbers to pack for `values`. Fails if documents do not ascend, a frequency is 0, or there are too
    /// many values.
    pub(crate) fn reduce(self, values: &[u32]) -> Result<Vec<u32>, CodecError> {
        if values.len() > MAX_LIST_LEN {
            return Err(CodecError::TooLong { len: values.len() });
        }
        match self {
            Column::Docs => {
                if let Some(at) = values.windows(2).position(|pair| pair[0] >= pair[1]) {
                    return Err(CodecError::Unsorted { position: at + 1, doc: values[at + 1], previous: values[at] });
                }
                let before = std::iter::once(u32::MAX).chain(values.iter().copied());
                Ok(values.iter().zip(before).map(|(doc, before)| doc.wrapping_sub(before).wrapping_sub(1)).collect())
            }
            Column::Freqs => {
                if let Some(position) = values.iter().position(|&freq| freq == 0) {
                    return Err(CodecError::ZeroFreq { position });
                }
                Ok(values.iter().map(|freq| freq - 1).collect())
            }
        }
    }

    /// Turns packed numbers back into values in place. Documents start from `base`, the previous document (-1 as
    /// `u32::MAX` before the first).
    #[inline]
    pub(crate) fn restore(self, base: u32, values: &mut [u32]) {
        match self {
            Column::Docs => sum_gaps(base, values),
            Column::Freqs => values.iter_mut().for_each(|freq| *freq = freq.wrapping_add(1)),
        }
    }
}
