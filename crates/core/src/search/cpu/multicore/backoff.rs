//! How a thread without work looks for some: often at first, then less often.

/// Pauses between two looks: short ones, then longer ones; and where there are more threads than cores, the core is
/// then left to others.
#[derive(Debug)]
pub(crate) struct Backoff {
    looks: u32,
    is_crowded: bool,
}

impl Backoff {
    /// So many looks are frequent.
    const FREQUENT_LOOKS: u32 = 400;
    /// Spins between frequent looks, and between later ones. The core may be half of one whose other half is at work,
    /// even where the system doesn't tell, and looking without rest takes from that half: with 15 idle cores that
    /// looked as often as they could, the sixteenth was slower by a quarter.
    const SPINS: [u32; 2] = [16, 32];

    /// `is_crowded`: whether there may be fewer cores than threads.
    pub(crate) fn new(is_crowded: bool) -> Self {
        Self { looks: 0, is_crowded }
    }

    /// Begins anew, after there was something to do.
    pub(crate) fn reset(&mut self) {
        self.looks = 0;
    }

    /// Pauses, longer the more often in a row.
    pub(crate) fn pause(&mut self) {
        self.looks = self.looks.saturating_add(1);
        let is_late = self.is_late();
        (0..Self::SPINS[usize::from(is_late)]).for_each(|_| std::hint::spin_loop());
        if is_late && self.is_crowded {
            std::thread::yield_now();
        }
    }

    /// Whether frequent looks were not enough.
    pub(crate) fn is_late(&self) -> bool {
        self.looks > Self::FREQUENT_LOOKS
    }
}
