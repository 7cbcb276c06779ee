//! TREC topics: queries with numbers, in files of loose tags.
//!
//! ```text
//! <top>                                       <topic number="1" type="faceted">
//! <num> Number: 301                             <query>obama family tree</query>
//! <title> International Organized Crime         <description> ... </description>
//! <desc> Description: ...                     </topic>
//! </top>
//! ```
//!
//! The older form, on the left, seldom closes its tags: a field goes on to the next tag. The web tracks' form, on the
//! right, is XML. The query is the title, or what stands in `query`; other fields are passed over.

use std::path::Path;

use super::LogEntry;
use crate::files::InputError;

/// A topic that is being read.
struct Topic {
    line: u64,
    number: Option<String>,
    title: Option<String>,
}

/// Reads all topics of `text`, which comes from the file `path`.
///
/// # Errors
/// If a topic has no number or no title, or there is text outside of topics where a tag should be: the line.
pub(super) fn parse_topics(path: &Path, text: &str) -> Result<Vec<LogEntry>, InputError> {
    let mut entries = Vec::new();
    let mut topic: Option<Topic> = None;
    let mut finish = |topic: Option<Topic>| -> Result<(), InputError> {
        let Some(Topic { line, number, title }) = topic else { return Ok(()) };
        let missing = |what: &str| InputError::line(path, line, format!("the topic that begins here has no {what}"));
        let label = number.filter(|number| !number.is_empty()).ok_or_else(|| missing("number: expected <num>"))?;
        let text =
            title.filter(|title| !title.is_empty()).ok_or_else(|| missing("query: expected <title> or <query>"))?;
        entries.push(LogEntry { label, text, line });
        Ok(())
    };
    for Tag { name, attributes, text, line } in tags(text) {
        match (name.to_ascii_lowercase().as_str(), &mut topic) {
            ("top" | "topic", _) => {
                let number = attribute(attributes, "number").map(str::to_owned);
                finish(topic.replace(Topic { line, number, title: None }))?;
            }
            ("/top" | "/topic", _) => finish(topic.take())?,
            ("num", Some(topic)) => topic.number = Some(field(text, "Number:")),
            ("title", Some(topic)) => topic.title = Some(field(text, "Topic:")),
            // The web tracks' topics may have both; the query is what was typed.
            ("query", Some(topic)) => topic.title = Some(field(text, "")),
            ("num" | "title" | "query", None) => {
                return Err(InputError::line(
                    path,
                    line,
                    format!("<{name}> outside of a topic, expected <top> before it"),
                ));
            }
            _ => {}
        }
    }
    finish(topic)?;
    if entries.is_empty() {
        return Err(InputError::file(path, "no topics, expected <top> with <num> and <title>"));
    }
    Ok(entries)
}

/// A tag, and the text up to the next one.
struct Tag<'a> {
    /// With its slash, if it closes a field.
    name: &'a str,
    attributes: &'a str,
    text: &'a str,
    line: u64,
}

fn tags(text: &str) -> impl Iterator<Item = Tag<'_>> {
    let mut line = 1;
    text.split_inclusive('<')
        .scan(true, move |is_first, piece| {
            let begins_at = line;
            line += piece.matches('\n').count() as u64;
            let piece = piece.strip_suffix('<').unwrap_or(piece);
            // What stands before the first tag is none.
            if std::mem::take(is_first) {
                return Some(None);
            }
            let (tag, text) = piece.split_once('>').unwrap_or((piece, ""));
            let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
            Some(Some(Tag { name, attributes, text, line: begins_at }))
        })
        .flatten()
}

/// The value of `name="value"` among a tag's attributes.
fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = attributes.split_once(name)?;
    let value = rest.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    value[1..].split_once(quote).map(|(value, _)| value)
}

/// A field's words on one line, without its label and with XML's five entities as the characters that they stand for.
fn field(text: &str, label: &str) -> String {
    let text = text.trim();
    let text = text.strip_prefix(label).unwrap_or(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")]
        .into_iter()
        .fold(text, |text, (entity, character)| text.replace(entity, character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<(String, String, u64)>, String> {
        let entries = parse_topics(Path::new("t"), text).map_err(|e| e.to_string())?;
        Ok(entries.into_iter().map(|e| (e.label, e.text, e.line)).collect())
    }

    fn row(label: &str, text: &str, line: u64) -> (String, String, u64) {
        (label.into(), text.into(), line)
    }

    #[test]
    fn both_forms_are_read() {
        let old = "\n<top>\n\n<num> Number: 301\n<title> International\n  Organized Crime \n\n\
                   <desc> Description:\na > b\n</top>\n\
                   <top>\n<head> Tipster\n<num>Number:  052</num>\n<dom> x\n<title>Topic:  AT&amp;T\n</top>\n";
        let crime = row("301", "International Organized Crime", 2);
        assert_eq!(parsed(old).unwrap(), [crime, row("052", "AT&T", 11)]);
        let web = "<?xml version=\"1.0\"?>\n<!-- c -->\n<webtrack2009>\n<topic number=\"1\" type=\"faceted\">\n\
                   <query>obama family tree</query>\n<subtopic number=\"1\">x</subtopic>\n</topic>\n\
                   <topic number = '2'><query> &lt;b&gt; </query></topic></webtrack2009>";
        assert_eq!(parsed(web).unwrap(), [row("1", "obama family tree", 4), row("2", "<b>", 8)]);
        // Neither closed.
        assert_eq!(parsed("<top><num>1<title>a\n<top><num>2<title>b").unwrap(), [row("1", "a", 1), row("2", "b", 2)]);
    }

    #[test]
    fn refusals_name_the_line() {
        for (text, expected) in [
            ("<a>\n", "t: no topics, expected <top>"),
            ("<top>\n<num> 1\n</top>", "t:1: the topic that begins here has no query"),
            ("<top><num>1<title>a</top>\n<top>\n<title>b", "t:2: the topic that begins here has no number"),
            ("<a>\n<num> 1", "t:2: <num> outside of a topic"),
        ] {
            let message = parsed(text).unwrap_err();
            assert!(message.starts_with(expected), "{message:?}, expected {expected:?}");
        }
    }
}
