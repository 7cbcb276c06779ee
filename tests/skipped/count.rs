//! The last test program: prints one line with the number of tests that this machine could not run, and the reasons (see
//! `mod.rs` here).

#[path = "mod.rs"]
mod skipped;

use std::collections::{BTreeMap, BTreeSet};

fn main() {
    // A runner that asks for the names of tests finds none here.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let Some(notes) = skipped::notes() else { return };
    let noted = std::fs::read_to_string(&notes).unwrap_or_default();
    let tests: BTreeSet<&str> = noted.lines().collect();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for why in tests.iter().filter_map(|note| note.split('\t').nth(1)) {
        *reasons.entry(why).or_default() += 1;
    }
    if !reasons.is_empty() {
        let counts = reasons
            .iter()
            .map(|(why, tests)| format!("{tests} {} ({why})", if *tests == 1 { "test" } else { "tests" }));
        println!("\nskipped here: {}", counts.collect::<Vec<_>>().join(", "));
    }
    // Notes of runs that were interrupted are removed too.
    if let Some(folder) = notes.parent() {
        let _ = std::fs::remove_dir_all(folder);
    }
}
