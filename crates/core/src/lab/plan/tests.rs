//! Tests of plans.

use super::*;
use crate::base::ids::QueryId;
use crate::cost::{Measured, WorkloadRow};
use crate::query::{Features, Mode};
use crate::sched::{PolicyKind, PolicyOptions};

/// Queries of 1 or 3 ms on a CPU, and a tenth of that on a GPU.
fn workload(has_gpu: bool) -> Workload {
    let time = |us| Some(Measured { median_us: us, spread_us: 0.0, device_us: None });
    let row = |id: u32| {
        let us = if id.is_multiple_of(2) { 1000.0 } else { 3000.0 };
        WorkloadRow {
            query_id: QueryId(id),
            log_id: id,
            mode: Mode::Or,
            features: Features::default(),
            index_features: None,
            predicted_us: None,
            measured: PerClass::two(time(us), if has_gpu { time(us / 10.0) } else { None }),
            results: 10,
        }
    };
    Workload { rows: (0..400).map(row).collect(), ..Workload::default() }
}

fn machine(name: &str, cores: usize, gpus: usize, price_per_hour: f64) -> MachineType {
    MachineType {
        name: name.to_owned(),
        cores,
        gpus,
        memory_gb: 10.0,
        price_per_hour,
        idle_watts: Some(100.0),
        busy_watts: Some(300.0),
        profile: None,
        workload: None,
        scale: 1.0,
    }
}

fn question(demand: Demand) -> Question {
    Question {
        demand,
        growth: 1.0,
        deadline: Nanos::from_ms(50.0),
        objective: Objective::default(),
        spare: 0,
        index_gb: None,
        policies: [PolicyKind::CpuOnly, PolicyKind::StealingAdaptive]
            .map(|kind| kind.with(PolicyOptions::default()))
            .to_vec(),
        estimates: Estimates::Oracle,
        speed_spread: 0.0,
        shortage: 10.0,
        seed: 1,
    }
}

fn plans(question: &Question, machines: Vec<MachineType>, has_gpu: bool) -> Plans {
    let workload = Arc::new(workload(has_gpu));
    let of = |machine| Candidate { machine, workload: Arc::clone(&workload), profile: None };
    plan(question, &machines.into_iter().map(of).collect::<Vec<_>>(), &|| ()).unwrap()
}

#[test]
fn a_known_rate_takes_the_fewest_machines_that_carry_it() {
    let found =
        plans(&question(Demand::Rate(4000.0)), vec![machine("small", 3, 0, 1.0), machine("large", 9, 0, 5.0)], false);
    let best = &found.ranking[0];
    // Two workers at 2 ms per query sustain at most 1,000 q/s, and the sample leaves some percent open.
    assert!((900.0..=1000.0).contains(&best.group_qps), "{best:?}");
    assert!((4..=5).contains(&best.groups) && best.machine.name == "small", "{best:?}");
    assert!(best.served_share > 0.9, "{best:?}");
    let load = 4000.0 / (best.groups as f64 * best.group_qps);
    let watts = best.groups as f64 * (100.0 + load.min(1.0) * 200.0);
    assert!((best.watts.unwrap() / watts - 1.0).abs() < 1e-9, "{best:?}");
    assert!(found.gpu_pays_from_qps.is_none());
    let candidates = [("small", 3, 1.0), ("large", 9, 4.5)].map(|(name, cores, price)| Candidate {
        machine: machine(name, cores, 0, price),
        workload: Arc::new(workload(false)),
        profile: None,
    });
    let of = |plan: &Plan| verify(&question(Demand::Rate(4100.0)), &candidates, plan, &[7, 8, 9]).unwrap();
    let verified = of(best);
    assert!(verified.holds, "{verified:?}");
    // 4100 queries of 2 ms on average exceed 8 workers: four small machines are too few.
    assert_eq!(verified.cheapest, Some((String::from("small"), 5, 5.0)));
    assert!(!of(&Plan { groups: 4, ..best.clone() }).holds);
}

#[test]
fn more_spare_machines_and_larger_indexes_cost_more() {
    let machines = || vec![machine("small", 3, 0, 1.0)];
    let price = |question: &Question| plans(question, machines(), false).ranking[0].price_per_hour;
    let plain = question(Demand::Rate(4000.0));
    let spare = Question { spare: 2, ..plain.clone() };
    assert!((price(&spare) - price(&plain) - 2.0).abs() < 1e-9);
    let sharded = Question { index_gb: Some(20.0), ..plain };
    let found = plans(&sharded, machines(), false);
    assert_eq!(found.ranking[0].shards, 3);
    // Waiting for the slowest of three shards makes them slower than three separate machines.
    assert!(found.ranking[0].group_qps < 3.0 * 1000.0, "{:?}", found.ranking[0]);
}

#[test]
fn no_other_number_of_machines_has_less_regret() {
    let question = Question { speed_spread: 0.2, ..question(Demand::Between(2000.0, 8000.0)) };
    let workload = Arc::new(workload(false));
    let candidates = [("a", 3, 1.0), ("b", 9, 3.5)].map(|(name, cores, price)| Candidate {
        machine: machine(name, cores, 0, price),
        workload: Arc::clone(&workload),
        profile: None,
    });
    let groups = groups(&question, &candidates.each_ref(), &SEEDS).unwrap();
    let draws = draws(&question, &candidates.each_ref());
    let curves: Vec<Curve<'_>> =
        curves(&question, &groups, &draws, &|| ()).into_iter().map(|of| of.unwrap().unwrap()).collect();
    for curve in &curves {
        let best = best_plan(&question, curve, &curves, &draws).unwrap();
        let regret = |groups| draws.iter().map(|draw| regret(&question, curve, groups, &curves, draw)).sum::<f64>();
        let least = (1..40).map(regret).fold(f64::INFINITY, f64::min);
        assert!(best.regret_per_hour * draws.len() as f64 <= least + 1e-9, "{best:?}, {least}");
    }
}

#[test]
fn a_gpu_pays_from_some_rate_on() {
    let machines = vec![machine("cpu", 3, 0, 1.0), machine("gpu", 3, 1, 3.0)];
    let found = plans(&question(Demand::Rate(500.0)), machines, true);
    assert_eq!(found.ranking[0].machine.name, "cpu");
    let pays = found.gpu_pays_from_qps.unwrap();
    assert!((1000.0..10_000.0).contains(&pays), "{pays}");
}

#[test]
fn an_impossible_deadline_names_the_nearest_possible_one() {
    let question = Question { deadline: Nanos::from_ms(1.5), ..question(Demand::Rate(100.0)) };
    let found = plans(&question, vec![machine("cpu", 3, 0, 1.0), machine("gpu", 3, 1, 6.0)], false);
    assert!(found.ranking.is_empty());
    assert_eq!(found.left_out.len(), 2, "{:?}", found.left_out);
    let (deadline, nearest) = found.nearest.unwrap();
    assert!(deadline >= Nanos::from_ms(3.0) && nearest.machine.name == "cpu", "{deadline:?}");
}
