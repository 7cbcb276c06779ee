//! Bits per posting of each part of an index.

use tandem_engine::index::index_sizes;

use super::{Arguments, Measurement, index};
use crate::failure::Failure;

pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    let (index, _) = index(arguments)?;
    let bits_a_posting = |bits: u64| bits as f64 / index.num_postings() as f64;
    let rows = index_sizes(&index)
        .into_iter()
        .map(|part| Measurement {
            part: "index",
            name: part.name.to_owned(),
            metric: "bits_a_posting",
            value: bits_a_posting(part.bits),
        })
        .collect();
    Ok((format!("index: {} documents, {} postings\n", index.num_docs(), index.num_postings()), rows))
}
