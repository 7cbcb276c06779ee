//! WARC: web archives, the format of crawlers, ClueWeb and Common Crawl.
//!
//! ```text
//! WARC/1.0            a record: a version,
//! WARC-Type: response
//! Content-Length: 8   named fields,
//!                     an empty line,
//! HTTP/1.1 ...        that many bytes, and two line ends
//! ```
//!
//! Documents are the records of type `response` (a page below the HTTP header), `resource` and `conversion` (plain text)
//! whose media type holds text; others are skipped, and counted if a crawler got them from the web, as are responses
//! whose status is no success. Bodies are joined
//! from their chunks and decompressed as their HTTP header says. A document's id is its `WARC-TREC-ID`, else its
//! `WARC-Record-ID`.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use memchr::memmem;
use tandem_base::files::{InputError, Packing};

use super::document::Document;
use super::split::{Fault, Records, Splitter};
use super::{Reason, Skipped, encoding, html};

const MAX_HEADER_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Warc(pub(super) Splitter);

struct Record<'a> {
    header: &'a [u8],
    content: &'a [u8],
    end: usize,
}

impl Warc {
    pub(super) fn next_batch(&mut self) -> Result<Option<Records>, InputError> {
        self.0.next(whole)
    }
}

fn whole(bytes: &[u8]) -> Result<usize, Fault> {
    let mut at = 0;
    while let Some(record) = record(bytes, at)? {
        at = record.end;
    }
    Ok(at)
}

/// The record at `at`; `None` if the bytes end before its end.
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

/// The end of a header, and the length of the empty line after it.
fn header_end(bytes: &[u8]) -> Option<(usize, usize)> {
    let head = &bytes[..bytes.len().min(MAX_HEADER_BYTES + 4)];
    let windows = memmem::find(head, b"\r\n\r\n").map(|at| (at, 4));
    let unix = memmem::find(head, b"\n\n").map(|at| (at, 2));
    windows.into_iter().chain(unix).min()
}

fn field<'a>(header: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    header.split(|&byte| byte == b'\n').find_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        line[..colon].trim_ascii().eq_ignore_ascii_case(name).then(|| line[colon + 1..].trim_ascii())
    })
}

/// Visits each document of a batch, and counts the records without one.
pub(super) fn for_each(records: &Records, mut visit: impl FnMut(Document<'_>)) -> Result<Skipped, InputError> {
    let bytes = &records.bytes;
    let at_byte = |place: usize, what: String| records.at(place, &what);
    let (mut at, mut skipped) = (0, Skipped::default());
    while let Some(record) = record(bytes, at).map_err(|(place, what)| at_byte(place, what))? {
        let start = at;
        at = record.end;
        let kind = field(record.header, b"WARC-Type").unwrap_or_default();
        let is_of = |other: &[u8]| kind.eq_ignore_ascii_case(other);
        if is_of(b"revisit") {
            skipped.add(Reason::Revisit);
        }
        let is_response = is_of(b"response");
        if !is_response && !is_of(b"resource") && !is_of(b"conversion") {
            continue;
        }
        let id = ["WARC-TREC-ID", "WARC-Record-ID"].iter().find_map(|name| field(record.header, name.as_bytes()));
        let id = id.ok_or_else(|| at_byte(start, "the record has no WARC-Record-ID".to_owned()))?;
        let id = String::from_utf8_lossy(id);
        let id = id.trim_start_matches("<urn:uuid:").trim_end_matches('>');
        let (head, body) = match header_end(record.content) {
            Some((end, blank)) if is_response => (&record.content[..end], &record.content[end + blank..]),
            _ => (&b""[..], record.content),
        };
        let of_record = field(record.header, b"Content-Type").filter(|kind| !kind.starts_with(b"application/http"));
        let kind = field(head, b"Content-Type").or(of_record);
        if let Some(status) = failure(head) {
            skipped.add(Reason::Status(status));
            continue;
        }
        let Some(form) = text_form(kind) else {
            skipped.add(Reason::MediaType);
            continue;
        };
        let is_cut_short = field(record.header, b"WARC-Truncated").is_some();
        let Some(body) = body_of(head, body, is_cut_short) else {
            skipped.add(Reason::Damaged);
            continue;
        };
        // A body without a media type may hold any data.
        if form == Form::Unknown && body.contains(&0) && !encoding::is_utf16(&body) {
            skipped.add(Reason::MediaType);
            continue;
        }
        if is_cut_short {
            skipped.add(Reason::CutShort);
        }
        let said = kind.and_then(|kind| memmem::find(kind, b"charset=").and_then(|at| html::label(&kind[at + 8..])));
        let text = encoding::decode(&body, said.or_else(|| html::charset(&body)));
        let (title, text) = if form == Form::Plain { (String::new(), text) } else { as_page(&text) };
        visit(Document { id: Cow::Borrowed(id), title: Cow::Owned(title), text, line: Some(records.byte(start)) });
    }
    if !bytes[at..].trim_ascii().is_empty() {
        return Err(at_byte(at, "the record is cut short: the file ends before its Content-Length does".to_owned()));
    }
    Ok(skipped)
}

/// The status of a response that is no success. Of success are 200, 203 (changed by a proxy) and 206 (a part).
fn failure(head: &[u8]) -> Option<u16> {
    let line = head.split(|&byte| byte == b'\n').next()?.strip_prefix(b"HTTP/")?;
    let status = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty()).nth(1)?;
    let status = std::str::from_utf8(status).ok()?.parse().ok().filter(|status| (100..1000).contains(status))?;
    (![200, 203, 206].contains(&status)).then_some(status)
}

/// The markup of a document's text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Page,
    Unknown,
}

/// The markup of text with this media type; `None` if it holds no text.
fn text_form(kind: Option<&[u8]>) -> Option<Form> {
    let kind = String::from_utf8_lossy(kind.unwrap_or_default()).to_ascii_lowercase();
    match kind.split(';').next().unwrap_or_default().trim() {
        "" | "unknown/unknown" | "application/octet-stream" => Some(Form::Unknown),
        "text/plain" => Some(Form::Plain),
        "text/html" | "application/xhtml+xml" | "text/xml" | "application/xml" | "text/sgml" => Some(Form::Page),
        _ => None,
    }
}

/// A body, joined from its chunks and decompressed; `None` if it can't be decompressed. Bodies that a crawler joined or
/// decompressed itself, contrary to their header, are kept as they are.
fn body_of<'a>(head: &[u8], body: &'a [u8], is_cut_short: bool) -> Option<Cow<'a, [u8]>> {
    let says = |name: &[u8], value: &[u8]| {
        field(head, name).is_some_and(|said| memmem::find(&said.to_ascii_lowercase(), value).is_some())
    };
    let body = match says(b"Transfer-Encoding", b"chunked").then(|| joined(body)).flatten() {
        Some(joined) => Cow::Owned(joined),
        None => Cow::Borrowed(body),
    };
    let mut text = Vec::new();
    let read = if says(b"Content-Encoding", b"gzip") && body.starts_with(&[0x1f, 0x8b]) {
        flate2::read::MultiGzDecoder::new(&*body).read_to_end(&mut text)
    } else if says(b"Content-Encoding", b"deflate") && is_zlib(&body) {
        flate2::read::ZlibDecoder::new(&*body).read_to_end(&mut text)
    } else if says(b"Content-Encoding", b"zstd") && body.starts_with(Packing::Zstd.magic()) {
        zstd::stream::read::Decoder::new(&*body).and_then(|mut body| body.read_to_end(&mut text))
    } else if says(b"Content-Encoding", b"br") && std::str::from_utf8(&body).is_err() {
        brotli_decompressor::Decompressor::new(&*body, 1 << 14).read_to_end(&mut text)
    } else if says(b"Content-Encoding", b"deflate")
        && std::str::from_utf8(&body).is_err()
        && flate2::read::DeflateDecoder::new(&*body).read_to_end(&mut text).is_ok()
    {
        // Some servers leave out the header of zlib.
        Ok(text.len())
    } else if field(head, b"Content-Encoding").is_some() && is_binary(&body) {
        return None;
    } else {
        return Some(body);
    };
    (read.is_ok() || is_cut_short && !text.is_empty()).then_some(Cow::Owned(text))
}

/// Whether a body begins with the two bytes of zlib, which have a check sum.
fn is_zlib(body: &[u8]) -> bool {
    matches!(body, [first, second, ..] if first & 0x0f == 8 && u16::from_be_bytes([*first, *second]) % 31 == 0)
}

/// Whether a body is no text: of compressed bytes 3.5 % are control characters that text hardly has.
fn is_binary(body: &[u8]) -> bool {
    let start = &body[..body.len().min(1024)];
    let odd = start.iter().filter(|&&byte| byte < b'\t').count();
    odd > start.len() / 100 && std::str::from_utf8(body).is_err() && !encoding::is_utf16(body)
}

/// The joined chunks of a body; `None` if it does not begin with one.
fn joined(body: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::with_capacity(body.len());
    let mut rest = body;
    loop {
        let parsed = memchr::memchr(b'\n', rest).and_then(|end| {
            let size = rest[..end].split(|&byte| byte == b';').next()?.trim_ascii();
            Some((usize::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()?, &rest[end + 1..]))
        });
        match parsed {
            Some((0, _)) => return Some(whole),
            Some((size, after)) => {
                let (chunk, after) = after.split_at(size.min(after.len()));
                whole.extend_from_slice(chunk);
                rest = after.strip_prefix(b"\r\n").or_else(|| after.strip_prefix(b"\n")).unwrap_or(after);
            }
            // A record that was cut short lacks its last chunks.
            None => return (!whole.is_empty()).then_some(whole),
        }
    }
}

fn as_page(text: &str) -> (String, Cow<'static, str>) {
    let (title, text) = html::text_of(text);
    (title, Cow::Owned(text))
}

pub(super) fn is_warc(start: &[u8]) -> bool {
    start.trim_ascii_start().starts_with(b"WARC/")
}

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
    fn responses_that_failed_are_counted_by_status() {
        let page = |id: &str, line: &str| record_of("response", id, &format!("{line}\r\n\r\ntides"));
        let lines = ["HTTP/1.1 200 OK", "HTTP/2 404", "HTTP/1.0 404 Gone away", "HTTP/1.1  301 Moved", "HTTP/1.1 503"];
        let archive: String = lines.iter().enumerate().map(|(id, line)| page(&id.to_string(), line)).collect();
        let mut warc = open(Path::new("x.warc"), Box::new(std::io::Cursor::new(archive.into_bytes())));
        let mut found = Vec::new();
        let skipped = for_each(&warc.next_batch().unwrap().unwrap(), |d| found.push(d.id.into_owned())).unwrap();
        assert_eq!(found, ["0"]);
        assert_eq!(
            skipped.to_string(),
            "1 response of status 301, 2 responses of status 404, 1 response of status 503"
        );
        assert_eq!(Skipped::of_counts(skipped.counts()), skipped);
    }

    #[test]
    fn bodies_are_decoded_and_other_media_counted() {
        let response = |id: &str, head: &str, body: &[u8]| {
            let http = [format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes(), body].concat();
            let head = format!(
                "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: {id}\r\nContent-Type: application/http\r\nContent-Length: {}\r\n\r\n",
                http.len()
            );
            [head.as_bytes(), &http, b"\r\n\r\n"].concat()
        };
        let page = b"<title>T</title>ocean tides";
        let chunks = b"a;x=1\r\n<title>T</\r\n11\r\ntitle>ocean tides\r\n0\r\n\r\n";
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, page).unwrap();
        let gzip = gzip.finish().unwrap();
        // This is an uncompressed block of brotli: a window of 16 bits, 27 bytes, and an empty last block.
        let brotli = [&[0x0b, 0x0d, 0x80][..], page, &[0x03]].concat();
        let mut inflated = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut inflated, page).unwrap();
        let raw = inflated.finish().unwrap();
        let zstd = zstd::encode_all(&page[..], 3).unwrap();
        let unknown: Vec<u8> = (0..=255).collect();
        let of = "Content-Type: text/html\r\n";
        let archive = [
            response("chunked", &format!("{of}Transfer-Encoding: chunked"), chunks),
            response("not-chunked", &format!("{of}Transfer-Encoding: chunked"), page),
            response("gzip", &format!("{of}Content-Encoding: gzip"), &gzip),
            response("not-gzip", &format!("{of}Content-Encoding: gzip"), page),
            response("brotli", &format!("{of}Content-Encoding: br"), &brotli),
            response("raw-deflate", &format!("{of}Content-Encoding: deflate"), &raw),
            response("not-deflate", &format!("{of}Content-Encoding: deflate"), page),
            response("zstd", &format!("{of}Content-Encoding: zstd"), &zstd),
            response("unknown", &format!("{of}Content-Encoding: x-own"), &unknown),
            response("damaged", &format!("{of}Content-Encoding: gzip"), &gzip[..20]),
            response("picture", "Content-Type: image/png", b"\x89PNG"),
            record_of("revisit", "again", "").into_bytes(),
        ]
        .concat();
        let mut warc = open(Path::new("x.warc"), Box::new(std::io::Cursor::new(archive)));
        let batch = warc.next_batch().unwrap().unwrap();
        let mut found = Vec::new();
        let skipped =
            for_each(&batch, |d| found.push((d.id.into_owned(), format!("{}:{}", d.title, d.text.trim())))).unwrap();
        let ids: Vec<&str> = found.iter().map(|(id, _)| id.as_str()).collect();
        let whole = ["chunked", "not-chunked", "gzip", "not-gzip", "brotli", "raw-deflate", "not-deflate", "zstd"];
        assert_eq!(ids, whole);
        assert!(found.iter().all(|(_, text)| text == "T:ocean tides"), "{found:?}");
        assert_eq!(skipped.counts().collect::<Vec<_>>(), [[1, 1], [2, 1], [3, 2]]);
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
        // No truncation and no changed byte causes a panic.
        for len in 0..whole.len() {
            let _ = read(&whole.as_bytes()[..len]);
            let mut bytes = whole.clone().into_bytes();
            bytes[len] ^= 0x11;
            let _ = read(&bytes);
        }
    }
}
