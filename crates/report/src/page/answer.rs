//! The answer where a folder tells of capacities: the rate, and how sure it is, in words.

use super::capacity::{Capacity, LiveRun, errors_in_words, kept_in_words};
use super::html::{number, percent, rounded};
use super::story::{Story, strong};
use crate::text::escaped;

/// The story of some capacities, at least one, the highest first.
pub(super) fn of_capacities(all: &[Capacity]) -> Story {
    let measured: Vec<Capacity> = all.iter().filter(|c| c.is_measured()).cloned().collect();
    let shown = if measured.is_empty() { all } else { &measured[..] };
    let best = &shown[0];
    let kept = kept_in_words(&best.objective, best.deadline_ms);
    let mut answer = answer(best, shown);
    answer += &prediction(best);
    answer += &against_the_least(best, shown);
    let certainty = [
        how_narrow(best, shown),
        best.live.iter().map(driven).collect(),
        share_of_bound(best).into_iter().collect(),
        errors_in_words(all).into_iter().collect(),
        runs_in_words(best).into_iter().collect(),
        flips(best).into_iter().collect(),
    ];
    let facts = vec![(String::from("Capacity"), in_short(best)), (String::from("Kept"), kept.clone())];
    let question = format!("What query rate can be sustained so that {kept}?");
    Story { question, answer, certainty: certainty.concat(), facts }
}

/// The rate above which no scheduler is stable, if a capacity is beyond it: a short run forgives a backlog that grows, and tells
/// nothing there.
fn beyond(best: &Capacity) -> Option<f64> {
    best.region_qps.filter(|&region| best.qps > region)
}

/// `the policy mct`, or those that are as good.
fn under(best: &Capacity, shown: &[Capacity]) -> String {
    let alike: Vec<String> = shown.iter().filter(|c| c.qps >= 0.999 * best.qps).map(|c| strong(&c.policy)).collect();
    match alike.split_last() {
        Some((last, others)) if !others.is_empty() => format!("the policies {} and {last} alike", others.join(", ")),
        _ => format!("the policy {}", strong(&best.policy)),
    }
}

/// The answer itself, in HTML.
fn answer(best: &Capacity, shown: &[Capacity]) -> String {
    let how = if best.is_measured() { "driven live" } else { "by simulation" };
    let under = under(best, shown);
    let rate = |qps: f64| strong(&rounded(qps, 4));
    if best.qps == 0.0 {
        return String::from("Unknown: at none of the rates that were tried it could be kept.");
    }
    if let Some(region) = beyond(best) {
        return format!(
            "Up to {} queries a second, {how}, under {under}: the highest rate at which any scheduler is stable in the \
             long run. These runs are too short to find a limit below it.",
            rate(region)
        );
    }
    if best.is_measured() {
        let runs = best.live_runs.map_or_else(String::new, |(runs, seconds)| {
            format!(" ({} live runs of {} s)", number(runs), number(seconds))
        });
        let replayed = if best.source == "live" { "" } else { ", with a replayed GPU" };
        return format!("{} queries a second, driven live{runs}{replayed}, under {under}.", rate(best.qps));
    }
    format!("{} queries a second, by simulation, under {under}.", rate(best.qps))
}

/// What had been predicted of it.
fn prediction(best: &Capacity) -> String {
    let predicted = best.predicted_qps.filter(|_| best.qps > 0.0);
    predicted.map_or_else(String::new, |predicted| {
        let error = percent(best.error().unwrap_or(0.0), true);
        format!(" The simulator had predicted {} before ({error}).", rounded(predicted, 4))
    })
}

/// How much more it is than the least.
fn against_the_least(best: &Capacity, shown: &[Capacity]) -> String {
    let least = shown.iter().rev().find(|c| c.qps > 0.0 && c.qps < 0.9 * best.qps);
    least.filter(|_| beyond(best).is_none()).map_or_else(String::new, |least| {
        let times = rounded(best.qps / least.qps, 3);
        format!(" That is {times} times what {} sustains.", escaped(&least.policy))
    })
}

/// Between what the capacity lies.
fn how_narrow(best: &Capacity, shown: &[Capacity]) -> Vec<String> {
    let sentence = match (best.confidence, best.interval, best.failing_qps) {
        (Some(confidence), Some((low, high)), _) if best.is_measured() => format!(
            "The {} % interval of this rate is {} to {}: it has the two sides, how the machine's speed varied, and how many \
             queries were driven.",
            number(100.0 * confidence),
            rounded(low, 3),
            rounded(high, 3)
        ),
        (Some(confidence), Some((low, high)), _) => format!(
            "The {} % interval of this rate over {} seeds is {} to {}.",
            number(100.0 * confidence),
            number(best.seeds.unwrap_or(0.0)),
            rounded(low, 4),
            rounded(high, 4)
        ),
        _ if best.qps == 0.0 => {
            let lowest = shown.iter().filter_map(|c| c.failing_qps).reduce(f64::min);
            let told = |failing| format!("The lowest rate that was tried, {}, failed.", rounded(failing, 4));
            return lowest.map(told).into_iter().collect();
        }
        (_, _, Some(failing)) if failing > best.qps => format!(
            "It held at {}; the lowest rate that failed is {} ({} above).",
            rounded(best.qps, 4),
            rounded(failing, 4),
            percent(failing / best.qps - 1.0, false)
        ),
        (_, _, None) => {
            String::from("No rate was found that failed: the limit may lie higher. Longer runs would tell more.")
        }
        _ => return Vec::new(),
    };
    vec![sentence]
}

/// How a live run came out.
fn driven(run: &LiveRun) -> String {
    let held = if run.held { "held" } else { "did not hold" };
    let late = match (run.late, run.queries) {
        (Some(late), Some(queries)) => format!(": {} of {} queries were late", number(late), number(queries)),
        _ => String::new(),
    };
    format!("Driven live at {} queries a second it {held}{late}.", rounded(run.qps, 4))
}

fn share_of_bound(best: &Capacity) -> Option<String> {
    let bound = best.bound_qps.filter(|&bound| bound > 0.0)?;
    Some(format!(
        "With the costs that were measured here, no scheduler sustains more than {} on these arrivals: {} reaches {} of that.",
        rounded(bound, 4),
        best.policy,
        percent(best.qps / bound, false)
    ))
}

/// What was played at each rate.
fn runs_in_words(best: &Capacity) -> Option<String> {
    let queries = number(best.queries?);
    Some(match best.seeds {
        Some(seeds) if seeds > 1.0 => {
            format!("Every rate was tried with {} seeds, in runs of {queries} queries.", number(seeds))
        }
        Some(_) => format!(
            "Each rate was one run of {queries} queries with one seed: other arrivals would move the limit. More seeds (--seeds \
             1:10) say how far."
        ),
        None => format!("A run at this rate had {queries} queries, of one seed."),
    })
}

fn flips(best: &Capacity) -> Option<String> {
    best.flips
        .filter(|&flips| flips > 1.0)
        .map(|_| String::from("As rates rise, misses come, go and come again: the limit is not sharp."))
}

/// The capacity as a fact.
fn in_short(best: &Capacity) -> String {
    let rate = |qps: f64| format!("{} q/s", rounded(qps, 4));
    if best.qps == 0.0 {
        return String::from("unknown: no rate held");
    }
    match beyond(best) {
        Some(region) => format!("≥ {}", rate(region)),
        None => rate(best.qps),
    }
}
