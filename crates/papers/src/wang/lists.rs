//! Lists in global order, in the form that both processors search.
//!
//! A list is three consecutive arrays of words: its documents, their frequencies, and a table of buckets. A bucket
//! holds the documents with the same high bits, `doc >> shift`, and the table gives the number of postings before each
//! bucket (hash segmentation, Ao et al. 2011). A lookup of a document searches one bucket.
//!
//! ```text
//!   documents     | 3 | 5 | 9 | 17 | 18 | 40 |        shift 4: buckets 0 to 15, 16 to 31, 32 to 47
//!   frequencies   | 1 | 1 | 2 |  1 |  7 |  1 |
//!   table         | 0 | 3 | 5 | 6 |                   one entry more than buckets
//! ```
//!
//! The beginning of a list has the beginnings of all three arrays, except that the table's last entry is its length.

use rayon::prelude::*;
use tandem_engine::index::Index;
use tandem_engine::query::Query;
use tandem_model::base::ids::TermId;

use super::order::GlobalOrder;
use crate::context::terms_of;
use crate::wang::cache::sizes::Sizes;

/// Maximum number of postings per bucket if they are evenly spread; decides the shift.
const BUCKET_LEN: u64 = 16;
const WORD_BYTES: u64 = 4;

/// The lists of all terms of a log, numbered by ascending term.
#[derive(Debug)]
pub(crate) struct SortedLists {
    terms: Vec<TermId>,
    lists: Vec<List>,
    words: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct List {
    start: usize,
    len: u32,
    shift: u32,
    table_len: u32,
}

/// A borrowed list, or its beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Postings<'a> {
    pub(crate) docs: &'a [u32],
    /// Frequencies of the documents, at least 1.
    pub(crate) freqs: &'a [u32],
    pub(crate) table: &'a [u32],
    /// Number of low bits that do not belong to the bucket's number.
    pub(crate) shift: u32,
}

impl Postings<'_> {
    /// Returns the place of a document; `None` if the list lacks it.
    #[inline]
    pub(crate) fn find(&self, doc: u32) -> Option<usize> {
        let bucket = (doc >> self.shift) as usize;
        let (&low, &high) = (self.table.get(bucket)?, self.table.get(bucket + 1)?);
        let place = low as usize + self.docs[low as usize..high as usize].partition_point(|&other| other < doc);
        (place < high as usize && self.docs[place] == doc).then_some(place)
    }
}

impl SortedLists {
    pub(crate) fn of(index: &Index, order: &GlobalOrder, queries: &[Query]) -> Self {
        let terms = terms_of(queries);
        let made: Vec<(List, Vec<u32>)> = terms.par_iter().map(|&term| Self::make(index, order, term)).collect();
        // All cores copy the words, because they are gigabytes of new pages.
        let mut words = vec![0; made.iter().map(|(_, words)| words.len()).sum()];
        let mut lists = Vec::with_capacity(made.len());
        let (mut start, mut rest, mut places) = (0, words.as_mut_slice(), Vec::with_capacity(made.len()));
        for (list, list_words) in made {
            let (place, later) = rest.split_at_mut(list_words.len());
            lists.push(List { start, ..list });
            start += list_words.len();
            rest = later;
            places.push((place, list_words));
        }
        places.into_par_iter().for_each(|(place, list_words)| place.copy_from_slice(&list_words));
        Self { terms, lists, words }
    }

    fn make(index: &Index, order: &GlobalOrder, term: TermId) -> (List, Vec<u32>) {
        let mut postings: Vec<u64> = index
            .list(term)
            .postings()
            .map(|(doc, freq)| u64::from(order.new_of_old[doc as usize]) << 32 | u64::from(freq))
            .collect();
        postings.par_sort_unstable();
        let len = postings.len() as u32;
        let shift = shift_of(index.num_docs(), len);
        let table_len = postings.last().map_or(0, |last| (last >> 32 >> shift) as usize + 2);
        let mut words = Vec::with_capacity(2 * postings.len() + table_len);
        words.extend(postings.iter().map(|posting| (posting >> 32) as u32));
        words.extend(postings.iter().map(|&posting| posting as u32));
        let mut place = 0;
        for bucket in 0..table_len as u64 {
            while place < postings.len() && postings[place] >> 32 >> shift < bucket {
                place += 1;
            }
            words.push(place as u32);
        }
        (List { start: 0, len, shift, table_len: table_len as u32 }, words)
    }

    /// Returns the number of a term's list, if the log has the term.
    pub(crate) fn number(&self, term: TermId) -> Option<u32> {
        self.terms.binary_search(&term).ok().map(|number| number as u32)
    }

    pub(crate) fn list(&self, list: u32) -> Postings<'_> {
        let List { start, len, shift, table_len } = self.lists[list as usize];
        let (docs, rest) = self.words[start..].split_at(len as usize);
        let (freqs, rest) = rest.split_at(len as usize);
        Postings { docs, freqs, table: &rest[..table_len as usize], shift }
    }

    pub(crate) fn words(&self, list: u32) -> &[u32] {
        let List { start, len, table_len, .. } = self.lists[list as usize];
        &self.words[start..start + 2 * len as usize + table_len as usize]
    }

    pub(crate) fn all_words(&self) -> &[u32] {
        &self.words
    }

    /// Returns the entries of the table that the list's first `postings` postings need.
    pub(crate) fn table_len(&self, list: u32, postings: u32) -> u32 {
        let of = self.list(list);
        match postings.checked_sub(1) {
            None => 0,
            Some(last) => (of.docs[last as usize] >> of.shift) + 2,
        }
    }

    /// Returns the bytes of the lists of all terms of an index.
    pub(crate) fn bytes_of_all_terms(index: &Index) -> u64 {
        let bytes = |term| {
            let len = u64::from(index.list(TermId(term)).doc_freq());
            // A list has at least as many buckets as its postings fill, and ends near the last document.
            let buckets = u64::from(index.num_docs()) >> shift_of(index.num_docs(), len as u32);
            WORD_BYTES * (2 * len + (buckets + 2).min(len + 2))
        };
        (0..index.num_terms()).into_par_iter().map(bytes).sum()
    }
}

impl Sizes for SortedLists {
    fn num_lists(&self) -> usize {
        self.lists.len()
    }

    fn len(&self, list: u32) -> u32 {
        self.lists[list as usize].len
    }

    fn bytes(&self, list: u32, postings: u32) -> u64 {
        WORD_BYTES * (2 * u64::from(postings) + u64::from(self.table_len(list, postings)))
    }
}

/// Returns the shift with which `len` evenly spread documents of `num_docs` give at most [`BUCKET_LEN`] per bucket.
fn shift_of(num_docs: u32, len: u32) -> u32 {
    let documents_per_bucket = u64::from(num_docs.max(1)) * BUCKET_LEN / u64::from(len.max(1));
    documents_per_bucket.max(1).ilog2().min(31)
}
