//! Indexer on one CPU thread.

use tandem_engine::indexing::postings::Postings;
use tandem_engine::search::device::GpuError;

use super::buffer::Buffer;
use super::dictionary::Dictionary;
use super::indexer::SlotIndexer;
use super::sections::Sections;
use super::stream::Item;

/// Marks a term without a list in this run.
const NO_LIST: u32 = u32::MAX;

/// Trees and this run's lists of some slots.
#[derive(Debug, Default)]
pub(crate) struct CpuIndexer {
    dictionary: Dictionary,
    /// List in this run of each term.
    list_of: Vec<u32>,
    terms: Vec<u32>,
    postings: Postings,
    /// Slots with terms in this run, and the ends of their lists.
    ends: Vec<(u16, u32)>,
}

impl SlotIndexer for CpuIndexer {
    fn prepare(&mut self, _: &Buffer, _: &[u16], _: u32) -> Result<(), GpuError> {
        Ok(())
    }

    fn index(&mut self, buffer: &Buffer, slots: &[u16]) -> Result<(), GpuError> {
        let Self { dictionary, list_of, terms, postings, ends } = self;
        for &slot in slots {
            let mut doc = 0;
            for item in buffer.stream(slot).items() {
                let bytes = match item {
                    Item::Document(next) => {
                        doc = next;
                        continue;
                    }
                    Item::Term(bytes) => bytes,
                };
                let term = dictionary.insert(slot, bytes);
                if term as usize == list_of.len() {
                    list_of.push(NO_LIST);
                }
                let list = &mut list_of[term as usize];
                if *list == NO_LIST {
                    *list = terms.len() as u32;
                    terms.push(term);
                }
                postings.count(*list, doc);
            }
            if ends.last().map_or(0, |end| end.1) < terms.len() as u32 {
                ends.push((slot, terms.len() as u32));
            }
        }
        Ok(())
    }

    fn collect(&mut self, sections: &mut Sections) -> Result<(), GpuError> {
        let mut first = 0;
        for &(slot, end) in &self.ends {
            sections.begin(slot);
            for list in first..end {
                sections.list(self.terms[list as usize], |bytes| {
                    self.postings.read(list, |slice| bytes.extend_from_slice(slice));
                });
            }
            first = end;
        }
        for &term in &self.terms {
            self.list_of[term as usize] = NO_LIST;
        }
        self.terms.clear();
        self.ends.clear();
        self.postings.clear();
        Ok(())
    }

    fn finish(&mut self) -> Result<Dictionary, GpuError> {
        Ok(std::mem::take(&mut self.dictionary))
    }
}
