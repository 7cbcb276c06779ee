//! The last test program: says in one line how many tests this machine could not run, and why (see `mod.rs` here).

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
    // Notes of runs that never came to their end go, too.
    if let Some(folder) = notes.parent() {
        let _ = std::fs::remove_dir_all(folder);
    }
}
