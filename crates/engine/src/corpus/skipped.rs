//! Parts of a collection that are not indexed, with reasons.

use std::fmt;
use std::ops::AddAssign;

/// The reason why a file or a record was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A file with zero bytes, which is no text.
    Binary,
    /// A record whose media type holds no text, such as a picture.
    MediaType,
    /// A record that only reports an unchanged page.
    Revisit,
    /// A record whose body can't be decompressed.
    Damaged,
    /// A file of another form than the others of its folder, such as a list of contents.
    OtherForm,
    /// A record of which only a part was stored, which is indexed.
    CutShort,
}

/// The number of cases for each [`Reason`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped([u64; Self::REASONS]);

impl Skipped {
    /// The number of reasons.
    pub const REASONS: usize = 6;

    /// Counts a case.
    pub fn add(&mut self, reason: Reason) {
        self.0[reason as usize] += 1;
    }

    /// The counts, in order of the reasons.
    pub fn counts(&self) -> [u64; Self::REASONS] {
        self.0
    }

    /// Makes counts from numbers in order of the reasons.
    pub fn of_counts(counts: [u64; Self::REASONS]) -> Self {
        Self(counts)
    }

    /// The number of files and records that are not indexed.
    pub fn total(&self) -> u64 {
        self.0.iter().sum::<u64>() - self.0[Reason::CutShort as usize]
    }
}

impl AddAssign for Skipped {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }
}

/// The counts in words: `2 binary files, 1 record of a media type without text`.
impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            ("binary file", "binary files"),
            ("record of a media type without text", "records of media types without text"),
            ("record of an unchanged page", "records of unchanged pages"),
            ("record that cannot be decompressed", "records that cannot be decompressed"),
            ("file of another form", "files of other forms"),
            ("record stored in part (indexed)", "records stored in part (indexed)"),
        ];
        let told = self.0.iter().zip(words).filter(|(count, _)| **count > 0);
        let told: Vec<String> =
            told.map(|(count, (one, many))| format!("{count} {}", if *count == 1 { one } else { many })).collect();
        f.write_str(&told.join(", "))
    }
}
