//! Delays of the queries of each priority, as `priorities.csv` and as a table.

use std::io;
use std::path::Path;

use tandem_model::files::{Decimals, Digits, Provenance, write_csv};
use tandem_model::study::Summary;

use crate::number;
use crate::row::row;
use crate::summary::Source;
use crate::table::Table;

/// The delays of one priority in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct PriorityRow {
    /// Origin of the run.
    pub source: Source,
    /// Name of the policy.
    pub policy: String,
    /// Offered rate.
    pub rate_qps: f64,
    /// Seed of arrivals and queries.
    pub seed: u64,
    /// Name of the priority.
    pub priority: String,
    /// Totals of its queries.
    pub summary: Summary,
}

impl PriorityRow {
    /// The rows of a run of a policy at a rate with a seed.
    pub fn of_run(
        source: Source,
        (policy, rate_qps, seed): (&str, f64, u64),
        priorities: &[(String, Summary)],
    ) -> Vec<Self> {
        let row = |(priority, summary): &(String, Summary)| Self {
            source,
            policy: policy.to_owned(),
            rate_qps,
            seed,
            priority: priority.clone(),
            summary: *summary,
        };
        priorities.iter().map(row).collect()
    }
}

row! {
    struct PriorityLine of (row: &PriorityRow) with {
        s = &row.summary;
    } {
        source: String = row.source.name().to_owned(),
        policy: String = row.policy.clone(),
        rate_qps: Digits<9> = Digits(row.rate_qps),
        seed: u64 = row.seed,
        priority: String = row.priority.clone(),
        queries: usize = s.queries,
        mean_ms: Decimals<6> = Decimals(s.mean_ms),
        p50_ms: Decimals<6> = Decimals(s.p50_ms),
        p95_ms: Decimals<6> = Decimals(s.p95_ms),
        p99_ms: Decimals<6> = Decimals(s.p99_ms),
        p999_ms: Decimals<6> = Decimals(s.p999_ms),
        max_ms: Decimals<6> = Decimals(s.max_ms),
        missed: usize = s.missed,
        shed: usize = s.shed,
    }
}

/// Writes `priorities.csv` atomically. Fails as the file system does.
pub fn write_priorities(path: &Path, provenance: &Provenance, rows: &[PriorityRow]) -> io::Result<()> {
    write_csv(path, provenance, rows.iter().map(PriorityLine::of))
}

/// Delays by policy, rate and priority: means over the seeds, and the share of late queries. Empty without rows.
pub fn priority_table(rows: &[PriorityRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut groups: Vec<Vec<&PriorityRow>> = Vec::new();
    for row in rows {
        let is_like = |first: &PriorityRow| {
            first.policy == row.policy && first.rate_qps == row.rate_qps && first.priority == row.priority
        };
        match groups.iter_mut().find(|group| is_like(group[0])) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    let mut table = Table::new(["policy", "q/s", "priority", "queries", "mean ms", "p99 ms", "late"]);
    for group in groups {
        let first = group[0];
        let mean = |of: fn(&Summary) -> f64| group.iter().map(|row| of(&row.summary)).sum::<f64>() / group.len() as f64;
        let sum = |of: fn(&Summary) -> usize| group.iter().map(|row| of(&row.summary)).sum::<usize>();
        let ended = sum(|s| s.queries + s.shed);
        let late = 100.0 * sum(|s| s.missed + s.shed) as f64 / ended.max(1) as f64;
        table.row([
            first.policy.clone(),
            number::text(first.rate_qps, 6),
            first.priority.clone(),
            ended.to_string(),
            number::text(mean(|s| s.mean_ms), 4),
            number::text(mean(|s| s.p99_ms), 4),
            format!("{} %", number::text(late, 2)),
        ]);
    }
    format!("\nDelays by priority:\n{table}")
}
