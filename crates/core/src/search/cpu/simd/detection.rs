//! Which vector instructions this processor has.
//!
//! Loops that pay for it have one body that is compiled twice: for every x86-64, and with these instructions. The
//! compiler may not reorder or fuse float operations, so both give the same bits.

/// The proof that this processor has AVX2, POPCNT and BMI1 (all since 2013), and so runs functions compiled for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// Asks the processor.
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
