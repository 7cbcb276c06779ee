//! Statements of Ding, He, Yan and Suel, WWW 2009.

use super::cases::{above, against, below, every, joined, pair, rising};
use super::{Judge, Outcome, Statements, on_counts, on_queries, outcome};
use crate::results::{Found, Gap, Results, shown};

pub(super) const ALL: &[Statements] = &[
    on_counts("ding-fig3", FIG3_ROWS, fig3),
    on_counts("ding-table1", TABLE1_ROWS, table1),
    on_counts("ding-fig4", FIG4_ROWS, fig4),
    on_counts("ding-fig6", &["{} K: GPU, {} level", "{} K: GPU, {} levels", "{} K: one CPU core"], fig6),
    on_queries("ding-table2", TABLE2_ROWS, table2),
    on_queries("ding-table3", &["and: {}", "or: {}", "accumulators read or written once at the copy's rate"], table3),
    on_counts("ding-fig7", FIG7_ROWS, fig7),
];

const FIG3_ROWS: &[&str] = &[
    "new-pfd",
    "opt-pfd",
    "pfor",
    "pfor-512",
    "rice",
    "pfor-delta-{}",
    "one level of recursion, below a width a block",
    "lists",
    "docIDs in them",
    "?real lists: {}",
];
/// Subjects of the sections of an experiment: the input, and a real collection.
const SECTIONS: [&str; 2] = ["", "real lists: "];
/// "Much worse", "much faster", "substantially".
pub(super) const MUCH: f64 = 1.2;
/// "Slightly", "close to".
pub(super) const SLIGHTLY: f64 = 0.1;

/// Section prefixes of a run that have a row.
pub(super) fn sections(results: &Results, row: &str) -> Vec<&'static str> {
    let there: Vec<&str> = SECTIONS.into_iter().filter(|section| results.has(&format!("{section}{row}"))).collect();
    // A statement without rows is tested once and is not testable.
    if there.is_empty() { vec![""] } else { there }
}

/// A section in a statement.
pub(super) fn on(section: &str) -> &str {
    if section.is_empty() { "" } else { " (real lists)" }
}

fn fig3(judge: &mut Judge<'_>) {
    for section in sections(judge.results, "rice") {
        let row = |name: &str| format!("{section}{name}");
        let on = on(section);
        judge.claim(format!("Rice compresses best of the paper's codecs{on}"), |r| {
            let rice = r.ours(&row("rice"))?;
            let others = r.like(&row("pfor-delta-{}"))?.into_iter().chain([("pfor".into(), r.ours(&row("pfor"))?)]);
            below(others.map(|(name, bytes)| (format!("Rice and {name}"), rice, bytes)).collect())
        });
        judge.claim(
            format!("PForDelta without recursion is much worse than with a width per block (by 20 %){on}"),
            |r| {
                let (one_width, per_block) = (r.ours(&row("pfor-delta-0"))?, r.ours(&row("pfor"))?);
                above(vec![("bytes per docID".into(), one_width, MUCH * per_block)])
            },
        );
        judge.claim(format!("One level of recursion is smaller than a width per block{on}"), |r| {
            below(pair(r, &row("pfor-delta-1"), &row("pfor"))?)
        });
        judge.claim(format!("It is only slightly smaller (by at most 10 %){on}"), |r| {
            let (one_level, per_block) = (r.ours(&row("pfor-delta-1"))?, r.ours(&row("pfor"))?);
            above(vec![("bytes per docID".into(), one_level, (1.0 - SLIGHTLY) * per_block)])
        });
        judge.claim(format!("More levels add little (a quarter of the first level's gain at most){on}"), |r| {
            let bytes = |level: u32| r.ours(&row(&format!("pfor-delta-{level}")));
            let best = bytes(2)?.min(bytes(3)?).min(bytes(4)?);
            let (first, more) = (bytes(0)? - bytes(1)?, bytes(1)? - best);
            below(vec![("bytes saved by more levels and by the first".into(), more, 0.25 * first)])
        });
    }
}

const TABLE1_ROWS: &[&str] = &[
    "{}, CPU",
    "{}, GPU, list by list",
    "{}, GPU, all at once",
    "{}, GPU: launches a list",
    "{}, GPU, list by list: a launch",
    "?PForDelta, one width a list, GPU, all at once, gaps only",
    "?lists",
    "?docIDs in them",
    "?real lists: {}",
    "device copy, read and written",
];
const PFOR_DELTA: &str = "PForDelta, one width a list";

fn table1(judge: &mut Judge<'_>) {
    let row = |rest: &str| format!("{PFOR_DELTA}, {rest}");
    judge.claim("PForDelta: the GPU decodes faster than the CPU", |r| {
        above(pair(r, &row("GPU, list by list"), "PForDelta, CPU")?)
    });
    judge.claim("Rice: the GPU is very slightly slower than the CPU (by at most 10 %)", |r| {
        let (gpu, cpu) = (r.ours("Rice, GPU, list by list")?, r.ours("Rice, CPU")?);
        every(vec![("M ints/s on GPU and CPU".into(), gpu, cpu)], "near", |gpu, cpu| {
            gpu < cpu && gpu > (1.0 - SLIGHTLY) * cpu
        })
    });
    judge.claim("On the CPU PForDelta is much faster than Rice (3.75 times there, 2 times is enough)", |r| {
        above(vec![("M ints/s".into(), r.ours("PForDelta, CPU")?, 2.0 * r.ours("Rice, CPU")?)])
    });
    judge.claim("On the GPU PForDelta is much faster than Rice (4 times there, 2 times is enough)", |r| {
        let [one, at_once] = ["list by list", "all at once"]
            .map(|how| Ok::<_, Gap>(r.ours(&row(&format!("GPU, {how}")))? / r.ours(&format!("Rice, GPU, {how}"))?));
        let launch = r.ours(&row("GPU, list by list: a launch"))?;
        let at_once = at_once?;
        let cause = format!(
            "launches of {} us each limit single lists; all lists together PForDelta is {} times as fast",
            shown(launch),
            shown(at_once)
        );
        let found = above(vec![("PForDelta over Rice".into(), one?, 2.0)])?;
        Ok(found.because(at_once > 2.0, cause))
    });
}

const FIG4_ROWS: &[&str] = &[
    "up to {} K docIDs: CPU",
    "up to {} K docIDs: GPU{}",
    "up to {} K docIDs: prefix sum",
    "up to {} K docIDs: prefix sum, a bin at once",
    "longest lists at once, with prefix sum: bytes moved, of the copy's rate",
];

/// The rates of two curves of figure 4 in the bins of the shortest and the longest lists.
fn ends(results: &Results, curves: [&str; 2]) -> Found<[super::cases::Case; 2]> {
    let [first, second] = curves.map(|curve| format!("up to {{}} K docIDs: {curve}"));
    let mut bins = joined(results, &first, &second)?;
    bins.sort_by(|a, b| a.0.parse::<f64>().unwrap_or(0.0).total_cmp(&b.0.parse().unwrap_or(0.0)));
    let name = |(length, a, b): super::cases::Case| (format!("up to {length} K docIDs"), a, b);
    match &bins[..] {
        [shortest, .., longest] => Ok([shortest.clone(), longest.clone()].map(name)),
        _ => Err(Gap(String::from("too few samples: fewer than two lengths"))),
    }
}

fn fig4(judge: &mut Judge<'_>) {
    judge.claim("The CPU is faster on short lists", |r| {
        let [shortest, _] = ends(r, ["CPU", "GPU with prefix sum"])?;
        above(vec![shortest])
    });
    judge.claim("The GPU is faster on long lists", |r| {
        let [_, longest] = ends(r, ["CPU", "GPU with prefix sum"])?;
        below(vec![longest])
    });
    judge.claim("Without the prefix sum the GPU is much faster on long lists (by 20 %)", |r| {
        let [_, (name, without, with)] = ends(r, ["GPU without", "GPU with prefix sum"])?;
        let share = 100.0 * (1.0 - with / without);
        let cause = format!("the prefix sum takes {} % of the time", shown(share));
        Ok(above(vec![(name, without, MUCH * with)])?.because(true, cause))
    });
    judge.claim("It then decodes 2.5 billion docIDs per second on longer lists (at least)", |r| {
        let [_, (name, without, _)] = ends(r, ["GPU without", "GPU with prefix sum"])?;
        above(vec![(name, without, 2500.0)])
    });
    judge.claim("The GPU needs a certain size of data: its rate grows with the length (10 % tolerance)", |r| {
        let mut rates = r.like("up to {} K docIDs: GPU with prefix sum")?;
        rates.sort_by(|a, b| a.0.parse::<f64>().unwrap_or(0.0).total_cmp(&b.0.parse().unwrap_or(0.0)));
        rising(&rates, SLIGHTLY)
    });
}

/// Nanoseconds of 0 to 4 levels at each length, for equal lists if `is_even`.
fn levels(results: &Results, is_even: bool) -> Found<Vec<(String, [f64; 5])>> {
    let mut lengths = Vec::new();
    for (length, direct) in results.like("{} K: GPU, 0 levels")? {
        if length.contains(" in ") != is_even {
            let mut ns = [direct; 5];
            for (level, ns) in ns.iter_mut().enumerate() {
                let noun = if level == 1 { "level" } else { "levels" };
                *ns = results.ours(&format!("{length} K: GPU, {level} {noun}"))?;
            }
            lengths.push((length, ns));
        }
    }
    if lengths.len() < 2 { Err(Gap(String::from("too few samples: fewer than two lengths"))) } else { Ok(lengths) }
}

pub(super) fn least(ns: &[f64]) -> f64 {
    ns.iter().copied().fold(f64::INFINITY, f64::min)
}

fn fig6(judge: &mut Judge<'_>) {
    judge.claim("On long lists recursion is much faster than the direct search (twice)", |r| {
        let all = levels(r, true)?;
        let (length, ns) = &all[all.len() - 1];
        above(vec![(format!("{length} K, direct and twice the best"), ns[0], 2.0 * least(&ns[1..]))])
    });
    judge.claim("Two or three levels are close to the best over the entire range (within 10 %)", |r| {
        let all = levels(r, true)?;
        let close = |(_, ns): &&(String, [f64; 5])| ns[2].min(ns[3]) <= (1.0 + SLIGHTLY) * least(ns);
        let from = all.iter().position(|length| close(&length)).unwrap_or(all.len() - 1);
        let (first, beyond) = (&all[0].1, all[from..].iter().all(|length| close(&length)));
        let cause = format!(
            "each level is one more launch: {} levels against none cost {} times as much at {} K, and from {} K on they \
             are close",
            3,
            shown(first[3] / first[0]),
            all[0].0,
            all[from].0
        );
        let cases = all.iter().map(|(length, ns)| (format!("{length} K"), ns[2].min(ns[3]), (1.0 + SLIGHTLY) * least(ns)));
        Ok(every(cases.collect(), "at most", |a, b| a <= b)?.because(beyond && from > 0, cause))
    });
    judge.claim("They cost less than 4 ns per element for larger lists", |r| {
        let all = levels(r, true)?;
        let (length, ns) = &all[all.len() - 1];
        below(vec![(format!("{length} K, ns"), ns[2].min(ns[3]), 4.0)])
    });
    judge.claim("200 K in longer lists: the cost rises moderately (at most 3.75 times, as from 4 to 15 ns)", |r| {
        let all = levels(r, false)?;
        let ratio = all[all.len() - 1].1[3] / all[0].1[3];
        Ok(outcome(ratio > 1.0 && ratio <= 3.75, format!("{} times", shown(ratio))))
    });
    judge.claim("Three levels appear to perform best overall (fastest most often)", |r| {
        let mut wins = [0; 5];
        for (_, ns) in levels(r, true)?.into_iter().chain(levels(r, false)?) {
            let fastest = (0..5).min_by(|&a, &b| ns[a].total_cmp(&ns[b])).unwrap_or(0);
            wins[fastest] += 1;
        }
        let most = wins.iter().max();
        Ok(outcome(wins.iter().max() == most && most == Some(&wins[3]), format!("fastest of levels 0 to 4: {wins:?}")))
    });
}

const TABLE2_ROWS: &[&str] = &["and: {}", "or: {}", "and-or: {}", "?lists cached: {}", "?real lists cached: {}"];

fn table2(judge: &mut Judge<'_>) {
    judge.claim("AND: the GPU is faster than the CPU", |r| below(pair(r, "and: GPU", "and: CPU")?));
    judge.claim("AND: only slightly (1.14 times; at most 1.5 times)", |r| {
        below(vec![("CPU over GPU".into(), r.ours("and: CPU")? / r.ours("and: GPU")?, 1.5)])
    });
    judge.claim("OR: the GPU is substantially faster than the CPU (7.3 times; at least 3 times)", |r| {
        above(vec![("CPU over GPU".into(), r.ours("or: CPU")? / r.ours("or: GPU")?, 3.0)])
    });
    judge.claim("AND+OR: the gain of the GPU is smaller than for OR", |r| {
        let gain = |mode: &str| Ok::<_, Gap>(r.ours(&format!("{mode}: CPU"))? / r.ours(&format!("{mode}: GPU"))?);
        below(vec![("CPU over GPU, AND+OR and OR".into(), gain("and-or")?, gain("or")?)])
    });
    for side in ["CPU", "GPU"] {
        let papers = if side == "CPU" { "0.11" } else { "0.34" };
        judge.claim(format!("{side}: AND+OR costs much less than OR ({papers} of it; at most half)"), |r| {
            let share = r.ours(&format!("and-or: {side}"))? / r.ours(&format!("or: {side}"))?;
            let full = r.ours("and: queries with k results");
            let and = r.ours(&format!("and: {side}"))? / r.ours(&format!("or: {side}"))?;
            let found = below(vec![("AND+OR over OR".into(), share, 0.5)])?;
            let found = found.because(and > 0.5, format!("AND alone costs {} of OR", shown(and)));
            Ok(found.because_of(full, |full| full < 50.0, |full| format!("only {full} % of the ANDs find k results")))
        });
    }
    judge.claim("Most queries are answered by the AND part of AND+OR", |r| {
        above(against(r, "and: queries with k results", 50.0)?)
    });
    let cached = |r: &Results| if r.has("real lists cached: {}") { "real lists cached" } else { "lists cached" };
    judge.claim("90 % of the bytes hit if 20 % of the lists are kept (within 5 points)", |r| {
        let hits = r.ours(&format!("{}: cache of 20 %: bytes that hit", cached(r)))?;
        // A synthetic log names most lists once.
        let all = r.ours(&format!("{}: cache of 100 %: bytes that hit", cached(r)))?;
        if all < 90.0 {
            return Err(Gap(format!("the log repeats too few lists: {} % of bytes hit a cache of all", shown(all))));
        }
        above(vec![("% of bytes".into(), hits, 85.0)])
    });
}

fn table3(judge: &mut Judge<'_>) {
    judge.claim("AND: decompression and intersection take most of the time", |r| {
        let share = r.ours("and: intersection")? + r.ours("and: decompression")?;
        above(vec![("% of the time".into(), share, 50.0)])
    });
    judge.claim("AND: scoring and top-k take less than 10 %", |r| below(against(r, "and: scoring and top-k", 10.0)?));
    judge.claim("OR: almost 50 % is spent on scoring (40 to 60 %)", |r| {
        every(against(r, "or: scoring", 50.0)?, "near", |a, b| (a - b).abs() <= 10.0)
    });
    judge.claim("OR: scoring takes the most time of all stages", |r| {
        let stages = ["initialization", "decompression", "top-k"];
        let scoring = r.ours("or: scoring")?;
        let case = |stage: &str| Ok((stage.to_owned(), scoring, r.ours(&format!("or: {stage}"))?));
        above(stages.into_iter().map(case).collect::<Found<_>>()?)
    });
}

const FIG7_ROWS: &[&str] = &[
    "{}: mean cost, {}",
    "?{}: highest cost, {}",
    "{}: estimates' error, {}",
    "{}: deadline",
    "{}: no scheduler is stable above",
    "{} sustains",
];

/// Stands for the name of a row in a form of several sections.
const ROW: &str = "<row>";

/// Adds the cause of a scheduler that fails where a query alone exceeds the deadline on the CPU.
fn because_of_long_queries(found: Outcome, results: &Results, form: &str) -> Outcome {
    let cases = joined(results, &form.replace(ROW, "highest cost, cpu"), &form.replace(ROW, "deadline"));
    let long: Vec<_> = cases.unwrap_or_default().into_iter().filter(|(_, cost, deadline)| cost > deadline).collect();
    let Some((name, cost, deadline)) = long.first() else { return found };
    let cause =
        format!("{name}: a query takes a CPU {} ms alone, the deadline is {} ms", shown(*cost), shown(*deadline));
    found.because(true, cause)
}

fn fig7(judge: &mut Judge<'_>) {
    const PAPERS: &str = ", the paper's means: ";
    let both = "stealing-published sustains";
    let papers = |name: &str| format!("{{}}{PAPERS}{name}");
    judge.claim("Both processors in parallel sustain more than every other configuration", |r| {
        let mut cases = Vec::new();
        for other in ["gpu-only sustains", "cpu-only sustains", "best-of sustains"] {
            cases.extend(joined(r, &format!("{{}}: {both}"), &format!("{{}}: {other}"))?);
        }
        Ok(because_of_long_queries(above(cases)?, r, &format!("{{}}: {ROW}")))
    });
    judge.claim("Both in parallel sustain more than 300 queries per second, on the paper's mean costs", |r| {
        Ok(because_of_long_queries(above(against(r, &papers(both), 300.0)?)?, r, &papers(ROW)))
    });
    judge.claim("The CPU alone sustains less than 100 queries per second, on the paper's mean costs", |r| {
        below(against(r, &papers("cpu-only sustains"), 100.0)?)
    });
    judge.claim("Both together can be more than twice as fast as either alone, on the paper's mean costs", |r| {
        let [both, gpu, cpu] = [both, "gpu-only sustains", "cpu-only sustains"].map(|name| r.like(&papers(name)));
        let cases = both?.into_iter().zip(gpu?).zip(cpu?);
        let cases = cases.map(|(((name, both), (_, gpu)), (_, cpu))| (name, both, 2.0 * gpu.max(cpu)));
        Ok(because_of_long_queries(above(cases.collect())?, r, &papers(ROW)))
    });
    for (class, error) in [("cpu", 20.0), ("gpu", 22.0)] {
        let statement =
            format!("M5 rules from 3,000 queries predict {class} costs with an error of {error} % (10 points)");
        judge.claim(statement, |r| {
            let form = format!("{{}}: estimates' error, {class}, m5");
            every(against(r, &form, error)?, "near", |ours, papers| (ours - papers).abs() <= 10.0)
        });
    }
}
