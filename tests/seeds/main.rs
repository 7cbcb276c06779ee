//! Searches for faults: every seed draws a policy, a machine, a fault plan, arrivals, an objective and a cluster, and the
//! laws of `laws.rs` are checked on it.
//!
//! `TANDEM_SEEDS=1000000` checks that many seeds instead of 10,000, `TANDEM_FIRST_SEED` names the first. A seed that
//! breaks a law is reduced and printed as a test, which belongs into this file.

mod decisions;
mod laws;
#[path = "../machines/mod.rs"]
mod machines;
mod reduce;
mod scenario;

use rayon::prelude::*;
use tandem::sched::RunLog;

use self::laws::{Broken, Spoil, check, check_spoilt, even_queue};
use self::reduce::reduce;
use self::scenario::Scenario;

/// Seeds from one search for a capacity to the next, which takes as long as a hundred scenarios.
const SEEDS_PER_SEARCH: u64 = 100;

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable)
        .map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

/// The reduced scenario of a seed that breaks a law, with the law.
fn reduced(seed: u64, spoil: &Spoil) -> Option<(Scenario, Broken)> {
    let scenario = Scenario::of(seed);
    let Broken { law, .. } = check_spoilt(&scenario, spoil).err()?;
    let smallest = reduce(scenario, &|smaller| check_spoilt(smaller, spoil).is_err_and(|broken| broken.law == law));
    let broken = check_spoilt(&smallest, spoil).err()?;
    Some((smallest, broken))
}

#[test]
fn laws_hold_for_every_seed() {
    let (first, count) = (number("TANDEM_FIRST_SEED", 0), number("TANDEM_SEEDS", 10_000));
    let broken: Vec<u64> =
        (first..first + count).into_par_iter().filter(|&seed| check(&Scenario::of(seed)).is_err()).collect();
    for &seed in broken.iter().take(5) {
        if let Some((smallest, broken)) = reduced(seed, &|_, _| {}) {
            println!("// Seed {seed}: {}: {}\n{}", broken.law, broken.evidence, smallest.as_test());
        }
    }
    let searches = (first..first + count).into_par_iter().filter(|seed| seed % SEEDS_PER_SEARCH == 0);
    let wrong: Vec<Broken> = searches.filter_map(|seed| even_queue(seed).err()).collect();
    assert!(
        broken.is_empty() && wrong.is_empty(),
        "{} of {count} seeds break a law: {broken:?}; {wrong:?}",
        broken.len()
    );
}

#[test]
fn every_planted_error_is_found_and_reduced() {
    type Plant = (&'static str, fn(&Scenario, &mut RunLog));
    let plants: [Plant; 8] = [
        ("every query is answered once", |_, log| log.rows.truncate(log.rows.len().saturating_sub(1))),
        ("every query is answered once", |_, log| log.rows.extend(log.rows.first().copied())),
        ("a row is of its query, in order of time", |_, log| {
            log.rows.iter_mut().for_each(|row| row.finished = row.arrival)
        }),
        ("a row names its lane", |scenario, log| {
            let lanes = scenario.lanes.len() as u32;
            log.rows.iter_mut().for_each(|row| row.processor.0 = (row.processor.0 + 1) % lanes);
        }),
        ("no batch is faster than its costs", |scenario, log| {
            if scenario.lanes.len() > 1 && log.rows.len() > 2 {
                log.rows.iter_mut().for_each(|row| row.finished = row.started);
            }
        }),
        ("a batch is one piece", |_, log| log.rows.iter_mut().for_each(|row| row.batch = 0)),
        ("nothing is dropped without shedding", |scenario, log| {
            if let (true, Some(row)) = (log.shed.is_empty() && scenario.handoff > 0, log.rows.pop()) {
                log.shed.push(row.dropped());
            }
        }),
        ("the manual clock writes the simulator's log", |_, log| {
            if let [_, _, third, ..] = &mut log.rows[..] {
                third.stolen = !third.stolen;
            }
        }),
    ];
    for (law, spoil) in plants {
        let found = (0..2000).filter_map(|seed| reduced(seed, &spoil)).find(|(_, broken)| broken.law == law);
        let (smallest, _) = found.unwrap_or_else(|| panic!("nobody noticed: {law}"));
        assert!(smallest.arrivals.len() <= 3 && smallest.lanes.len() <= 2, "{law}: {smallest:?}");
        let text = smallest.as_test();
        assert!(text.contains("assert_eq!(check(&scenario), Ok(()))") && text.contains("lanes: vec!["), "{text}");
    }
}

/// A GPU lane on a machine profile failed at a device number that no CPU has; the simulator panicked.
#[test]
fn seed_50049() {
    use tandem::base::machine::FaultKind::*;
    use tandem::sched::PolicyKind::*;
    use tandem::sched::PolicyOptions;
    use tandem::sched::Shed::*;
    use tandem::sched::StealGuard::*;
    use tandem::sim::Routing::*;
    let scenario = Scenario {
        seed: 50049,
        policy: GpuOnly,
        options: PolicyOptions { steal_guard: None, shed: Nothing, ..PolicyOptions::default() },
        lanes: vec![(1, 1, 1, 2)],
        batches: vec![],
        profile: vec![280],
        handoff: 0,
        decision: 0,
        faults: vec![(13_987, 0, Panic, 0)],
        watchdog: 218_592,
        costs: vec![vec![(20_000, 0), (26_000, 0), (26_000, 0), (20_000, 0), (26_000, 0), (26_000, 0)]],
        arrivals: vec![(63_000, 0)],
        deadline: 101_716,
        objective: 100.0,
        shards: 1,
        replicas: 3,
        routing: LeastOutstanding,
    };
    assert_eq!(check(&scenario), Ok(()));
}
