//! Costs of codecs: bits per value, and values encoded and decoded per second.

use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

use tandem_engine::index::Index;
use tandem_model::base::ids::TermId;

use super::{Codec, CodecError, Column, MAX_BLOCK_LEN};

/// Documents and frequencies of a list.
#[derive(Clone, Debug, Default)]
pub struct ListColumns {
    /// Strictly ascending documents.
    pub docs: Vec<u32>,
    /// Frequencies of the documents, at least 1.
    pub freqs: Vec<u32>,
}

impl ListColumns {
    /// Decodes a term's list.
    #[must_use]
    pub fn of(index: &Index, term: TermId) -> Self {
        let (docs, freqs) = index.list(term).postings().unzip();
        Self { docs, freqs }
    }

    /// Returns the values of one column.
    #[must_use]
    pub fn column(&self, column: Column) -> &[u32] {
        match column {
            Column::Docs => &self.docs,
            Column::Freqs => &self.freqs,
        }
    }
}

/// Samples lists of `index` with at least `min_len` postings in equal steps, about `num_postings` postings in total.
#[must_use]
pub fn sample_lists(index: &Index, min_len: u32, num_postings: u64) -> Vec<ListColumns> {
    let terms: Vec<(TermId, u32)> = (0..index.num_terms())
        .map(|term| (TermId(term), index.list(TermId(term)).doc_freq()))
        .filter(|&(_, len)| len >= min_len)
        .collect();
    let all: u64 = terms.iter().map(|&(_, len)| u64::from(len)).sum();
    let step = all.div_ceil(num_postings.max(1)).max(1) as usize;
    terms.iter().step_by(step).map(|&(term, _)| ListColumns::of(index, term)).collect()
}

/// Costs of one codec on one column of some lists.
#[derive(Clone, Debug)]
pub struct CodecTimes {
    /// Name of the codec.
    pub codec: &'static str,
    /// Encoded column.
    pub column: Column,
    /// Bits per value, with skip tables and headers.
    pub bits_a_value: f64,
    /// Values encoded per second.
    pub encoded_per_s: f64,
    /// Values decoded per second, into a buffer of one block.
    pub decoded_per_s: f64,
}

/// Values per timed piece: long enough for the clock, short enough for an undisturbed round.
const PIECE_VALUES: usize = 40_000;

/// Encodes the lists once by all codecs, and decodes them `rounds` times in turn. The least time of each piece counts,
/// with a warm cache; otherwise memory would limit all codecs equally.
///
/// # Errors
/// Returns the error of a codec, for example for unsorted documents.
pub fn time_codecs(
    codecs: &[Box<dyn Codec>],
    lists: &[ListColumns],
    rounds: usize,
) -> Result<Vec<CodecTimes>, CodecError> {
    let pieces = pieces(lists);
    let num_values: usize = lists.iter().map(|list| list.docs.len()).sum();
    let mut contenders = Vec::new();
    for codec in codecs {
        for column in [Column::Docs, Column::Freqs] {
            contenders.push(Contender::encode(&**codec, column, lists, &pieces)?);
        }
    }
    for _ in 0..rounds {
        for contender in &mut contenders {
            contender.decode(&pieces)?;
        }
    }
    Ok(contenders.iter().map(|contender| contender.times(num_values)).collect())
}

/// Returns ranges of lists with about equally many values.
fn pieces(lists: &[ListColumns]) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let (mut start, mut values) = (0, 0);
    for (i, list) in lists.iter().enumerate() {
        values += list.docs.len();
        if values >= PIECE_VALUES || i + 1 == lists.len() {
            pieces.push(start..i + 1);
            (start, values) = (i + 1, 0);
        }
    }
    pieces
}

/// A codec with an encoded column of all lists.
struct Contender<'a> {
    codec: &'a dyn Codec,
    column: Column,
    lists: Vec<Vec<u32>>,
    encoding: Duration,
    /// Least decoding time of each piece.
    least: Vec<Duration>,
}

impl<'a> Contender<'a> {
    fn encode(
        codec: &'a dyn Codec,
        column: Column,
        lists: &[ListColumns],
        pieces: &[Range<usize>],
    ) -> Result<Self, CodecError> {
        let began = Instant::now();
        let lists =
            lists.iter().map(|list| codec.encode_list(column, list.column(column))).collect::<Result<_, _>>()?;
        Ok(Self { codec, column, lists, encoding: began.elapsed(), least: vec![Duration::MAX; pieces.len()] })
    }

    fn decode(&mut self, pieces: &[Range<usize>]) -> Result<(), CodecError> {
        let mut buffer = [0; MAX_BLOCK_LEN];
        for (piece, least) in pieces.iter().zip(&mut self.least) {
            // The first run loads the piece into the cache.
            for _ in 0..2 {
                let began = Instant::now();
                for words in &self.lists[piece.clone()] {
                    let list = self.codec.open(self.column, words)?;
                    for block in 0..list.num_blocks() {
                        black_box(list.decode_block(block, &mut buffer)?);
                        black_box(&buffer);
                    }
                }
                *least = began.elapsed().min(*least);
            }
        }
        Ok(())
    }

    fn times(&self, num_values: usize) -> CodecTimes {
        let words: usize = self.lists.iter().map(Vec::len).sum();
        let decoding: Duration = self.least.iter().sum();
        let values = num_values as f64;
        CodecTimes {
            codec: self.codec.name(),
            column: self.column,
            bits_a_value: words as f64 * 32.0 / values,
            encoded_per_s: values / self.encoding.as_secs_f64(),
            decoded_per_s: values / decoding.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::all_codecs;

    #[test]
    fn every_codec_is_timed_on_both_columns_of_the_lists_taken() {
        let docs = |step: usize| (0..3000_u32).step_by(step).map(|doc| (doc, 1 + doc % 3)).collect::<Vec<_>>();
        let index = Index::from_lists(&[("a", docs(1)), ("b", docs(2)), ("c", docs(100))]).unwrap();
        let lists = sample_lists(&index, 128, 10_000);
        assert_eq!(lists.iter().map(|list| list.docs.len()).collect::<Vec<_>>(), [3000, 1500]);
        let times = time_codecs(&all_codecs(), &lists, 2).unwrap();
        assert_eq!(times.len(), all_codecs().len() * 2);
        assert!(times.iter().all(|times| times.bits_a_value > 0.0 && times.decoded_per_s > 0.0));
    }
}
