//! The smallest scenario that still breaks a law.

use tandem::sched::PolicyOptions;

use crate::scenario::Scenario;

/// Removes queries, lanes, faults and effects while `fails` holds.
pub fn reduce(mut scenario: Scenario, fails: &dyn Fn(&Scenario) -> bool) -> Scenario {
    loop {
        let before = scenario.clone();
        let mut keep = |smaller: Scenario| {
            let is_smaller = smaller != scenario && fails(&smaller);
            if is_smaller {
                scenario = smaller;
            }
            is_smaller
        };
        for simpler in simpler(&before) {
            keep(simpler);
        }
        // Halves of the arrivals, then quarters, then single ones.
        let mut len = before.arrivals.len();
        while len > 0 {
            let mut at = 0;
            while at < scenario.arrivals.len() {
                let mut smaller = scenario.clone();
                smaller.arrivals.drain(at..(at + len).min(smaller.arrivals.len()));
                if fails(&smaller) {
                    scenario = smaller;
                } else {
                    at += len;
                }
            }
            len /= 2;
        }
        for lane in (0..scenario.lanes.len()).rev() {
            let smaller = without_lane(&scenario, lane);
            if fails(&smaller) {
                scenario = smaller;
            }
        }
        for fault in (0..scenario.faults.len()).rev() {
            let mut smaller = scenario.clone();
            smaller.faults.remove(fault);
            if fails(&smaller) {
                scenario = smaller;
            }
        }
        scenario = without_unused_queries(scenario);
        if scenario == before {
            return scenario;
        }
    }
}

/// The scenario with one of its effects removed.
fn simpler(scenario: &Scenario) -> Vec<Scenario> {
    let with = |change: &dyn Fn(&mut Scenario)| {
        let mut changed = scenario.clone();
        change(&mut changed);
        changed
    };
    vec![
        with(&|s| (s.shards, s.replicas) = (1, 1)),
        with(&|s| s.profile.clear()),
        with(&|s| s.faults.clear()),
        with(&|s| s.batches.clear()),
        with(&|s| s.options = PolicyOptions::default()),
        with(&|s| s.options.shed = PolicyOptions::default().shed),
        with(&|s| s.handoff = 0),
        with(&|s| s.decision = 0),
        with(&|s| s.lanes.iter_mut().for_each(|lane| lane.3 = 1)),
        with(&|s| s.costs.iter_mut().for_each(|costs| costs.copy_within(..3, 3))),
    ]
}

/// The scenario without a lane and its faults; later lanes move up.
fn without_lane(scenario: &Scenario, lane: usize) -> Scenario {
    let mut smaller = scenario.clone();
    smaller.lanes.remove(lane);
    smaller.faults.retain(|fault| fault.1 != lane);
    smaller.faults.iter_mut().filter(|fault| fault.1 > lane).for_each(|fault| fault.1 -= 1);
    smaller
}

fn without_unused_queries(mut scenario: Scenario) -> Scenario {
    let used: Vec<u32> = (0..scenario.costs.len() as u32)
        .filter(|row| scenario.arrivals.iter().any(|(_, asked)| asked == row))
        .collect();
    scenario
        .arrivals
        .iter_mut()
        .for_each(|(_, row)| *row = used.iter().position(|used| used == row).unwrap_or(0) as u32);
    scenario.costs = used.iter().map(|&row| scenario.costs[row as usize].clone()).collect();
    scenario
}
