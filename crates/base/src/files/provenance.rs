//! The origin of a file's numbers, as comment lines at its head.

use std::io::{self, Write};
use std::sync::OnceLock;

/// The commit that this program was built from, found by its build script.
static COMMIT: OnceLock<&str> = OnceLock::new();

/// Sets the commit that files name as their origin. Only the first call has an effect.
pub fn set_commit(commit: &'static str) {
    // A second call would come from this program too.
    let _ = COMMIT.set(commit);
}

/// The commit that this program was built from, if it is known.
pub fn commit() -> Option<&'static str> {
    COMMIT.get().copied()
}

/// The `# key: value` lines that open every CSV file: version, command, commit, date, machine, seed.
///
/// They hold no time of day, so that a run repeated on one day writes equal bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    lines: Vec<(String, String)>,
}

impl Provenance {
    /// Provenance with the version of this program.
    pub fn new() -> Self {
        Self::default().with("tandem", env!("CARGO_PKG_VERSION"))
    }

    /// Adds a line; line breaks in `value` become spaces.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.lines.push((key.to_owned(), value.to_string().replace(['\n', '\r'], " ")));
        self
    }

    /// Adds the present command line, the program's commit if known, the date (UTC), and the machine.
    #[must_use]
    pub fn with_command_and_machine(self) -> Self {
        let command: Vec<String> = std::env::args_os().skip(1).map(|text| quoted(&text.to_string_lossy())).collect();
        let with_command = self.with("command", format!("tandem {}", command.join(" ")));
        let with_commit = commit().into_iter().fold(with_command, |all, commit| all.with("commit", commit));
        with_commit
            .with("date", chrono::DateTime::<chrono::Utc>::from(std::time::SystemTime::now()).date_naive())
            .with("machine", this_machine())
    }

    /// The lines whose keys don't start with `prefix`.
    pub fn without(&self, prefix: &str) -> Self {
        Self { lines: self.lines.iter().filter(|(key, _)| !key.starts_with(prefix)).cloned().collect() }
    }

    /// The value of `key`, if there is such a line.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.lines.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// All lines, in order.
    pub fn lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.lines.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Adds a `# key: value` line of a file; lines of any other form are ignored.
    pub fn parse_line(&mut self, line: &str) {
        if let Some((key, value)) = line.trim_start_matches('#').split_once(':') {
            self.lines.push((key.trim().to_owned(), value.trim().to_owned()));
        }
    }

    /// Writes the lines. Fails as `out` does.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        for (key, value) in &self.lines {
            writeln!(out, "# {key}: {value}")?;
        }
        Ok(())
    }
}

fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

/// The machine that runs this program, in words: the name of its processor (or its architecture if the system gives no
/// name), and the number of cores that the program may use.
pub fn this_machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name").and_then(|rest| rest.split_once(':')));
    format!("{}, {cores} cores", name.map_or(std::env::consts::ARCH, |(_, name)| name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_of_this_century() {
        let text = Provenance::new().with_command_and_machine();
        let date = text.get("date").unwrap();
        assert!(date.len() == 10 && ("2026-01-01".."2100-01-01").contains(&date), "{date}");
    }

    #[test]
    fn a_command_can_be_given_to_a_shell_again() {
        let arguments = ["search", "a/b-1.csv", "two words", "", "don't", "$HOME"].map(quoted);
        assert_eq!(arguments, ["search", "a/b-1.csv", "'two words'", "''", r"'don'\''t'", "'$HOME'"]);
    }
}
