//! Text input and its errors.

use std::fmt;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use super::disk::File;
use super::packing::{Frames, Packing};

/// An error in an input file, with its place. Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The file's path, as the user gave it.
    pub path: PathBuf,
    /// The line, if the error has one.
    pub line: Option<u64>,
    /// The column, if the error has one.
    pub column: Option<u64>,
    /// The problem, and its remedy.
    pub message: String,
}

impl InputError {
    /// An error about the whole file.
    pub fn file(path: &Path, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, column: None, message: message.into() }
    }

    /// An error at a line.
    pub fn line(path: &Path, line: u64, message: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::file(path, message) }
    }

    /// An error at a line and column.
    pub fn at(path: &Path, line: u64, column: u64, message: impl Into<String>) -> Self {
        Self { column: Some(column), ..Self::line(path, line, message) }
    }

    /// An error at `part`, a slice of `text`, which is the line.
    pub fn at_part(path: &Path, line: u64, text: &str, part: &str, message: impl Into<String>) -> Self {
        let before = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize).and_then(|byte| text.get(..byte));
        Self::at(path, line, before.map_or(1, |before| before.chars().count() as u64 + 1), message)
    }

    /// An error in a file that is one JSON value.
    pub fn json(path: &Path, error: &serde_json::Error) -> Self {
        Self::at(path, error.line().max(1) as u64, error.column().max(1) as u64, json_message(error))
    }

    /// An error at a byte, from 0, of a file that has no lines.
    pub fn byte(path: &Path, offset: u64, message: impl Into<String>) -> Self {
        Self::file(path, format!("byte {offset}: {}", message.into()))
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for InputError {}

/// A JSON parser's message without the place at its end. The error names the file in front, and the parser does not know
/// the line of a value inside a file.
pub fn json_message(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if error.line() > 0
        && let Some(end) = text.rfind(" at line ")
    {
        text.truncate(end);
    }
    text
}

/// A mark that some editors and spreadsheets put before the first line of a text file in UTF-8.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Opens a text file for streaming like [`open_bytes`], but skips a byte order mark. Fails as [`open_bytes`], if its
/// first bytes can't be read, and at a line of more than 64 MiB.
pub fn open_text(path: &Path) -> Result<Box<dyn BufRead + Send>, InputError> {
    let mut reader = open_bytes(path)?;
    let start = reader.fill_buf().map_err(|e| InputError::line(path, 1, format!("cannot read: {e}")))?;
    if start.starts_with(&BYTE_ORDER_MARK) {
        reader.consume(BYTE_ORDER_MARK.len());
    }
    Ok(Box::new(ShortLines { reader, since_line: 0 }))
}

/// The longest line of a text file, in bytes: a small compressed file may hold gigabytes of blanks.
const LONGEST_LINE: usize = 64 << 20;

/// Text whose lines fit in memory; others are errors.
struct ShortLines {
    reader: Box<dyn BufRead + Send>,
    /// Bytes since the last line end.
    since_line: usize,
}

impl BufRead for ShortLines {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.since_line > LONGEST_LINE {
            return Err(std::io::Error::other(format!("a line has more than {} MiB", LONGEST_LINE >> 20)));
        }
        self.reader.fill_buf()
    }

    fn consume(&mut self, len: usize) {
        // What is consumed is in the buffer, so that nothing is read here.
        let bytes = self.reader.fill_buf().ok().and_then(|bytes| bytes.get(..len)).unwrap_or_default();
        let line_end = bytes.iter().rposition(|&byte| byte == b'\n');
        self.since_line = line_end.map_or(self.since_line + len, |at| len - at - 1);
        self.reader.consume(len);
    }
}

impl Read for ShortLines {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let mut bytes = self.fill_buf()?;
        let len = bytes.read(to)?;
        self.consume(len);
        Ok(len)
    }
}

/// Opens a file for streaming with all of its bytes. Gzip and zstd, recognised by the first bytes, are decompressed.
/// Fails if the file can't be opened, or is a folder.
pub fn open_bytes(path: &Path) -> Result<Box<dyn BufRead + Send>, InputError> {
    let cannot = |e: std::io::Error| InputError::file(path, format!("cannot open: {e}"));
    let file = File::open(path).map_err(cannot)?;
    if file.metadata().map_err(cannot)?.is_dir() {
        return Err(InputError::file(path, "is a folder, expected a file"));
    }
    widen_pipe(file.system());
    unpacked(path, file)
}

/// The standard input, with all of its bytes. Fails if there is none.
pub fn open_stdin() -> std::io::Result<Box<dyn BufRead + Send>> {
    // The only buffer besides the system's is this one: `std::io::stdin` would read eight kilobytes at a time.
    #[cfg(unix)]
    let input = std::fs::File::from(std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned()?);
    #[cfg(not(unix))]
    let input = std::io::stdin();
    #[cfg(unix)]
    widen_pipe(&input);
    Ok(Box::new(BufReader::with_capacity(1 << 16, input)))
}

/// Enlarges a pipe's buffer from 64 kilobytes to a megabyte where the system permits, so that reader and writer seldom
/// wait for each other. Other files stay as they are.
fn widen_pipe(file: &std::fs::File) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::pipe::fcntl_setpipe_size(file, 1 << 20);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = file;
}

/// Bytes read to recognise what a file is.
const START_BYTES: usize = 32;
/// The first bytes of the text that stands for a file in a repository without its large files.
const LFS_POINTER: &[u8] = b"version https://git-lfs";

/// The bytes of `file`, decompressed if they begin like a compressed file; `path` is its name in errors. Fails if its
/// first bytes can't be read, or belong to a compression that is not supported, or the file is a pointer of Git LFS.
pub fn unpacked(path: &Path, mut file: impl Read + Send + 'static) -> Result<Box<dyn BufRead + Send>, InputError> {
    let mut start = Vec::new();
    let read = file.by_ref().take(START_BYTES as u64).read_to_end(&mut start);
    read.map_err(|e| InputError::line(path, 1, format!("cannot read: {e}")))?;
    if start.starts_with(LFS_POINTER) {
        return Err(InputError::file(
            path,
            "is a pointer of Git LFS, expected the file that it stands for (git lfs pull)",
        ));
    }
    let packing = Packing::of(&start).map_err(|name| {
        InputError::file(path, format!("is compressed by {name}, expected gzip, zstd or none (unpack it first)"))
    })?;
    let input = BufReader::with_capacity(1 << 16, Cursor::new(start).chain(file));
    Ok(match packing {
        Some(packing) => Box::new(BufReader::with_capacity(1 << 16, Frames::new(packing, input))),
        None => Box::new(input),
    })
}

/// The compression of the file at `path`; `None` if it has none, or can't be read.
pub fn packing_of(path: &Path) -> Option<Packing> {
    let mut start = Vec::new();
    File::open(path).and_then(|file| file.take(START_BYTES as u64).read_to_end(&mut start)).ok()?;
    Packing::of(&start).ok()?
}

/// Replaces `text` by line `line` of `path`, with its line end; returns `false` after the last line. Fails if it can't
/// be read, or is not UTF-8: with the first invalid byte.
pub fn read_line(path: &Path, reader: &mut impl BufRead, line: u64, text: &mut String) -> Result<bool, InputError> {
    let mut bytes = std::mem::take(text).into_bytes();
    bytes.clear();
    let read = reader.read_until(b'\n', &mut bytes);
    let read = read.map_err(|e| InputError::line(path, line, format!("cannot read: {e}")))?;
    *text = String::from_utf8(bytes).map_err(|e| {
        let valid = String::from_utf8_lossy(&e.as_bytes()[..e.utf8_error().valid_up_to()]).chars().count();
        InputError::at(path, line, valid as u64 + 1, "is not UTF-8 (convert the file, for example with iconv)")
    })?;
    Ok(read > 0)
}

/// The lines of a text file opened by [`open_text`], each with its number and without its line end. Fails with those of
/// [`open_text`], and for a line those of [`read_line`].
pub fn read_lines(path: &Path) -> Result<impl Iterator<Item = Result<(u64, String), InputError>>, InputError> {
    let mut reader = open_text(path)?;
    let path = path.to_owned();
    Ok((1..).map_while(move |line| {
        let mut text = String::new();
        match read_line(&path, &mut reader, line, &mut text) {
            Ok(true) => {
                text.truncate(text.trim_end_matches(['\n', '\r']).len());
                Some(Ok((line, text)))
            }
            Ok(false) => None,
            Err(e) => Some(Err(e)),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_line_has_its_column_in_characters() {
        let text = "\u{e4}\u{f6} b  c";
        let columns = ["b", "c", text].map(|part| {
            let part = text.find(part).map_or("", |byte| &text[byte..]);
            InputError::at_part("x".as_ref(), 3, text, part, "bad").column
        });
        assert_eq!(columns, [Some(4), Some(7), Some(1)]);
        assert_eq!(InputError::at_part("x".as_ref(), 3, text, "elsewhere", "bad").column, Some(1));
    }

    #[test]
    fn a_json_error_has_its_place_once_and_all_of_its_words() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}
        let found = |text: &str| {
            let error = serde_json::from_str::<Nothing>(text).unwrap_err();
            InputError::json("x.json".as_ref(), &error).to_string()
        };
        // A field name that contains the parser's own words is not taken for a place.
        let expected = "x.json:2:25: unknown field `held at line 9 column 1`, there are no fields";
        assert_eq!(found("{\n\"held at line 9 column 1\": 1}"), expected);
        assert_eq!(found(""), "x.json:1:1: EOF while parsing a value");
    }

    #[test]
    fn a_line_without_end_is_an_error() {
        let blanks = std::io::repeat(b' ').take(4 * LONGEST_LINE as u64);
        let mut text = ShortLines { reader: Box::new(BufReader::new(blanks)), since_line: 0 };
        let read = std::io::copy(&mut text, &mut std::io::sink()).unwrap_err();
        assert_eq!(read.to_string(), "a line has more than 64 MiB");
        let lines = Cursor::new(b"one\n\ntwo".repeat(10));
        let mut text = ShortLines { reader: Box::new(lines), since_line: LONGEST_LINE };
        assert_eq!(std::io::copy(&mut text, &mut std::io::sink()).unwrap(), 80);
        assert_eq!(text.since_line, 3);
    }

    #[test]
    fn lines_have_no_mark_and_no_ends_and_bad_bytes_a_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.txt");
        std::fs::write(&path, b"\xef\xbb\xbfone\r\n\nthr\xc3\xa4e\nfo\xc3\xa4\xff\n").unwrap();
        let lines: Vec<_> = read_lines(&path).unwrap().collect();
        let good: Vec<_> = lines[..3].iter().map(|line| line.clone().unwrap()).collect();
        assert_eq!(good, [(1, "one".to_owned()), (2, String::new()), (3, "thräe".to_owned())]);
        let message = lines[3].clone().unwrap_err().to_string();
        assert!(message.ends_with("x.txt:4:4: is not UTF-8 (convert the file, for example with iconv)"), "{message}");
    }
}
