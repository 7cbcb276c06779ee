//! Statements of Wei and JaJa, IPDPS 2011.

use super::cases::{above, below, joined, near, pair, with_papers};
use super::{Judge, Outcome, Statements, on_counts};
use crate::results::{Found, Gap, Results, Row, shown};

pub(super) const ALL: &[Statements] = &[
    on_counts("wei-fig10", FIG10_ROWS, fig10),
    on_counts("wei-table4", TABLE4_ROWS, table4),
    on_counts("wei-fig11", &["{} CPU: {}", "?{} CPU + {} GPUs: {}"], fig11),
    on_counts("wei-table5", &["tokens, {}", "terms, {}", "characters, {}"], table5),
    on_counts(
        "wei-table6",
        &["{}: sampling", "{}: combining", "{}: writing", "{}: merging the lists", "{}: from end to end"],
        table6,
    ),
    on_counts(
        "wei-fig12",
        &[
            "one machine, {}",
            "one machine: cores",
            "Ivory, 99 machines: cores",
            "single-pass MapReduce, 8 machines: cores",
        ],
        fig12,
    ),
    on_counts("wei-regrouping", REGROUPING_ROWS, regrouping),
    on_counts("wei-caches", &["{}: a look-up", "comparisons decided by a cache", "caches: gain"], caches),
];

const FIG10_ROWS: &[&str] = &[
    "parsers alone, M = {}",
    "?M + (8 - M) CPU, M = {}",
    "?M + (8 - M) CPU + 2 GPUs, M = {}",
    "{}: best M",
    "reading",
    "decompressing",
    "intake of 6 parsers, by the model",
];
const CPUS: &str = "M + (8 - M) CPU";
const GPUS: &str = "M + (8 - M) CPU + 2 GPUs";

fn fig10(judge: &mut Judge<'_>) {
    for (name, papers) in [(CPUS, 5.0), (GPUS, 6.0)] {
        judge.claim(format!("{name}: {papers} parsers are best"), |r| {
            near(vec![("best M".into(), r.ours(&format!("{name}: best M"))?, papers)], 0.0)
        });
    }
    judge.claim("With 1 to 5 parsers the three set-ups are similar (within 20 % of parsers alone)", |r| {
        let mut cases = Vec::new();
        for name in [CPUS, GPUS] {
            cases.extend(joined(r, &format!("{name}, M = {{}}"), "parsers alone, M = {}")?);
        }
        cases.retain(|(m, ..)| m.parse::<u32>().is_ok_and(|m| m <= 5));
        near(cases, 0.2)
    });
    judge.claim("Rates are almost linear in M from 1 to 5 (at least 4 times one parser's)", |r| {
        let five = |name: &str| {
            Ok((name.to_owned(), r.ours(&format!("{name}, M = 5"))?, 4.0 * r.ours(&format!("{name}, M = 1"))?))
        };
        let found = above(["parsers alone", CPUS, GPUS].into_iter().map(five).collect::<Found<_>>()?)?;
        let alone = r.ours("parsers alone, M = 5")? / r.ours("parsers alone, M = 1")?;
        let cause = format!("five parsers alone are {} times as fast as one", shown(alone));
        Ok(found.because(alone < 4.0, cause))
    });
    judge.claim("Beyond 5 parsers indexing cannot keep up without GPUs (M 7: below M 5)", |r| {
        below(pair(r, &format!("{CPUS}, M = 7"), &format!("{CPUS}, M = 5"))?)
    });
    judge.claim("With GPUs six parsers' text is indexed as fast as it is parsed (within 20 %)", |r| {
        near(pair(r, &format!("{GPUS}, M = 6"), "parsers alone, M = 6")?, 0.2)
    });
    judge.claim("Six parsers that decompress after reading can take in 469 MB/s (at least)", |r| {
        above(vec![("MB/s".into(), r.ours("intake of 6 parsers, by the model")?, 469.0)])
    });
}

const TABLE4_ROWS: &[&str] = &[
    "{}: before",
    "{}: indexing",
    "{}: after",
    "{}: in all",
    "2 CPU over 1",
    "2 CPU + 2 GPUs over 2 CPU",
    "?2 CPU + 2 GPUs over the sum of each alone",
    "2 GPUs: over the paper's",
];

/// The rate of an indexing set-up in MB/s, which has two more rows of the same name in other units.
fn rate(results: &Results, name: &str) -> Found<f64> {
    let row = format!("{name}: indexing");
    match rate_row(results, &row) {
        Some(row) => row.ours.ok_or_else(|| Gap(format!("`{}` needs a GPU", row.name))),
        None => results.ours(&row),
    }
}

fn rate_row<'r>(results: &'r Results, name: &str) -> Option<&'r Row> {
    results.rows.iter().find(|row| row.name == name && row.unit == "MB/s")
}

/// Returns how many times as fast as the paper's a set-up indexes.
fn over_the_papers(results: &Results, name: &str) -> Found<f64> {
    let papers = rate_row(results, &format!("{name}: indexing")).and_then(|row| row.paper);
    Ok(rate(results, name)? / papers.ok_or_else(|| Gap(format!("no rate of the paper for {name}")))?)
}

/// Fails on machines with fewer cores than the paper's eight, where indexers wait for parsers' cores.
fn enough_cores(results: &Results) -> Found<()> {
    let machine = results.provenance.get("machine").and_then(|machine| machine.strip_suffix(" cores"));
    match machine.and_then(|machine| machine.rsplit(' ').next()?.parse::<u32>().ok()) {
        Some(cores) if cores < 8 => Err(Gap(format!("{cores} cores, the paper's machine has eight"))),
        _ => Ok(()),
    }
}

fn table4(judge: &mut Judge<'_>) {
    judge.claim("Two CPU indexers are 1.77 times as fast as one (within 20 %)", |r| {
        enough_cores(r)?;
        near(with_papers(r, "2 CPU over 1")?, 0.2)
    });
    judge.claim("GPUs add 37.7 % to two CPU indexers (at least 30 %)", |r| {
        above(vec![("times".into(), rate(r, "2 CPU + 2 GPUs")? / rate(r, "2 CPU")?, 1.3)])
    });
    judge.claim("CPU and GPU together are faster than the sum of each alone (superlinear, 1.04)", |r| {
        let (both, cpu, gpu) = (rate(r, "2 CPU + 2 GPUs")?, rate(r, "2 CPU")?, rate(r, "2 GPUs")?);
        let found = above(vec![("both, and CPU plus GPU, MB/s".into(), both, cpu + gpu)])?;
        let cause = format!(
            "the GPU with all slots indexes {} MB/s, {} times as much as two CPUs: it waits for their slots",
            shown(gpu),
            shown(gpu / cpu)
        );
        Ok(found.because(gpu > both, cause))
    });
    judge.claim("A CPU indexer is faster than both GPUs", |r| {
        let found = above(vec![("MB/s".into(), rate(r, "1 CPU")?, rate(r, "2 GPUs")?)])?;
        let (cpu, gpu) = (over_the_papers(r, "1 CPU")?, over_the_papers(r, "2 GPUs")?);
        let cause = format!("the GPU is {} times as fast as the paper's two, a CPU indexer {}", shown(gpu), shown(cpu));
        Ok(found.because(gpu > 2.0 * cpu, cause))
    });
}

/// The rates of a part of the collection by set-up.
fn parts(results: &Results, first: &str, second: &str) -> Found<Vec<super::cases::Case>> {
    let mut cases = Vec::new();
    for set_up in ["{} CPU", "{} CPU + {} GPUs"] {
        let form = |part: &str| format!("{set_up}: {part}");
        if set_up.contains("GPUs") && !results.has(&form(first)) {
            continue;
        }
        cases.extend(joined(results, &form(first), &form(second))?);
    }
    Ok(cases)
}

fn fig11(judge: &mut Judge<'_>) {
    judge.claim("Rates fall sharply near the beginning (by 10 % at least)", |r| {
        let cases = parts(r, "the first files", "a quarter on")?;
        above(cases.into_iter().map(|(name, first, later)| (name, first, 1.1 * later)).collect())
    });
    judge.claim("They are nearly flat later (within 10 % from a quarter on to the change)", |r| {
        near(parts(r, "before the change", "a quarter on")?, 0.1)
    });
    judge.claim("They drop where the collection changes, for every set-up (by 5 % at least)", |r| {
        let cases = parts(r, "after it", "before the change")?;
        below(cases.into_iter().map(|(name, after, before)| (name, after, 0.95 * before)).collect())
    });
    judge.claim("CPU and GPU together drop the most", |r| {
        let cases = parts(r, "after it", "before the change")?;
        let change = |(name, after, before): &super::cases::Case| (name.clone(), after / before);
        let (both, alone): (Vec<_>, Vec<_>) = cases.iter().map(change).partition(|(name, _)| name.contains(", "));
        let Some((_, both)) = both.first() else { return Err(Gap(String::from("no GPU"))) };
        let found =
            below(alone.iter().map(|(name, alone)| (format!("with GPU and {name} CPU"), *both, *alone)).collect())?;
        let share = |when: &str| r.like(&format!("{{}} CPU + {{}} GPUs: {when}, tokens on GPUs"));
        let cause = share("before the change").ok().zip(share("after it").ok()).map(|(before, after)| {
            (
                after[0].1 > before[0].1,
                format!("the GPU gets {} % of the tokens after it, {} % before", shown(after[0].1), shown(before[0].1)),
            )
        });
        let (is_shown, cause) = cause.unwrap_or_default();
        Ok(found.because(is_shown, cause))
    });
}

fn table5(judge: &mut Judge<'_>) {
    for (what, papers, tolerance) in [("tokens", 0.796, 0.25), ("terms", 2.5, 0.5), ("characters", 2.15, 0.5)] {
        let percent = 100.0 * tolerance;
        judge.claim(
            format!("GPU indexers handle {papers} times as many {what} as CPU indexers (within {percent} %)"),
            |r| near(vec![("times".into(), r.ours(&format!("{what}, GPU over CPU"))?, papers)], tolerance),
        );
    }
    judge.claim("GPUs get the rare terms: more terms per token than the CPUs", |r| {
        above(pair(r, "terms, GPU over CPU", "tokens, GPU over CPU")?)
    });
}

/// The rate of a collection from end to end in a unit.
fn end_to_end(results: &Results, name: &str, unit: &str) -> Found<f64> {
    let row = format!("{name}: from end to end");
    let found = results.rows.iter().find(|other| other.name == row && other.unit == unit);
    match found {
        Some(row) => row.ours.ok_or_else(|| Gap(format!("`{}` needs a GPU", row.name))),
        None => results.ours(&row),
    }
}

fn table6(judge: &mut Judge<'_>) {
    judge.claim("GPUs raise the rate of ClueWeb09 (1.29 times; at least 1.1 times)", |r| {
        let (with, without) = (end_to_end(r, "ClueWeb09", "MB/s")?, end_to_end(r, "ClueWeb09 without GPUs", "MB/s")?);
        above(vec![("times".into(), with / without, 1.1)])
    });
    judge.claim("ClueWeb09 and the Library of Congress have comparable MB/s (within 25 %)", |r| {
        let (congress, web) = (end_to_end(r, "Library of Congress", "MB/s")?, end_to_end(r, "ClueWeb09", "MB/s")?);
        near(vec![("MB/s".into(), congress, web)], 0.25)
    });
    judge.claim("Wikipedia without tags has fewer MB/s and more tokens per second than both", |r| {
        let others = ["ClueWeb09", "Library of Congress"];
        let mut cases = Vec::new();
        for other in others {
            cases.push((
                format!("MB/s, {other} and Wikipedia"),
                end_to_end(r, other, "MB/s")?,
                end_to_end(r, "Wikipedia 01-07", "MB/s")?,
            ));
            cases.push((
                format!("M tokens/s, Wikipedia and {other}"),
                end_to_end(r, "Wikipedia 01-07", "M tokens/s")?,
                end_to_end(r, other, "M tokens/s")?,
            ));
        }
        above(cases)
    });
    judge.claim("Merging the lists of all runs costs less than 10 % of the total", |r| {
        let merging = r.like("{}: merging the lists")?;
        let found = below(merging.into_iter().map(|(name, percent)| (name, percent, 10.0)).collect())?;
        Ok(small(found, r))
    });
    judge.claim("Sampling costs about 1 % of the total (at most 2 %)", |r| {
        let sampling = r.like("{}: sampling")?;
        let found = below(sampling.into_iter().map(|(name, percent)| (name, percent, 2.0)).collect())?;
        Ok(small(found, r))
    });
}

/// Adds the cause of fixed costs in a small collection.
fn small(found: Outcome, results: &Results) -> Outcome {
    let docs = results
        .provenance
        .get("collection")
        .and_then(|text| text.split_once(": ")?.1.split(' ').next()?.parse::<f64>().ok());
    let cause = |docs| format!("fixed costs: the collection has {docs} documents, the paper's 50 million");
    found.because_of(docs.ok_or_else(|| Gap(String::new())), |docs| docs < 1e6, cause)
}

fn fig12(judge: &mut Judge<'_>) {
    judge.claim("One machine with and without GPUs indexes faster than clusters of 99 and 8 machines", |r| {
        r.ours("one machine: cores")?;
        Err(Gap(String::from("no cluster here; the paper draws the rates only")))
    });
    judge.claim("With GPUs one machine is faster than without", |r| {
        above(pair(r, "one machine, CPUs and GPUs", "one machine, CPUs")?)
    });
}

const REGROUPING_ROWS: &[&str] = &[
    "regrouped: indexing",
    "not regrouped: indexing",
    "one tree: indexing",
    "regrouping: gain",
    "?regrouping: gain, a tenth of the documents",
    "one tree: gain of slots",
    "regrouping: share of parsing",
];

fn regrouping(judge: &mut Judge<'_>) {
    judge.claim("Regrouping makes a serial CPU indexer about 15 times as fast (within 50 %)", |r| {
        let gain = r.ours("regrouping: gain")?;
        let found = near(vec![("times".into(), gain, 15.0)], 0.5)?;
        let cause = |part| format!("the gain grows with the dictionary, from {part} times at a tenth of the documents");
        Ok(found.because_of(r.ours("regrouping: gain, a tenth of the documents"), |part| gain > 1.1 * part, cause))
    });
    judge.claim("Regrouped terms are indexed faster than terms in document order", |r| {
        below(pair(r, "regrouped: indexing", "not regrouped: indexing")?)
    });
    judge.claim("Regrouping takes about 5 % of parsing (at most 10 %)", |r| {
        below(vec![("% of parsing".into(), r.ours("regrouping: share of parsing")?, 10.0)])
    });
}

fn caches(judge: &mut Judge<'_>) {
    judge.claim("Caches of four bytes in the nodes make look-ups faster (by 5 % at least)", |r| {
        above(vec![("times".into(), r.ours("caches: gain")?, 1.05)])
    });
    judge.claim("It is highly likely that the four bytes decide a comparison (at least 90 %)", |r| {
        above(vec![("% of comparisons".into(), r.ours("comparisons decided by a cache")?, 90.0)])
    });
}
