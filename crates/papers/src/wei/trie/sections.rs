//! Encoded lists of one run, slot by slot.

#[derive(Debug, Default)]
pub(crate) struct Sections {
    pub(crate) sections: Vec<Section>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) bytes: Vec<u8>,
}

/// The lists of a slot, which follow those of the previous section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) slot: u16,
    pub(crate) lists: u32,
    pub(crate) bytes: u64,
}

/// The term and the length in bytes of a list. It begins at the end of the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) term: u32,
    pub(crate) len: u32,
}

impl Sections {
    pub(crate) fn begin(&mut self, slot: u16) {
        self.sections.push(Section { slot, ..Section::default() });
    }

    /// Adds the list of a term of the last slot; `encode` appends its bytes.
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
