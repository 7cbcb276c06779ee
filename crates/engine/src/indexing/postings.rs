//! Growing posting lists in one piece of memory.
//!
//! A list is a chain of slices, each twice as long as the previous one up to a limit. The last four bytes of a slice
//! point to the next slice. A term that occurs in one document has no slice: its posting waits in the list's head until
//! the next one arrives.
//!
//! ```text
//! pool  ...|gap freq gap ... → |...|gap gap freq ......... → |...
//! ```
//!
//! A posting is twice its gap minus one, plus one if a frequency above 1 follows. Both numbers take a variable number
//! of bytes of seven bits, lowest first.

/// Growing lists, identified by number.
#[derive(Debug, Default)]
pub struct Postings {
    lists: Vec<List>,
    pool: Vec<u8>,
}

/// A list's last posting, which may still grow, and the place of the previous ones.
#[derive(Clone, Copy, Debug, Default)]
struct List {
    doc: u32,
    /// A value of 0 marks a list without postings.
    freq: u32,
    /// One more than the document of the posting before the last.
    next: u32,
    first_slice: u32,
    /// Write position in the last slice, and the position of its pointer. They are equal before the first slice.
    write: u32,
    end: u32,
    level: u32,
}

/// Bytes of the first slice, and number of times that slices double.
const FIRST_SLICE: usize = 16;
const MAX_LEVEL: u32 = 10;
const POINTER_BYTES: usize = 4;

fn slice_bytes(level: u32) -> usize {
    FIRST_SLICE << level.min(MAX_LEVEL)
}

impl Postings {
    /// Counts an occurrence of the list's term in `doc`, which is the list's last document or a later one. Lists are
    /// numbered from 0 and start when first named.
    #[inline]
    pub fn count(&mut self, list: u32, doc: u32) {
        if list as usize == self.lists.len() {
            self.lists.push(List { doc, freq: 1, ..List::default() });
            return;
        }
        let head = &mut self.lists[list as usize];
        if head.doc == doc {
            head.freq += 1;
            return;
        }
        let (gap, freq) = (head.doc - head.next, head.freq);
        head.next = head.doc + 1;
        (head.doc, head.freq) = (doc, 1);
        self.append(list, gap, freq);
    }

    /// Reads the memory that [`count`](Self::count) will read, to prefetch it. The result depends on all of it.
    #[inline]
    pub(crate) fn touch(&self, list: u32) -> u32 {
        let head = self.lists.get(list as usize);
        head.map_or(0, |head| head.doc ^ u32::from(self.pool.get(head.write as usize).copied().unwrap_or(0)))
    }

    /// Passes the encoded postings of a list to `take`, slice by slice.
    pub fn read(&self, list: u32, mut take: impl FnMut(&[u8])) {
        let head = &self.lists[list as usize];
        let mut start = head.first_slice as usize;
        for level in 0..head.level {
            let end = start + slice_bytes(level) - POINTER_BYTES;
            if level + 1 == head.level {
                take(&self.pool[start..head.write as usize]);
                break;
            }
            take(&self.pool[start..end]);
            let pointer = self.pool[end..].first_chunk().expect("a slice ends in a pointer");
            start = u32::from_le_bytes(*pointer) as usize;
        }
        let mut last = [0; MAX_POSTING_BYTES];
        let len = encode(head.doc - head.next, head.freq, &mut last);
        take(&last[..len]);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lists.len() * size_of::<List>() + self.pool.len()
    }

    /// Removes all lists, and keeps the memory.
    pub fn clear(&mut self) {
        self.lists.clear();
        self.pool.clear();
    }

    fn append(&mut self, list: u32, gap: u32, freq: u32) {
        let mut bytes = [0; MAX_POSTING_BYTES];
        let len = encode(gap, freq, &mut bytes);
        let head = &mut self.lists[list as usize];
        // Most postings take one or two bytes, which are not worth a call that copies.
        let room = (head.end - head.write) as usize;
        if len <= 2 && room >= 2 {
            self.pool[head.write as usize..][..2].copy_from_slice(&bytes[..2]);
            head.write += len as u32;
            return;
        }
        for &byte in &bytes[..len] {
            if head.write == head.end {
                let start = self.pool.len();
                self.pool.resize(start + slice_bytes(head.level), 0);
                if head.level == 0 {
                    head.first_slice = start as u32;
                } else {
                    self.pool[head.end as usize..][..POINTER_BYTES].copy_from_slice(&(start as u32).to_le_bytes());
                }
                head.write = start as u32;
                head.end = (self.pool.len() - POINTER_BYTES) as u32;
                head.level += 1;
            }
            self.pool[head.write as usize] = byte;
            head.write += 1;
        }
    }
}

/// Two numbers of five bytes.
const MAX_POSTING_BYTES: usize = 10;

/// Writes a posting and returns the number of its bytes.
#[inline]
fn encode(gap: u32, freq: u32, bytes: &mut [u8; MAX_POSTING_BYTES]) -> usize {
    let mut len = 0;
    let mut put = |mut value: u32| {
        while value >= 0x80 {
            bytes[len] = value as u8 | 0x80;
            len += 1;
            value >>= 7;
        }
        bytes[len] = value as u8;
        len += 1;
    };
    // Documents of a run are far below 2^31, so the gap does not overflow.
    put(gap << 1 | u32::from(freq > 1));
    if freq > 1 {
        put(freq);
    }
    len
}

/// Iterates over the documents and frequencies of encoded postings. Damaged bytes give other or fewer postings.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    next: u32,
}

impl<'a> Decoder<'a> {
    /// The postings in these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, next: 0 }
    }
}

impl Iterator for Decoder<'_> {
    type Item = (u32, u32);

    #[inline]
    fn next(&mut self) -> Option<(u32, u32)> {
        if self.rest.is_empty() {
            return None;
        }
        let code = take(&mut self.rest);
        let doc = self.next.wrapping_add(code >> 1);
        let freq = if code & 1 == 0 { 1 } else { take(&mut self.rest) };
        self.next = doc.wrapping_add(1);
        Some((doc, freq))
    }
}

/// Removes a number from the front.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> u32 {
    let mut value = 0;
    let mut shift = 0;
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        value |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// Appends a number of variable length.
pub fn put(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_base::base::random::Random;

    #[test]
    fn numbers_of_any_size_roundtrip() {
        let values = [0, 1, 127, 128, 16_383, 16_384, u32::MAX - 1, u32::MAX];
        let mut bytes = Vec::new();
        values.iter().for_each(|&value| put(&mut bytes, value));
        let mut rest = bytes.as_slice();
        assert_eq!(values.map(|_| take(&mut rest)), values);
        assert!(rest.is_empty());
    }

    #[test]
    fn lists_of_all_lengths_come_back() {
        let mut random = Random::new(3, 0);
        let mut expected: Vec<Vec<(u32, u32)>> = Vec::new();
        let mut postings = Postings::default();
        for doc in 0..20_000_u32 {
            for list in 0..40_u32 {
                if list as usize > expected.len() || random.below(1 << (list / 2)) != 0 {
                    continue;
                }
                let freq = 1 + random.below(3) * random.below(200);
                (0..freq).for_each(|_| postings.count(list, doc));
                if list as usize == expected.len() {
                    expected.push(Vec::new());
                }
                expected[list as usize].push((doc, freq));
            }
        }
        for (list, expected) in (0..).zip(&expected) {
            let mut bytes = Vec::new();
            postings.read(list, |slice| bytes.extend_from_slice(slice));
            assert_eq!(Decoder::new(&bytes).collect::<Vec<_>>(), *expected, "list {list}");
        }
        assert!(expected.iter().any(|list| list.len() <= 2) && expected[0].len() == 20_000);
    }
}
