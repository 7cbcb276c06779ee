//! Bit packing of blocks.
