//! The file form of [`IndexPages`]: a line a list (`traces/README.md`).

use std::io::{self, BufRead};
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{IndexPages, ListOfPages, PageLayout};
use crate::cache::{ListPages, Pages};
use crate::cost::comment_line;
use crate::files::{CsvReader, InputError, Record, Row, open_text, parsed, write_csv};
use crate::index::BLOCK_LEN;

/// The key of the comment line that holds what all lists have in common.
const KEY: &str = "pages";
/// That of what is read of lists, by their length. Files of before are of queries that look all documents up.
const RATES_KEY: &str = "read_rates";

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    postings: Postings,
    reads: Reads,
    first_page: u32,
    blocks: Numbers,
    queries: Option<Numbers>,
}

impl Record for Line {}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
struct Postings(u32);

/// Written so that it is read back the same.
#[derive(Clone, Copy, Debug)]
struct Reads(f32);

/// Whole numbers between semicolons.
#[derive(Clone, Debug)]
struct Numbers(Vec<u32>);

impl<'de> Deserialize<'de> for Postings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let postings = |text: &str| text.parse().ok().filter(|&postings| postings > 0);
        parsed(deserializer, "a whole number from 1", postings).map(Self)
    }
}

impl<'de> Deserialize<'de> for Reads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let reads = |text: &str| text.parse().ok().filter(|reads: &f32| *reads >= 0.0 && reads.is_finite());
        parsed(deserializer, "a number from 0", reads).map(Self)
    }
}

impl Serialize for Reads {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let numbers = |text: &str| text.split(';').map(|number| number.trim().parse().ok()).collect();
        parsed(deserializer, "whole numbers from 0, between semicolons", numbers).map(Self)
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        serializer.collect_str(&numbers.join(";"))
    }
}

impl PageLayout {
    fn check(&self) -> Result<(), String> {
        match self {
            Self { num_pages: 0, .. } => Err("num_pages is 0, expected at least 1".to_owned()),
            Self { page_rows: 0..Pages::LEAST_ROWS, .. } => {
                Err(format!("page_rows is {}, expected at least {}", self.page_rows, Pages::LEAST_ROWS))
            }
            _ => Ok(()),
        }
    }
}

impl IndexPages {
    /// Reads such a file (`.csv`, also `.gz` or `.zst`).
    ///
    /// # Errors
    /// With line and column: missing or unknown columns, values that are not what the column holds, pages that there are not, lists out
    /// of their order.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        Self::parse(path, open_text(path)?)
    }

    /// Reads it from any source; `name` stands for it in errors.
    ///
    /// # Errors
    /// As [`IndexPages::read`].
    pub fn parse(name: impl AsRef<Path>, reader: impl BufRead) -> Result<Self, InputError> {
        let path = name.as_ref();
        let mut lines = CsvReader::<Line, _>::new(path, reader)?;
        let mut lists: Vec<(u64, ListOfPages)> = Vec::new();
        let mut last_page = 0;
        while let Some(line) = lines.next_row()? {
            let list = list(&line, last_page)?;
            last_page = list.pages.first_page;
            lists.push((line.line(), list));
        }
        let mut provenance = lines.into_provenance();
        let unusable = |fault| InputError::file(path, format!("a comment line cannot be used: {fault}"));
        let layout = comment_line::take(&mut provenance, KEY, PageLayout::check).map_err(unusable)?;
        let missing =
            || InputError::file(path, format!("no line `# {KEY}: {{...}}`: this is no file of an index's pages"));
        let layout = layout.ok_or_else(missing)?;
        let rates = comment_line::take(&mut provenance, RATES_KEY, |_| Ok(())).map_err(unusable)?.unwrap_or_default();
        for (line, list) in &lists {
            let end = u64::from(list.pages.first_page) + list.pages.blocks.len() as u64;
            if end > u64::from(layout.num_pages) {
                let fault = format!("a list ends in page {}, and there are {}", end - 1, layout.num_pages);
                return Err(InputError::line(path, *line, fault));
            }
        }
        Ok(Self { provenance, layout, rates, lists: lists.into_iter().map(|(_, list)| list).collect() })
    }

    /// Writes it, whole or not at all; names that end in `.gz` or `.zst` are compressed.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let provenance = comment_line::with(&self.provenance, KEY, Some(&self.layout));
        let provenance = comment_line::with(&provenance, RATES_KEY, Some(&self.rates));
        let line = |list: &ListOfPages| Line {
            postings: Postings(list.postings),
            reads: Reads(list.reads),
            first_page: list.pages.first_page,
            blocks: Numbers(list.pages.blocks.clone()),
            queries: Some(Numbers(list.queries.clone())).filter(|numbers| !numbers.0.is_empty()),
        };
        write_csv(path, &provenance, self.lists.iter().map(line))
    }
}

/// A line as a list, checked; `last_page` is where the one before it begins.
fn list(line: &Row<'_, Line>, last_page: u32) -> Result<ListOfPages, InputError> {
    let Line { postings: Postings(postings), reads: Reads(reads), first_page, ref blocks, ref queries } = line.value;
    if first_page < last_page {
        return Err(line.unexpected("first_page", &format!("at least {last_page}, where the list before it begins")));
    }
    let most = postings.div_ceil(BLOCK_LEN as u32);
    if blocks.0.iter().map(|&blocks| u64::from(blocks)).sum::<u64>() > u64::from(most) {
        return Err(line.unexpected("blocks", &format!("at most {most} in all, of {BLOCK_LEN} postings each")));
    }
    let queries = queries.as_ref().map_or_else(Vec::new, |queries| queries.0.clone());
    if !queries.is_sorted_by(|a, b| a < b) {
        return Err(line.unexpected("queries", "numbers that ascend"));
    }
    Ok(ListOfPages { postings, reads, pages: ListPages { first_page, blocks: blocks.0.clone() }, queries })
}
