//! WARC: web archives, as crawlers write them and ClueWeb and Common Crawl are given out.
//!
//! ```text
//! WARC/1.0            a record: a version,
//! WARC-Type: response
//! Content-Length: 8   named fields,
//!                     an empty line,
//! HTTP/1.1 ...        so many bytes, and two line ends
//! ```
//!
//! Documents are the records of type `response` (a page below the HTTP header), `resource` and `conversion` (plain
//! text); others are passed over. A document's id is its `WARC-TREC-ID`, else its `WARC-Record-ID`.

use std::borrow::Cow;
use std::path::Path;

use memchr::memmem;

use super::document::Document;
use super::split::{Fault, Records, Splitter};
use super::{encoding, html};
use crate::files::InputError;

/// Headers longer than this are none.
const MAX_HEADER_BYTES: usize = 1 << 20;

/// A file of WARC records that is being read.
#[derive(Debug)]
pub(super) struct Warc(pub(super) Splitter);

/// A record, in the bytes that it was found in.
struct Record<'a> {
    header: &'a [u8],
    content: &'a [u8],
    /// Where the next one begins.
    end: usize,
}

impl Warc {
    pub(super) fn next_batch(&mut self) -> Result<Option<Records>, InputError> {
        self.0.next(whole)
    }
}

/// How many of the bytes are whole records.
fn whole(bytes: &[u8]) -> Result<usize, Fault> {
    let mut at = 0;
    while let Some(record) = record(bytes, at)? {
        at = record.end;
    }
    Ok(at)
}

/// The record at `at`; `None` if the bytes end before it does.
fn record(bytes: &[u8], at: usize) -> Result<Option<Record<'_>>, Fault> {
    let start = at + bytes[at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let rest = &bytes[start..];
    if !rest.starts_with(&b"WARC/"[..rest.len().min(5)]) {
        return Err((
            start,
            "expected a record that begins with `WARC/` (is the length of the one before right?)".into(),
        ));
    }
    let Some((header_len, blank_len)) = header_end(rest) else {
        if rest.len() > MAX_HEADER_BYTES {
            return Err((start, "a record's header does not end".into()));
        }
        return Ok(None);
    };
    let header = &rest[..header_len];
    let length = field(header, b"Content-Length").ok_or((start, "the record has no Content-Length".to_owned()))?;
    let length: usize = std::str::from_utf8(length).ok().and_then(|text| text.parse().ok()).ok_or_else(|| {
        (start, format!("Content-Length is {:?}, expected a number of bytes", String::from_utf8_lossy(length)))
    })?;
    let content_at = header_len + blank_len;
    let Some(content) = content_at.checked_add(length).and_then(|end| rest.get(content_at..end)) else {
        return Ok(None);
    };
    Ok(Some(Record { header, content, end: start + content_at + length }))
}

/// Where a header ends, and how long the empty line is that ends it.
fn header_end(bytes: &[u8]) -> Option<(usize, usize)> {
    let head = &bytes[..bytes.len().min(MAX_HEADER_BYTES + 4)];
    let windows = memmem::find(head, b"\r\n\r\n").map(|at| (at, 4));
    let unix = memmem::find(head, b"\n\n").map(|at| (at, 2));
    windows.into_iter().chain(unix).min()
}

/// The value of a field.
fn field<'a>(header: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    header.split(|&byte| byte == b'\n').find_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        line[..colon].trim_ascii().eq_ignore_ascii_case(name).then(|| line[colon + 1..].trim_ascii())
    })
}

/// Shows each document of a batch: records of other types are passed over.
pub(super) fn for_each(records: &Records, mut visit: impl FnMut(Document<'_>)) -> Result<(), InputError> {
    let bytes = &records.bytes;
    let at_byte = |place: usize, what: String| records.at(place, &what);
    let mut at = 0;
    while let Some(record) = record(bytes, at).map_err(|(place, what)| at_byte(place, what))? {
        let start = at;
        at = record.end;
        let kind = field(record.header, b"WARC-Type").unwrap_or_default();
        let is_response = kind.eq_ignore_ascii_case(b"response");
        if !is_response && ![&b"resource"[..], b"conversion"].iter().any(|other| kind.eq_ignore_ascii_case(other)) {
            continue;
        }
        let id = ["WARC-TREC-ID", "WARC-Record-ID"].iter().find_map(|name| field(record.header, name.as_bytes()));
        let id = id.ok_or_else(|| at_byte(start, "the record has no WARC-Record-ID".to_owned()))?;
        let id = String::from_utf8_lossy(id);
        let id = id.trim_start_matches("<urn:uuid:").trim_end_matches('>');
        let (head, page) = match header_end(record.content) {
            Some((end, blank)) if is_response => (&record.content[..end], &record.content[end + blank..]),
            _ => (&b""[..], record.content),
        };
        let kind = field(head, b"Content-Type").or_else(|| field(record.header, b"Content-Type"));
        let said = kind.and_then(|kind| memmem::find(kind, b"charset=").and_then(|at| html::label(&kind[at + 8..])));
        let text = encoding::decode(page, said.or_else(|| html::charset(page)));
        let is_plain = !is_response && kind.is_some_and(|kind| kind.starts_with(b"text/plain"));
        let (title, text) = if is_plain { (String::new(), text) } else { as_page(&text) };
        visit(Document { id: Cow::Borrowed(id), title: Cow::Owned(title), text, line: None });
    }
    if !bytes[at..].trim_ascii().is_empty() {
        return Err(at_byte(at, "the record is cut short: the file ends before its Content-Length does".to_owned()));
    }
    Ok(())
}

fn as_page(text: &str) -> (String, Cow<'static, str>) {
    let (title, text) = html::text_of(text);
    (title, Cow::Owned(text))
}

/// Whether bytes begin as a WARC file does.
pub(super) fn is_warc(start: &[u8]) -> bool {
    start.trim_ascii_start().starts_with(b"WARC/")
}

/// Opens what was found to be a WARC file.
pub(super) fn open(path: &Path, reader: Box<dyn std::io::Read + Send>) -> Warc {
    Warc(Splitter::new(path, reader))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record_of(kind: &str, id: &str, content: &str) -> String {
        format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{id}>\r\nContent-Length: {}\r\n\r\n{content}\r\n\r\n",
            content.len()
        )
    }

    fn read(bytes: &[u8]) -> Result<Vec<(String, String, String)>, String> {
        let mut warc = open(Path::new("x.warc"), Box::new(std::io::Cursor::new(bytes.to_vec())));
        let mut found = Vec::new();
        while let Some(batch) = warc.next_batch().map_err(|e| e.to_string())? {
            let visit = |d: Document<'_>| found.push((d.id.into(), d.title.into(), d.text.trim().to_owned()));
            for_each(&batch, visit).map_err(|e| e.to_string())?;
        }
        Ok(found)
    }

    fn archive() -> String {
        record_of("warcinfo", "i", "software: x\r\n")
            + &record_of(
                "response",
                "a",
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>T</title>one <b>two</b>",
            )
            + &record_of("request", "r", "GET /")
            + &record_of("conversion", "b", "plain words")
    }

    #[test]
    fn pages_and_texts_are_documents_and_other_records_are_not() {
        let found = read(archive().as_bytes()).unwrap();
        let found: Vec<(&str, &str, &str)> =
            found.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect();
        assert_eq!(found, [("a", "T", "one  two"), ("b", "", "plain words")]);
    }

    #[test]
    fn records_longer_than_a_batch_and_many_short_ones_are_all_read() {
        let long = "word ".repeat(1_000_000);
        let mut all: String = (0..3000).map(|i| record_of("conversion", &format!("s{i}"), "short text")).collect();
        all += &record_of("conversion", "long", &long);
        all += &record_of("conversion", "last", "x");
        let found = read(all.as_bytes()).unwrap();
        assert_eq!(found.len(), 3002);
        assert_eq!((found[3000].2.len(), found[3001].0.as_str()), (long.len() - 1, "last"));
    }

    #[test]
    fn damaged_lengths_are_errors_with_their_place() {
        let whole = archive();
        let second = whole.find("WARC-Type: response").unwrap() - 10;
        for (from, to, expected) in [
            ("Content-Length: 13", "Content-Length: 12x", "byte 0: Content-Length is \"12x\""),
            ("Content-Length: 13", "Content-Length: 9", "byte 91: expected a record"),
            ("Content-Length: 13", "Content-Length: 99999", "cut short"),
            ("Content-Length: 13\r\n", "", "byte 0: the record has no Content-Length"),
        ] {
            let message = read(whole.replacen(from, to, 1).as_bytes()).unwrap_err();
            assert!(message.starts_with("x.warc: byte ") && message.contains(expected), "{message}");
        }
        let message = read(&whole.as_bytes()[..second + 150]).unwrap_err();
        assert!(message.contains("cut short"), "{message}");
        // No cut and no changed byte panics.
        for len in 0..whole.len() {
            let _ = read(&whole.as_bytes()[..len]);
            let mut bytes = whole.clone().into_bytes();
            bytes[len] ^= 0x11;
            let _ = read(&bytes);
        }
    }
}
