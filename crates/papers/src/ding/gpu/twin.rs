//! Twins of the kernels on the host: the steps of the published methods in plain Rust, one function per kernel family.
//!
//! The codecs are the twins of the decoders, except for two properties of the device form: single slots, and Rice's two
//! prefix sums. Tests compare the twins with plain implementations, and the kernels with the twins.

/// Returns value `place` of a section of `len` slots of `width` bits, packed as `codec/packed.rs` describes: groups of
/// 128 in four lanes, the rest in a row. Panics if the section is short.
pub(crate) fn read_slot(slots: &[u32], width: u32, len: usize, place: usize) -> u32 {
    if width == 0 {
        return 0;
    }
    let (group, within) = (place / 128, place % 128);
    let is_full = (group + 1) * 128 <= len;
    let (row, column, stride) = if is_full { (within / 4, within % 4, 4) } else { (within, 0, 1) };
    let bit = row * width as usize;
    let word = |index: usize| u64::from(slots[group * 4 * width as usize + index * stride + column]);
    let (low, high) = (word(bit / 32), word((bit + width as usize - 1) / 32));
    ((high << 32 | low) >> (bit % 32)) as u32 & (u32::MAX >> (32 - width))
}
