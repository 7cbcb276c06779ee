//! TREC topics: numbered queries, in XML or in SGML with mostly unclosed tags.
//!
//! ```text
//! <top>                                       <topic number="1" type="faceted">
//! <num> Number: 301                             <query>obama family tree</query>
//! <title> International Organized Crime         <description> ... </description>
//! <desc> Description: ...                     </topic>
//! </top>
//! ```
//!
//! An HTML tokenizer reads both: it knows entities, comments and attributes, and accepts any input. A field continues to
//! the next tag. The query is the first of: `query`, `title`, text of the topic itself, `summary`, `desc`. Topics may
//! also be queries of their own, `<query><qid>1</qid><content>moon</content></query>`, or `<DOC>`s of a number and text.

use std::path::Path;

use html5gum::{DefaultEmitter, Token, Tokenizer};
use tandem_base::files::InputError;

use super::form::Form;
use super::table::Table;
use super::{LogEntry, LogFormat};

pub(super) const FORM: Form = Form {
    format: LogFormat::Topics,
    likeness: |log| f64::from(log.lines[0].1.trim_start().starts_with('<')),
    read: |log, _| {
        Ok(Table { entries: parse_topics(log.path, &log.behind_remarks())?, found: "TREC topics".to_owned() })
    },
};

const TOPICS: [&str; 5] = ["top", "topic", "inex_topic", "num_topic", DOCUMENT];
const DOCUMENT: &str = "doc";
/// Tags and attributes that hold the topic's number.
const NUMBERS: [&str; 10] = ["num", "number", "id", "identifier", "qid", "qno", "topic_id", "topicid", "no", "docno"];
/// Fields that may be the query, the best first; the empty name is the topic's own text. Other fields are ignored.
const QUERIES: [&str; 10] =
    ["query", "title", "q", "question", "content", "", "summary", "description", "desc", "disease"];
/// Tags that only change the look of text and end no field.
const INLINE: [&str; 11] = ["b", "i", "em", "strong", "u", "br", "p", "sub", "sup", "span", "a"];

#[derive(Default)]
struct Topic {
    line: u64,
    tag: String,
    number: String,
    /// Texts of the fields, by position in [`QUERIES`].
    texts: [String; QUERIES.len()],
}

/// Reads all topics of `text`, which comes from the file `path`. Fails with the line: a topic has no number or no
/// query, or a number or title stands outside of topics.
fn parse_topics(path: &Path, text: &str) -> Result<Vec<LogEntry>, InputError> {
    let text = without_cdata(text);
    let (mut line, mut counted) = (1, 0);
    let mut entries = Vec::new();
    let mut topic: Option<Topic> = None;
    let mut field = String::new();
    // The tokenizer's states are not switched: an unclosed <title> would swallow the rest of the file.
    let Ok(tokens) = Tokenizer::new_with_emitter(&*text, DefaultEmitter::<usize>::new_with_span())
        .collect::<Result<Vec<Token<usize>>, std::convert::Infallible>>();
    for token in tokens {
        match token {
            Token::StartTag(tag) => {
                line += text[counted..tag.span.start].matches('\n').count() as u64;
                counted = tag.span.start;
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                let of_attribute = NUMBERS.iter().find_map(|&name| tag.attributes.get(name.as_bytes()));
                let number = of_attribute.map(|value| String::from_utf8_lossy(&value.value).trim().to_owned());
                let is_alone = topic.is_none() && ["query", "q"].contains(&&*name);
                if TOPICS.contains(&&*name) || is_alone {
                    finish(path, topic.take(), &mut entries)?;
                    topic =
                        Some(Topic { line, tag: name.clone(), number: number.unwrap_or_default(), ..Topic::default() });
                    field = if is_alone { name } else { String::new() };
                } else if let Some(topic) = &mut topic {
                    // The parts of a document have names; those of a topic that looks like one have none.
                    if topic.tag == DOCUMENT && name != "docno" {
                        return Err(collection(path, topic.line));
                    }
                    if topic.number.is_empty() && QUERIES.contains(&&*name) {
                        topic.number = number.unwrap_or_default();
                    }
                    if !INLINE.contains(&&*name) {
                        field = name;
                    }
                } else if ["num", "title"].contains(&&*name) {
                    let message = format!("<{name}> outside of a topic, expected <top> before it");
                    return Err(InputError::line(path, line, message));
                }
            }
            Token::EndTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name);
                if topic.as_ref().is_some_and(|topic| topic.tag == name) {
                    finish(path, topic.take(), &mut entries)?;
                } else if name == field {
                    field.clear();
                }
            }
            Token::String(piece) => {
                let Some(topic) = &mut topic else { continue };
                let piece = String::from_utf8_lossy(&piece.value);
                // CLEF names its fields by language.
                let name = if field.ends_with("-title") { "title" } else { &field };
                if NUMBERS.contains(&name) {
                    topic.number += &piece;
                } else if let Some(place) = QUERIES.iter().position(|&query| query == name) {
                    topic.texts[place] += &piece;
                }
            }
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    finish(path, topic, &mut entries)?;
    if entries.is_empty() {
        return Err(InputError::file(path, "no topics, expected <top> with <num> and <title>"));
    }
    Ok(entries)
}

fn finish(path: &Path, topic: Option<Topic>, entries: &mut Vec<LogEntry>) -> Result<(), InputError> {
    let Some(Topic { line, tag, number, texts }) = topic else { return Ok(()) };
    let missing = |what: &str| InputError::line(path, line, format!("the topic that begins here has no {what}"));
    let label = field_of(&number, &["Topic Number:", "Number:"]);
    if label.is_empty() {
        return Err(missing("number: expected <num>"));
    }
    if tag == DOCUMENT && !label.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(collection(path, line));
    }
    let text = texts.iter().map(|text| field_of(text, &["Topic:", "Description:"])).find(|text| !text.is_empty());
    let text = text.ok_or_else(|| missing("query: expected <title> or <query>"))?;
    entries.push(LogEntry { label, text, line });
    Ok(())
}

fn collection(path: &Path, line: u64) -> InputError {
    InputError::line(path, line, "is a collection of documents, expected topics")
}

/// A field's words on one line, without its label.
fn field_of(text: &str, labels: &[&str]) -> String {
    let text = text.trim();
    let text = labels.iter().find_map(|label| text.strip_prefix(label)).unwrap_or(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Replaces CDATA sections, which HTML does not know, by their text, with the number of lines unchanged.
fn without_cdata(text: &str) -> String {
    let mut pieces = text.split("<![CDATA[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (inside, after) = piece.split_once("]]>").unwrap_or((piece, ""));
        plain += &inside.replace('&', "&amp;").replace('<', "&lt;");
        plain += after;
    }
    plain
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
    fn all_dialects_are_read() {
        let old = "\n<top>\n\n<num> Number: 301\n<title> International\n  Organized Crime \n\n\
                   <desc> Description:\na > b\n</top>\n\
                   <top>\n<head> Tipster\n<num>Number:  052</num>\n<dom> x\n<title>Topic:  AT&T &lt;b&gt;\n</top>\n";
        let crime = row("301", "International Organized Crime", 2);
        assert_eq!(parsed(old).unwrap(), [crime, row("052", "AT&T <b>", 11)]);
        let web = "<?xml version=\"1.0\"?>\n<!-- <topic number=\"0\"> -->\n<webtrack2009>\n<topic type=\"faceted\" number=\"1\">\n\
                   <query>obama <b>family</b> tree</query>\n<subtopic number=\"1\">x</subtopic>\n</topic>\n\
                   <topic number = '2'><query> the keeper&#39;s &#x64;og </query></topic></webtrack2009>";
        assert_eq!(parsed(web).unwrap(), [row("1", "obama family tree", 4), row("2", "the keeper's dog", 8)]);
        for (text, label, query) in [
            (
                "<topics><topic number=\"7\"><query><![CDATA[tides & <b> moon]]></query></topic>",
                "7",
                "tides & <b> moon",
            ),
            ("<topics task='x'>\n<topic number=\"-1\">\n a keeper\n</topic></topics>", "-1", "a keeper"),
            ("<TOP><NUM>1</NUM><TITLE>moon</TITLE></TOP>", "1", "moon"),
            ("<topic><number>9</number><title>t</title><query>typed words</query></topic>", "9", "typed words"),
            ("<top>\n<num> Number: 201\n<desc> Description:\nWhich tides?\n</top>", "201", "Which tides?"),
            (
                "<top lang='en'><identifier>10.2452/401</identifier><EN-title>moon</EN-title></top>",
                "10.2452/401",
                "moon",
            ),
            ("<queries><query id='q1'>ocean tides</query></queries>", "q1", "ocean tides"),
            ("<target id='1' text='x'><qa><q id=\"1.1\" type='FACTOID'> Who? </q></qa></target>", "1.1", "Who?"),
            (
                "<queries>\n<query>\n<qid>0001</qid>\n<content>ascii code</content>\n</query></queries>",
                "0001",
                "ascii code",
            ),
            ("<DOC>\n<DOCNO> 1 </DOCNO>\n Which tides?\n</DOC>", "1", "Which tides?"),
            ("<topics><topic number='3'><description>long</description><summary>short</summary></topic>", "3", "short"),
        ] {
            assert_eq!(
                parsed(text).unwrap().last().map(|entry| (&*entry.0, &*entry.1)),
                Some((label, query)),
                "{text}"
            );
        }
        // Neither field is closed.
        assert_eq!(parsed("<top><num>1<title>a\n<top><num>2<title>b").unwrap(), [row("1", "a", 1), row("2", "b", 2)]);
    }

    #[test]
    fn refusals_name_the_line() {
        for (text, expected) in [
            ("<a>\n", "t: no topics, expected <top>"),
            ("<top>\n<num> 1\n</top>", "t:1: the topic that begins here has no query"),
            ("<top><num>1<title>a</top>\n<top>\n<title>b", "t:2: the topic that begins here has no number"),
            ("<a>\n<num> 1", "t:2: <num> outside of a topic"),
            ("\n<DOC>\n<DOCNO>FT911-3</DOCNO>\nmoon</DOC>", "t:2: is a collection of documents"),
            ("\n<DOC>\n<DOCNO>1</DOCNO>\n<TEXT>moon", "t:2: is a collection of documents"),
            ("<queries>\n<query>moon</query>", "t:2: the topic that begins here has no number"),
        ] {
            let message = parsed(text).unwrap_err();
            assert!(message.starts_with(expected), "{message:?}, expected {expected:?}");
        }
    }
}
