//! Kinds of configurations that were driven, from a table that the record yields.

/// Dimension and value of each kind of which the record has a live run: `tests/live_runs/recorded.rs` makes it.
const MEASURED: &str = include_str!("measured.csv");

/// In what a simulated configuration differs from all live runs of the record, in words; `None` if a run had each of its parts.
/// Parts are pairs of dimension and value, such as `("policy", "edf")`.
#[must_use]
pub fn never_measured(parts: impl IntoIterator<Item = (&'static str, String)>) -> Option<String> {
    let is_known = |part: &(&str, String)| MEASURED.lines().any(|line| line.split_once(',') == Some((part.0, &part.1)));
    let mut unknown: Vec<String> = parts
        .into_iter()
        .filter(|part| !is_known(part))
        .map(|(dimension, value)| format!("{dimension} {value}"))
        .collect();
    unknown.sort();
    unknown.dedup();
    (!unknown.is_empty())
        .then(|| format!("simulated, never measured: no live run of the record has {}", unknown.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_live_run_had_is_named() {
        let parts = |shards: &str| [("policy", String::from("combined")), ("shards", String::from(shards))];
        assert_eq!(never_measured(parts("1")), None);
        let told = never_measured(parts("7").into_iter().chain(parts("7"))).unwrap();
        assert_eq!(told, "simulated, never measured: no live run of the record has shards 7");
    }
}
