//! Checks of a synthetic index's options, and of the disk and memory that it needs.
//!
//! A large synthetic index takes hours, so a build that must fail is refused at the start. Sizes are lower bounds, so
//! nothing is refused that might fit:
//!
//! | | at least | as made by default |
//! | --- | --- | --- |
//! | disk | 12 bits per posting | 14.1 |
//! | memory | 20 bytes per document, 16 per term, 12 per block, 60 per query | twice that |

use std::path::Path;

use super::build::SynthOptions;
use super::vocabulary::Vocabulary;
use crate::index::{BLOCK_LEN, IndexError, IndexWriter};

/// A larger number of queries is a mistake.
const MAX_QUERIES: usize = 100_000_000;
const DISK_BITS_A_POSTING: f64 = 12.0;
const MEMORY_BYTES_A_DOCUMENT: f64 = 20.0;
const MEMORY_BYTES_A_TERM: f64 = 16.0;
const MEMORY_BYTES_A_BLOCK: f64 = 12.0;
const MEMORY_BYTES_A_QUERY: f64 = 60.0;

impl SynthOptions {
    pub(crate) fn vocabulary_size(&self) -> u32 {
        self.num_terms.unwrap_or_else(|| Vocabulary::heaps_size(self.num_docs))
    }

    /// Checks that each option is in its range.
    pub fn check(&self) -> Result<(), IndexError> {
        let refuse = |message: String| Err(IndexError::Collection(message));
        if !Self::DOCS.contains(&self.num_docs) {
            let (least, most) = (Self::DOCS.start(), Self::DOCS.end());
            return refuse(format!("{} documents, expected {least} to {most}", self.num_docs));
        }
        if !(20.0..=5000.0).contains(&self.mean_length) {
            return refuse(format!("mean length {}, expected 20 to 5000 tokens", self.mean_length));
        }
        if let Some(terms) = self.num_terms.filter(|terms| !(100..=1 << 30).contains(terms)) {
            return refuse(format!("a vocabulary of {terms} terms, expected 100 to 1073741824"));
        }
        if let Some(clustering) = self.clustering.filter(|clustering| !(0.0..=0.3).contains(clustering)) {
            return refuse(format!("a clustering of {clustering}, expected 0 to 0.3"));
        }
        if !(0.0..=1.0).contains(&self.correlation) {
            return refuse(format!("a correlation of {}, expected 0 to 1", self.correlation));
        }
        if self.num_queries > MAX_QUERIES {
            return refuse(format!("{} queries, expected at most {MAX_QUERIES}", self.num_queries));
        }
        Ok(())
    }

    /// Checks that an index of these sizes fits the format, folder `dir`, and memory, as far as free space is known.
    pub(crate) fn check_room(
        &self,
        dir: &Path,
        free_disk_bytes: Option<u64>,
        free_memory_bytes: Option<u64>,
    ) -> Result<(), IndexError> {
        let Self { num_docs, mean_length, num_queries, .. } = *self;
        let num_terms = f64::from(self.vocabulary_size());
        let num_postings = Vocabulary::expected_postings(num_docs, mean_length);
        // A term's last block may be short, or missing.
        let num_blocks = (num_postings / BLOCK_LEN as f64 - num_terms).max(0.0);
        let disk_bytes = num_postings * DISK_BITS_A_POSTING / 8.0;
        let memory_bytes = f64::from(num_docs) * MEMORY_BYTES_A_DOCUMENT
            + num_terms * MEMORY_BYTES_A_TERM
            + num_blocks * MEMORY_BYTES_A_BLOCK
            + num_queries as f64 * MEMORY_BYTES_A_QUERY;
        let gb = |bytes: f64| format!("{:.1} GB", bytes / 1e9);
        let exceeds = |bytes: f64, free: Option<u64>| free.map(|free| free as f64).filter(|&free| bytes > free);
        let why = if num_blocks > IndexWriter::MAX_BLOCKS as f64 {
            let most = IndexWriter::MAX_BLOCKS;
            format!("hold {num_postings:.1e} postings, and an index has at most {most} blocks of {BLOCK_LEN}")
        } else if let Some(free) = exceeds(disk_bytes, free_disk_bytes) {
            let (needed, free) = (gb(disk_bytes), gb(free));
            format!("take at least {needed} of disk, and {free} are free for {}", dir.display())
        } else if let Some(free) = exceeds(memory_bytes, free_memory_bytes) {
            let (needed, free) = (gb(memory_bytes), gb(free));
            format!(
                "take at least {needed} of memory with {num_terms} terms and {num_queries} queries, and {free} are free"
            )
        } else {
            return Ok(());
        };
        let message =
            format!("{num_docs} documents of {mean_length} tokens {why} (fewer documents would do, for example)");
        Err(IndexError::Collection(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_refused_and_what_is_not_known_is_not() {
        let gov2 = SynthOptions::new(25_200_000, 1);
        let check = |options: &SynthOptions, disk, memory| {
            options.check_room(Path::new("gov2"), disk, memory).map_err(|e| e.to_string())
        };
        assert_eq!(check(&gov2, None, None), Ok(()));
        assert_eq!(check(&gov2, Some(4_900_000_000), Some(2_000_000_000)), Ok(()));
        let disk = "25200000 documents of 240 tokens take at least 4.2 GB of disk, and 4.0 GB are free for gov2";
        assert!(check(&gov2, Some(4_000_000_000), None).is_err_and(|message| message.starts_with(disk)));
        let memory = check(&SynthOptions { num_queries: 1 << 26, ..gov2.clone() }, None, Some(2_000_000_000));
        assert!(
            memory.is_err_and(|message| message.contains("of memory with") && message.contains("67108864 queries"))
        );
        let most = SynthOptions { num_docs: u32::MAX >> 1, ..gov2 };
        assert!(
            check(&most, None, None).is_err_and(|message| message.contains("an index has at most 1073741824 blocks"))
        );
    }
}
