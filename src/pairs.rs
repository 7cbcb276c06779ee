//! `--compare A,B` of `simulate` and `live`: two policies on the same arrivals and queries.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tandem_model::files::{Digits, Provenance, Record, write_csv};
use tandem_model::study::Difference;

use super::result_writer::ResultWriter;
use crate::failure::Failure;
use tandem_report::number::{counted, text};
use tandem_report::table::Table;

/// A row of `pairs.csv`.
#[derive(Debug, Serialize, Deserialize)]
struct PairRow {
    what: String,
    first: String,
    second: String,
    rate_qps: Option<Digits<6>>,
    first_value: Digits<6>,
    second_value: Digits<6>,
    difference: Digits<4>,
    low: Option<Digits<4>>,
    high: Option<Digits<4>>,
    seeds: usize,
}

impl Record for PairRow {}

/// The two named policies, which must differ.
pub(super) fn of_two<T>(policies: &[T]) -> Result<[&T; 2], Failure> {
    match policies {
        [first, second] => Ok([first, second]),
        _ => Err(Failure::input("--compare: expected two different policies, as in cpu-only,stealing-adaptive")),
    }
}

/// The one rate of a comparison, if any is named.
pub(super) fn one_rate(rates_qps: Option<&[f64]>) -> Result<Option<f64>, Failure> {
    match rates_qps {
        None => Ok(None),
        Some([rate_qps]) => Ok(Some(*rate_qps)),
        Some(_) => Err(Failure::input("--compare: expected at most one --rate")),
    }
}

/// Writes the differences of the second from the first policy to `pairs.csv` in a folder.
pub(super) fn write(
    kept: &mut ResultWriter,
    out: &Path,
    provenance: &Provenance,
    names: [&str; 2],
    found: &[Difference],
) {
    let row = |of: &Difference| PairRow {
        what: of.what.to_owned(),
        first: names[0].to_owned(),
        second: names[1].to_owned(),
        rate_qps: of.rate_qps.map(Digits),
        first_value: Digits(of.means[0]),
        second_value: Digits(of.means[1]),
        difference: Digits(of.share),
        low: of.interval.map(|(low, _)| Digits(low)),
        high: of.interval.map(|(_, high)| Digits(high)),
        seeds: of.seeds,
    };
    let path = out.join("pairs.csv");
    kept.rows("pairs", &path, write_csv(&path, provenance, found.iter().map(row)));
}

/// The differences as a table. `each` names what an interval is over: a seed, or a pair of runs.
pub(super) fn table([first, second]: [&str; 2], found: &[Difference], each: &str) -> String {
    let rate = found.iter().find_map(|of| of.rate_qps).map_or(String::new(), |qps| format!(" at {} q/s", text(qps, 4)));
    let seeds = found.first().map_or(0, |of| of.seeds);
    let mut table = Table::new(["", first, second, "difference", "95 % interval", ""]);
    let percent = |share: f64| format!("{:+.1} %", 100.0 * share);
    for of in found {
        let interval =
            of.interval.map_or(format!("one {each}"), |(low, high)| format!("{} to {}", percent(low), percent(high)));
        let verdict = if of.is_decided() { "decided" } else { "not decided" };
        let [one, other] = of.means.map(|value| text(value, 4));
        table.row([of.what.to_owned(), one, other, percent(of.share), interval, verdict.to_owned()]);
    }
    format!(
        "{second} against {first} on the same arrivals and queries, {}; delays{rate}:\n{table}",
        counted(seeds, each, &format!("{each}s"))
    )
}
