//! Published rules of thumb for the capacity of a server, to compare with.
//!
//! | rule | capacity |
//! | --- | --- |
//! | Elastic's formula: nodes = `floor((floor(rate mean) + 1) / pool) + 1`, pool = `floor(1.5 processors) + 1` | the highest rate for which one node suffices |
//! | Couchbase's division | 200 queries per second per core |
//! | red line, as in OpenSearch Benchmark | the throughput of the most closed-loop clients that meet the objective |

use tandem_model::base::time::Nanos;

use crate::ServerProfile;

/// Couchbase's queries per second and core.
const COUCHBASE_QPS: f64 = 200.0;

/// A rule with its capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Naive {
    /// The name of the rule.
    pub rule: &'static str,
    /// The capacity by that rule; `None` if it gives none.
    pub qps: Option<f64>,
}

impl Naive {
    /// The capacity over the measured one, minus 1.
    #[must_use]
    pub fn error(&self, measured_qps: f64) -> Option<f64> {
        self.qps.map(|qps| qps / measured_qps - 1.0)
    }
}

/// The capacities of `servers` equal servers with this number of cores each, by each rule. The first two rules know no
/// percentiles; the red line compares the 99th percentile with the deadline.
#[must_use]
pub fn naive_answers(profile: &ServerProfile, cores: usize, deadline: Nanos, servers: usize) -> [Naive; 3] {
    let red_line =
        profile.ladder.iter().rfind(|rung| rung.p99_ms <= deadline.as_ms() && rung.rejected + rung.failed == 0);
    [
        ("Elastic's formula", Some(elastic_qps(cores, profile.mean_us() / 1e6))),
        ("Couchbase, 200 per core", Some(COUCHBASE_QPS * cores as f64)),
        ("closed-loop red line", red_line.map(|rung| rung.qps)),
    ]
    .map(|(rule, qps)| Naive { rule, qps: qps.map(|qps| servers as f64 * qps) })
}

/// The least upper bound of the rates for which Elastic's formula gives one node.
fn elastic_qps(processors: usize, mean_s: f64) -> f64 {
    let pool = (1.5 * processors as f64).floor() + 1.0;
    // One node as long as floor(rate mean) + 1 < pool, with a whole number on the left.
    (pool - 1.0) / mean_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::ladder;

    #[test]
    fn rules_of_thumb_follow_their_formulas() {
        let nodes = |rate: f64, mean: f64, processors: f64| {
            let pool = (1.5 * processors).floor() + 1.0;
            (((rate * mean).floor() + 1.0) / pool).floor() + 1.0
        };
        for (processors, mean_s) in [(2, 0.001), (8, 0.02), (5, 0.3)] {
            let most = elastic_qps(processors, mean_s);
            assert_eq!(nodes(0.999 * most, mean_s, processors as f64), 1.0);
            assert_eq!(nodes(1.001 * most, mean_s, processors as f64), 2.0);
        }
        let profile = ladder(&[(1, 1000.0, 0), (2, 1600.0, 0), (4, 1620.0, 0), (8, 1700.0, 3)]);
        let answers = naive_answers(&profile, 2, Nanos::from_ms(2.0), 1);
        assert_eq!(answers.map(|naive| naive.qps), [Some(3000.0), Some(400.0), Some(1600.0)]);
        assert_eq!(answers[1].error(800.0), Some(-0.5));
        assert_eq!(naive_answers(&profile, 2, Nanos::from_ms(0.5), 1)[2].qps, None);
    }
}
