//! The sections of lists that devices receive, as they are stored on disk.

use super::directory::{BlockEntry, LongList};
use super::encode::ROW_WORDS;

/// The sections of lists, borrowed from the mapped file. Opening the index has decoded every block, so that decoders of
/// these sections need no bounds checks.
#[derive(Clone, Copy, Debug)]
pub struct ListSections<'a> {
    /// Packed blocks and probe forms of long lists.
    pub payload: &'a [u32],
    /// The last document of each block of a long list.
    pub last_docs: &'a [u32],
    /// All blocks of long lists.
    pub blocks: &'a [BlockEntry],
    /// The long lists in order of their terms. Their blocks and payloads are contiguous.
    pub long_lists: &'a [LongList],
    /// Bits of short lists, padded to whole words.
    pub short_lists: &'a [u32],
    /// Place of each term's list. If the two highest bits are below 2, the word is the only document. If they are 2, a
    /// short list begins at this byte. If they are 3, the word is the number of a long list.
    pub slots: &'a [u32],
    /// Number of documents.
    pub num_docs: u32,
}

impl LongList {
    /// Words of the packed blocks, without the probe form behind them.
    pub fn block_words(&self) -> usize {
        let rows = if self.probe_row == 0 { self.rows } else { self.probe_row };
        ROW_WORDS * rows as usize
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::encode::{pack_block, pack_short};
    use super::super::{BLOCK_LEN, directory::ListPlace, directory::TermSlot};
    use super::*;
    use crate::index::Index;

    /// Sections of arbitrary lists, including lists that no index of a test could have norms for.
    #[derive(Debug, Default)]
    pub(crate) struct OwnedSections {
        payload: Vec<u32>,
        last_docs: Vec<u32>,
        blocks: Vec<BlockEntry>,
        long_lists: Vec<LongList>,
        short_bytes: Vec<u8>,
        short_lists: Vec<u32>,
        slots: Vec<u32>,
    }

    impl OwnedSections {
        /// Appends the next term's list, as [`ListEncoder`](crate::index::ListEncoder) does.
        pub(crate) fn add(&mut self, docs: &[u32], freqs: &[u32]) {
            let place = match (docs, freqs) {
                (&[doc], &[1]) => ListPlace::Single(doc),
                _ if docs.len() < BLOCK_LEN => self.add_short(docs, freqs),
                _ => self.add_long(docs, freqs),
            };
            self.slots.push(bytemuck::cast(TermSlot::new(place)));
        }

        fn add_short(&mut self, docs: &[u32], freqs: &[u32]) -> ListPlace {
            let place = ListPlace::Short(self.short_bytes.len() as u32);
            pack_short(docs, freqs, 255, &mut self.short_bytes);
            let bytes = self.short_bytes.chunks(4).map(|bytes| {
                let mut word = [0; 4];
                word[..bytes.len()].copy_from_slice(bytes);
                u32::from_le_bytes(word)
            });
            self.short_lists = bytes.collect();
            place
        }

        fn add_long(&mut self, docs: &[u32], freqs: &[u32]) -> ListPlace {
            let place = ListPlace::Long(self.long_lists.len() as u32);
            let first_block = self.blocks.len() as u32;
            let (mut bytes, mut base) = (Vec::new(), u32::MAX);
            for (docs, freqs) in docs.chunks(BLOCK_LEN).zip(freqs.chunks(BLOCK_LEN)) {
                self.blocks.push(pack_block(base, docs, freqs, &mut bytes).with_impact(255));
                base = docs[docs.len() - 1];
                self.last_docs.push(base);
            }
            bytes.resize(bytes.len().next_multiple_of(4 * ROW_WORDS), 0);
            // A probe form may stand between two lists. Other bytes stand here in its place.
            let (payload_word, probe_row) = (self.payload.len() as u64, (bytes.len() / (4 * ROW_WORDS)) as u32);
            bytes.resize(bytes.len() + 4 * ROW_WORDS, 0xa5);
            self.payload.extend(bytes.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word)));
            let (doc_freq, rows) = (docs.len() as u32, probe_row + 1);
            let (max_impact, kth_impacts) = (1.0, [0.0; 3]);
            let list = LongList { payload_word, first_block, doc_freq, max_impact, kth_impacts, probe_row, rows };
            self.long_lists.push(list);
            place
        }

        pub(crate) fn sections(&self, num_docs: u32) -> ListSections<'_> {
            let Self { payload, last_docs, blocks, long_lists, short_lists, slots, .. } = self;
            ListSections { payload, last_docs, blocks, long_lists, short_lists, slots, num_docs }
        }
    }

    #[test]
    fn block_words_leave_out_the_probe_form() {
        let lists =
            [("dense", (0..5000).map(|doc| (2 * doc, 1)).collect()), ("t", (0..200).map(|d| (d * 50, 2)).collect())];
        let index = Index::from_lists(&lists).unwrap();
        let sections = index.list_sections();
        assert_eq!(sections.slots.iter().map(|slot| slot >> 30).collect::<Vec<_>>(), [3, 3]);
        let probes: Vec<bool> = sections.long_lists.iter().map(|list| list.probe_row > 0).collect();
        for (list, has_probe) in sections.long_lists.iter().zip(&probes) {
            assert_eq!(list.block_words() < 4 * list.rows as usize, *has_probe);
        }
        assert!(probes.contains(&true));
    }
}
