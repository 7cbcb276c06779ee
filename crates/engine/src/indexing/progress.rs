//! Progress reports of a build.

use std::fmt;

/// Progress of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Text is cut into terms.
    Reading {
        /// Documents.
        documents: u64,
        /// Bytes of text, decompressed.
        bytes: u64,
    },
    /// Ranges of the vocabulary are packed and written.
    Writing {
        /// Ranges written.
        done: usize,
        /// All ranges.
        of: usize,
    },
    /// The memory budget is too small. The build continues and takes more.
    Exceeding(MemoryNeed),
}

/// The minimum memory of a build, and its purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryNeed {
    /// Bytes that the process needs at least.
    pub bytes: u64,
    pub(crate) purpose: MemoryPurpose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryPurpose {
    Threads(u64),
    Documents { documents: u64, held_bytes: u64 },
    Merging { documents: u64, range_bytes: u64 },
}

impl fmt::Display for MemoryNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        write!(f, "{} MiB are needed at least, ", mib(self.bytes))?;
        match self.purpose {
            MemoryPurpose::Threads(threads) => write!(f, "for the program and what {threads} threads read and write"),
            MemoryPurpose::Documents { documents, held_bytes } => write!(
                f,
                "for lengths and norms of {documents} documents (8 bytes each) and for their lists in memory ({} MiB)",
                mib(held_bytes)
            ),
            MemoryPurpose::Merging { documents, range_bytes } => write!(
                f,
                "for norms of {documents} documents (4 bytes each), merging a range of terms ({} MiB) and what is being \
                 written",
                mib(range_bytes)
            ),
        }
    }
}
