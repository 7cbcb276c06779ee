//! Ranges of documents: what each owner goes through.

use std::ops::Range;

use crate::exec::ExecError;

/// Owners of a query at most: threads of a thread block, `RANGE_THREADS` in kernels/ranges/ranges.cuh.
pub(crate) const MAX_OWNERS: u32 = 512;

/// Whether a thread block may have so many threads.
///
/// # Errors
/// [`ExecError::BadThreads`] if not.
pub(crate) fn check_owners(threads: u32) -> Result<(), ExecError> {
    let is_good = (32..=MAX_OWNERS).contains(&threads) && threads.is_multiple_of(32);
    if is_good { Ok(()) } else { Err(ExecError::BadThreads { threads, most: MAX_OWNERS }) }
}

/// The range of documents that owner `owner` of `owners` has in a collection of `num_docs`: ⌈N/P⌉ of them, fewer or none at
/// its end.
pub(crate) fn range_of(owner: u32, owners: u32, num_docs: u32) -> Range<u32> {
    let each = num_docs.div_ceil(owners);
    // Fits: below N + P.
    let begin = (owner * each).min(num_docs);
    begin..(begin + each).min(num_docs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_come_in_whole_warps() {
        assert!([32, 64, 96, 320, 512].iter().all(|&threads| check_owners(threads).is_ok()));
        for threads in [0, 1, 31, 33, 100, 513, 544, u32::MAX] {
            let refused = check_owners(threads).unwrap_err().to_string();
            assert!(refused.contains("multiple of 32 up to 512"), "{refused}");
        }
    }

    #[test]
    fn ranges_cover_every_document_once_however_many_owners_there_are() {
        for num_docs in [1, 2, 31, 63, 64, 65, 1000, (1 << 31) - 1] {
            for owners in [1, 2, 32, 64, 320, 512] {
                let mut next = 0;
                for owner in 0..owners {
                    let range = range_of(owner, owners, num_docs);
                    assert!(range.start == next && range.end >= range.start, "{owner} of {owners}: {range:?}");
                    assert!(range.len() <= num_docs.div_ceil(owners) as usize);
                    next = range.end;
                }
                assert_eq!(next, num_docs, "{owners} owners");
            }
        }
    }
}
