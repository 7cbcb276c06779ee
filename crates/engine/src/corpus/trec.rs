//! TREC collections: `<DOC>` after `<DOC>`, each with its `<DOCNO>`, the format of GOV2, WT10g and the newswire disks.
//!
//! ```text
//! <DOC>                                       or <DOC id="GX000-00-0000000"> without a <DOCNO>
//! <DOCNO>GX000-00-0000000</DOCNO>
//! <DOCHDR> the server's reply   </DOCHDR>     left out
//! <html>...</html>                            tags are left out
//! </DOC>
//! ```

use std::borrow::Cow;
use std::path::Path;

use memchr::memmem;
use tandem_base::files::InputError;

use super::document::Document;
use super::split::{Records, Splitter};
use super::{encoding, html};

const BEGIN: &[u8] = b"<DOC>";
const END: &[u8] = b"</DOC>";

#[derive(Debug)]
pub(super) struct Trec(Splitter);

pub(super) fn is_trec(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    start.starts_with(BEGIN) || start.starts_with(b"<DOC ")
}

pub(super) fn open(path: &Path, reader: Box<dyn std::io::Read + Send>) -> Trec {
    Trec(Splitter::new(path, reader))
}

impl Trec {
    pub(super) fn next_batch(&mut self) -> Result<Option<Records>, InputError> {
        self.0.next(|bytes| Ok(memmem::rfind(bytes, END).map_or(0, |at| at + END.len())))
    }
}

pub(super) fn for_each(records: &Records, mut visit: impl FnMut(Document<'_>)) -> Result<(), InputError> {
    let bytes = &records.bytes;
    let at_byte = |place: usize, what: &str| records.at(place, what);
    let mut at = 0;
    loop {
        at += bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if at == bytes.len() {
            return Ok(());
        }
        let rest = &bytes[at..];
        if rest.starts_with(b"<!--") {
            let end = memmem::find(rest, b"-->").ok_or_else(|| at_byte(at, "the comment does not end"))?;
            at += end + 3;
            continue;
        }
        let tag = match memchr::memchr(b'>', rest).map(|end| &rest[..=end]) {
            Some(tag) if tag == BEGIN || tag.starts_with(b"<DOC ") => tag,
            _ => return Err(at_byte(at, "expected <DOC>")),
        };
        let inside = &rest[tag.len()..];
        let end = memmem::find(inside, END).ok_or_else(|| at_byte(at, "the document has no </DOC>"))?;
        let inside = &inside[..end];
        if memmem::find(inside, BEGIN).is_some() {
            return Err(at_byte(at, "the document has no </DOC> before the next <DOC>"));
        }
        let of_tag = || element(tag, b"id=\"", b"\"").map(|(id, _)| (id, inside));
        let (id, page) = element(inside, b"<DOCNO>", b"</DOCNO>")
            .or_else(of_tag)
            .ok_or_else(|| at_byte(at, "the document has no <DOCNO>, expected its id there"))?;
        let page = element(page, b"<DOCHDR>", b"</DOCHDR>").map_or(page, |(_, after)| after);
        let text = encoding::decode(page, html::charset(page));
        let (title, text) = html::text_of(&text);
        let id = String::from_utf8_lossy(id.trim_ascii());
        visit(Document { id, title: Cow::Owned(title), text: Cow::Owned(text), line: Some(records.byte(at)) });
        at += tag.len() + end + END.len();
    }
}

/// The bytes between two tags, and the bytes after the second tag.
fn element<'a>(bytes: &'a [u8], begin: &[u8], end: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let start = memmem::find(bytes, begin)? + begin.len();
    let len = memmem::find(&bytes[start..], end)?;
    Some((&bytes[start..start + len], &bytes[start + len + end.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<(String, String, String)>, String> {
        let mut trec = open(Path::new("x.trec"), Box::new(std::io::Cursor::new(bytes.to_vec())));
        let mut found = Vec::new();
        while let Some(batch) = trec.next_batch().map_err(|e| e.to_string())? {
            let visit = |d: Document<'_>| found.push((d.id.into(), d.title.into(), d.text.trim().to_owned()));
            for_each(&batch, visit).map_err(|e| e.to_string())?;
        }
        Ok(found)
    }

    const TWO: &str = "<DOC>\n<DOCNO> G-1 </DOCNO>\n<DOCHDR>\nhttp://x <DOCOLD>\n</DOCHDR>\n<title>A</title>red\n</DOC>\n\
        <DOC>\n<DOCNO>G-2</DOCNO><TEXT>\nblue fish\n</TEXT>\n</DOC>\n";

    #[test]
    fn documents_come_with_ids_and_without_headers_and_tags() {
        let found = read(TWO.as_bytes()).unwrap();
        let found: Vec<(&str, &str, &str)> =
            found.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect();
        assert_eq!(found, [("G-1", "A", "red"), ("G-2", "", "blue fish")]);
        let ntcir =
            "<DOC id=\"G-3\">\nred\n</DOC>\n<!-- <DOC> -->\n<DOC>\n<DOCNO>G-4</DOCNO>blue</DOC>\n<!-- end -->\n";
        let found = read(ntcir.as_bytes()).unwrap();
        let ids: Vec<(&str, &str)> = found.iter().map(|(id, _, text)| (id.as_str(), text.as_str())).collect();
        assert_eq!(ids, [("G-3", "red"), ("G-4", "blue")]);
        assert_eq!(read(TWO.repeat(20_000).as_bytes()).unwrap().len(), 40_000);
    }

    #[test]
    fn what_is_damaged_is_an_error_with_its_place() {
        let second = TWO.rfind("<DOC>").unwrap();
        for (text, expected) in [
            (TWO.replace("<DOCNO>G-2</DOCNO>", ""), format!("x.trec: byte {second}: the document has no <DOCNO>")),
            (TWO[..TWO.len() - 3].to_owned(), format!("x.trec: byte {second}: the document has no </DOC>")),
            (TWO.replacen("</DOC>", "", 1), "x.trec: byte 0: the document has no </DOC> before".to_owned()),
            (format!("{TWO}<!-- x"), format!("x.trec: byte {}: the comment does not end", TWO.len())),
            (format!("{TWO}stray"), format!("x.trec: byte {}: expected <DOC>", TWO.len())),
        ] {
            let message = read(text.as_bytes()).unwrap_err();
            assert!(message.starts_with(&expected), "{message}");
        }
        for len in 0..TWO.len() {
            let _ = read(&TWO.as_bytes()[..len]);
        }
    }
}
