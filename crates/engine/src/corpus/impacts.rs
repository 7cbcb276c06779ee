//! Lists whose frequencies are impacts: weights of terms in documents, of which a score is a sum.
//!
//! An index holds impacts from 1 to [`MAX_IMPACT`]. Larger ones are scaled, so that the largest becomes [`MAX_IMPACT`], and
//! rounded, halves up, to at least 1.

use std::fmt;

use tandem_base::files::InputError;

use super::{DocumentTable, ListSource, TermList};
use crate::index::MAX_IMPACT;

/// Lists of another source as impacts from 1 to [`MAX_IMPACT`].
pub struct Impacts {
    source: Box<dyn ListSource>,
    largest: u32,
}

impl fmt::Debug for Impacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Impacts").field("largest", &self.largest).finish_non_exhaustive()
    }
}

impl Impacts {
    /// The lists of `open`, a source that is opened twice: a first pass finds the largest frequency. Fails as `open`
    /// and of its lists does.
    pub fn open<S: ListSource + 'static>(open: impl Fn() -> Result<S, InputError>) -> Result<Self, InputError> {
        let (mut source, mut list, mut largest) = (open()?, TermList::default(), 0);
        while source.next_list(&mut list)? {
            largest = list.freqs.iter().copied().fold(largest, u32::max);
        }
        Ok(Self { source: Box::new(open()?), largest })
    }
}

impl ListSource for Impacts {
    fn num_lists(&self) -> u64 {
        self.source.num_lists()
    }

    fn check_names(&self) -> Result<(), InputError> {
        self.source.check_names()
    }

    fn take_documents(&mut self) -> DocumentTable {
        self.source.take_documents()
    }

    fn next_list(&mut self, list: &mut TermList) -> Result<bool, InputError> {
        let is_list = self.source.next_list(list)?;
        if self.largest > MAX_IMPACT {
            let scaled = |freq: u32| {
                let (freq, largest) = (u64::from(freq), u64::from(self.largest));
                (((2 * freq * u64::from(MAX_IMPACT) + largest) / (2 * largest)) as u32).max(1)
            };
            list.freqs.iter_mut().for_each(|freq| *freq = scaled(*freq));
        }
        Ok(is_list)
    }

    fn tokenizer_name(&self) -> Option<String> {
        self.source.tokenizer_name()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.source.notes();
        if self.largest > MAX_IMPACT {
            notes.push(format!("impacts are scaled from {} to {MAX_IMPACT} and rounded", self.largest));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OneList(Option<Vec<u32>>);

    impl ListSource for OneList {
        fn num_lists(&self) -> u64 {
            1
        }
        fn check_names(&self) -> Result<(), InputError> {
            Ok(())
        }
        fn take_documents(&mut self) -> DocumentTable {
            DocumentTable::default()
        }
        fn next_list(&mut self, list: &mut TermList) -> Result<bool, InputError> {
            list.freqs = self.0.take().unwrap_or_default();
            Ok(!list.freqs.is_empty())
        }
    }

    #[test]
    fn impacts_of_eight_bits_stay_and_larger_ones_are_scaled() {
        for (freqs, expected, is_noted) in
            [(vec![1, 7, 255], vec![1, 7, 255], false), (vec![1, 2, 255, 510], vec![1, 1, 128, 255], true)]
        {
            let mut impacts = Impacts::open(|| Ok(OneList(Some(freqs.clone())))).unwrap();
            let mut list = TermList::default();
            assert!(impacts.next_list(&mut list).unwrap());
            assert_eq!((list.freqs, impacts.notes().len() == 1), (expected, is_noted));
        }
    }
}
