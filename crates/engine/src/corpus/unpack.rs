//! Decompressing a file on several threads.
//!
//! A zstd file is a row of frames, a gzip file one of members, each compressed on its own; the start of a frame is only
//! known after reading the one before. The file is therefore cut into stripes. A thread searches its stripe for bytes
//! that look like a start, and decompresses from there until a frame ends after the stripe:
//!
//! ```text
//! frames    |----------|------|---------------|----|----|-------
//! stripes   |         |         |         |         |         |
//! thread    1──────────▶2─────────────────────▶          4─────▶    stripe 3 has no beginning
//! ```
//!
//! The reader takes the pieces in order, each in chunks while it grows. A piece that begins where the one before ended is
//! right. If none does (bytes may look like a start by chance), the reader decompresses alone until the next stripe.
//! A file of one long frame is thus read at the speed of one thread.
//!
//! The bytes decompressed ahead of the reader are bounded. The limit decreases with a piece's distance from the reader,
//! so that the pieces needed first can always grow.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use memchr::memmem;

use tandem_base::files::{File, Frame, InputError, Packing, packing_of, read_exact_at, skip_padding};

const STRIPE_BYTES: u64 = 2 << 20;
/// Bytes handed from a thread to the reader at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Chunks that the present piece may always hold.
const LEAST_CHUNKS: usize = 2;

#[derive(Debug)]
struct FileFrom {
    shared: Arc<Unpacking>,
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

fn place_of(input: &Input) -> u64 {
    input.get_ref().at - input.buffer().len() as u64
}

#[derive(Debug, Default)]
struct Piece {
    progress: Progress,
    /// Chunks that the reader has not taken yet.
    chunks: VecDeque<Vec<u8>>,
    /// Whether the reader takes this piece, which proves its start.
    is_read: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    /// A thread searches for a start.
    #[default]
    Looking,
    /// The stripe has no start, or the reader does not need it.
    Nothing,
    /// A thread decompresses from this offset.
    From(u64),
    /// All frames are decompressed; the last one ends at `end`.
    Whole { start: u64, end: u64 },
}

#[derive(Debug)]
struct Unpacking {
    file: File,
    len: u64,
    packing: Packing,
    threads: usize,
    /// Limit of the bytes decompressed ahead of the reader.
    most_ahead: Arc<AtomicUsize>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    at: u64,
    pieces: BTreeMap<u64, Piece>,
    /// Bytes in the chunks of all pieces.
    ahead: usize,
    /// Memory of chunks that were read, for reuse.
    spare: Vec<Vec<u8>>,
    error: Option<io::Error>,
    is_over: bool,
}

impl State {
    /// The piece of a stripe, if it is still needed.
    fn wanted(&mut self, stripe: u64) -> Option<&mut Piece> {
        self.pieces.get_mut(&stripe).filter(|piece| piece.progress != Progress::Nothing)
    }

    /// Removes a piece; the thread that works on it ends.
    fn remove(&mut self, stripe: u64) {
        if let Some(piece) = self.pieces.remove(&stripe) {
            self.forget(piece.chunks);
        }
    }

    fn forget(&mut self, chunks: VecDeque<Vec<u8>>) {
        self.ahead -= chunks.iter().map(Vec::len).sum::<usize>();
        self.spare.extend(chunks);
    }
}

/// A compressed file that several threads decompress. Reading it yields the decompressed text.
pub(super) struct Unpacked {
    shared: Arc<Unpacking>,
    /// The offset before which the file is read, except for the present piece.
    place: u64,
    piece: Option<u64>,
    /// The present chunk, and the number of its bytes that are read.
    chunk: Vec<u8>,
    read: usize,
    frame: Option<Frame<Input>>,
}

/// Opens `path` for decompression on `threads` threads, up to `most_ahead` bytes ahead of the reader. `None` if the file
/// is not compressed, or too short to gain. Fails if it can't be opened.
pub(super) fn open(path: &Path, threads: usize, most_ahead: &Arc<AtomicUsize>) -> Result<Option<Unpacked>, InputError> {
    let Some(packing) = packing_of(path) else { return Ok(None) };
    let cannot = |e: io::Error| InputError::file(path, format!("cannot open: {e}"));
    let file = File::open(path).map_err(cannot)?;
    let about = file.metadata().map_err(cannot)?;
    if !about.is_file() || about.len() < 2 * STRIPE_BYTES || threads < 2 {
        return Ok(None);
    }
    let shared = Arc::new(Unpacking {
        file,
        len: about.len(),
        packing,
        threads,
        most_ahead: Arc::clone(most_ahead),
        state: Mutex::default(),
        changed: Condvar::new(),
    });
    for number in 0..threads {
        let shared = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(format!("unpack-{number}")).spawn(move || shared.work());
        thread.map_err(|e| InputError::file(path, format!("cannot start threads: {e}")))?;
    }
    Ok(Some(Unpacked { shared, place: 0, piece: None, chunk: Vec::new(), read: 0, frame: None }))
}

impl Unpacking {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn num_stripes(&self) -> u64 {
        self.len.div_ceil(STRIPE_BYTES)
    }

    fn wait_for<'a, T>(&'a self, mut state: MutexGuard<'a, State>, mut find: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            if let Some(found) = find(&mut state) {
                return found;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the piece of this stripe may grow by this many bytes.
    fn has_room(&self, state: &State, stripe: u64, bytes: usize) -> bool {
        let before = state.pieces.range(..stripe).filter(|(_, piece)| piece.progress != Progress::Nothing).count();
        let share = self.threads - before.min(self.threads - 1);
        state.ahead + bytes <= self.most_ahead.load(Ordering::Relaxed) / self.threads * share
    }

    /// Decompresses stripe after stripe, until none is left or the reader is gone.
    fn work(self: Arc<Self>) {
        while let Some(stripe) = self.take_stripe() {
            self.unpack(stripe);
            self.changed.notify_all();
        }
    }

    fn take_stripe(&self) -> Option<u64> {
        self.wait_for(self.lock(), |state| {
            let stripe = state.next;
            if state.is_over || stripe == self.num_stripes() {
                return Some(None);
            }
            (stripe <= state.at || self.has_room(state, stripe, CHUNK_BYTES)).then(|| {
                state.next += 1;
                state.pieces.insert(stripe, Piece::default());
                Some(stripe)
            })
        })
    }

    /// Decompresses the frames that begin in a stripe. Errors are left to the reader, who will find them again.
    fn unpack(self: &Arc<Self>, stripe: u64) {
        let begin = stripe * STRIPE_BYTES;
        let end = (begin + STRIPE_BYTES).min(self.len);
        let magic = self.packing.magic();
        // A frame's start may cross the border of stripes.
        let mut bytes = vec![0; ((end - begin) as usize + magic.len() - 1).min((self.len - begin) as usize)];
        if read_exact_at(&self.file, &mut bytes, begin).is_ok() {
            for at in memmem::find_iter(&bytes, magic) {
                let is_settled = match self.unpack_from(stripe, begin + at as u64, end) {
                    Ok(()) => true,
                    Err(e) => self.gives_up(stripe, e),
                };
                if is_settled {
                    return;
                }
            }
        }
        if let Some(piece) = self.lock().pieces.get_mut(&stripe) {
            piece.progress = Progress::Nothing;
        }
    }

    /// Decompresses frames from `start` on, up to the first that begins at `end` or later, or until they are no longer
    /// needed.
    fn unpack_from(self: &Arc<Self>, stripe: u64, start: u64, end: u64) -> io::Result<()> {
        match self.lock().wanted(stripe) {
            Some(piece) => piece.progress = Progress::From(start),
            None => return Ok(()),
        }
        self.changed.notify_all();
        let mut input = BufReader::with_capacity(1 << 16, FileFrom { shared: Arc::clone(self), at: start });
        let (mut chunk, mut filled) = (self.spare_chunk(), 0);
        while place_of(&input) < end {
            let mut frame = Frame::begin(self.packing, input)?;
            loop {
                if filled == CHUNK_BYTES {
                    if !self.hand_over(stripe, chunk) {
                        return Ok(());
                    }
                    (chunk, filled) = (self.spare_chunk(), 0);
                }
                match frame.read(&mut chunk[filled..])? {
                    0 => break,
                    read => filled += read,
                }
            }
            input = frame.end();
            skip_padding(&mut input)?;
        }
        chunk.truncate(filled);
        if self.hand_over(stripe, chunk)
            && let Some(piece) = self.lock().wanted(stripe)
        {
            piece.progress = Progress::Whole { start, end: place_of(&input) };
        }
        Ok(())
    }

    fn spare_chunk(&self) -> Vec<u8> {
        let mut chunk = self.lock().spare.pop().unwrap_or_default();
        chunk.resize(CHUNK_BYTES, 0);
        chunk
    }

    /// Adds a chunk to a piece as soon as there is room; returns whether more is needed.
    fn hand_over(&self, stripe: u64, chunk: Vec<u8>) -> bool {
        let len = chunk.len();
        let mut chunk = Some(chunk);
        let is_wanted = self.wait_for(self.lock(), |state| {
            let Some(piece) = state.wanted(stripe) else { return Some(false) };
            let is_short = piece.chunks.len() < LEAST_CHUNKS;
            if state.is_over {
                return Some(false);
            }
            let is_awaited = stripe == state.at && is_short;
            if !is_awaited && !self.has_room(state, stripe, len) {
                return None;
            }
            state.wanted(stripe)?.chunks.extend(chunk.take());
            state.ahead += len;
            Some(true)
        });
        self.changed.notify_all();
        is_wanted
    }

    /// Decides after a decompression error whether a thread gives up its piece: if the reader takes it or no longer needs
    /// it. Otherwise the search for a start continues.
    fn gives_up(&self, stripe: u64, error: io::Error) -> bool {
        let mut state = self.lock();
        let Some(piece) = state.wanted(stripe) else { return true };
        if piece.is_read {
            piece.progress = Progress::Nothing;
            state.error = Some(error);
            return true;
        }
        piece.progress = Progress::Looking;
        let chunks = std::mem::take(&mut piece.chunks);
        state.forget(chunks);
        false
    }
}

impl Unpacked {
    /// Takes the next chunk of the present piece; returns `false` if there is no more.
    fn next_chunk(&mut self) -> io::Result<bool> {
        let Some(stripe) = self.piece else { return Ok(false) };
        let read = std::mem::take(&mut self.chunk);
        self.read = 0;
        let mut state = self.shared.lock();
        if read.capacity() > 0 {
            state.spare.push(read);
        }
        let taken = self.shared.wait_for(state, |state| {
            let piece = state.pieces.get_mut(&stripe)?;
            if let Some(chunk) = piece.chunks.pop_front() {
                state.ahead -= chunk.len();
                return Some(Ok(Some(chunk)));
            }
            match piece.progress {
                Progress::Whole { end, .. } => {
                    self.place = end;
                    Some(Ok(None))
                }
                Progress::Nothing => Some(Err(state.error.take().unwrap_or_else(|| io::ErrorKind::InvalidData.into()))),
                Progress::Looking | Progress::From(_) => None,
            }
        });
        self.shared.changed.notify_all();
        let chunk = taken.inspect_err(|_| self.piece = None)?;
        if chunk.is_none() {
            self.piece = None;
        }
        self.chunk = chunk.unwrap_or_default();
        Ok(self.piece.is_some())
    }

    /// Goes to the next piece, or decompresses here if none fits; returns `false` at the end.
    fn advance(&mut self) -> io::Result<bool> {
        if self.place == self.shared.len {
            return Ok(false);
        }
        let stripe = self.place / STRIPE_BYTES;
        let mut state = self.shared.lock();
        // Stripes inside a frame hold no further data.
        while let Some((&passed, _)) = state.pieces.first_key_value().filter(|&(&passed, _)| passed < stripe) {
            state.remove(passed);
        }
        state.at = stripe;
        state.next = state.next.max(stripe);
        self.shared.changed.notify_all();
        let fits = self.shared.wait_for(state, |state| {
            let piece = state.pieces.get_mut(&stripe)?;
            let fits = match piece.progress {
                Progress::Looking => return None,
                Progress::Nothing => false,
                Progress::From(start) | Progress::Whole { start, .. } => start == self.place,
            };
            piece.is_read = fits;
            if !fits {
                // If the reader comes back to the stripe, no thread must work on it.
                state.remove(stripe);
                state.pieces.insert(stripe, Piece { progress: Progress::Nothing, ..Piece::default() });
            }
            Some(fits)
        });
        if fits {
            self.piece = Some(stripe);
        } else {
            let from = FileFrom { shared: Arc::clone(&self.shared), at: self.place };
            self.frame = Some(Frame::begin(self.shared.packing, BufReader::with_capacity(1 << 16, from))?);
        }
        Ok(true)
    }
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.read < self.chunk.len() {
                let len = (self.chunk.len() - self.read).min(buffer.len());
                buffer[..len].copy_from_slice(&self.chunk[self.read..][..len]);
                self.read += len;
                return Ok(len);
            }
            if let Some(mut frame) = self.frame.take() {
                let read = frame.read(buffer)?;
                if read > 0 || buffer.is_empty() {
                    self.frame = Some(frame);
                    return Ok(read);
                }
                let mut input = frame.end();
                skip_padding(&mut input)?;
                self.place = place_of(&input);
            }
            if !self.next_chunk()? && !self.advance()? {
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
    use tandem_base::base::random::Random;

    /// Bytes that compress badly, so that files have several stripes.
    fn noise(len: usize, seed: u64) -> Vec<u8> {
        let mut random = Random::new(seed, 0);
        (0..len).map(|_| b'a' + random.below(26) as u8).collect()
    }

    fn packed(packing: Packing, frames: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        for frame in frames {
            match packing {
                Packing::Zstd => out.extend(zstd::stream::encode_all(frame.as_slice(), 1).unwrap()),
                Packing::Gzip => {
                    let mut encoder = flate2::write::GzEncoder::new(&mut out, flate2::Compression::fast());
                    encoder.write_all(frame).unwrap();
                    encoder.finish().unwrap();
                }
            }
        }
        out
    }

    fn unpacked_ahead(path: &Path, most_ahead: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let most_ahead = Arc::new(AtomicUsize::new(most_ahead));
        let mut unpacked = open(path, 3, &most_ahead).unwrap().expect("long enough");
        unpacked.read_to_end(&mut bytes)?;
        let state = unpacked.shared.lock();
        assert_eq!(state.ahead, 0);
        Ok(bytes)
    }

    fn unpacked(path: &Path) -> io::Result<Vec<u8>> {
        unpacked_ahead(path, 64 << 20)
    }

    #[test]
    fn files_of_few_long_and_many_short_frames_come_out_whole() {
        let dir = tempfile::tempdir().unwrap();
        for (packing, name) in [(Packing::Zstd, "x.zst"), (Packing::Gzip, "x.gz")] {
            let path = dir.path().join(name);
            for lengths in [vec![9_000_000], vec![20_000; 450], vec![7_000_000, 1, 0, 50_000, 3_000_000, 10]] {
                let frames: Vec<Vec<u8>> = (0..).zip(&lengths).map(|(seed, &len)| noise(len, seed)).collect();
                std::fs::write(&path, packed(packing, &frames)).unwrap();
                for most_ahead in [0, 5 << 20, 64 << 20] {
                    assert!(unpacked_ahead(&path, most_ahead).unwrap() == frames.concat(), "{packing:?} {lengths:?}");
                }
            }
            // The text holds the magic bytes, stored uncompressed, which look like a start.
            let mut tricky = noise(1_000_000, 3);
            (0..999_990).step_by(999).for_each(|at| tricky[at..at + 3].copy_from_slice(&packing.magic()[..3]));
            let frames = vec![tricky; 9];
            std::fs::write(&path, packed(packing, &frames)).unwrap();
            assert!(unpacked(&path).unwrap() == frames.concat(), "{packing:?}");
        }
    }

    #[test]
    fn damage_is_an_error_wherever_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.gz");
        let frames: Vec<Vec<u8>> = (0..30).map(|seed| noise(300_000, seed)).collect();
        let whole = packed(Packing::Gzip, &frames);
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
