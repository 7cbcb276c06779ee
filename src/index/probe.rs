//! The probe form of a dense list: membership and frequency of one document, without decoding a block.

/// A list's direct form, for lists so dense that looking documents up beats decoding blocks.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    pub(super) words: &'a [u64],
}

impl<'a> Probe<'a> {
    /// One bit a document, set where the document is in the list: bit `doc % 64` of word `doc / 64`.
    #[must_use]
    #[inline]
    pub fn words(&self) -> &'a [u64] {
        self.words
    }

    /// Whether `doc` is in the list.
    ///
    /// # Panics
    /// If there is no such document.
    #[must_use]
    #[inline]
    pub fn contains(&self, doc: u32) -> bool {
        self.words[doc as usize / 64] >> (doc % 64) & 1 != 0
    }

    /// How often the term occurs in `doc`; 0 if it doesn't.
    ///
    /// # Panics
    /// If there is no such document.
    #[must_use]
    #[inline]
    pub fn freq(&self, doc: u32) -> u32 {
        u32::from(self.contains(doc))
    }
}
