//! Size and decoding rate of each codec on the lists of an index.

use tandem_engine::index::BLOCK_LEN;

use super::{Arguments, Measurement, index};
use crate::Failure;
use tandem_papers::codec::{CodecTimes, Column, all_codecs, sample_lists, time_codecs};

/// Approximate number of postings taken from the index.
const POSTINGS: u64 = 4_000_000;
/// Bytes of a decoded value.
const VALUE_BYTES: f64 = 4.0;

pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    let (index, _) = index(arguments)?;
    let lists = sample_lists(&index, BLOCK_LEN as u32, POSTINGS);
    let taken: usize = lists.iter().map(|list| list.docs.len()).sum();
    let timed = time_codecs(&all_codecs(), &lists, arguments.rounds as usize);
    let mut rows = Vec::new();
    for times in timed? {
        let CodecTimes { codec, column, bits_a_value, encoded_per_s, decoded_per_s } = times;
        let column = match column {
            Column::Docs => "documents",
            Column::Freqs => "frequencies",
        };
        let metrics = [
            ("bits_a_value", bits_a_value),
            ("encoded_per_s", encoded_per_s),
            ("values_per_s", decoded_per_s),
            ("bytes_per_s", decoded_per_s * VALUE_BYTES),
        ];
        let row = |(metric, value)| Measurement { part: "codecs", name: format!("{codec} {column}"), metric, value };
        rows.extend(metrics.map(row));
    }
    Ok((
        format!(
            "codecs: {} lists of {BLOCK_LEN} postings or more, {taken} in all, decoded by one thread from the cache, a \
             block at a time\n",
            lists.len()
        ),
        rows,
    ))
}
