//! Synthetic collections like the paper's: compressed files of web pages or text.
//!
//! The cost of parsing depends on the bytes per token, that of indexing on the number of tokens. The paper's collections
//! differ in bytes per token: 43.6 in ClueWeb09, 30.1 in the Library of Congress', and 8.4 in Wikipedia, whose tags had been
//! removed. Pages are therefore text with as many tags as needed, in WARC files packed by gzip. Text is JSON lines packed by
//! zstd.

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use rayon::prelude::*;
use serde::Deserialize;
use tandem_engine::indexing::synth::{TextOptions, write_text};
use tandem_model::files::write_atomically;

use crate::{Context, ExperimentError, Result};

const MEAN_LENGTH: f64 = 250.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    ClueWeb,
    Wikipedia,
    Congress,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClueWeb => "ClueWeb09",
            Self::Wikipedia => "Wikipedia 01-07",
            Self::Congress => "Library of Congress",
        }
    }

    /// Uncompressed size over tokens, from the paper's table III.
    fn bytes_per_token(self) -> f64 {
        match self {
            Self::ClueWeb => 1422e9 / 32_644_508_255.0,
            Self::Wikipedia => 79e9 / 9_375_229_726.0,
            Self::Congress => 507e9 / 16_865_180_093.0,
        }
    }

    fn is_pages(self) -> bool {
        self != Self::Wikipedia
    }
}

/// Documents of one kind and vocabulary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CollectionPart {
    pub(crate) kind: Kind,
    /// Number of the vocabulary. Different vocabularies share few words.
    pub(crate) vocabulary: u64,
    pub(crate) docs: u32,
    pub(crate) files: u32,
}

/// Returns the user's files, or else the files of these parts in order, which are made unless they exist.
pub(crate) fn files(context: &Context<'_>, parts: &[CollectionPart]) -> Result<Vec<PathBuf>> {
    if !context.text.is_empty() {
        return Ok(context.text.to_vec());
    }
    let mut files = Vec::new();
    for part in parts {
        let CollectionPart { kind, vocabulary, docs, files: count } = *part;
        let seed = context.seed + vocabulary;
        let (stem, ending) = if kind.is_pages() { ("pages", "warc.gz") } else { ("text", "jsonl.zst") };
        let folder = context.scratch.join(format!("{stem}-{:.0}-{docs}-{count}-{seed}", kind.bytes_per_token()));
        std::fs::create_dir_all(&folder).map_err(|e| ExperimentError::Input(format!("{}: {e}", folder.display())))?;
        let paths: Vec<PathBuf> = (0..count).map(|number| folder.join(format!("{number:03}.{ending}"))).collect();
        paths.par_iter().enumerate().filter(|(_, path)| !path.exists()).try_for_each(|(number, path)| {
            let share = |number: u64| u64::from(docs) * number / u64::from(count);
            let (first, end) = (share(number as u64), share(number as u64 + 1));
            write_file(*part, seed, first, end - first, path)
                .map_err(|e| ExperimentError::Input(format!("{}: {e}", path.display())))
        })?;
        files.extend(paths);
    }
    Ok(files)
}

fn write_file(part: CollectionPart, seed: u64, first_doc: u64, docs: u64, path: &Path) -> std::io::Result<()> {
    let options = TextOptions { seed, first_doc, num_docs: Some(docs), max_bytes: None, mean_length: MEAN_LENGTH };
    let mut lines = Vec::new();
    write_text(&options, &mut lines, &|_, _| ())?;
    write_atomically(path, |file| {
        if !part.kind.is_pages() {
            let packed = zstd::stream::encode_all(lines.as_slice(), 1)?;
            return file.write_all(&packed);
        }
        let mut out = GzEncoder::new(file, Compression::fast());
        for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let document: SyntheticDocument<'_> = serde_json::from_slice(line)?;
            let page = page(&document, part.kind.bytes_per_token());
            let id = format!("v{}-{}", part.vocabulary, document.id);
            let length = page.len();
            write!(
                out,
                "WARC/1.0\r\nWARC-Type: response\r\nWARC-TREC-ID: {id}\r\nContent-Length: {length}\r\n\r\n{page}\r\n\r\n"
            )?;
        }
        out.finish().map(drop)
    })
}

#[derive(Deserialize)]
struct SyntheticDocument<'a> {
    id: &'a str,
    text: &'a str,
}

/// Makes a page of the text and as many tags as the bytes per token need.
fn page(document: &SyntheticDocument<'_>, bytes_per_token: f64) -> String {
    let mut page = String::from("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<html><body>\n");
    let mut tokens = 0_u32;
    for sentence in document.text.split_inclusive(". ") {
        tokens += sentence.split_ascii_whitespace().count() as u32;
        page += sentence;
        while (page.len() as f64) < f64::from(tokens) * bytes_per_token {
            let depth = page.len() % 7;
            page += &format!("<div class=\"column c{depth} box\"><a href=\"/section/{}/item.html\">", page.len() / 7);
            page += "</a></div>\n";
        }
    }
    page += "</body></html>";
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_the_words_and_the_bytes_per_token() {
        let text = "One two three four. ".repeat(100);
        let page = page(&SyntheticDocument { id: "x", text: &text }, 43.6);
        assert!((400.0 * 43.6..400.0 * 43.6 + 300.0).contains(&(page.len() as f64)), "{}", page.len());
        assert_eq!(page.matches("three").count(), 100);
    }
}
