//! Whole text files in any encoding.

use std::io::Read;
use std::path::Path;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE, WINDOWS_1252};

use tandem_base::files::{InputError, open_bytes};

/// A text file's content, with its encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The content, without a byte order mark.
    pub text: String,
    /// The encoding in words, unless it is plain UTF-8.
    pub encoding: Option<String>,
}

/// Bytes examined to recognise UTF-16 without a byte order mark.
const SNIFFED_BYTES: usize = 4096;
/// Fewer non-ASCII bytes than this don't determine an encoding.
const LEAST_TELLING: usize = 16;

impl Text {
    /// Reads and decompresses a file, and decodes it as [`Text::decode`] does. Fails if it can't be read, or is no
    /// text.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        Ok(Self::start(path, u64::MAX)?.0)
    }

    /// Like [`Text::read`], of the lines that end within the first `most` bytes; also whether these are all.
    pub(crate) fn start(path: &Path, most: u64) -> Result<(Self, bool), InputError> {
        let mut bytes = Vec::new();
        let read = open_bytes(path)?.take(most).read_to_end(&mut bytes);
        let is_whole = (read.map_err(|e| InputError::file(path, format!("cannot read: {e}")))? as u64) < most;
        if !is_whole {
            bytes.truncate(bytes.iter().rposition(|&byte| byte == b'\n').map_or(bytes.len(), |at| at + 1));
        }
        Ok((Self::decode(path, bytes)?, is_whole))
    }

    /// Decodes a file's bytes: by its byte order mark, as UTF-16 if every other byte is zero, else as UTF-8. Lines that
    /// are not UTF-8 are decoded separately, in the most likely encoding of all of them, since one letter must not cost a
    /// log its other lines. Fails if the bytes are no text: they hold zeros.
    pub fn decode(path: &Path, bytes: Vec<u8>) -> Result<Self, InputError> {
        let binary = binary_form(&bytes);
        let utf16 = match Encoding::for_bom(&bytes) {
            Some((encoding, _)) => Some(encoding).filter(|&encoding| encoding != encoding_rs::UTF_8),
            None => utf16_without_mark(&bytes),
        };
        let decoded = match utf16 {
            Some(encoding) => {
                let (text, ..) = encoding.decode(&bytes);
                Self { text: text.into_owned(), encoding: Some(encoding.name().to_owned()) }
            }
            None => match String::from_utf8(bytes) {
                Ok(text) => {
                    let plain = text.strip_prefix('\u{feff}').map(str::to_owned);
                    Self { text: plain.unwrap_or(text), encoding: None }
                }
                Err(e) => by_lines(e.as_bytes()),
            },
        };
        match (decoded.text.split('\n').position(|line| line.contains('\0')), binary) {
            (Some(_), Some(form)) => Err(InputError::file(path, format!("is {form}, expected text"))),
            (Some(line), None) => Err(InputError::line(path, line as u64 + 1, "holds zero bytes, expected text")),
            (None, _) => Ok(decoded.with_line_ends()),
        }
    }

    /// Ends lines as elsewhere if they end in carriage returns alone, as on old Macintoshes.
    fn with_line_ends(self) -> Self {
        if self.text.contains('\n') || !self.text.contains('\r') {
            return self;
        }
        let encoding = self.encoding.map_or_else(String::new, |encoding| format!("{encoding}, "));
        let encoding = Some(format!("{encoding}lines end in carriage returns"));
        Self { text: self.text.replace('\r', "\n"), encoding }
    }
}

/// The form of some binary files, in words.
fn binary_form(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("compressed twice"),
        [b'P', b'A', b'R', b'1', ..] => Some("a Parquet file"),
        [b'S', b'Q', b'L', b'i', b't', b'e', b' ', ..] => Some("an SQLite database"),
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("in UTF-32"),
        _ => (bytes.get(257..262) == Some(b"ustar")).then_some("a tar archive"),
    }
}

/// Recognises UTF-16 by its zeros: mostly ASCII letters have one in every other byte.
fn utf16_without_mark(bytes: &[u8]) -> Option<&'static Encoding> {
    let (pairs, _) = bytes[..bytes.len().min(SNIFFED_BYTES)].as_chunks::<2>();
    let zeros = |at: usize| pairs.iter().filter(|pair| pair[at] == 0).count();
    let (high, low) = (zeros(0), zeros(1));
    let is_many = |zeros: usize| 2 * zeros > pairs.len();
    match (is_many(high), is_many(low)) {
        (true, false) => Some(UTF_16BE),
        (false, true) => Some(UTF_16LE),
        _ => None,
    }
}

/// Decodes the lines that are not UTF-8 separately.
fn by_lines(bytes: &[u8]) -> Text {
    let lines = || bytes.split_inclusive(|&byte| byte == b'\n');
    let odd: Vec<&[u8]> = lines().filter(|line| std::str::from_utf8(line).is_err()).collect();
    let odd_bytes = odd.concat();
    let encoding = if odd_bytes.iter().filter(|byte| !byte.is_ascii()).count() < LEAST_TELLING {
        WINDOWS_1252
    } else {
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(&odd_bytes, true);
        detector.guess(None, Utf8Detection::Deny)
    };
    let text = lines().map(|line| match std::str::from_utf8(line) {
        Ok(line) => line.into(),
        Err(_) => encoding.decode_without_bom_handling(line).0,
    });
    let text: String = text.collect();
    let all = lines().count();
    let encoding = match odd.len() {
        some if some < all => format!("{some} of {all} lines in {}", encoding.name()),
        _ => encoding.name().to_owned(),
    };
    Text { text, encoding: Some(encoding) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> (String, Option<String>) {
        let text = Text::decode(Path::new("x"), bytes.to_vec()).unwrap();
        (text.text, text.encoding)
    }

    #[test]
    fn text_is_read_in_any_encoding_which_is_told() {
        assert_eq!(decoded("\u{feff}caf\u{e9}\n".as_bytes()), ("caf\u{e9}\n".into(), None));
        assert_eq!(decoded(b"a\ncaf\xe9\n"), ("a\ncaf\u{e9}\n".into(), Some("1 of 2 lines in windows-1252".into())));
        let russian = "скорость света\nв вакууме\n";
        let (bytes, ..) = encoding_rs::WINDOWS_1251.encode(russian);
        assert_eq!(decoded(&bytes), (russian.into(), Some("windows-1251".into())));
        for (mark, name) in [("\u{feff}", "UTF-16LE"), ("", "UTF-16LE")] {
            let bytes: Vec<u8> = format!("{mark}K\u{f6}ln tides").encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert_eq!(decoded(&bytes), ("K\u{f6}ln tides".into(), Some(name.into())));
        }
        let bytes: Vec<u8> = "ocean".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decoded(&bytes), ("ocean".into(), Some("UTF-16BE".into())));
        let refused = Text::decode(Path::new("x"), b"a\nb\0c d e f".to_vec()).unwrap_err().to_string();
        assert_eq!(refused, "x:2: holds zero bytes, expected text");
        assert_eq!(
            decoded(b"caf\xe9\rtea\r"),
            ("caf\u{e9}\ntea\n".into(), Some("windows-1252, lines end in carriage returns".into()))
        );
        assert_eq!(decoded(b"a\r\nb\r\n"), ("a\r\nb\r\n".into(), None));
    }

    #[test]
    fn binary_files_are_refused_by_their_names() {
        let mut tar = [b"queries.tsv".to_vec(), vec![0; 246], b"ustar\0".to_vec(), vec![0; 249]].concat();
        tar.extend(b"1\ttides\n");
        let gzip = [&b"\x1f\x8b\x08"[..], &[0; 9]].concat();
        let utf32: Vec<u8> = "\u{feff}tides".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        for (bytes, expected) in [
            (tar, "x: is a tar archive, expected text"),
            (gzip, "x: is compressed twice, expected text"),
            (utf32, "x: is in UTF-32, expected text"),
            (b"PAR1\x15\0".to_vec(), "x: is a Parquet file, expected text"),
            (b"SQLite format 3\0".to_vec(), "x: is an SQLite database, expected text"),
        ] {
            assert_eq!(Text::decode(Path::new("x"), bytes).unwrap_err().to_string(), expected);
        }
    }
}
