//! A sketch of an index: a small summary of its lists that tests membership of a document in nanoseconds.
//!
//! A membership test in a list of packed blocks takes a search and a decoded block; a hundred tests take longer than many
//! a query. For each long list without a direct form, the sketch holds a filter of the documents of one range of the
//! collection. A filter is a row of words; each document has one word, and two bits in it:
//!
//! ```text
//! list "b"     7  90  412  413 ...      word 0              word 1
//!              |   `----------------->  0100...0010...      0000...1001...
//!              `------------------------------------------> bits 3 and 20 set
//! ```
//!
//! A document of the list is always found; another one is found in about one of twenty cases, which averages correct for.
//! At eight bits per posting, a sketch takes a fifth more memory than the index's lists for collections of up to
//! [`SKETCHED_DOCS`] documents. Of larger collections only that many documents, from the middle on, are sketched.
//!
//! Source: Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", WEA 2007 (blocked filters).

use tandem_base::base::prefetch::prefetch;

use crate::index::{BLOCK_LEN, Index};

const SKETCHED_DOCS: u32 = 1 << 20;
/// Bits of a filter for each of its documents.
const BITS_A_POSTING: usize = 8;

/// Filters of an index's long lists, in memory.
#[derive(Clone, Debug, Default)]
pub struct Sketch {
    words: Vec<u64>,
    /// The start of each long list's words, by the list's number, and the end of the last.
    starts: Vec<u32>,
    docs: std::ops::Range<u32>,
}

impl Sketch {
    /// Makes a sketch of `index`, in about a nanosecond a posting.
    pub fn of(index: &Index) -> Self {
        let num_docs = index.num_docs();
        let start = num_docs.saturating_sub(SKETCHED_DOCS) / 2;
        let docs = start..num_docs.min(start + SKETCHED_DOCS);
        let mut sketch = Self { words: Vec::new(), starts: vec![0], docs: docs.clone() };
        let mut members = Vec::new();
        let mut block_docs = [0; BLOCK_LEN];
        for list in index.long_posting_lists() {
            members.clear();
            if list.probe().is_none() {
                let first = list.last_docs().partition_point(|&last| last < docs.start);
                for block in first..list.num_blocks() {
                    let len = list.decode_docs(block, &mut block_docs);
                    members.extend(block_docs[..len].iter().filter(|doc| docs.contains(doc)));
                    if list.last_doc(block) >= docs.end {
                        break;
                    }
                }
            }
            let start = sketch.words.len();
            sketch.words.resize(start + (members.len() * BITS_A_POSTING).div_ceil(64), 0);
            let filter = &mut sketch.words[start..];
            for &doc in &members {
                let (word, bits) = place(doc, filter.len());
                filter[word] |= bits;
            }
            sketch.starts.push(sketch.words.len() as u32);
        }
        sketch
    }

    /// The range of documents that it covers.
    pub fn docs(&self) -> std::ops::Range<u32> {
        self.docs.clone()
    }

    /// Its size in memory.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of_val(&*self.starts)
    }

    /// Prefetches the position of the filter of a long list.
    #[inline]
    pub(super) fn prefetch(&self, number: u32) {
        prefetch(self.starts.get(number as usize..).unwrap_or_default(), 2 * size_of::<u32>());
    }

    /// The filter of a long list; empty if the list has no document in the range, or a direct form.
    #[inline]
    pub(super) fn filter(&self, number: u32) -> &[u64] {
        match self.starts.get(number as usize..number as usize + 2) {
            Some(&[start, end]) => &self.words[start as usize..end as usize],
            _ => &[],
        }
    }
}

/// Whether the list of `filter`, which must not be empty, may hold a document of the range.
#[inline]
pub(super) fn may_contain(filter: &[u64], doc: u32) -> bool {
    let (word, bits) = place(doc, filter.len());
    filter[word] & bits == bits
}

/// The word and the two bits of a document, in a filter of this many words.
#[inline]
fn place(doc: u32, num_words: usize) -> (usize, u64) {
    let hash = u64::from(doc).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = ((hash >> 32) * num_words as u64) >> 32;
    // The upper half determines the word; the bits come from lower digits, mixed once more.
    let low = hash ^ (hash >> 29);
    (word as usize, 1 << (low & 63) | 1 << (low >> 6 & 63))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_base::base::ids::TermId;

    #[test]
    fn what_a_list_holds_is_always_found_and_little_else() {
        let docs: Vec<(u32, u32)> = (0..300_000).step_by(11).map(|doc| (doc, 1)).collect();
        let index = Index::from_lists(&[("a", docs), ("b", vec![(299_999, 1)])]).unwrap();
        let sketch = Sketch::of(&index);
        assert_eq!(sketch.docs(), 0..300_000);
        let filter = sketch.filter(index.long_list_number(TermId(0)).unwrap());
        let mut mistakes = 0;
        for doc in 0..300_000 {
            let (is_in, may_be_in) = (doc % 11 == 0, may_contain(filter, doc));
            assert!(may_be_in || !is_in, "{doc}");
            mistakes += u32::from(may_be_in && !is_in);
        }
        assert!(mistakes < 300_000 / 12, "{mistakes}");
        assert_eq!(index.long_list_number(TermId(1)), None);
    }

    #[test]
    fn large_collections_are_sketched_from_their_middle() {
        let at = |from: u32| (from..from + 200).map(|doc| (doc, 1)).collect::<Vec<_>>();
        let index = Index::from_lists(&[("a", at(0)), ("b", at(1_500_000)), ("c", at(2_999_800))]).unwrap();
        let sketch = Sketch::of(&index);
        assert_eq!(sketch.docs(), 975_712..2_024_288);
        assert_eq!([0, 1, 2].map(|number| sketch.filter(number).len()), [0, 25, 0]);
        assert!(sketch.bytes() < 300);
    }
}
