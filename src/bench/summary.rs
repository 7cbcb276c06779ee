//! The last table of `tandem bench`: one row per measured item, one column per kind of number.

use super::Measurement;
use tandem_report::table::Table;

/// All measurements as a table: times, rates, sizes.
pub(super) fn table(measurements: &[Measurement]) -> Table {
    let mut table = Table::grouped([
        ("", &["part", "of"][..]),
        ("microseconds", &["mean", "p50", "p95", "p99"]),
        ("", &["ns", "peak MiB", "M/s", "bits"]),
    ])
    .with_keys(2);
    let same = |a: &Measurement, b: &Measurement| (a.part, &a.name) == (b.part, &b.name);
    for of_one in measurements.chunk_by(same) {
        let value = |metric: &str| of_one.iter().find(|m| m.metric == metric).map(|m| m.value);
        let cell = |value: Option<f64>, digits: usize| value.map_or_else(String::new, |v| format!("{v:.digits$}"));
        let mut cells = vec![of_one[0].part.to_owned(), of_one[0].name.clone()];
        cells.extend(["mean_us", "p50_us", "p95_us", "p99_us"].map(|metric| cell(value(metric), 1)));
        let peak_mib = value("peak_bytes").map(|bytes| bytes / f64::from(1 << 20));
        cells.extend([cell(value("ns_a_query"), 0), cell(peak_mib, 0)]);
        cells.extend([cell(value("postings_per_us"), 0), cell(value("bits_a_posting"), 2)]);
        if cells[2..].iter().any(|cell| !cell.is_empty()) {
            table.row(cells);
        }
    }
    table.without_empty_columns()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_measured_is_one_row() {
        let measurement = |part, name: &str, metric, value| Measurement { part, name: name.to_owned(), metric, value };
        let table = table(&[
            measurement("operators", "and k=10 cpu", "mean_us", 9.04),
            measurement("operators", "and k=10 cpu", "postings_per_us", 1234.4),
            measurement("simulator", "stealing", "ns_a_query", 50.0),
            measurement("simulator", "stealing", "peak_bytes", 31e6),
        ])
        .to_string();
        let rows: Vec<Vec<&str>> = table.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["operators", "and", "k=10", "cpu", "9.0", "1234"]);
        assert_eq!(rows[1], ["simulator", "stealing", "50", "30"]);
        assert_eq!(rows.len(), 2);
    }
}
