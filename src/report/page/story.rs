//! The story in words: the question, the answer, how sure.

use super::capacity::{Capacity, errors_in_words, kept_in_words};
use super::costs::service_times;
use super::delays::{Runs, curves};
use super::folder::{Folder, Kind};
use super::html::{escaped, number, percent, rounded};
use super::sheet::Sheet;
use super::sweep;

/// What a reader should know before any picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Story {
    pub(super) question: String,
    /// HTML: what matters most is strong.
    pub(super) answer: String,
    /// Sentences.
    pub(super) certainty: Vec<String>,
    /// Few numbers, each with what it is.
    pub(super) facts: Vec<(String, String)>,
}

/// The story of a folder.
pub(super) fn story(folder: &Folder, capacities: &[Capacity]) -> Story {
    let mut story = if capacities.is_empty() {
        of_sweep(folder).or_else(|| of_delays(folder)).or_else(|| of_costs(folder)).unwrap_or_else(|| plain(folder))
    } else {
        of_capacities(capacities)
    };
    if let Some(gpu) = folder.note("gpu").filter(|gpu| gpu.contains("replay")) {
        story.certainty.push(format!("No GPU was driven: its lane stands for one by recorded times ({gpu})."));
    }
    story.certainty.extend(lateness(folder));
    if let Some(estimates) = folder.note("estimates") {
        story.certainty.push(match estimates {
            "oracle" => {
                String::from("Policies were told the true costs, which no real scheduler knows: this is the best case.")
            }
            "model" => String::from("Policies saw estimates only, by models that had not seen the query."),
            name => format!("Policies saw estimates only, of the model {name}."),
        });
    }
    for (key, name) in [("machine", "Run on"), ("mode", "Mode"), ("workload", "Workload"), ("index", "Index")] {
        if let Some(value) = folder.note(key) {
            // Of a path the last part, without what says how it is packed.
            let last = value.rsplit('/').next().unwrap_or(value);
            let short = last.split(".workload.csv").next().unwrap_or(last);
            story.facts.push((name.to_owned(), short.to_owned()));
        }
    }
    story
}

/// Of a sweep.
fn of_sweep(folder: &Folder) -> Option<Story> {
    let (question, answer) = sweep::answer(folder)?;
    Some(Story { question, answer: escaped(&answer), ..Story::default() })
}

/// A driver that is late by more than this share of the deadline measures itself, too.
const LATE_SHARE: f64 = 0.1;

/// Whether the driver of live runs was late by much: what was measured then has the machine's other work in it.
fn lateness(folder: &Folder) -> Option<String> {
    let lines = || folder.of(Kind::Validation).chain(folder.of(Kind::Summary)).flat_map(Sheet::lines);
    let lags = lines().filter_map(|line| line.number("measured_lag_max_ms").or_else(|| line.number("lag_p99_ms")));
    let lags: Vec<f64> = lags.collect();
    let deadlines = folder.of(Kind::ValidationCapacity).chain(folder.of(Kind::Capacity)).flat_map(Sheet::lines);
    let deadline_ms = deadlines.filter_map(|line| line.number("deadline_ms")).next()?;
    let late = lags.iter().filter(|&&lag_ms| lag_ms > LATE_SHARE * deadline_ms).count();
    (late > 0).then(|| {
        format!(
            "In {late} of {} live runs something else kept this machine busy: the driver itself was late by more than {} \
             ms, and measured delays include it.",
            lags.len(),
            number(LATE_SHARE * deadline_ms)
        )
    })
}

fn strong(text: &str) -> String {
    format!("<strong>{}</strong>", escaped(text))
}

fn of_capacities(all: &[Capacity]) -> Story {
    let measured: Vec<Capacity> = all.iter().filter(|c| c.is_measured()).cloned().collect();
    let shown = if measured.is_empty() { all } else { &measured[..] };
    let best = &shown[0];
    let kept = kept_in_words(&best.objective, best.deadline_ms);
    let how = if best.is_measured() { "measured live" } else { "by simulation" };
    let alike: Vec<String> = shown.iter().filter(|c| c.qps >= 0.999 * best.qps).map(|c| strong(&c.policy)).collect();
    let under = match alike.split_last() {
        Some((last, others)) if !others.is_empty() => format!("the policies {} and {last} alike", others.join(", ")),
        _ => format!("the policy {}", strong(&best.policy)),
    };
    // A short run forgives a backlog that grows: beyond the rate that any scheduler is stable at, it tells nothing.
    let beyond = best.region_qps.filter(|&region| best.qps > region);
    let mut answer = match beyond {
        _ if best.qps == 0.0 => String::from("Unknown: at none of the rates that were tried it could be kept."),
        Some(region) => format!(
            "Up to {} queries a second, {how}, under {under}: the highest rate at which any scheduler is stable in the \
             long run. These runs are too short to find a limit below it.",
            strong(&rounded(region, 4))
        ),
        None => match (best.refuted(), best.held_qps) {
            (false, _) => format!("{} queries a second, {how}, under {under}.", strong(&rounded(best.qps, 4))),
            (true, Some(held)) => format!(
                "{} queries a second held when they were driven live, under {under}. {} were simulated, and did not hold.",
                strong(&rounded(held, 4)),
                rounded(best.qps, 4)
            ),
            (true, None) => format!(
                "{} {} queries a second are simulated, under {under}, and neither they nor any lower rate that was driven \
                 live held.",
                strong("Unknown."),
                rounded(best.qps, 4)
            ),
        },
    };
    if let Some(predicted) = best.predicted_qps.filter(|_| best.qps > 0.0) {
        let error = percent(best.error().unwrap_or(0.0), true);
        answer += &format!(" The simulator had predicted {} before ({error}).", rounded(predicted, 4));
    }
    let least = shown.iter().rev().find(|c| c.qps > 0.0 && c.qps < 0.9 * best.qps);
    if let Some(least) = least.filter(|_| beyond.is_none()) {
        let times = rounded(best.qps / least.qps, 3);
        answer += &format!(" That is {times} times what {} sustains.", escaped(&least.policy));
    }
    let mut certainty = Vec::new();
    match (best.confidence, best.interval, best.failing_qps) {
        (Some(confidence), Some((low, high)), _) => certainty.push(format!(
            "The {} % interval of this rate over {} seeds is {} to {}.",
            number(100.0 * confidence),
            number(best.seeds.unwrap_or(0.0)),
            rounded(low, 4),
            rounded(high, 4)
        )),
        _ if best.qps == 0.0 => {
            let lowest = shown.iter().filter_map(|c| c.failing_qps).reduce(f64::min);
            certainty.extend(
                lowest.map(|failing| format!("The lowest rate that was tried, {}, failed.", rounded(failing, 4))),
            );
        }
        (_, _, Some(failing)) if failing > best.qps => certainty.push(format!(
            "It held at {}; the lowest rate that failed is {} ({} above).",
            rounded(best.qps, 4),
            rounded(failing, 4),
            percent(failing / best.qps - 1.0, false)
        )),
        (_, _, None) => certainty.push(String::from(
            "No rate was found that failed: the limit may lie higher. Longer runs would tell more.",
        )),
        _ => {}
    }
    certainty.extend(best.live.iter().map(|(qps, held)| {
        let held = if *held { "held" } else { "did not hold" };
        format!("Driven live at {} queries a second it {held}.", rounded(*qps, 4))
    }));
    if let Some(bound) = best.bound_qps.filter(|&bound| bound > 0.0) {
        certainty.push(format!(
            "No scheduler whatever could sustain more than {} on these arrivals: {} reaches {} of that.",
            rounded(bound, 4),
            best.policy,
            percent(best.qps / bound, false)
        ));
    }
    certainty.extend(errors_in_words(all));
    match (best.seeds, best.queries) {
        (Some(seeds), Some(queries)) if seeds > 1.0 => certainty.push(format!("Every rate was tried with {} seeds, in runs of {} queries.", number(seeds), number(queries))),
        (Some(_), Some(queries)) => certainty.push(format!("Each rate was one run of {} queries with one seed: other arrivals would move the limit. More seeds (--seeds 1:10) say how far.", number(queries))),
        (None, Some(queries)) => certainty.push(format!("A run at this rate had {} queries, of one seed.", number(queries))),
        _ => {}
    }
    if best.flips.is_some_and(|flips| flips > 1.0) {
        certainty.push(String::from("As rates rise, misses come, go and come again: the limit is not sharp."));
    }
    let capacity = match (beyond, best.refuted(), best.held_qps) {
        _ if best.qps == 0.0 => String::from("unknown: no rate held"),
        (Some(region), _, _) => format!("≥ {} q/s", rounded(region, 4)),
        (None, true, None) => String::from("unknown: no rate held live"),
        (None, true, Some(held)) => format!("{} q/s", rounded(held, 4)),
        (None, false, _) => format!("{} q/s", rounded(best.qps, 4)),
    };
    let facts = vec![(String::from("Capacity"), capacity), (String::from("Kept"), kept.clone())];
    Story { question: format!("What query rate can be sustained so that {kept}?"), answer, certainty, facts }
}

/// Runs at given rates: what they came to at the highest rate that nobody missed at, in any seed.
fn of_delays(folder: &Folder) -> Option<Story> {
    let lines: Vec<_> = folder.of(Kind::Summary).flat_map(Sheet::lines).collect();
    let curves = curves(folder);
    let played = curves.iter().flat_map(|((_, policy, _), rates)| rates.values().map(move |runs| (policy, runs)));
    let good = played.filter(|(_, runs)| runs.most("missed").is_some() && runs.missed() == 0.0);
    let rate = |runs: &Runs<'_>| runs.most("rate_qps").unwrap_or(0.0);
    let best = good.max_by(|(_, a), (_, b)| rate(a).total_cmp(&rate(b)));
    let policies = {
        let mut names: Vec<&str> = lines.iter().map(|line| line.text("policy")).collect();
        names.sort_unstable();
        names.dedup();
        names.len()
    };
    let (answer, facts) = match (best, lines.first()) {
        (Some((policy, runs)), _) => {
            let (rate, p99) = (runs.most("rate_qps")?, runs.median("p99_ms")?);
            (
                format!(
                    "At {} queries a second {} answered half of the queries within {} ms, 99 % within {}, and all of them within {} ms; none missed its deadline.",
                    strong(&rounded(rate, 4)),
                    strong(policy),
                    number(runs.median("p50_ms").unwrap_or(f64::NAN)),
                    strong(&format!("{} ms", number(p99))),
                    number(runs.most("max_ms").unwrap_or(f64::NAN))
                ),
                vec![
                    (String::from("Highest rate without a miss"), format!("{} q/s", number(rate))),
                    (String::from("p99 there"), format!("{} ms", number(p99))),
                ],
            )
        }
        (None, Some(_)) => (
            String::from(
                "In every run some query missed its deadline: the rates tried are above what this machine sustains.",
            ),
            Vec::new(),
        ),
        (None, None) => return None,
    };
    let queries: f64 = lines.iter().filter_map(|line| line.number("queries")).sum();
    let certainty = vec![format!(
        "{} of {} in all, {}.",
        crate::report::number::counted(lines.len(), "run", "runs"),
        crate::report::number::counted(policies, "policy", "policies"),
        format_args!("{} queries", number(queries))
    )];
    Some(Story { question: String::from("How long do queries wait at these rates?"), answer, certainty, facts })
}

/// Workloads, models, benchmarks.
fn of_costs(folder: &Folder) -> Option<Story> {
    if let Some((_, workload)) = folder.workloads.first() {
        let (class, mode, us) = service_times(workload).into_iter().next()?;
        let mean = us.iter().sum::<f64>() / us.len() as f64;
        return Some(Story {
            question: String::from("What does a query cost?"),
            answer: format!(
                "On {} a query in mode {} takes {} in the mean, over {} queries.",
                strong(class.name()),
                mode,
                strong(&format!("{} µs", number(mean))),
                us.len()
            ),
            ..Story::default()
        });
    }
    let (_, model) = folder.models.first()?;
    let best = model.models().iter().filter_map(|model| Some((model, model.evaluation.as_ref()?)));
    let (model, e) = best.min_by(|a, b| a.1.mean_relative_error.total_cmp(&b.1.mean_relative_error))?;
    Some(Story {
        question: String::from("How well is a query's cost known before it runs?"),
        answer: format!(
            "On {}, mode {}, estimates are off by {} in the mean.",
            strong(model.kind.name()),
            model.mode,
            strong(&percent(e.mean_relative_error, false))
        ),
        certainty: vec![format!(
            "By {}-fold cross-validation over {} queries: each was estimated by a model that had not seen it. Always telling the mean cost would be off by {}.",
            e.folds,
            e.samples,
            percent(e.baseline_mean_relative_error, false)
        )],
        facts: Vec::new(),
    })
}

fn plain(folder: &Folder) -> Story {
    let tables = folder.sheets.len();
    let question = if folder.of(Kind::Bench).next().is_some() {
        "What do the parts of this node reach?"
    } else {
        "What is in this folder?"
    };
    Story {
        question: question.to_owned(),
        answer: format!("{} of results, below.", crate::report::number::counted(tables, "table", "tables")),
        ..Story::default()
    }
}
