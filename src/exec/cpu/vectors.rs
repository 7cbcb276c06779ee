//! Which vector instructions this processor has.
//!
//! Loops that pay for it have one body that is compiled twice: for every x86-64, and with these instructions. The
//! compiler may not reorder or fuse float operations, so both give the same bits.

/// Whether this processor has AVX2, POPCNT and BMI1 (all since 2013): whether it runs functions compiled for the three.
#[inline(always)]
pub(super) fn has_wide_vectors() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("popcnt")
        && std::arch::is_x86_feature_detected!("bmi1")
}
