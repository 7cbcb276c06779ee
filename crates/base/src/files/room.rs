//! Free disk space and memory of this machine, for commands that know in advance how much they need.

use std::fs;
use std::path::Path;

/// Bytes that can still be written into `folder`, which need not exist yet; `None` where the system doesn't report it.
#[cfg(unix)]
pub fn free_disk_bytes(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    rustix::fs::statvfs(there).ok().map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Bytes that can still be written into `folder`: this system doesn't report it.
#[cfg(not(unix))]
pub fn free_disk_bytes(_folder: &Path) -> Option<u64> {
    None
}

/// Bytes of memory that can still be allocated, including swap; `None` where the system doesn't report it (Linux does).
pub fn free_memory_bytes() -> Option<u64> {
    let told = fs::read_to_string("/proc/meminfo").ok()?;
    let bytes_of = |name: &str| -> Option<u64> {
        let value = told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    Some(bytes_of("MemAvailable")? + bytes_of("SwapFree").unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_tells_what_is_free_also_for_a_folder_to_be_made() {
        let dir = tempfile::tempdir().unwrap();
        assert!(free_disk_bytes(&dir.path().join("not/made/yet")).is_some());
        assert!(free_disk_bytes(Path::new("not-made-yet")).is_some());
        assert!(free_memory_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
