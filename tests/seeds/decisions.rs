//! Every policy decides as it did when `decisions.csv` was written.
//!
//! Laws leave a policy free to decide worse than before. A change of decisions is intended or a fault, so that it must
//! show: `TANDEM_DECISIONS=write` writes the file anew.

use std::fmt::Write as _;
use std::sync::Arc;

use rayon::prelude::*;
use tandem::base::machine::Class;
use tandem::base::time::Nanos;
use tandem::cost::{Parallelism, SpeedUp};
use tandem::sched::{LogRow, PolicyKind, RunLog};
use xxhash_rust::xxh3::Xxh3;

use crate::laws::Case;
use crate::scenario::Scenario;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds/decisions.csv");
/// Runs of each policy on one node, on a node whose workers share queries, and on a cluster.
const SEEDS: u64 = 500;

/// The scenario of a seed with a given policy. Whole microseconds are the same with every C library's logarithm, and so is a
/// machine without random ratios.
fn scenario(seed: u64, policy: PolicyKind) -> Scenario {
    let mut scenario = Scenario { policy, profile: vec![], ..Scenario::of(seed) };
    scenario.arrivals.iter_mut().for_each(|(at, _)| *at = *at / 1000 * 1000);
    scenario
}

fn note(hash: &mut Xxh3, log: &RunLog) {
    let mut note = |numbers: &[u64]| numbers.iter().for_each(|number| hash.update(&number.to_le_bytes()));
    for row in &log.rows {
        let LogRow { job, query, processor, batch, stolen, again, lanes, priority, .. } = *row;
        note(&[job.0, query.0, processor.0, batch, stolen.into(), again.into(), lanes, priority.into()].map(u64::from));
        note(&[row.arrival, row.released, row.started, row.finished, row.deadline, row.helped].map(|time| time.0));
    }
    for shed in &log.shed {
        note(&[shed.job.0, shed.query.0, shed.processor.0].map(u64::from));
        note(&[shed.arrival, shed.released, shed.dropped, shed.deadline].map(|time| time.0));
    }
    note(&[log.faults.len() as u64]);
}

/// The number of runs of a policy, and a hash of their logs.
fn decisions(policy: PolicyKind) -> (usize, u64) {
    let (mut runs, mut hash) = (0, Xxh3::new());
    for seed in 0..SEEDS {
        let scenario = scenario(seed, policy);
        let Some(mut case) = Case::of(&scenario) else { continue };
        for log in [case.play(), case.play_cluster()] {
            note(&mut hash, &log.expect("policies keep their contract"));
        }
        let speed_up = SpeedUp::of_all(vec![1.0, 1.7, 2.3, 2.8]);
        let times = scenario.costs.iter().map(|costs| Nanos(costs[0].0)).collect();
        case.model.parallelism = Some(Arc::new(Parallelism::of(speed_up, times)));
        if case.model.machine.count(Class::CPU) > 1 {
            note(&mut hash, &case.play().expect("policies keep their contract"));
        }
        runs += 1;
    }
    (runs, hash.digest())
}

#[test]
fn policies_decide_as_before() {
    let all: Vec<_> = PolicyKind::ALL.into_par_iter().map(|policy| (policy, decisions(policy))).collect();
    let mut text = String::from("policy,runs,xxh3\n");
    for (policy, (runs, hash)) in all {
        assert!(runs > 50, "{policy} ran on {runs} machines only");
        writeln!(text, "{},{runs},{hash:016x}", policy.name()).expect("a string takes all");
    }
    if std::env::var_os("TANDEM_DECISIONS").is_some_and(|what| what == "write") {
        std::fs::write(FILE, &text).expect("the file can be written");
    }
    let before = std::fs::read_to_string(FILE).expect("the file is committed");
    let changed: Vec<&str> = text.lines().filter(|line| !before.lines().any(|known| known == *line)).collect();
    assert!(changed.is_empty(), "other decisions than in {FILE}: {changed:?}; intended? TANDEM_DECISIONS=write");
    assert_eq!(text.lines().count(), before.lines().count(), "{FILE} lists a policy that is gone");
}
