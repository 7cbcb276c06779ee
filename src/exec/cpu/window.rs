//! A window of documents, as algorithms that go window by window hand it on.

/// One window and what is known of the terms inside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window<'a> {
    /// Its first document.
    pub(super) start: u32,
    /// One past its last document, at most as many further as [`window_docs`](super::bulk::window_docs) says.
    pub(super) end: u32,
    /// Upper bound of each term's share of a score; 0 where the list has no posting inside.
    pub(super) bounds: &'a [f32],
    /// Each list's first block with a last document of at least `start`.
    pub(super) first_blocks: &'a [u32],
    /// Documents with a term before this one are not looked at: that has been done.
    pub(super) first_term: usize,
    /// Terms from here on are looked up, even where they are essential.
    pub(super) end_of_essential: usize,
}
