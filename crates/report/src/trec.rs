//! Rankings as text: in TREC's run format, which evaluation tools read, and as CSV.

use std::borrow::Cow;
use std::io::{self, Write};

use tandem_engine::index::Index;
use tandem_engine::search::Hit;
use tandem_model::files::{Provenance, csv_error};

/// The result of a query.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// The query's name in its log.
    pub label: String,
    /// Its documents, best first.
    pub hits: Vec<Hit>,
}

impl Ranking {
    /// The external ids of its documents, best first.
    pub fn external_ids(&self, index: &Index) -> Vec<String> {
        self.hits.iter().map(|hit| index.external_id(hit.doc).into_owned()).collect()
    }
}

/// Writes `query Q0 doc rank score tag` lines, rank from 1; scores read back as the same floats.
///
/// White space would shift the columns, and an empty name would remove one. Labels and ids therefore contain `\s` for a
/// blank, `\u{...}` with the code point for other white space and control characters, `\\` for a backslash, and `\e` for an empty name, so that
/// every name can be read back.
pub fn write_run_trec(out: &mut dyn Write, index: &Index, rankings: &[Ranking], tag: &str) -> io::Result<()> {
    for ranking in rankings {
        let label = one_word(Cow::Borrowed(&ranking.label));
        for (rank, hit) in (1..).zip(&ranking.hits) {
            let doc = one_word(index.external_id(hit.doc));
            writeln!(out, "{label} Q0 {doc} {rank} {} {tag}", hit.score)?;
        }
    }
    Ok(())
}

/// Writes `query_id,rank,doc_id,score` lines below `provenance`. Labels and ids are made [`printable`].
pub fn write_run_csv(
    out: &mut dyn Write,
    index: &Index,
    rankings: &[Ranking],
    provenance: &Provenance,
) -> io::Result<()> {
    let mut head = Vec::new();
    provenance.write_to(&mut head)?;
    out.write_all(&head)?;
    let mut rows = csv::Writer::from_writer(out);
    rows.write_record(["query_id", "rank", "doc_id", "score"]).map_err(csv_error)?;
    for ranking in rankings {
        for (rank, hit) in (1..).zip(&ranking.hits) {
            let (rank, score): (u32, f32) = (rank, hit.score);
            let (query, doc) = (printable(Cow::Borrowed(&ranking.label)), printable(index.external_id(hit.doc)));
            rows.write_record([&*query, &rank.to_string(), &*doc, &score.to_string()]).map_err(csv_error)?;
        }
    }
    rows.flush()
}

/// Whether a terminal obeys a character in place of showing it: controls, and what turns the direction of text.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Lines of text without what a terminal obeys: each harmful character but the ends of lines and tabs becomes `\u{...}`.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    let is_bad = |c: char| is_harmful(c) && c != '\n' && c != '\t';
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if is_bad(c) { c.escape_unicode().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// A name that does no harm to a terminal and to the rows of a table. Only a name that holds a harmful character, or `\u{` itself, is
/// changed: each harmful character becomes `\u{...}` with its code point, and each backslash `\\`. So every name can be read back.
pub fn printable(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains(is_harmful) && !text.contains("\\u{") {
        return text;
    }
    let escaped = |c: char| match c {
        '\\' => String::from("\\\\"),
        c if is_harmful(c) => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    text.chars().map(escaped).collect::<String>().into()
}

fn one_word(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.is_empty() {
        return "\\e".into();
    }
    if !text.contains(|c: char| c.is_whitespace() || is_harmful(c) || c == '\\') {
        return text;
    }
    let mut word = String::with_capacity(text.len() + 4);
    for c in text.chars() {
        match c {
            '\\' => word.push_str("\\\\"),
            ' ' => word.push_str("\\s"),
            c if c.is_whitespace() || is_harmful(c) => word.extend(c.escape_unicode()),
            c => word.push(c),
        }
    }
    word.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The inverse of [`one_word`].
    fn read_back(word: &str) -> String {
        let mut text = String::new();
        let mut rest = word;
        while let Some((before, escape)) = rest.split_once('\\') {
            text.push_str(before);
            let (c, after) = match escape.as_bytes()[0] {
                b'\\' => (Some('\\'), &escape[1..]),
                b's' => (Some(' '), &escape[1..]),
                b'e' => (None, &escape[1..]),
                _ => {
                    let (code, after) = escape[2..].split_once('}').unwrap();
                    (char::from_u32(u32::from_str_radix(code, 16).unwrap()), after)
                }
            };
            text.extend(c);
            rest = after;
        }
        text + rest
    }

    #[test]
    fn any_name_is_one_word_of_its_own_and_can_be_read_back() {
        let names = [
            "",
            "plain",
            "a b",
            "a_b",
            "a  b",
            "a\tb\n",
            "\u{2003}",
            r"C:\s x",
            r"\s",
            r"\e",
            "%20",
            "é ü",
            "a\u{1b}[31m",
        ];
        let words: Vec<String> = names.iter().map(|&name| one_word(name.into()).into_owned()).collect();
        for (name, word) in names.iter().zip(&words) {
            assert_eq!(word.split_whitespace().collect::<Vec<_>>(), [word], "{name:?}");
            assert_eq!(read_back(word), *name, "{word}");
        }
        assert_eq!(words.iter().collect::<std::collections::HashSet<_>>().len(), names.len());
        assert_eq!(words[1], "plain");
        for (name, expected) in [
            ("a b", "a b"),
            (r"C:\users", r"C:\users"),
            ("x\u{1b}[31m\ny", r"x\u{1b}[31m\u{a}y"),
            ("\u{202e}txt", r"\u{202e}txt"),
            (r"a\u{1b}", r"a\\u{1b}"),
        ] {
            let shown = printable(name.into());
            assert_eq!(shown, expected);
            let is_changed = shown.contains("\\u{");
            assert_eq!(if is_changed { read_back(&shown) } else { shown.into_owned() }, name);
        }
    }
}
