//! Twin of the kernel on the host: the same steps, slot after slot, on the same arrays.

use tandem_engine::search::device::GpuError;

use super::backend::{Backend, Counters, Input, Output, Posting, WINDOW_BYTES, worst_case};
use crate::wei::trie::dictionary::{Dictionary, Term};
use crate::wei::trie::stream::{DOCUMENT, LONG};

/// A simulated device.
#[derive(Debug, Default)]
pub(crate) struct Twin {
    dictionary: Dictionary,
    /// Last document of each term, and its posting.
    states: Vec<(u32, u32)>,
    postings: Vec<Posting>,
    task_postings: Vec<u32>,
    input: Input,
    before: Counters,
}

impl Twin {
    fn counters(&self) -> Counters {
        let Dictionary { nodes, strings, terms, .. } = &self.dictionary;
        let (nodes, strings, terms) = (nodes.len() as u32, strings.len() as u32, terms.len() as u32);
        Counters { nodes, strings, terms, next_task: 0 }
    }

    fn index_task(&mut self, number: usize) {
        let task = self.input.tasks[number];
        let stream = &self.input.bytes[task.start as usize * 16..][..task.bytes as usize];
        let word = |at: usize| u32::from_le_bytes(*stream[at..].first_chunk().unwrap());
        let (mut doc, mut num_postings, mut place) = (0, 0, 0);
        while place < stream.len() {
            let (at, len) = match stream[place] {
                DOCUMENT => {
                    doc = self.input.first_doc + word(place + 1);
                    place += 5;
                    continue;
                }
                LONG => (place + 5, word(place + 1) as usize),
                len => (place + 1, usize::from(len)),
            };
            place = at + len;
            let term = self.dictionary.insert(task.slot as u16, &stream[at..at + len]);
            if term as usize == self.states.len() {
                self.states.push((u32::MAX, 0));
            }
            let state = &mut self.states[term as usize];
            if state.0 == doc {
                self.postings[state.1 as usize].freq += 1;
            } else {
                *state = (doc, task.first_posting + num_postings);
                self.postings[state.1 as usize] = Posting { term, doc, freq: 1 };
                num_postings += 1;
            }
        }
        self.task_postings[number] = num_postings;
    }
}

impl Backend for Twin {
    fn prepare(&mut self, input: &Input) -> Result<(), GpuError> {
        assert!(input.bytes.len() >= WINDOW_BYTES);
        let Input { bytes, tasks, num_tokens, first_doc } = input;
        let (bytes, tasks) = (bytes.clone(), tasks.clone());
        self.postings = vec![Posting { term: u32::MAX, doc: u32::MAX, freq: u32::MAX }; *num_tokens];
        self.task_postings = vec![u32::MAX; tasks.len()];
        self.input = Input { bytes, tasks, num_tokens: *num_tokens, first_doc: *first_doc };
        Ok(())
    }

    fn index(&mut self) -> Result<(), GpuError> {
        self.before = self.counters();
        (0..self.input.tasks.len()).for_each(|number| self.index_task(number));
        let Counters { nodes, strings, terms, .. } = self.counters();
        let (there, most) = ([nodes, strings, terms], worst_case(self.before, &self.input));
        assert!(there.iter().zip(most).all(|(&there, most)| u64::from(there) <= most), "{there:?} of {most:?}");
        Ok(())
    }

    fn collect(&mut self, output: &mut Output) -> Result<(), GpuError> {
        output.postings = self.postings.clone();
        output.task_postings = self.task_postings.clone();
        output.terms = self.dictionary.terms[self.before.terms as usize..].to_vec();
        output.strings = self.dictionary.strings[self.before.strings as usize..].to_vec();
        Ok(())
    }

    fn dictionary(&mut self, terms: Vec<Term>, strings: Vec<u8>) -> Result<Dictionary, GpuError> {
        // The host has kept all terms and strings.
        assert_eq!((&self.dictionary.terms, &self.dictionary.strings), (&terms, &strings));
        Ok(self.dictionary.clone())
    }
}
