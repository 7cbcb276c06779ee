//! What can be wrong with an encoded list, or with a list to be encoded.

/// Why a list can't be encoded or decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The words end before what they announce.
    #[error("the list is cut short: {what} needs {needed} words, {found} are left")]
    Truncated {
        /// The part that does not fit.
        what: &'static str,
        /// Its length in 32-bit words.
        needed: usize,
        /// Words that are left for it.
        found: usize,
    },
    /// A field has a value that no encoder writes.
    #[error("the list is damaged: {what} is {found}, expected {expected}")]
    Damaged {
        /// The field.
        what: &'static str,
        /// Its value.
        found: usize,
        /// What it may be.
        expected: &'static str,
    },
    /// A block was asked for that the list does not have.
    #[error("block {block} of a list of {num_blocks}")]
    NoBlock {
        /// The block asked for.
        block: usize,
        /// How many there are.
        num_blocks: usize,
    },
    /// The buffer is shorter than the block to be decoded.
    #[error("a buffer of {found} values for a block of {needed}")]
    ShortBuffer {
        /// Values in the block.
        needed: usize,
        /// Values that the buffer holds.
        found: usize,
    },
    /// Documents to be encoded do not ascend strictly.
    #[error("value {position} is document {doc} after {previous}, expected ascending documents")]
    Unsorted {
        /// Position of the second of the two.
        position: usize,
        /// The document there.
        doc: u32,
        /// The one before.
        previous: u32,
    },
    /// A frequency to be encoded is 0.
    #[error("value {position} is a frequency of 0, expected at least 1")]
    ZeroFreq {
        /// Its position.
        position: usize,
    },
    /// A list to be encoded has more values than the formats count.
    #[error("a list of {len} values, expected at most {MAX_LIST_LEN}")]
    TooLong {
        /// Its length.
        len: usize,
    },
}

/// Values that a list may have: bit positions in a list of this length still fit 32 bits.
pub const MAX_LIST_LEN: usize = 1 << 30;

impl CodecError {
    /// Checks that a field is one of those an encoder writes.
    pub fn check(holds: bool, what: &'static str, found: usize, expected: &'static str) -> Result<(), CodecError> {
        if holds { Ok(()) } else { Err(CodecError::Damaged { what, found, expected }) }
    }
}
