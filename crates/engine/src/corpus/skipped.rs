//! Parts of a collection that are not indexed, with reasons.

use std::collections::BTreeMap;
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
    /// A response with an HTTP status that is no success, such as 404: its text is not the page that was asked for.
    Status(u16),
}

impl Reason {
    /// A number of its own for each reason. Statuses of HTTP have three digits, and stand for themselves.
    fn code(self) -> u64 {
        match self {
            Self::Binary => 0,
            Self::MediaType => 1,
            Self::Revisit => 2,
            Self::Damaged => 3,
            Self::OtherForm => 4,
            Self::CutShort => 5,
            Self::Status(status) => u64::from(status),
        }
    }
}

/// The number of cases for each [`Reason`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped(BTreeMap<u64, u64>);

impl Skipped {
    /// Counts a case.
    pub fn add(&mut self, reason: Reason) {
        *self.0.entry(reason.code()).or_default() += 1;
    }

    /// Pairs of a reason's code and its count, for a file.
    pub(crate) fn counts(&self) -> impl ExactSizeIterator<Item = [u64; 2]> {
        self.0.iter().map(|(&code, &count)| [code, count])
    }

    /// Makes counts from pairs of a code and a count.
    pub(crate) fn of_counts(counts: impl IntoIterator<Item = [u64; 2]>) -> Self {
        Self(counts.into_iter().map(|[code, count]| (code, count)).collect())
    }

    /// The number of files and records that are not indexed.
    pub fn total(&self) -> u64 {
        self.0.iter().filter(|(code, _)| **code != Reason::CutShort.code()).map(|(_, count)| count).sum()
    }
}

impl AddAssign for Skipped {
    fn add_assign(&mut self, other: Self) {
        for (code, count) in other.0 {
            *self.0.entry(code).or_default() += count;
        }
    }
}

/// The counts in words: `2 binary files, 1 response of status 404`.
impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WORDS: [(&str, &str); 6] = [
            ("binary file", "binary files"),
            ("record of a media type without text", "records of media types without text"),
            ("record of an unchanged page", "records of unchanged pages"),
            ("record that cannot be decompressed", "records that cannot be decompressed"),
            ("file of another form", "files of other forms"),
            ("record stored in part (indexed)", "records stored in part (indexed)"),
        ];
        for (index, (&code, &count)) in self.0.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            match usize::try_from(code).ok().and_then(|code| WORDS.get(code)) {
                Some((one, many)) => write!(f, "{comma}{count} {}", if count == 1 { one } else { many })?,
                None => write!(f, "{comma}{count} response{} of status {code}", if count == 1 { "" } else { "s" })?,
            }
        }
        Ok(())
    }
}
