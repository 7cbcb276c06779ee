//! The host's side: gathers input, groups postings by term, and keeps terms.

use rayon::prelude::*;
use tandem_engine::indexing::postings::put;
use tandem_engine::search::device::GpuError;

use super::backend::{Backend, Input, Output, Posting, STREAM_ALIGNMENT, Task, WINDOW_BYTES};
use crate::wei::trie::buffer::Buffer;
use crate::wei::trie::dictionary::{Dictionary, FIRST_STRING, Term};
use crate::wei::trie::indexer::SlotIndexer;
use crate::wei::trie::sections::Sections;

/// An indexer with its trees on a device.
#[derive(Debug)]
pub(crate) struct GpuIndexer {
    backend: Box<dyn Backend>,
    input: Input,
    output: Output,
    /// Terms of all collected runs.
    terms: Vec<Term>,
    strings: Vec<u8>,
}

impl GpuIndexer {
    pub(crate) fn new(backend: Box<dyn Backend>) -> Self {
        let (input, output) = (Input::default(), Output::default());
        Self { backend, input, output, terms: Vec::new(), strings: vec![0; FIRST_STRING] }
    }
}

impl SlotIndexer for GpuIndexer {
    fn prepare(&mut self, buffer: &Buffer, slots: &[u16], first_doc: u32) -> Result<(), GpuError> {
        let Input { bytes, tasks, num_tokens, .. } = &mut self.input;
        bytes.clear();
        tasks.clear();
        *num_tokens = 0;
        for &slot in slots {
            let stream = buffer.stream(slot);
            if stream.tokens() == 0 {
                continue;
            }
            bytes.resize(bytes.len().next_multiple_of(STREAM_ALIGNMENT), 0);
            tasks.push(Task {
                slot: u32::from(slot),
                first_posting: *num_tokens as u32,
                bytes: stream.bytes().len() as u32,
                start: (bytes.len() / STREAM_ALIGNMENT) as u32,
            });
            bytes.extend_from_slice(stream.bytes());
            *num_tokens += stream.tokens() as usize;
        }
        bytes.resize(bytes.len().next_multiple_of(STREAM_ALIGNMENT) + WINDOW_BYTES, 0);
        self.input.first_doc = first_doc;
        self.backend.prepare(&self.input)
    }

    fn index(&mut self, _: &Buffer, _: &[u16]) -> Result<(), GpuError> {
        self.backend.index()
    }

    fn collect(&mut self, sections: &mut Sections) -> Result<(), GpuError> {
        self.backend.collect(&mut self.output)?;
        let Output { postings, task_postings, terms, strings } = &mut self.output;
        self.terms.append(terms);
        self.strings.append(strings);
        let first_doc = self.input.first_doc;
        let slots: Vec<(u16, &[Posting])> = self
            .input
            .tasks
            .iter()
            .zip(&*task_postings)
            .map(|(task, &len)| (task.slot as u16, &postings[task.first_posting as usize..][..len as usize]))
            .collect();
        let encoded: Vec<SlotLists> = slots.par_iter().map(|(_, postings)| lists_of(postings, first_doc)).collect();
        for ((slot, _), lists) in slots.iter().zip(&encoded) {
            sections.begin(*slot);
            let mut start = 0;
            for &(term, end) in &lists.ends {
                sections.list(term, |bytes| bytes.extend_from_slice(&lists.bytes[start..end]));
                start = end;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Dictionary, GpuError> {
        self.backend.dictionary(std::mem::take(&mut self.terms), std::mem::take(&mut self.strings))
    }
}

struct SlotLists {
    bytes: Vec<u8>,
    /// Term and end of each list.
    ends: Vec<(u32, usize)>,
}

/// Groups a slot's postings by term and encodes them with documents from 0 on.
fn lists_of(postings: &[Posting], first_doc: u32) -> SlotLists {
    let mut order: Vec<u64> = (0..).zip(postings).map(|(at, posting)| u64::from(posting.term) << 32 | at).collect();
    // The place in the key keeps a term's postings in order.
    order.sort_unstable();
    let mut lists = SlotLists { bytes: Vec::with_capacity(postings.len() * 2), ends: Vec::new() };
    for list in order.chunk_by(|a, b| a >> 32 == b >> 32) {
        let mut next = first_doc;
        for &key in list {
            let Posting { doc, freq, .. } = postings[key as u32 as usize];
            put(&mut lists.bytes, (doc - next) << 1 | u32::from(freq > 1));
            if freq > 1 {
                put(&mut lists.bytes, freq);
            }
            next = doc + 1;
        }
        lists.ends.push(((list[0] >> 32) as u32, lists.bytes.len()));
    }
    lists
}
