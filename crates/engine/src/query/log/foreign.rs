//! Files that are no query logs, although each of their lines could be a query.

use super::form::Source;
use super::table::Kind;

/// First lines of such files, in lower case, with the form of the file.
const FIRST_LINES: &[(&str, &str)] = &[
    ("<!doctype html", "an HTML page"),
    ("<html", "an HTML page"),
    ("-- mysql dump", "an SQL dump"),
    ("-- mariadb dump", "an SQL dump"),
    ("-- postgresql database dump", "an SQL dump"),
    ("@relation ", "an ARFF file"),
];

/// The form of a file with these lines, in words; `None` if it may be a query log.
pub(super) fn form(lines: &[(u64, &str)]) -> Option<&'static str> {
    let first = lines.first().map(|(_, line)| line.trim_start())?;
    let lower = first.to_ascii_lowercase();
    if let Some((_, form)) = FIRST_LINES.iter().find(|(start, _)| lower.starts_with(start)) {
        return Some(form);
    }
    if first.starts_with("INSERT INTO ") && first.contains(" VALUES") {
        return Some("an SQL dump");
    }
    // Database clients and Markdown draw a rule above or below the header.
    let is_rule =
        |line: &str| line.contains("---") && line.contains(['+', '|']) && line.chars().all(|c| "-+|: ".contains(c));
    lines.iter().take(2).any(|(_, line)| is_rule(line.trim())).then_some("a table drawn for a screen")
}

/// Whether a line is a record of a server's or a benchmark's log: it holds `key=value`, a time with seconds, or HTTP.
pub(super) fn is_record(line: &str) -> bool {
    let is_pair = |word: &str| {
        word.split_once('=').is_some_and(|(key, value)| {
            !value.is_empty() && key.ends_with(char::is_alphanumeric) && key.starts_with(char::is_alphabetic)
        })
    };
    let is_time = |word: &str| word.matches(':').count() >= 2 && Kind::of(word) == Kind::Time;
    line.split_whitespace().any(|word| is_pair(word) || is_time(word) || word.starts_with("HTTP/"))
}

/// What a file of effectiveness holds, in words: judgements on several lines, or a run.
pub(super) fn judgements_or_run(log: &Source<'_>) -> Option<&'static str> {
    let words = |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    let is_judgement =
        |line: &str| matches!(&words(line)[..], [_, iter, _, grade] if is_number(iter) && is_number(grade));
    let is_run = |line: &str| matches!(&words(line)[..], [_, q0, _, rank, score, _] if q0 == "Q0" && is_number(rank) && is_number(score));
    if log.lines.len() > 1 && log.share(is_judgement) == 1.0 {
        return Some("relevance judgements");
    }
    (log.share(is_run) == 1.0).then_some("a TREC run")
}
