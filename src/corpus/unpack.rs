//! Decompressing a file on several threads.
//!
//! A zstd file is a row of frames, a gzip file one of members, each compressed by itself; but only who has read one knows
//! where the next begins. So the file is cut into stripes, and a thread looks in its stripe for what looks like a
//! beginning, and decompresses from there until a frame ends behind the stripe:
//!
//! ```text
//! frames    |----------|------|---------------|----|----|-------
//! stripes   |         |         |         |         |         |
//! thread    1──────────▶2─────────────────────▶          4─────▶    stripe 3 has no beginning
//! ```
//!
//! The reader takes the pieces in order. A piece that begins where the one before ended is right; where none does (bytes
//! may look like a beginning by chance, and a frame may be too long to be held), the reader decompresses itself until
//! the next stripe. So a file that is one long frame is read as by one thread.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use memchr::memmem;

use crate::files::{InputError, read_exact_at};

/// Bytes of a stripe.
const STRIPE_BYTES: u64 = 2 << 20;
/// What a piece may hold; the reader decompresses longer ones itself, bit by bit.
const MOST_PIECE_BYTES: usize = 64 << 20;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Zstd,
    Gzip,
}

impl Format {
    /// What every frame or member begins with.
    fn magic(self) -> &'static [u8] {
        match self {
            Self::Zstd => &[0x28, 0xb5, 0x2f, 0xfd],
            Self::Gzip => &[0x1f, 0x8b, 0x08],
        }
    }
}

/// A file from some place on.
#[derive(Debug)]
struct FileFrom {
    shared: Arc<Shared>,
    at: u64,
}

impl Read for FileFrom {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = (self.shared.len - self.at).min(buffer.len() as u64) as usize;
        read_exact_at(&self.shared.file, &mut buffer[..len], self.at)?;
        self.at += len as u64;
        Ok(len)
    }
}

type Input = BufReader<FileFrom>;

/// Where in the file `input` is.
fn place_of(input: &Input) -> u64 {
    input.get_ref().at - input.buffer().len() as u64
}

/// One frame or member that is being decompressed.
enum Frame {
    Zstd(Box<zstd::stream::read::Decoder<'static, Input>>),
    Gzip(Box<flate2::bufread::GzDecoder<Input>>),
}

impl Frame {
    fn begin(format: Format, input: Input) -> io::Result<Self> {
        Ok(match format {
            Format::Zstd => Self::Zstd(Box::new(zstd::stream::read::Decoder::with_buffer(input)?.single_frame())),
            Format::Gzip => Self::Gzip(Box::new(flate2::bufread::GzDecoder::new(input))),
        })
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Zstd(decoder) => decoder.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
        }
    }

    fn end(self) -> Input {
        match self {
            Self::Zstd(decoder) => decoder.finish(),
            Self::Gzip(decoder) => decoder.into_inner(),
        }
    }
}

/// Frames that begin in a stripe.
#[derive(Debug)]
struct Piece {
    start: u64,
    /// Where the last of them ends.
    end: u64,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Shared {
    file: File,
    len: u64,
    format: Format,
    /// Stripes that may be decompressed before the reader comes to them.
    ahead: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// The stripe that the reader is at.
    at: u64,
    done: HashMap<u64, Option<Piece>>,
    is_over: bool,
}

/// A compressed file that several threads decompress; reads as its text.
pub(super) struct Unpacked {
    shared: Arc<Shared>,
    /// Where in the file everything before is read.
    place: u64,
    stripe: u64,
    bytes: Vec<u8>,
    read: usize,
    /// What the reader decompresses itself.
    frame: Option<Frame>,
}

/// Opens `path` for decompression on `threads` threads; `None` if it is not compressed, or too short to gain.
///
/// # Errors
/// If it can't be opened.
pub(super) fn open(path: &Path, threads: usize) -> Result<Option<Unpacked>, InputError> {
    let format = match path.extension().and_then(|extension| extension.to_str()) {
        Some("zst") => Format::Zstd,
        Some("gz") => Format::Gzip,
        _ => return Ok(None),
    };
    let cannot = |e: io::Error| InputError::file(path, format!("cannot open: {e}"));
    let file = File::open(path).map_err(cannot)?;
    let about = file.metadata().map_err(cannot)?;
    if !about.is_file() || about.len() < 2 * STRIPE_BYTES || threads < 2 {
        return Ok(None);
    }
    let shared = Arc::new(Shared {
        file,
        len: about.len(),
        format,
        ahead: threads as u64 + 1,
        state: Mutex::default(),
        changed: Condvar::new(),
    });
    for number in 0..threads {
        let shared = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(format!("unpack-{number}")).spawn(move || shared.work());
        thread.map_err(|e| InputError::file(path, format!("cannot start threads: {e}")))?;
    }
    Ok(Some(Unpacked { shared, place: 0, stripe: 0, bytes: Vec::new(), read: 0, frame: None }))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn num_stripes(&self) -> u64 {
        self.len.div_ceil(STRIPE_BYTES)
    }

    /// Decompresses stripe after stripe, until there are no more or nobody reads.
    fn work(self: Arc<Self>) {
        loop {
            let mut state = self.lock();
            while !state.is_over && state.next >= state.at + self.ahead && state.next < self.num_stripes() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.is_over || state.next == self.num_stripes() {
                return;
            }
            let stripe = state.next;
            state.next += 1;
            drop(state);
            let piece = self.piece(stripe);
            let mut state = self.lock();
            // The reader may have passed it meanwhile.
            if state.at <= stripe {
                state.done.insert(stripe, piece);
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    /// What begins in a stripe; `None` if nothing does, or it can't be read or held: the reader will see.
    fn piece(self: &Arc<Self>, stripe: u64) -> Option<Piece> {
        let begin = stripe * STRIPE_BYTES;
        let end = (begin + STRIPE_BYTES).min(self.len);
        let magic = self.format.magic();
        // A beginning may stand across the border.
        let mut bytes = vec![0; ((end - begin) as usize + magic.len() - 1).min((self.len - begin) as usize)];
        read_exact_at(&self.file, &mut bytes, begin).ok()?;
        memmem::find_iter(&bytes, magic).find_map(|at| self.piece_from(begin + at as u64, end))
    }

    /// Frames from `start` on, up to the first that begins at `end` or behind.
    fn piece_from(self: &Arc<Self>, start: u64, end: u64) -> Option<Piece> {
        let mut bytes = Vec::new();
        let mut input = BufReader::with_capacity(1 << 16, FileFrom { shared: Arc::clone(self), at: start });
        while place_of(&input) < end {
            let mut frame = Frame::begin(self.format, input).ok()?;
            loop {
                let filled = bytes.len();
                if filled > MOST_PIECE_BYTES {
                    return None;
                }
                bytes.resize(filled + (256 << 10), 0);
                let read = frame.read(&mut bytes[filled..]).ok()?;
                bytes.truncate(filled + read);
                if read == 0 {
                    break;
                }
            }
            input = frame.end();
        }
        Some(Piece { start, end: place_of(&input), bytes })
    }
}

impl Unpacked {
    /// Takes the next piece, or begins to decompress where none fits; false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        while self.place < self.shared.len {
            let stripe = self.place / STRIPE_BYTES;
            let piece = {
                let mut state = self.shared.lock();
                // Stripes that a frame spanned hold nothing that is still to be read.
                (self.stripe..stripe).for_each(|passed| drop(state.done.remove(&passed)));
                self.stripe = stripe;
                state.at = stripe;
                state.next = state.next.max(stripe);
                self.shared.changed.notify_all();
                loop {
                    if let Some(piece) = state.done.remove(&stripe) {
                        break piece;
                    }
                    state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            };
            // Taken: should the reader come back to the stripe, nobody else will.
            self.shared.lock().done.insert(stripe, None);
            match piece {
                Some(piece) if piece.start == self.place => {
                    (self.bytes, self.read, self.place) = (piece.bytes, 0, piece.end);
                    if !self.bytes.is_empty() {
                        return Ok(true);
                    }
                }
                _ => {
                    let from = FileFrom { shared: Arc::clone(&self.shared), at: self.place };
                    let input = BufReader::with_capacity(1 << 16, from);
                    self.frame = Some(Frame::begin(self.shared.format, input)?);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.read < self.bytes.len() {
                let len = (self.bytes.len() - self.read).min(buffer.len());
                buffer[..len].copy_from_slice(&self.bytes[self.read..][..len]);
                self.read += len;
                return Ok(len);
            }
            if let Some(mut frame) = self.frame.take() {
                let read = frame.read(buffer)?;
                if read > 0 || buffer.is_empty() {
                    self.frame = Some(frame);
                    return Ok(read);
                }
                self.place = place_of(&frame.end());
            }
            if !self.advance()? {
                return Ok(0);
            }
        }
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::random::Random;

    /// Bytes that don't compress well, so that files have several stripes.
    fn noise(len: usize, seed: u64) -> Vec<u8> {
        let mut random = Random::new(seed, 0);
        (0..len).map(|_| b'a' + random.below(26) as u8).collect()
    }

    fn packed(format: Format, frames: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        for frame in frames {
            match format {
                Format::Zstd => out.extend(zstd::stream::encode_all(frame.as_slice(), 1).unwrap()),
                Format::Gzip => {
                    let mut encoder = flate2::write::GzEncoder::new(&mut out, flate2::Compression::fast());
                    encoder.write_all(frame).unwrap();
                    encoder.finish().unwrap();
                }
            }
        }
        out
    }

    fn unpacked(path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open(path, 3).unwrap().expect("long enough").read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn files_of_few_long_and_many_short_frames_come_out_whole() {
        let dir = tempfile::tempdir().unwrap();
        for (format, name) in [(Format::Zstd, "x.zst"), (Format::Gzip, "x.gz")] {
            let path = dir.path().join(name);
            for lengths in [vec![9_000_000], vec![20_000; 450], vec![7_000_000, 1, 0, 50_000, 3_000_000, 10]] {
                let frames: Vec<Vec<u8>> = (0..).zip(&lengths).map(|(seed, &len)| noise(len, seed)).collect();
                std::fs::write(&path, packed(format, &frames)).unwrap();
                assert!(unpacked(&path).unwrap() == frames.concat(), "{format:?} {lengths:?}");
            }
            // What looks like a beginning and is none: text that holds the magic, stored as it is.
            let mut tricky = noise(1_000_000, 3);
            (0..999_990).step_by(999).for_each(|at| tricky[at..at + 3].copy_from_slice(&format.magic()[..3]));
            let frames = vec![tricky; 9];
            std::fs::write(&path, packed(format, &frames)).unwrap();
            assert!(unpacked(&path).unwrap() == frames.concat(), "{format:?}");
        }
    }

    #[test]
    fn damage_is_an_error_wherever_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.gz");
        let frames: Vec<Vec<u8>> = (0..30).map(|seed| noise(300_000, seed)).collect();
        let whole = packed(Format::Gzip, &frames);
        for place in (1000..whole.len()).step_by(700_001) {
            let mut bytes = whole.clone();
            bytes[place] ^= 0xff;
            std::fs::write(&path, bytes).unwrap();
            assert!(unpacked(&path).is_err(), "byte {place}");
        }
        std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        assert!(unpacked(&path).is_err());
    }
}
