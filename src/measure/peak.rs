//! The most memory that this process has had at a time, as Linux tells it.

use std::fs;

/// Forgets what the process has had before: from now on [`peak_bytes`] tells of what comes. `false` where the system does not let
/// it, and the peak is that of the whole process.
#[must_use]
pub fn reset_peak() -> bool {
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// The most bytes of memory that the process has had at a time; `None` where the system does not tell.
#[must_use]
pub fn peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_that_is_touched_raises_the_peak() {
        let touched = vec![1_u8; 64 << 20];
        assert_eq!(std::hint::black_box(&touched).len(), 64 << 20);
        // An earlier reading is nothing to compare with: other tests measure, which resets the peak, and free memory meanwhile.
        assert!(peak_bytes().unwrap() >= 64 << 20);
    }
}
