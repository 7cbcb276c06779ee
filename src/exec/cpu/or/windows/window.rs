//! A window of documents, as algorithms that go window by window hand it on.

/// One window and what is known of the terms inside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    /// Its first document.
    pub(crate) start: u32,
    /// One past its last document, at most as many further as [`window_docs`](super::scorer::window_docs) says.
    pub(crate) end: u32,
    /// Upper bound of each term's share of a score; 0 where the list has no posting inside.
    pub(crate) bounds: &'a [f32],
    /// Each list's first block with a last document of at least `start`.
    pub(crate) first_blocks: &'a [u32],
    /// Documents with a term before this one are not looked at: that has been done.
    pub(crate) first_term: usize,
    /// Terms from here on are looked up, even where they are essential.
    pub(crate) end_of_essential: usize,
}
