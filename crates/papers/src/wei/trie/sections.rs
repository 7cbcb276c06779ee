//! The lists of one run, encoded, slot by slot.

/// Lists of an indexer's slots.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    pub(crate) sections: Vec<Section>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) bytes: Vec<u8>,
}

/// The lists of a slot: the next ones of the entries, and the next bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) slot: u16,
    pub(crate) lists: u32,
    pub(crate) bytes: u64,
}

/// A list: whose it is, and its length in bytes. It begins where the one before ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) term: u32,
    pub(crate) len: u32,
}

impl Sections {
    /// Begins the lists of another slot.
    pub(crate) fn begin(&mut self, slot: u16) {
        self.sections.push(Section { slot, ..Section::default() });
    }

    /// Adds the list of a term of the slot that was begun last: what `encode` appends.
    pub(crate) fn list(&mut self, term: u32, encode: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        encode(&mut self.bytes);
        let len = self.bytes.len() - start;
        self.entries.push(Entry { term, len: len as u32 });
        if let Some(section) = self.sections.last_mut() {
            section.lists += 1;
            section.bytes += len as u64;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.sections.clear();
        self.entries.clear();
        self.bytes.clear();
    }
}
