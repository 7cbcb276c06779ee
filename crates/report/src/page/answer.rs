//! The summary of a folder of capacities: the rate, and its certainty.

use super::capacity::{Capacity, LiveRun, errors_in_words, kept_in_words};
use super::html::{number, percent, rounded};
use crate::number;
use crate::text::escaped;

/// The texts at the top of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Story {
    pub(crate) question: String,
    /// The answer in HTML, with the important parts in bold.
    pub(crate) answer: String,
    /// Sentences on the certainty of the answer.
    pub(crate) certainty: Vec<String>,
    /// Few numbers with their names.
    pub(crate) facts: Vec<(String, String)>,
}

pub(crate) fn strong(text: &str) -> String {
    format!("<strong>{}</strong>", escaped(text))
}

/// The summary of some capacities, at least one, in descending order.
pub(crate) fn of_capacities(all: &[Capacity]) -> Story {
    let measured: Vec<Capacity> = all.iter().filter(|c| c.is_measured()).cloned().collect();
    let shown = if measured.is_empty() { all } else { &measured[..] };
    let best = &shown[0];
    let kept = kept_in_words(&best.objective, best.deadline_ms);
    let answer = answer(best, shown) + &prediction(best) + &against_the_least(best, shown);
    let certainty = [
        how_narrow(best, shown),
        best.live.iter().map(|run| live_run(best, run)).collect(),
        share_of_bound(best).into_iter().collect(),
        errors_in_words(all).into_iter().collect(),
        runs_in_words(best).into_iter().collect(),
        flips(best).into_iter().collect(),
    ];
    let facts = best.at_rate.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let question = format!("What query rate can be sustained so that {kept}?");
    Story { question, answer, certainty: certainty.concat(), facts }
}

/// The rate above which no scheduler is stable, if a capacity exceeds it. A short run tolerates a growing backlog, so the
/// capacity means nothing there.
fn beyond(best: &Capacity) -> Option<f64> {
    best.region_qps.filter(|&region| best.qps > region)
}

/// The policy, or those of equal capacity: `the policy mct`.
fn under(best: &Capacity, shown: &[Capacity]) -> String {
    let equal: Vec<String> = shown.iter().filter(|c| c.qps >= 0.999 * best.qps).map(|c| strong(&c.policy)).collect();
    match equal.split_last() {
        Some((last, others)) if !others.is_empty() => format!("the policies {} and {last}", others.join(", ")),
        _ => format!("the policy {}", strong(&best.policy)),
    }
}

fn answer(best: &Capacity, shown: &[Capacity]) -> String {
    let how = if best.is_measured() { "driven live" } else { "by simulation" };
    let under = under(best, shown);
    let rate = |qps: f64| strong(&best.rate(qps));
    if best.qps == 0.0 {
        return String::from("Unknown: no tested rate met the objective.");
    }
    if let Some(region) = beyond(best) {
        return format!(
            "Up to {} queries per second, {how}, under {under}. It is the highest rate at which any scheduler is stable in \
             the long run. These runs are too short to find a lower limit.",
            rate(region)
        );
    }
    if best.is_measured() {
        let runs = best.live_runs.map_or_else(String::new, |(runs, seconds)| {
            format!(" ({} live runs of {} s)", number(runs), number(seconds))
        });
        let replayed = if best.source == "live" { "" } else { ", with a replayed GPU" };
        return format!("{} queries per second, driven live{runs}{replayed}, under {under}.", rate(best.qps));
    }
    format!("{} queries per second, by simulation, under {under}.", rate(best.qps))
}

fn prediction(best: &Capacity) -> String {
    let predicted = best.predicted_qps.filter(|_| best.qps > 0.0);
    predicted.map_or_else(String::new, |predicted| {
        let error = percent(best.error().unwrap_or(0.0), true);
        let interval = best.predicted.map_or_else(String::new, |(low, high)| {
            let end = |qps: f64| number::rate(qps, high / predicted - 1.0);
            format!(", with a 90 % interval of {} to {}", end(low), end(high))
        });
        format!(" The simulator predicted {} ({error}){interval}.", best.predicted_rate().unwrap_or_default())
    })
}

fn against_the_least(best: &Capacity, shown: &[Capacity]) -> String {
    let least = shown.iter().rev().find(|c| c.qps > 0.0 && c.qps < 0.9 * best.qps);
    least.filter(|_| beyond(best).is_none()).map_or_else(String::new, |least| {
        let times = rounded(best.qps / least.qps, 3);
        format!(" This is {times} times the capacity under {}.", escaped(&least.policy))
    })
}

fn how_narrow(best: &Capacity, shown: &[Capacity]) -> Vec<String> {
    let sentence = match (best.confidence, best.interval, best.failing_qps) {
        (Some(confidence), Some((low, high)), _) if best.is_measured() => format!(
            "The {} % interval of this rate is {} to {}: it has the two sides, how the machine's speed varied, and how many \
             queries were driven.",
            number(100.0 * confidence),
            best.rate(low),
            best.rate(high)
        ),
        (Some(confidence), Some((low, high)), _) => format!(
            "The {} % interval of this rate over {} seeds is {} to {}.",
            number(100.0 * confidence),
            number(best.seeds.unwrap_or(0.0)),
            best.ends((low, high))[0],
            best.ends((low, high))[1]
        ),
        _ if best.qps == 0.0 => {
            let lowest = shown.iter().filter_map(|c| c.failing_qps).reduce(f64::min);
            let failed = |failing| format!("The lowest tested rate, {}, failed.", rounded(failing, 4));
            return lowest.map(failed).into_iter().collect();
        }
        (_, _, Some(failing)) if failing > best.qps => format!(
            "The objective was met at {}. The lowest rate that failed is {} ({} higher).",
            rounded(best.qps, 4),
            rounded(failing, 4),
            percent(failing / best.qps - 1.0, false)
        ),
        (_, _, None) => String::from("No tested rate failed, so the limit may be higher. Longer runs can find it."),
        _ => return Vec::new(),
    };
    vec![sentence]
}

/// The live runs at a rate, of which the majority decides.
fn live_run(best: &Capacity, run: &LiveRun) -> String {
    let outcome = if run.held { "met" } else { "missed" };
    let late = match (run.late, run.queries) {
        (Some(late), Some(queries)) => {
            format!("; in all of them together {} of {} queries were late", number(late), number(queries))
        }
        _ => String::new(),
    };
    format!("Most live runs at {} queries per second {outcome} the objective{late}.", best.rate(run.qps))
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

fn runs_in_words(best: &Capacity) -> Option<String> {
    let queries = number(best.queries?);
    Some(match best.seeds {
        Some(seeds) if seeds > 1.0 => {
            format!("Each rate was tested with {} seeds, in runs of {queries} queries.", number(seeds))
        }
        Some(_) => format!(
            "Each rate was tested in one run of {queries} queries with one seed. Other arrivals give other limits; more \
             seeds (--seeds 1:10) show the differences."
        ),
        None => format!("The run at this rate had {queries} queries and one seed."),
    })
}

fn flips(best: &Capacity) -> Option<String> {
    let text = "With rising rates the objective is missed, met and missed again, so the limit is not sharp.";
    best.flips.filter(|&flips| flips > 1.0).map(|_| String::from(text))
}
