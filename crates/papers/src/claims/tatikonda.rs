//! Statements of Tatikonda, Cambazoglu and Junqueira, SIGIR 2011.

use super::cases::{above, against, below, every, falling, near, rising, with_papers};
use super::{Judge, Statements, on_queries, outcome};
use crate::results::{Found, Gap, Results, shown};

pub(super) const ALL: &[Statements] = &[
    on_queries("tatikonda-fig4", FIG4_ROWS, fig4),
    on_queries("tatikonda-fig5", FIG5_ROWS, fig5),
    on_queries("tatikonda-fig6", FIG6_ROWS, fig6),
    on_queries("tatikonda-fig7", FIG7_ROWS, fig7),
];

const FIG4_ROWS: &[&str] = &[
    "INTER, 1 worker: throughput",
    "INTER, 1 worker: latency",
    "?{}, {} workers: throughput",
    "?{}, {} workers: latency, {}",
    "?DOCP, {} ranges timed alone: what they can gain",
    "FGQP: tasks a query",
    "?{}, {} workers: latency that γ leaves",
    "?γ = {}, {} workers: throughput lost",
    "?γ = {}, {} workers: latency",
    "?few tasks a query: {}",
    "?throughput lost, γ 5 less γ 150",
    "?FGQP on 1 worker: throughput lost to INTER",
];

/// Throughput or latency of a method on eight workers.
fn eight(results: &Results, method: &str, what: &str) -> Found<f64> {
    let row = format!("{method}, 8 workers: {what}");
    if !results.is_missing && !results.has(&row) {
        return Err(Gap(String::from("fewer than eight cores")));
    }
    results.ours(&row)
}

fn fig4(judge: &mut Judge<'_>) {
    let overhead = "FGQP on 1 worker: throughput lost to INTER";
    for (method, papers, least) in [("INTER", 7.9, 7.1), ("FGQP(γ=150)", 7.6, 6.8)] {
        judge.claim(
            format!("{method}: throughput grows almost linearly, {papers} times on 8 cores (at least {least})"),
            |r| {
                let found = above(vec![("times".into(), eight(r, method, "throughput")?, least)])?;
                let loss = 100.0 * (1.0 - eight(r, method, "throughput")? / eight(r, "INTER", "throughput")?);
                Ok(found.because_of(r.ours(overhead), |lost| explains(lost, loss), overhead_of_tasks))
            },
        );
    }
    judge.claim("Throughput is ordered INTER, FGQP(150), DOCP-UI, DOCP-PI (8 cores)", |r| {
        let order = ["INTER", "FGQP(γ=150)", "DOCP-UI", "DOCP-PI"];
        let times = order.map(|method| eight(r, method, "throughput").map(|times| (method.to_owned(), times)));
        falling(&times.into_iter().collect::<Found<Vec<_>>>()?, 0.0)
    });
    judge.claim("FGQP(150) is within 3.3 % of INTER's throughput (10 %, 8 cores)", |r| {
        let [fgqp, inter] = ["FGQP(γ=150)", "INTER"].map(|method| eight(r, method, "throughput"));
        let (fgqp, inter) = (fgqp?, inter?);
        let found = above(vec![("times".into(), fgqp, 0.9 * inter)])?;
        let loss = 100.0 * (1.0 - fgqp / inter);
        Ok(found.because_of(r.ours(overhead), |lost| explains(lost, loss), overhead_of_tasks))
    });
    judge.claim("Document partitioning loses at least 36 % of INTER's throughput (30 %, 8 cores)", |r| {
        let inter = eight(r, "INTER", "throughput")?;
        let case = |method: &str| Ok((method.to_owned(), eight(r, method, "throughput")?, 0.7 * inter));
        let found = below(["DOCP-UI", "DOCP-PI"].into_iter().map(case).collect::<Found<_>>()?)?;
        let bound = r.ours("DOCP, 8 ranges timed alone: what they can gain");
        Ok(found.because_of(
            bound,
            |times| times > 5.5,
            |times| format!("the slowest range alone allows {times} times"),
        ))
    });
    judge.claim("DOCP-PI is very similar to DOCP-UI (throughput within 10 %, 8 cores)", |r| {
        let [pi, ui] = ["DOCP-PI", "DOCP-UI"].map(|method| eight(r, method, "throughput"));
        near(vec![("times".into(), pi?, ui?)], 0.1)
    });
    judge.claim("The latency of INTER is almost constant (within 15 % on 8 cores)", |r| {
        near(vec![("times".into(), eight(r, "INTER", "latency, all waiting")?, 1.0)], 0.15)
    });
    for (method, papers) in [("DOCP-UI", 4.88), ("DOCP-PI", 4.88), ("FGQP(γ=5)", 5.75)] {
        judge.claim(format!("{method} reduces latency {papers} times on 8 cores (within 20 %)"), |r| {
            let found = near(vec![("times".into(), eight(r, method, "latency, all waiting")?, papers)], 0.2)?;
            let gain = eight(r, method, "throughput")?;
            let cause =
                format!("eight cores raise its throughput {} times only, which bounds the latency", shown(gain));
            Ok(found.because(gain < 0.8 * papers, cause))
        });
    }
    judge.claim("FGQP(5) reduces latency like document partitioning or more (8 cores)", |r| {
        let fgqp = eight(r, "FGQP(γ=5)", "latency, all waiting")?;
        let case = |method: &str| Ok((method.to_owned(), fgqp, 0.95 * eight(r, method, "latency, all waiting")?));
        above(["DOCP-UI", "DOCP-PI"].into_iter().map(case).collect::<Found<_>>()?)
    });
    thresholds(judge, "", "");
    if judge.results.has("few tasks a query: γ = {}, {} workers: throughput lost") {
        thresholds(judge, "few tasks a query: ", " (few tasks per query)");
    }
}

/// Whether the loss of one worker in percent is most of the loss of eight.
fn explains(one_worker: f64, eight_workers: f64) -> bool {
    eight_workers > 0.0 && one_worker > 0.5 * eight_workers
}

fn overhead_of_tasks(lost: String) -> String {
    format!("overhead of tasks: {lost} % on one worker")
}

fn thresholds(judge: &mut Judge<'_>, section: &str, name: &str) {
    judge.claim(
        format!("A larger threshold loses less throughput: γ 150 loses 12.7 points less than 5 (half of that){name}"),
        |r| {
            let lost = |threshold: u32| r.like(&format!("{section}γ = {threshold}, {{}} workers: throughput lost"));
            let (few, many) = (lost(5)?[0].1, lost(150)?[0].1);
            let found = above(vec![("points less".into(), few - many, 0.5 * 12.7)])?;
            let tasks = r.ours(&format!("{section}FGQP: tasks a query"))?;
            let cause =
                format!("a query has {} tasks, so that the pool does not run empty at γ 5 either", shown(tasks));
            Ok(found.because(tasks > 40.0, cause))
        },
    );
    judge.claim(
        format!("A larger threshold gains less latency: every step from γ 5 to 150 (10 % tolerance){name}"),
        |r| falling(&r.like(&format!("{section}γ = {{}}, {{}} workers: latency"))?, 0.1),
    );
}

const FIG5_ROWS: &[&str] = &[
    "?{}, {} workers: saturates at",
    "INTER, {} workers: sustains",
    "postings of 10 terms over 2",
    "{}: latency of 10 terms over 2",
    "{}: throughput of 2 terms over 10",
    "?questions, real lists: {}",
];

/// Fails for runs too short to saturate.
fn long_enough(results: &Results) -> Found<()> {
    const LEAST_S: f64 = 0.1;
    match results.seconds() {
        Some(seconds) if seconds < LEAST_S => Err(Gap(format!("runs of {seconds} s, at least {LEAST_S} s are needed"))),
        _ => Ok(()),
    }
}

/// The first rate at which a curve's delay exceeds three times the smallest of INTER on eight cores.
fn saturation(results: &Results, curve: &str) -> Found<f64> {
    long_enough(results)?;
    let inter = results.curve("delay", "INTER, 8")?;
    let least = inter.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let first = results.curve("delay", curve)?.iter().find(|point| point.1 > 3.0 * least);
    Ok(first.ok_or_else(|| Gap(format!("{curve} saturates at no measured rate")))?.0)
}

fn fig5(judge: &mut Judge<'_>) {
    judge.claim("INTER on half of the cores saturates at half of the rate (0.35 to 0.65)", |r| {
        let (half, all) = (saturation(r, "INTER, 4")?, saturation(r, "INTER, 8")?);
        Ok(outcome((0.35..=0.65).contains(&(half / all)), format!("q/s: {}, {}", shown(half), shown(all))))
    });
    judge.claim("INTER and FGQP saturate around the same rate (8 cores, one step of rates)", |r| {
        near(vec![("q/s".into(), saturation(r, "FGQP(γ=5), 8")?, saturation(r, "INTER, 8")?)], 0.25)
    });
    judge.claim("DOCP-UI saturates at a notably smaller rate (8 cores)", |r| {
        below(vec![("q/s".into(), saturation(r, "DOCP-UI, 8")?, 0.9 * saturation(r, "INTER, 8")?)])
    });
    judge.claim("FGQP has a lower delay than INTER at the lowest rate", |r| {
        let curve = |name: &str| Ok(r.curve("delay", name)?[0].1);
        below(vec![("ms".into(), curve("FGQP(γ=5), 8")?, curve("INTER, 8")?)])
    });
    judge.claim("The latency of ten terms is about ten times that of two (5 to 20 times), for every method", |r| {
        between(with_papers(r, "{}: latency of 10 terms over 2")?)
    });
    judge.claim("Ten terms have an eleventh of the throughput of two (5.5 to 22 times), for every method", |r| {
        between(with_papers(r, "{}: throughput of 2 terms over 10")?)
    });
    let lengths = |r: &Results, panel: &str, first: &str, second: &str| {
        let (a, b) = (r.curve(panel, first)?, r.curve(panel, second)?);
        let cases = a.iter().zip(b).map(|(a, b)| (format!("{} terms, {first} and {second}", a.0), a.1, b.1));
        Ok::<_, Gap>(cases.collect::<Vec<_>>())
    };
    judge.claim("Both intra-query methods have a lower latency than INTER at every length", |r| {
        let mut cases = lengths(r, "length-latency", "FGQP(γ=5)", "INTER")?;
        cases.extend(lengths(r, "length-latency", "DOCP-UI", "INTER")?);
        below(cases)
    });
    judge.claim("FGQP has a marginally lower latency than DOCP-UI at every length", |r| {
        below(lengths(r, "length-latency", "FGQP(γ=5)", "DOCP-UI")?)
    });
    judge.claim("DOCP-UI has a lower throughput than INTER and FGQP at every length", |r| {
        let mut cases = lengths(r, "length-throughput", "DOCP-UI", "INTER")?;
        cases.extend(lengths(r, "length-throughput", "DOCP-UI", "FGQP(γ=5)")?);
        below(cases)
    });
    judge.claim("The throughputs of INTER and FGQP differ only marginally at every length (10 %)", |r| {
        near(lengths(r, "length-throughput", "FGQP(γ=5)", "INTER")?, 0.1)
    });
    judge.claim("The throughputs of the methods differ more if queries are short", |r| {
        let cases = lengths(r, "length-throughput", "DOCP-UI", "INTER")?;
        let share = |case: &super::cases::Case| 1.0 - case.1 / case.2;
        above(vec![("share lost by DOCP-UI, 2 and 10 terms".into(), share(&cases[0]), share(&cases[cases.len() - 1]))])
    });
}

/// Holds if ours is between half and twice the paper's number in every case.
fn between(cases: Vec<super::cases::Case>) -> Found<super::Outcome> {
    every(cases, "near", |ours, papers| ours >= 0.5 * papers && ours <= 2.0 * papers)
}

const FIG6_ROWS: &[&str] = &[
    "{} terms, {} workers: INTER sustains",
    "{} terms, {} workers: {}: delay at an eighth of that rate",
    "{} terms, {} workers: {}: below INTER's",
];

fn fig6(judge: &mut Judge<'_>) {
    judge.claim("Unsaturated, FGQP has a lower delay than INTER, with 4 and 6 terms", |r| {
        above(against(r, "{} terms, {} workers: FGQP(γ=5): below INTER's", 1.0)?)
    });
    judge.claim("Six terms saturate earlier than four", |r| {
        let of = |terms: u32| Ok::<_, Gap>(r.like(&format!("{terms} terms, {{}} workers: INTER sustains"))?[0].1);
        below(vec![("q/s, 6 and 4 terms".into(), of(6)?, of(4)?)])
    });
    judge.claim("DOCP-UI has the higher delay at the highest rate, with 4 and 6 terms", |r| {
        let last = |way: &str, terms: u32| {
            let points = r.curve("delay", &format!("{way}, {terms} terms"))?;
            Ok::<_, Gap>(points[points.len() - 1].1)
        };
        let case = |terms| Ok((format!("{terms} terms, ms"), last("DOCP-UI", terms)?, last("INTER", terms)?));
        above([4, 6].into_iter().map(case).collect::<Found<_>>()?)
    });
    judge.claim("Saturated, FGQP behaves like INTER (twice its delay at most), with 4 and 6 terms", |r| {
        let last = |way: &str, terms: u32| {
            let points = r.curve("delay", &format!("{way}, {terms} terms"))?;
            Ok::<_, Gap>(points[points.len() - 1].1)
        };
        let case = |terms| Ok((format!("{terms} terms, ms"), last("FGQP(γ=5)", terms)?, 2.0 * last("INTER", terms)?));
        below([4, 6].into_iter().map(case).collect::<Found<_>>()?)
    });
}

const FIG7_ROWS: &[&str] = &[
    "queries whose rarest list has 512 postings",
    "blocks of {}: skips a list and task",
    "blocks of {}: the same, rarest list filled",
    "blocks of {}: of them in the task before, too",
    "blocks of {}: tasks a query",
    "blocks of {}: making tasks, of one core's time",
    "?real lists: {}",
];

fn fig7(judge: &mut Judge<'_>) {
    let sections = [("", ""), ("real lists: ", " (real lists)")];
    for (section, name) in sections {
        if !section.is_empty() && !judge.results.has("real lists: blocks of {}: tasks a query") {
            continue;
        }
        let row = |rest: &str| format!("{section}blocks of {{}}: {rest}");
        judge.claim(
            format!("A task has about the same number of skips per list at every block size (15 %){name}"),
            |r| {
                let skips = r.like(&row("skips a list and task"))?;
                let first = skips[0].1;
                let found = near(skips.into_iter().map(|(size, skips)| (size, skips, first)).collect(), 0.15)?;
                let filled = r.like(&row("the same, rarest list filled"))?;
                let same = filled.iter().all(|(_, skips)| (skips - filled[0].1).abs() <= 0.15 * filled[0].1);
                let cause = format!(
                    "rarest lists shorter than a block are one task at any size; without them the numbers are {} to {}",
                    shown(filled[0].1),
                    shown(filled[filled.len() - 1].1)
                );
                Ok(found.because(same, cause))
            },
        );
        judge.claim(format!("That number is 10.2 where the rarest list fills its blocks (within 30 %){name}"), |r| {
            near(with_papers(r, &row("the same, rarest list filled"))?, 0.3)
        });
        judge
            .claim(format!("0.97 of them overlap with the task before, at every block size (within 5 %){name}"), |r| {
                near(with_papers(r, &row("of them in the task before, too"))?, 0.05)
            });
        judge.claim(format!("Half the block size doubles the tasks per query (1.5 to 2.1 times){name}"), |r| {
            let tasks = r.like(&row("tasks a query"))?;
            let ratios =
                tasks.windows(2).map(|pair| (format!("{} after {}", pair[1].0, pair[0].0), pair[1].1 / pair[0].1, 2.0));
            every(ratios.collect(), "near", |ratio, _| (1.5..=2.1).contains(&ratio))
        });
        judge.claim(format!("Time for making tasks grows as blocks shrink{name}"), |r| {
            rising(&r.like(&row("making tasks, of one core's time"))?, 0.0)
        });
        judge.claim(format!("Making tasks takes only 2 % of the time at blocks of 512 (at most){name}"), |r| {
            below(against(r, &format!("{section}blocks of 512: making tasks, of one core's time"), 2.0)?)
        });
    }
}
