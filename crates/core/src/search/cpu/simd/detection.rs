//! Detection of vector instructions.
//!
//! Loops that gain from them have one body that is compiled twice, with these instructions and without. The compiler
//! may neither reorder nor fuse float operations, so both give the same bits.

/// Proof that this processor has AVX2, POPCNT and BMI1 (all since 2013).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    #[inline(always)]
    pub(crate) fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("popcnt")
            && std::arch::is_x86_feature_detected!("bmi1")
        {
            return Some(Self(()));
        }
        None
    }
}
