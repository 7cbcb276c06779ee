//! The rate at which memory is copied: the bound of whatever reads one stream and writes another.

use std::hint::black_box;
use std::time::Instant;

use rayon::prelude::*;

/// Bytes a second, each byte counted once though it is read and written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopyRate {
    /// By one thread.
    pub one_thread: f64,
    /// By as many threads as the machine has cores, together.
    pub all_threads: f64,
}

/// Times copies of `bytes` bytes, which should be many times the last cache, the best of `rounds`.
#[must_use]
pub fn copy_rate(bytes: usize, rounds: usize) -> CopyRate {
    let source = vec![1_u8; bytes];
    let mut target = vec![0_u8; bytes];
    let piece = bytes.div_ceil(rayon::current_num_threads()).max(1);
    let mut best = [0.0_f64; 2];
    for _ in 0..rounds {
        let began = Instant::now();
        target.copy_from_slice(&source);
        best[0] = best[0].max(bytes as f64 / began.elapsed().as_secs_f64());
        black_box(&mut target);
        let began = Instant::now();
        target.par_chunks_mut(piece).zip(source.par_chunks(piece)).for_each(|(to, from)| to.copy_from_slice(from));
        best[1] = best[1].max(bytes as f64 / began.elapsed().as_secs_f64());
        black_box(&mut target);
    }
    CopyRate { one_thread: best[0], all_threads: best[1] }
}
