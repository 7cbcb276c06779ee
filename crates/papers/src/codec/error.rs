//! Errors of encoding and decoding lists.

/// Reason why a list cannot be encoded or decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The words end before their announced end.
    #[error("the list is cut short: {what} needs {needed} words, {found} are left")]
    Truncated {
        /// Name of the part.
        what: &'static str,
        /// Length of the part in 32-bit words.
        needed: usize,
        /// Number of remaining words.
        found: usize,
    },
    /// A field has a value that no encoder writes.
    #[error("the list is damaged: {what} is {found}, expected {expected}")]
    Damaged {
        /// Name of the field.
        what: &'static str,
        /// Value of the field.
        found: usize,
        /// Description of valid values.
        expected: &'static str,
    },
    /// The list does not have the requested block.
    #[error("block {block} of a list of {num_blocks}")]
    NoBlock {
        /// Number of the requested block.
        block: usize,
        /// Number of blocks.
        num_blocks: usize,
    },
    /// The buffer is shorter than the block.
    #[error("a buffer of {found} values for a block of {needed}")]
    ShortBuffer {
        /// Values in the block.
        needed: usize,
        /// Values that the buffer holds.
        found: usize,
    },
    /// The documents do not ascend strictly.
    #[error("value {position} is document {doc} after {previous}, expected ascending documents")]
    Unsorted {
        /// Position of the second document.
        position: usize,
        /// The second document.
        doc: u32,
        /// The first document.
        previous: u32,
    },
    /// A frequency is 0.
    #[error("value {position} is a frequency of 0, expected at least 1")]
    ZeroFreq {
        /// Position of the frequency.
        position: usize,
    },
    /// The list is too long for the formats.
    #[error("a list of {len} values, expected at most {MAX_LIST_LEN}")]
    TooLong {
        /// Length of the list.
        len: usize,
    },
}

/// Maximum number of values of a list; bit positions in such a list fit 32 bits.
pub(crate) const MAX_LIST_LEN: usize = 1 << 30;

impl CodecError {
    /// Checks that a field has a value that an encoder writes.
    pub fn check(holds: bool, what: &'static str, found: usize, expected: &'static str) -> Result<(), CodecError> {
        if holds { Ok(()) } else { Err(CodecError::Damaged { what, found, expected }) }
    }
}
