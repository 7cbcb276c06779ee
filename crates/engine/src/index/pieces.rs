//! Writing pieces of a file on separate threads.
//!
//! One core copies one or two gigabytes per second into the system's cache, less than sixteen cores merge and pack.
//! Another thread makes the system write to disk during this time, instead of at the end.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};

use tandem_base::files::{File, write_all_at};

const THREADS: usize = 2;

/// Bytes between two requests to write to disk.
const SYNC_BYTES: usize = 64 << 20;

type Piece = (u64, Vec<u8>);

#[derive(Debug)]
pub(crate) struct PieceWriters {
    to_threads: Sender<Piece>,
    /// Buffers of written pieces, for reuse.
    spare: Receiver<Vec<u8>>,
    to_sync: Sender<()>,
    /// Bytes since the last request to write to disk.
    unsynced: usize,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl PieceWriters {
    pub(crate) fn start(file: &File) -> io::Result<Self> {
        let file = Arc::new(file.try_clone()?);
        let (to_threads, from_writer) = bounded::<Piece>(THREADS);
        let (to_writer, spare) = bounded(2 * THREADS);
        let start = |number| {
            let (file, from_writer, to_writer) = (Arc::clone(&file), from_writer.clone(), to_writer.clone());
            let work = move || {
                for (offset, piece) in from_writer {
                    write_all_at(&file, &piece, offset)?;
                    // The buffer is freed if nobody receives it.
                    let _ = to_writer.try_send(piece);
                }
                Ok(())
            };
            std::thread::Builder::new().name(format!("write-{number}")).spawn(work)
        };
        let mut threads = (0..THREADS).map(start).collect::<io::Result<Vec<_>>>()?;
        let (to_sync, syncs) = bounded::<()>(1);
        let sync = move || syncs.iter().try_for_each(|()| file.sync_data());
        threads.push(std::thread::Builder::new().name("sync".into()).spawn(sync)?);
        Ok(Self { to_threads, spare, to_sync, unsynced: 0, threads })
    }

    /// Queues `piece` for writing, and returns a buffer for the next one. If the threads have ended,
    /// [`finish`](Self::finish) returns the cause.
    pub(crate) fn write(&mut self, offset: u64, piece: Vec<u8>) -> io::Result<Vec<u8>> {
        self.unsynced += piece.len();
        if self.unsynced >= SYNC_BYTES && self.to_sync.try_send(()).is_ok() {
            self.unsynced = 0;
        }
        let sent = self.to_threads.send((offset, piece));
        sent.map_err(|_| io::Error::other("the threads that write have ended"))?;
        let mut memory = self.spare.try_recv().unwrap_or_default();
        memory.clear();
        Ok(memory)
    }

    /// Waits until everything is written, and returns the first error.
    pub(crate) fn finish(self) -> io::Result<()> {
        drop((self.to_threads, self.to_sync));
        let ended = |thread: JoinHandle<io::Result<()>>| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread that writes has panicked")))
        };
        // All threads are joined before any error is returned.
        let ended: Vec<io::Result<()>> = self.threads.into_iter().map(ended).collect();
        ended.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_their_places_and_errors_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let file = File::create(&path).unwrap();
        let mut writers = PieceWriters::start(&file).unwrap();
        for number in (0..50_u8).rev() {
            writers.write(u64::from(number) * 7, vec![number; 7]).unwrap();
        }
        writers.finish().unwrap();
        let expected: Vec<u8> = (0..350).map(|at| (at / 7) as u8).collect();
        assert_eq!(std::fs::read(&path).unwrap(), expected);

        let mut writers = PieceWriters::start(&File::open(&path).unwrap()).unwrap();
        while writers.write(0, vec![1]).is_ok() {}
        assert!(writers.finish().is_err());
        assert_eq!(std::fs::read(&path).unwrap(), expected);
    }
}
