//! Policies against the bound on latency, as `gap.csv` and as a table.

use std::io;
use std::path::Path;

use tandem_model::files::{Decimals, Digits, Provenance, write_csv};
use tandem_model::study::Gap;

use crate::number;
use crate::row::row;
use crate::table::Table;

row! {
    struct GapLine of (gap: &Gap) {
        policy: String = gap.policy.clone(),
        rate_qps: Digits<9> = Digits(gap.rate_qps),
        load: Option<Digits<4>> = gap.load.map(Digits),
        mean_ms: Decimals<6> = Decimals(gap.mean_ms),
        p99_ms: Decimals<6> = Decimals(gap.p99_ms),
        bound_mean_ms: Decimals<6> = Decimals(gap.bound.mean_ms),
        bound_p99_ms: Decimals<6> = Decimals(gap.bound.p99_ms),
        closed_share: Option<Digits<4>> = gap.closed_share.map(Digits),
    }
}

/// Writes `gap.csv` atomically. Fails as the file system does.
pub fn write_gaps(path: &Path, provenance: &Provenance, gaps: &[Gap]) -> io::Result<()> {
    write_csv(path, provenance, gaps.iter().map(GapLine::of))
}

/// The table of gaps, with the meaning of its columns.
pub fn gap_table(gaps: &[Gap]) -> String {
    let mut table = Table::new(["policy", "q/s", "mean", "at least", "p99", "at least", "closed"]);
    for Gap { policy, rate_qps, mean_ms, p99_ms, bound, closed_share, .. } in gaps {
        table.row([
            policy.clone(),
            number::text(*rate_qps, 6),
            number::text(*mean_ms, 4),
            number::text(bound.mean_ms, 4),
            number::text(*p99_ms, 4),
            number::text(bound.p99_ms, 4),
            closed_share.map_or(String::from("-"), |share| format!("{:.0} %", 100.0 * share)),
        ]);
    }
    format!(
        "\nDelays in ms against bounds for any schedule:\n{table}closed: share of the gap in p99 between the best policy with one worker \
         per query and the bound\n"
    )
}
