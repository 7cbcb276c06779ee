//! The answer in words.

use std::fmt::Write as _;

use tandem_core::base::machine::Class;
use tandem_core::lab::{Answer, Capacity, Criterion, Disagreement, GpuSource, LiveCheck, LiveRate, Node, RunLength};
use tandem_report::number::{counted, text};
use tandem_report::table::{Table, fitted};

/// So many times slower than when it was calibrated, a machine has other work.
const BUSY: f64 = 1.05;

/// What is asked: `1 CPU worker on AMD EPYC, 2 cores; no GPU; 2000 queries`.
pub(super) fn machine(node: &Node) -> String {
    let gpu = match node.gpu() {
        GpuSource::Real(device) => device.clone(),
        _ => String::from("no GPU"),
    };
    let workers = counted(node.machine().count(Class::CPU), "CPU worker", "CPU workers");
    let instead = node.estimates_instead().map_or(String::new(), |why| format!("; estimates: oracle ({why})"));
    format!("{workers} on {}; {gpu}; {} queries{instead}", node.cpu_name(), node.workload().rows.len())
}

/// One number, how sure it is, and whether it held.
pub(super) fn answer(found: &Answer, criterion: &Criterion) -> String {
    let Some(best) = found.capacities.first().map(|found| &found.objective) else {
        return String::from("interrupted before there was an answer");
    };
    let mut words = number(found, best, criterion);
    for (policy, refuted) in &found.refuted {
        let _ = writeln!(
            words,
            "simulated before: {} q/s under {policy}, live {}; simulated again with what queries cost in that run",
            rate(refuted.qps),
            in_words(refuted, criterion)
        );
    }
    match &found.live {
        Some(live) => words.push_str(&driven(found, live, best, criterion)),
        None if best.qps > 0.0 => words.push_str("live: interrupted, so that nothing is known\n"),
        None => {}
    }
    for warning in warnings(found) {
        let _ = writeln!(words, "{}", fitted(&format!("warning: {warning}")));
    }
    words + &simulated(found)
}

fn rate(qps: f64) -> String {
    text(qps, 4)
}

/// The number, and what it is worth.
fn number(found: &Answer, best: &Capacity, criterion: &Criterion) -> String {
    let interval = format!("{} to {}", rate(best.interval.low), rate(best.interval.high));
    let simulated = format!("{} q/s ({interval})", rate(best.qps));
    let refuted = found.live.is_some_and(|live| !live.at.verdict.holds());
    match (found.held_qps(), refuted) {
        _ if best.qps == 0.0 => format!("0 q/s: no rate is low enough for {criterion}, under any policy\n"),
        (Some(held), true) => format!(
            "{} q/s, the highest rate that held live, policy {}; {criterion}\nsimulated: {simulated}\n",
            rate(held),
            best.policy
        ),
        (None, true) => format!("no rate held live, policy {}; {criterion}\nsimulated: {simulated}\n", best.policy),
        (_, false) => format!("{simulated}, policy {}; {criterion}\n", best.policy),
    }
}

/// How the live runs came out, and why, as far as that is known.
fn driven(found: &Answer, live: &LiveCheck, best: &Capacity, criterion: &Criterion) -> String {
    let (at, beyond) = (in_words(&live.at, criterion), in_words(&live.beyond, criterion));
    let mut words = format!("live: {at}; a tenth beyond: {beyond}\n");
    if found.is_lower_bound() {
        let _ = writeln!(words, "both held: {} q/s is a lower bound of what this machine sustains", rate(best.qps));
    }
    if !live.at.verdict.holds() && live.at.slowdown > BUSY {
        let times = text(live.at.slowdown, 3);
        let _ = writeln!(
            words,
            "queries cost {times} times what they did when the machine was calibrated, seconds before: something else keeps it busy"
        );
    } else if !live.at.verdict.holds() && found.disturbed {
        words.push_str("what queries cost in that run explains no such loss: something else held the workers up\n");
    }
    words
}

/// The policies that came near, and those that did not.
fn simulated(found: &Answer) -> String {
    let mut words = String::from("\nby simulation, with what queries cost here while others are served:\n");
    let mut table = Table::new(["policy", "q/s", "interval", "fails at", "of limit", "flips", "no miss"]);
    for capacities in &found.capacities {
        let found = &capacities.objective;
        table.row([
            found.policy.clone(),
            rate(found.qps),
            format!("{} to {}", rate(found.interval.low), rate(found.interval.high)),
            found.failing_qps.map_or(String::from("-"), rate),
            format!("{:.1} %", 100.0 * found.share_of_bound()),
            found.flips.to_string(),
            capacities.no_miss.as_ref().map_or(String::from("-"), |found| rate(found.qps)),
        ]);
    }
    let _ = write!(words, "{table}");
    words.push_str("fails at: the lowest rate that failed with any of the seeds, of which q/s is the median\n");
    if !found.out_of_reach.is_empty() {
        let others: Vec<String> =
            found.out_of_reach.iter().map(|(policy, qps)| format!("{policy} {}", rate(*qps))).collect();
        let _ = writeln!(words, "not looked at any closer, by what queries cost alone: {}", others.join(", "));
    }
    words
}

/// What the answer is no surer than: for people, and for the files that are read later.
pub(super) fn warnings(found: &Answer) -> Vec<String> {
    let disagree = |Disagreement { class, least, most }: &Disagreement| {
        let (least, most) = (text(*least, 3), text(*most, 3));
        format!(
            "backlogs disagree: on the {class} queries cost {least} to {most} times what they do alone, and not only one of five is \
             off by more than 10 %: something else keeps this machine busy, and the answer is no surer than that"
        )
    };
    found.disagreements.iter().map(disagree).collect()
}

/// `held at 3120 q/s (15600 queries in 5 s, 0.2 % late)`.
fn in_words(live: &LiveRate, criterion: &Criterion) -> String {
    let verdict = &live.verdict;
    let late = 100.0 * verdict.late as f64 / verdict.queries.max(1) as f64;
    let held = if verdict.holds() {
        "held"
    } else if verdict.late <= verdict.allowed {
        "missed (still growing)"
    } else {
        "missed"
    };
    let again = if live.attempts > 1 { ", the better of two runs" } else { "" };
    let seconds = text(verdict.queries as f64 / live.qps, 2);
    let (qps, late) = (text(live.qps, 4), text(late, 2));
    let needed = RunLength::told_by(criterion);
    let few = if verdict.queries < needed { format!(", fewer than the {needed} that tell") } else { String::new() };
    format!("{held} at {qps} q/s ({} queries in {seconds} s, {late} % late{again}{few})", verdict.queries)
}
