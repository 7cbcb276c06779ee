//! Streams of parsers for one slot: documents and the remaining bytes of their terms in order.
//!
//! ```text
//! 255 document (4 bytes) | length, bytes | length, bytes | 255 document | length, bytes | ...
//! ```
//!
//! A length is a byte, as in the paper, which assumes at most 255 bytes per term. Here 254 and 255 are special, and a
//! longer string has 254 before a length of four bytes.

/// Marks a document in the place of a length.
pub(crate) const DOCUMENT: u8 = 255;
/// Marks a length of four bytes in the place of a length.
pub(crate) const LONG: u8 = 254;

/// The parsed terms of one slot.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    bytes: Vec<u8>,
    /// Last document plus one; 0 before the first.
    doc: u32,
    tokens: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    Document(u32),
    Term(&'a [u8]),
}

impl Stream {
    /// Adds a term of `doc`, which is the last document or a later one.
    #[inline]
    pub(crate) fn push(&mut self, doc: u32, rest: &[u8]) {
        if self.doc != doc + 1 {
            self.doc = doc + 1;
            self.bytes.push(DOCUMENT);
            self.bytes.extend_from_slice(&doc.to_le_bytes());
        }
        self.tokens += 1;
        push_string(&mut self.bytes, rest);
    }

    /// Returns the encoded items for the GPU's indexer.
    #[cfg(any(feature = "gpu", test))]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn tokens(&self) -> u32 {
        self.tokens
    }

    pub(crate) fn items(&self) -> Items<'_> {
        Items { rest: &self.bytes }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        (self.doc, self.tokens) = (0, 0);
    }
}

#[inline]
pub(crate) fn push_string(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() < usize::from(LONG) {
        out.push(bytes.len() as u8);
    } else {
        out.push(LONG);
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    }
    out.extend_from_slice(bytes);
}

/// Returns the string that [`push_string`] put at the front. Panics if there is none; such bytes never leave this
/// program.
#[inline]
pub(crate) fn first_string(bytes: &[u8]) -> &[u8] {
    let (at, len) = match bytes[0] {
        LONG => (5, u32::from_le_bytes(*bytes[1..].first_chunk().expect("four bytes of length")) as usize),
        len => (1, usize::from(len)),
    };
    &bytes[at..at + len]
}

#[derive(Debug)]
pub(crate) struct Items<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        let first = *self.rest.first()?;
        if first == DOCUMENT {
            let doc = u32::from_le_bytes(*self.rest[1..].first_chunk().expect("four bytes of document"));
            self.rest = &self.rest[5..];
            return Some(Item::Document(doc));
        }
        let term = first_string(self.rest);
        self.rest = &self.rest[if first == LONG { 5 } else { 1 } + term.len()..];
        Some(Item::Term(term))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_of_all_lengths_come_back_below_their_documents() {
        let mut stream = Stream::default();
        let lengths = [0, 1, 4, 252, 253, 254, 255, 256, 300, 70_000];
        let strings: Vec<Vec<u8>> = lengths.iter().map(|&len| vec![b'x'; len]).collect();
        for (doc, string) in [0, 0, 255, 255, 70_000].into_iter().zip(strings.chunks(2)) {
            string.iter().for_each(|string| stream.push(doc, string));
        }
        let mut items = Vec::new();
        for (doc, strings) in [(0, &strings[..4]), (255, &strings[4..8]), (70_000, &strings[8..])] {
            items.push(Item::Document(doc));
            items.extend(strings.iter().map(|string| Item::Term(string)));
        }
        assert_eq!(stream.items().collect::<Vec<_>>(), items);
        assert_eq!(stream.tokens(), 10);
        stream.clear();
        stream.push(0, b"y");
        assert_eq!(stream.items().collect::<Vec<_>>(), [Item::Document(0), Item::Term(b"y")]);
    }
}
