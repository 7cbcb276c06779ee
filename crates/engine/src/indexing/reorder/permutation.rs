//! Orders of documents, and their files.

use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use tandem_base::files::{InputError, open_text, read_lines};

/// A new number for every document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    new_of_old: Vec<u32>,
}

impl Permutation {
    /// The permutation that gives old document `i` the number `new_of_old[i]`. Fails with the first position whose
    /// number is repeated or too large, and what is wrong there.
    pub fn new(new_of_old: Vec<u32>) -> Result<Self, (usize, String)> {
        let mut owner = vec![u32::MAX; new_of_old.len()];
        for (old, &new) in new_of_old.iter().enumerate() {
            match owner.get_mut(new as usize) {
                None => return Err((old, format!("number {new}, expected 0 to {}", new_of_old.len() - 1))),
                Some(owner) if *owner != u32::MAX => {
                    return Err((old, format!("number {new} a second time; document {owner} has it already")));
                }
                Some(owner) => *owner = old as u32,
            }
        }
        Ok(Self { new_of_old })
    }

    /// The permutation that puts old document `old_of_new[i]` at place `i`. The order must contain each document once.
    pub(crate) fn from_order(old_of_new: &[u32]) -> Self {
        let mut new_of_old = vec![0; old_of_new.len()];
        for (new, &old) in (0..).zip(old_of_new) {
            new_of_old[old as usize] = new;
        }
        Self { new_of_old }
    }

    /// The permutation that sorts documents by `compare`. Equal documents keep their order.
    pub fn sorted_by(num_docs: u32, mut compare: impl FnMut(u32, u32) -> std::cmp::Ordering) -> Self {
        let mut order: Vec<u32> = (0..num_docs).collect();
        order.sort_by(|&a, &b| compare(a, b));
        Self::from_order(&order)
    }

    /// The new number of each old document.
    pub fn new_of_old(&self) -> &[u32] {
        &self.new_of_old
    }

    /// The old number of each new document.
    pub fn old_of_new(&self) -> Vec<u32> {
        Self::from_order(&self.new_of_old).new_of_old
    }

    /// Reads a permutation of `num_docs` documents: the new number of each old document, in order of the old ones. The
    /// file is text with one number per line (plain, .gz or .zst), or has 32-bit little-endian numbers, as PISA writes
    /// them. A file of digits and white space is text.
    ///
    /// The line or byte where the file can't be read or is no permutation.
    pub fn read(path: &Path, num_docs: u32) -> Result<Self, InputError> {
        // A line of text has at most 10 digits and 2 bytes of line end.
        let limit = u64::from(num_docs) * 12 + 16;
        let mut bytes = Vec::new();
        let read = open_text(path)?.take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|e| InputError::file(path, format!("cannot read: {e}")))?;
        let is_text = bytes.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_whitespace());
        if bytes.len() as u64 > limit || (!is_text && bytes.len() as u64 != u64::from(num_docs) * 4) {
            let message = format!(
                "is no permutation of {num_docs} documents: expected {} bytes of 32-bit numbers, or as many lines of \
                 text",
                u64::from(num_docs) * 4
            );
            return Err(InputError::file(path, message));
        }
        if is_text {
            return Self::from_text(path, &bytes, num_docs);
        }
        let numbers = bytes.as_chunks().0.iter().map(|&number| u32::from_le_bytes(number)).collect();
        Self::new(numbers).map_err(|(old, what)| InputError::byte(path, old as u64 * 4, what))
    }

    fn from_text(path: &Path, bytes: &[u8], num_docs: u32) -> Result<Self, InputError> {
        let mut numbers = Vec::new();
        let mut lines = Vec::new();
        for (line, text) in (1..).zip(bytes.lines()) {
            let text = text.unwrap_or_default();
            let value = text.trim();
            if value.is_empty() {
                continue;
            }
            let number = value.parse().map_err(|_| {
                let message = format!("{value:?}, expected the number of a document, one a line");
                InputError::at_part(path, line, &text, value, message)
            })?;
            numbers.push(number);
            lines.push(line);
        }
        if numbers.len() != num_docs as usize {
            let message = format!("{} numbers, the index has {num_docs} documents", numbers.len());
            return Err(InputError::file(path, message));
        }
        Self::new(numbers).map_err(|(old, what)| InputError::line(path, lines[old], what))
    }

    /// Writes the new number of each old document, as 32-bit little-endian numbers like PISA.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        self.new_of_old.iter().try_for_each(|number| out.write_all(&number.to_le_bytes()))
    }
}

/// Reads a score for each of `num_docs` documents, one per line, in order of the documents. Fails with the line that is
/// no finite number, or that there are more or fewer lines.
pub fn read_scores(path: &Path, num_docs: u32) -> Result<Vec<f64>, InputError> {
    let mut scores = Vec::new();
    for text in read_lines(path)? {
        let (line, text) = text?;
        if text.trim().is_empty() {
            continue;
        }
        let value = text.trim();
        let score: Option<f64> = value.parse().ok().filter(|score: &f64| score.is_finite());
        let score = score.ok_or_else(|| {
            InputError::at_part(path, line, &text, value, format!("{value:?}, expected a number, one a line"))
        })?;
        if scores.len() == num_docs as usize {
            return Err(InputError::line(path, line, format!("a score too many: the index has {num_docs} documents")));
        }
        scores.push(score);
    }
    if scores.len() < num_docs as usize {
        let message = format!("{} scores, the index has {num_docs} documents", scores.len());
        return Err(InputError::file(path, message));
    }
    Ok(scores)
}
