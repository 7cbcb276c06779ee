//! Responses of HTTP/1.1, read as their bytes arrive. `httparse` takes heads and lengths of chunks apart.

use httparse::{EMPTY_HEADER, Header, Status};

use crate::run::{Fault, Outcome};

/// Largest head of a response.
const MOST_HEAD: usize = 256 * 1024;
/// Most interim heads (status 100 to 199) before the response.
const MOST_INTERIM: u32 = 8;
/// Memory that an idle connection keeps.
const KEPT: usize = 64 * 1024;
/// Most headers of a response.
const MOST_HEADERS: usize = 100;
/// Longest line with the length of a chunk, and longest trailers.
const MOST_LINE: usize = 4096;

/// The part of the response that comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// In a head, which has no end before this position.
    Head(usize),
    /// In a body that ends at this position.
    Length(usize),
    /// Before the length of a chunk, in a chunk with this rest, behind a chunk, or in the trailers.
    ChunkLength,
    Chunk(usize),
    ChunkEnd,
    Trailers,
    /// In a body that ends with the connection.
    UntilClose,
    /// Complete.
    Done,
}

impl Default for Stage {
    fn default() -> Self {
        Self::Head(0)
    }
}

/// A response, perhaps incomplete.
#[derive(Debug, Default)]
pub(crate) struct Response {
    bytes: Vec<u8>,
    stage: Stage,
    status: u16,
    /// Start and end of the body, and the first byte that was not parsed.
    body: usize,
    end: usize,
    raw: usize,
    keeps_alive: bool,
    interim: u32,
    /// Headers that explain a failure: the target of a redirect, the compression, and the media type.
    explaining: [Option<String>; 3],
}

/// The names of [`Response::explaining`].
const EXPLAINING: [&str; 3] = ["location", "content-encoding", "content-type"];

impl Response {
    /// Forgets the last response and keeps its memory, unless that is large.
    pub(crate) fn clear(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        bytes.shrink_to(KEPT);
        *self = Self { bytes, ..Self::default() };
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether nothing has arrived.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The compression of the body, if it has one.
    pub(crate) fn compression(&self) -> Option<&str> {
        self.explaining[1].as_deref().filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
    }

    /// Status, media type and target of a redirect, in words.
    pub(crate) fn about(&self) -> String {
        let [location, _, media] = &self.explaining;
        let media = media.as_ref().map_or(String::new(), |media| format!(", {media}"));
        let to = location.as_ref().map_or(String::new(), |to| format!(", redirects to {to}, which is not followed"));
        format!("status {}{media}{to}", self.status)
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.body..self.end]
    }

    /// The beginning of the body, on one line, without secrets: some servers repeat the credentials that they refuse.
    pub(crate) fn excerpt<'a>(&self, secrets: impl Iterator<Item = &'a str>) -> String {
        let text = String::from_utf8_lossy(self.body()).into_owned();
        let text =
            secrets.filter(|secret| !secret.is_empty()).fold(text, |text, secret| text.replace(secret, "(secret)"));
        let text = text.split_whitespace().take(40).collect::<Vec<_>>().join(" ");
        text.chars().take(200).collect()
    }

    /// Whether the connection may carry another request.
    pub(crate) fn keeps_alive(&self) -> bool {
        // Bytes behind the response belong to no request.
        self.keeps_alive && self.raw == self.bytes.len()
    }

    /// Adds bytes and returns whether the response is complete, with a body of at most `most` bytes.
    pub(crate) fn add(&mut self, bytes: &[u8], most: usize) -> Result<bool, Fault> {
        self.bytes.extend_from_slice(bytes);
        while self.step(most)? {}
        if self.end - self.body > most {
            return too_large(most);
        }
        // The framing of chunks is not kept.
        if !matches!(self.stage, Stage::Head(_) | Stage::Length(_) | Stage::Done) && self.raw > self.end {
            self.bytes.drain(self.end..self.raw);
            self.raw = self.end;
        }
        Ok(self.stage == Stage::Done)
    }

    /// Notes the end of the connection and returns whether it completes the response.
    pub(crate) fn close(&mut self) -> bool {
        self.keeps_alive = false;
        self.stage == Stage::UntilClose
    }

    /// Advances by one stage. Returns `false` if that needs more bytes.
    fn step(&mut self, most: usize) -> Result<bool, Fault> {
        let left = self.bytes.len() - self.raw;
        match self.stage {
            Stage::Head(looked) => return self.head(looked, most),
            Stage::Length(end) => {
                self.end = end.min(self.bytes.len());
                self.raw = self.end;
                if self.end < end {
                    return Ok(false);
                }
                self.stage = Stage::Done;
            }
            Stage::ChunkLength => match httparse::parse_chunk_size(&self.bytes[self.raw..]) {
                Ok(Status::Complete((taken, length))) => {
                    self.raw += taken;
                    let length = usize::try_from(length).unwrap_or(usize::MAX);
                    if length > most {
                        return too_large(most);
                    }
                    self.stage = if length == 0 { Stage::Trailers } else { Stage::Chunk(length) };
                }
                Ok(Status::Partial) if left <= MOST_LINE => return Ok(false),
                Ok(Status::Partial) | Err(_) => return malformed("the length of a chunk is no number"),
            },
            Stage::Chunk(rest) => {
                let taken = rest.min(left);
                self.bytes.copy_within(self.raw..self.raw + taken, self.end);
                self.raw += taken;
                self.end += taken;
                self.stage = if taken == rest { Stage::ChunkEnd } else { Stage::Chunk(rest - taken) };
                return Ok(taken == rest);
            }
            Stage::ChunkEnd if left < 2 => return Ok(false),
            Stage::ChunkEnd => {
                if !self.bytes[self.raw..].starts_with(b"\r\n") {
                    return malformed("a chunk is longer than it says");
                }
                self.raw += 2;
                self.stage = Stage::ChunkLength;
            }
            Stage::Trailers => {
                match httparse::parse_headers(&self.bytes[self.raw..], &mut [EMPTY_HEADER; MOST_HEADERS]) {
                    Ok(Status::Complete((taken, _))) => self.raw += taken,
                    Ok(Status::Partial) if left <= MOST_LINE => return Ok(false),
                    Ok(Status::Partial) | Err(_) => return malformed("the trailers are no headers"),
                }
                self.stage = Stage::Done;
            }
            Stage::UntilClose => {
                (self.end, self.raw) = (self.bytes.len(), self.bytes.len());
                return Ok(false);
            }
            Stage::Done => return Ok(false),
        }
        Ok(true)
    }

    /// Takes the head apart once it is complete.
    fn head(&mut self, looked: usize, most: usize) -> Result<bool, Fault> {
        let head = &self.bytes[self.raw..];
        let begin = b"HTTP/1.";
        if !begin.starts_with(&head[..head.len().min(begin.len())]) {
            // Records of TLS, such as an alert, begin with these bytes.
            let is_tls = matches!(head, [0x14..=0x17, 0x03, ..] | [0x14..=0x17]);
            return malformed(if is_tls { "not HTTP but TLS (https://)" } else { "not HTTP" });
        }
        if head.len() > MOST_HEAD {
            return malformed(&format!("the headers exceed {MOST_HEAD} bytes"));
        }
        // Only a new line may end the head, however small its pieces are.
        let has_line = self.bytes[looked..].contains(&b'\n');
        self.stage = Stage::Head(self.bytes.len());
        if !has_line {
            return Ok(false);
        }
        let mut headers = [EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Response::new(&mut headers);
        let taken = match parsed.parse(head) {
            Ok(Status::Complete(taken)) => taken,
            Ok(Status::Partial) => return Ok(false),
            Err(e) => return malformed(&format!("the head of the response: {e}")),
        };
        let status = parsed.code.unwrap_or_default();
        let is_interim = (100..200).contains(&status) && status != 101;
        let framing = Framing::of(parsed.headers, parsed.version == Some(1))?;
        if is_interim {
            self.interim += 1;
            if self.interim > MOST_INTERIM {
                return malformed(&format!("more than {MOST_INTERIM} interim heads"));
            }
            self.bytes.drain(..taken);
            self.stage = Stage::Head(0);
            return Ok(true);
        }
        self.explaining = EXPLAINING.map(|wanted| {
            let header = parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case(wanted))?;
            Some(String::from_utf8_lossy(header.value).into_owned())
        });
        self.raw += taken;
        (self.status, self.keeps_alive) = (status, framing.keeps_alive && status != 101);
        (self.body, self.end) = (self.raw, self.raw);
        self.stage = match framing.length {
            _ if [101, 204, 304].contains(&status) => Stage::Done,
            Some(length) if length > most as u64 => return too_large(most),
            Some(length) => Stage::Length(self.raw + length as usize),
            None if framing.is_chunked => Stage::ChunkLength,
            None => {
                self.keeps_alive = false;
                Stage::UntilClose
            }
        };
        Ok(true)
    }
}

/// The rule for the end of a body (RFC 9112, section 6.3), and whether the connection stays open.
struct Framing {
    length: Option<u64>,
    is_chunked: bool,
    keeps_alive: bool,
}

impl Framing {
    fn of(headers: &[Header<'_>], is_1_1: bool) -> Result<Self, Fault> {
        let mut framing = Self { length: None, is_chunked: false, keeps_alive: is_1_1 };
        for Header { name, value } in headers {
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            let value = || std::str::from_utf8(value).map_or("(not UTF-8)", str::trim);
            if is("content-length") {
                let text = Some(value()).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                let length: Option<u64> = text.and_then(|text| text.parse().ok());
                if length.is_none() || framing.length.is_some() && framing.length != length {
                    return malformed(&format!("content-length {:.40}", value()));
                }
                framing.length = length;
            } else if is("transfer-encoding") {
                // Other codings were not asked for.
                if !value().eq_ignore_ascii_case("chunked") || framing.is_chunked {
                    return malformed(&format!("transfer-encoding {:.40}", value()));
                }
                framing.is_chunked = true;
            } else if is("connection") {
                for option in value().split(',').map(str::trim) {
                    if option.eq_ignore_ascii_case("close") {
                        framing.keeps_alive = false;
                    } else if option.eq_ignore_ascii_case("keep-alive") && !is_1_1 {
                        framing.keeps_alive = true;
                    }
                }
            }
        }
        // Two framings in one head are how responses are smuggled.
        if framing.is_chunked && framing.length.is_some() {
            return malformed("both content-length and transfer-encoding");
        }
        Ok(framing)
    }
}

fn malformed<T>(why: &str) -> Result<T, Fault> {
    Err((Outcome::Malformed, why.to_owned()))
}

fn too_large<T>(most: usize) -> Result<T, Fault> {
    Err((Outcome::TooLarge, format!("the body exceeds {most} bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a response in pieces of `step` bytes: status, body, and whether the connection may be used again.
    fn read(text: &str, step: usize) -> Result<(u16, String, bool), Option<Outcome>> {
        let mut response = Response::default();
        for piece in text.as_bytes().chunks(step) {
            if response.add(piece, 100).map_err(|(outcome, _)| Some(outcome))? {
                break;
            }
        }
        if response.stage != Stage::Done && !response.close() {
            return Err(None);
        }
        Ok((response.status(), String::from_utf8_lossy(response.body()).into_owned(), response.keeps_alive()))
    }

    #[test]
    fn responses_are_the_same_in_pieces_of_any_size() {
        let ok = |status, body: &str, keeps_alive| Ok((status, body.to_owned(), keeps_alive));
        for (text, expected) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", ok(200, "abc", true)),
            ("HTTP/1.1 200\r\nContent-Length: 0\r\nConnection: x, Close\r\n\r\n", ok(200, "", false)),
            ("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx", ok(200, "x", false)),
            ("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\nx", ok(200, "x", true)),
            ("HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 204 None\r\n\r\n", ok(204, "", true)),
            ("HTTP/1.1 200 OK\r\n\r\nuntil close", ok(200, "until close", false)),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nt: 1\r\n\r\n",
                ok(200, "abc0123456789", true),
            ),
            ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab", Err(None)),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", Err(None)),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabcd\r\n", Err(Some(Outcome::Malformed))),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", Err(Some(Outcome::Malformed))),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nx", Err(Some(Outcome::Malformed))),
            ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx", Err(Some(Outcome::Malformed))),
            ("HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\nx", Err(Some(Outcome::Malformed))),
            ("HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n", Err(Some(Outcome::TooLarge))),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n", Err(Some(Outcome::TooLarge))),
            ("SSH-2.0-OpenSSH\r\n", Err(Some(Outcome::Malformed))),
            ("HTTP/1.1 OK\r\n\r\n", Err(Some(Outcome::Malformed))),
        ] {
            for step in 1..=text.len() {
                assert_eq!(read(text, step), expected, "{text:?} by {step}");
            }
        }
        let long = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(101));
        assert_eq!(read(&long, 7), Err(Some(Outcome::TooLarge)));
    }

    #[test]
    fn endless_heads_and_bytes_behind_a_response_are_not_kept() {
        let mut response = Response::default();
        let mut added = response.add(b"HTTP/1.1 200 OK\r\n", 100);
        while added == Ok(false) {
            added = response.add(&[b'a'; 4096], 100);
        }
        assert_eq!(added, malformed("the headers exceed 262144 bytes"));
        response.clear();
        let mut added = Ok(false);
        while added == Ok(false) {
            added = response.add(b"HTTP/1.1 100 Continue\r\n\r\n", 100);
        }
        assert_eq!(added, malformed("more than 8 interim heads"));
        response.clear();
        response.add(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", 1 << 20).unwrap();
        (0..300_000).for_each(|_| assert_eq!(response.add(b"1\r\nx\r\n", 1 << 20), Ok(false)));
        assert!(response.body().len() == 300_000 && response.memory() < 1 << 20, "{}", response.memory());
        response.clear();
        assert_eq!(response.memory(), KEPT);
        assert_eq!(response.add(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nxHTTP/1.1", 100), Ok(true));
        assert!(response.body() == b"x" && !response.keeps_alive());
    }
}
