//! The summary of a folder: question, answer and certainty.

use super::answer::{Story, of_capacities, strong};
use super::answers::fact;
use super::capacity::{Capacity, file_of, kept_in_words};
use super::costs::service_times;
use super::delays::{Runs, curves};
use super::folder::{Folder, Kind};
use super::html::{number, percent, rounded};
use super::sweep;
use crate::number::{counted, significant};
use crate::sheet::{Sheet, SheetRow};
use crate::text::escaped;

pub(crate) fn story(folder: &Folder, capacities: &[Capacity]) -> Story {
    let source = source(folder, capacities);
    let note = |key: &str| source.map_or_else(|| folder.note(key), |sheet| fact(sheet, key));
    let mut story = if capacities.is_empty() {
        let answered = of_sweep(folder).or_else(|| of_plan(folder)).or_else(|| of_no_answer(folder));
        answered.or_else(|| of_delays(folder)).or_else(|| of_costs(folder)).unwrap_or_else(|| plain(folder))
    } else {
        of_capacities(capacities)
    };
    if let Some(answer) = note("answer") {
        story.answer = strong(answer);
        story.facts.clear();
    }
    if let Some(gpu) = note("gpu").filter(|gpu| gpu.contains("replay")) {
        story.certainty.push(format!("No GPU was used. Its lane replays recorded times ({gpu})."));
    }
    story.certainty.splice(0..0, unread(folder));
    story.certainty.extend(warnings(folder));
    story.certainty.extend(unanswered(folder));
    story.certainty.extend(lateness(folder));
    if let Some(estimates) = note("estimates") {
        story.certainty.push(match estimates {
            "oracle" => {
                String::from("Policies knew the true costs, which no real scheduler does. This is the best case.")
            }
            "model" => String::from("Policies knew only estimates, by models that had not seen the query."),
            name => format!("Policies knew only estimates of the model {name}."),
        });
    }
    for (key, name) in FACTS {
        if let Some(value) = note(key)
            && story.facts.iter().all(|(known, _)| known != name)
        {
            // Of a path the last part, without what says how it is packed.
            let last = value.rsplit('/').next().unwrap_or(value);
            let short = last.split(".workload.csv").next().unwrap_or(last);
            story.facts.push((name.to_owned(), short.to_owned()));
        }
    }
    story
}

/// Keys of files' comment lines with their names on the page. The first of a name counts.
const FACTS: [(&str, &str); 9] = [
    ("machine", "Machine"),
    ("cpu_workers", "CPU workers"),
    ("mode", "Mode"),
    ("k", "Results per query"),
    ("arrivals", "Arrivals"),
    ("workload", "Workload"),
    ("index_name", "Index"),
    ("index", "Index"),
    ("gpu", "GPU"),
];

/// The file of the answer, from which all facts come; `None` if the answer is not in one table.
fn source<'a>(folder: &'a Folder, capacities: &[Capacity]) -> Option<&'a Sheet> {
    let first = |kind| folder.of(kind).next();
    let by_kind = || [Kind::Sweep, Kind::Plan, Kind::Validation].into_iter().find_map(first);
    capacities.first().and_then(|best| file_of(folder, best)).or_else(by_kind)
}

/// The story of a sweep.
fn of_sweep(folder: &Folder) -> Option<Story> {
    let (question, answer) = sweep::answer(folder)?;
    Some(Story { question, answer: escaped(&answer), certainty: sweep::warnings(folder), facts: sweep::facts(folder) })
}

/// The story of a plan: its first row is the best.
fn of_plan(folder: &Folder) -> Option<Story> {
    let lines: Vec<SheetRow<'_>> = folder.of(Kind::Plan).flat_map(Sheet::lines).collect();
    let best = lines.first()?;
    let known = |column: &str, digits| Some(number(significant(best.number(column)?, digits)));
    let machines = counted(best.number("machines")? as usize, "machine", "machines");
    let spare = best.number("spare").filter(|&spare| spare > 0.0);
    let spare = spare.map_or_else(String::new, |spare| format!(", {} of them spare", number(spare)));
    let p99 = known("p99_ms", 3).map_or_else(String::new, |ms| format!(" The p99 is {ms} ms."));
    Some(Story {
        question: format!(
            "Which machines serve {} queries per second within {} ms at the least cost?",
            known("typical_qps", 4)?,
            known("deadline_ms", 4)?
        ),
        answer: format!(
            "{} under {}{spare}: {} per month.{p99}",
            strong(&format!("{machines} {}", best.text("machine"))),
            escaped(best.text("policy")),
            strong(&known("price_per_month", 4)?)
        ),
        certainty: vec![format!(
            "{} % of the draws of demand, query costs and machine speed are served.",
            number(significant(100.0 * best.number("served_share")?, 3))
        )],
        facts: Vec::new(),
    })
}

/// The story of live runs without an answer.
fn of_no_answer(folder: &Folder) -> Option<Story> {
    let runs = folder.of(Kind::Validation).next()?;
    let kept = kept_in_words(runs.provenance.get("objective")?, None);
    let question = format!("What query rate can be sustained so that {kept}?");
    Some(Story { question, answer: strong("No answer: no capacity was measured."), ..Story::default() })
}

/// Maximum unreadable lines that are shown. Others are counted.
const MOST_UNREAD: usize = 5;

/// Results that could not be read, which may affect the answer.
fn unread(folder: &Folder) -> Vec<String> {
    let shown = folder.unread.iter().take(MOST_UNREAD).map(|why| format!("Could not be read: {why}."));
    let more = folder.unread.len().saturating_sub(MOST_UNREAD);
    let more = (more > 0).then(|| format!("Could not be read: {}.", counted(more, "other place", "other places")));
    shown.chain(more).collect()
}

/// Warnings of the commands that wrote the files.
fn warnings(folder: &Folder) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    let lines = folder.sheets.iter().flat_map(|(_, sheet)| sheet.provenance.lines());
    for (_, warning) in lines.filter(|(key, _)| ["warning", "extrapolated"].contains(key)) {
        let warning = format!("Warning: {warning}.");
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings
}

/// Queries of live runs without an answer, whose delays are in no percentile.
fn unanswered(folder: &Folder) -> Option<String> {
    const COLUMNS: [&str; 3] = ["unsent", "unfinished", "unreleased"];
    let lines = || folder.of(Kind::Validation).chain(folder.of(Kind::Summary)).flat_map(Sheet::lines);
    let of_runs: Vec<f64> = lines()
        .filter(|line| COLUMNS.iter().any(|column| line.number(column).is_some()))
        .map(|line| COLUMNS.iter().filter_map(|column| line.number(column)).sum())
        .collect();
    let runs = of_runs.iter().filter(|&&queries| queries > 0.0).count();
    (runs > 0).then(|| {
        let queries: f64 = of_runs.iter().sum();
        format!(
            "In {runs} of {} live runs {} queries were not answered, since they were given up or interrupted.",
            of_runs.len(),
            number(queries)
        )
    })
}

/// Share of the deadline above which a driver's lag affects the measured delays.
const LATE_SHARE: f64 = 0.1;

/// Whether the driver of live runs was late, so that measured delays include other work of the machine.
fn lateness(folder: &Folder) -> Option<String> {
    let lines = || folder.of(Kind::Validation).chain(folder.of(Kind::Summary)).flat_map(Sheet::lines);
    let lags = lines().filter_map(|line| line.number("measured_lag_max_ms").or_else(|| line.number("lag_p99_ms")));
    let lags: Vec<f64> = lags.collect();
    let deadlines = folder.of(Kind::ValidationCapacity).chain(folder.of(Kind::Capacity)).flat_map(Sheet::lines);
    let deadline_ms = deadlines.filter_map(|line| line.number("deadline_ms")).next()?;
    let late = lags.iter().filter(|&&lag_ms| lag_ms > LATE_SHARE * deadline_ms).count();
    (late > 0).then(|| {
        format!(
            "In {late} of {} live runs the driver itself was late by more than {} ms, and measured delays include it.",
            lags.len(),
            number(LATE_SHARE * deadline_ms)
        )
    })
}

/// The summary of runs at given rates: the highest rate without a miss in any seed.
fn of_delays(folder: &Folder) -> Option<Story> {
    let lines: Vec<_> = folder.of(Kind::Summary).flat_map(Sheet::lines).collect();
    let curves = curves(folder);
    let played = curves.iter().flat_map(|((_, policy, _), rates)| rates.values().map(move |runs| (policy, runs)));
    let good = played.filter(|(_, runs)| runs.most("missed").is_some() && runs.is_kept());
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
                    "At {} queries per second {} answered half of the queries within {} ms, 99 % within {}, and all of them within {} ms. None missed its deadline.",
                    strong(&rounded(rate, 4)),
                    strong(policy),
                    number(runs.median("p50_ms").unwrap_or(f64::NAN)),
                    strong(&format!("{} ms", number(p99))),
                    number(runs.most("max_ms").unwrap_or(f64::NAN))
                ),
                vec![
                    (String::from("Highest rate without a miss"), format!("{} q/s", number(rate))),
                    (String::from("p99 at this rate"), format!("{} ms", number(p99))),
                ],
            )
        }
        (None, Some(_)) => (
            String::from(
                "A query missed its deadline in every run. The tested rates exceed the capacity of this machine.",
            ),
            Vec::new(),
        ),
        (None, None) => return None,
    };
    let queries: f64 = lines.iter().filter_map(|line| line.number("queries")).sum();
    let certainty = vec![format!(
        "{} of {} in total, {}.",
        counted(lines.len(), "run", "runs"),
        counted(policies, "policy", "policies"),
        format_args!("{} queries", number(queries))
    )];
    Some(Story { question: String::from("What are the delays at these rates?"), answer, certainty, facts })
}

/// The summary of workloads or models.
fn of_costs(folder: &Folder) -> Option<Story> {
    if let Some((_, workload)) = folder.workloads.first() {
        let (class, mode, us) = service_times(workload).into_iter().next()?;
        let mean = us.iter().sum::<f64>() / us.len() as f64;
        return Some(Story {
            question: String::from("What does a query cost?"),
            answer: format!(
                "On {} a query in mode {} takes {} on average over {} queries.",
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
        question: String::from("How exact are estimates of costs?"),
        answer: format!(
            "On {} in mode {} the mean error of estimates is {}.",
            strong(model.kind.name()),
            model.mode,
            strong(&percent(e.mean_relative_error, false))
        ),
        certainty: vec![format!(
            "The error is from a {}-fold cross-validation over {} queries, by models that had not seen the query. Estimating the mean cost for every query has an error of {}.",
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
        "How fast are the parts of this node?"
    } else {
        "What is in this folder?"
    };
    Story {
        question: question.to_owned(),
        answer: format!("The folder contains {} of results.", counted(tables, "table", "tables")),
        ..Story::default()
    }
}
