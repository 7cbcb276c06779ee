//! Statements of Wang, Yu, Stones, Ren, Wang, Liu and Ren, 2017.

use super::cases::{above, below, every, falling, joined, rising, with_papers};
use super::{Judge, Outcome, Statements, on_queries, outcome};
use crate::results::{Found, Gap, Results, captured};

pub(super) const ALL: &[Statements] = &[
    on_queries("wang-fig3", FIG3_ROWS, fig3),
    on_queries("wang-fig4", FIG4_ROWS, fig4),
    on_queries(
        "wang-fig5",
        &[
            "{}, θ {} ms: best S_c, {}",
            "{}, θ {} ms: apart",
            "{}, θ {} ms: throughput lost at the modelled best",
            "{}, θ {} ms: throughput, {}",
        ],
        fig5,
    ),
    on_queries("wang-fig6", FIG6_ROWS, fig6),
    on_queries("wang-fig7", FIG7_ROWS, fig7),
    on_queries("wang-fig8", FIG8_ROWS, fig8),
    on_queries("wang-fig9", FIG9_ROWS, fig9),
    on_queries(
        "wang-fig10",
        &[
            "k {}, CPU-{}",
            "k {}, GPU with VFB",
            "k {}, GPU over CPU-{}",
            "k {}, combined",
            "k {}, combined: {}",
            "k {}, combined over CPU-{}",
        ],
        fig10,
    ),
];

const FIG3_ROWS: &[&str] = &[
    "postings of the list",
    "queries that name it",
    "visits at offset {}, of the queries that name it",
    "offset at which half of the drop is behind",
    "of the drop, in the last tenth of the list",
    "?uniform PageRank: {}",
];
/// An offset in the list from which on a drop is "towards the end".
const END: f64 = 0.75;
/// Smallest number of queries that name the most queried list.
const LEAST_NAMED: f64 = 100.0;

fn fig3(judge: &mut Judge<'_>) {
    const HALF: &str = "offset at which half of the drop is behind";
    for (section, name) in [("", ""), ("uniform PageRank: ", " (uniform PageRank)")] {
        if !section.is_empty() && !judge.results.has(&format!("{section}{HALF}")) {
            continue;
        }
        judge.claim(
            format!("Visits drop sharply towards the end of the list (half of the drop behind 3/4){name}"),
            |r| {
                let named = r.ours(&format!("{section}queries that name it"))?;
                if named < LEAST_NAMED {
                    return Err(Gap(format!(
                        "too few samples: {named} queries name the list, {LEAST_NAMED} are needed"
                    )));
                }
                let found = above(vec![("of the list".into(), r.ours(&format!("{section}{HALF}"))?, END)])?;
                let uniform = r.ours(&format!("uniform PageRank: {HALF}"));
                let cause = |at| format!("the law of PageRank: half is behind {at} of the list if it is uniform");
                Ok(found.because_of(uniform, |at| at > END, cause))
            },
        );
        judge.claim(format!("The cause is early termination: visits never rise along the list{name}"), |r| {
            falling(&r.like(&format!("{section}visits at offset {{}}, of the queries that name it"))?, 0.0)
        });
    }
}

const FIG4_ROWS: &[&str] = &["{}: c(n), {}", "{}: t(S_b), {}", "{}: dq(S_c), S_c {} % of M"];

fn fig4(judge: &mut Judge<'_>) {
    judge.claim("The time c(n) per query falls with the queries of a batch, for every policy", |r| {
        above(
            r.like("{}: c(n), a batch")?
                .into_iter()
                .map(|(name, us)| (format!("{name}, us a batch"), us, 0.0))
                .collect(),
        )
    });
    judge.claim("The volume dq(S_c) falls with the cache, for every policy (QtfDf: 10 % tolerance)", |r| {
        let all = r.like("{}: dq(S_c), S_c {} % of M")?;
        let mut tested = Vec::new();
        for policy in ["Qtf", "QtfDf", "VFB"] {
            let of = |(name, _): &&(String, f64)| name.split(',').next() == Some(policy);
            let values: Vec<_> = all.iter().filter(of).cloned().collect();
            tested.push(falling(&values, 0.1)?);
        }
        tested.iter().find(|outcome| !outcome.held).or(tested.first()).cloned().ok_or_else(|| Gap("no policy".into()))
    });
    judge.claim("The functions describe the batches: residuals of at most 15 %", |r| {
        let residuals = r.like("{}: {}, residual of the fit")?;
        below(residuals.into_iter().map(|(name, percent)| (name, percent, 15.0)).collect())
    });
}

fn fig5(judge: &mut Judge<'_>) {
    judge.claim("Modelled and measured optima of S_c are at most about 4 % of M apart", |r| {
        let apart = r.like("{}, θ {} ms: apart")?;
        every(
            apart.into_iter().map(|(name, points)| (format!("{name} ms"), points, 4.0)).collect(),
            "at most",
            |a, b| a <= b,
        )
    });
    judge.claim("The model gives an initial estimate: at its optimum at most 10 % of the throughput is lost", |r| {
        let lost = r.like("{}, θ {} ms: throughput lost at the modelled best")?;
        below(lost.into_iter().map(|(name, percent)| (format!("{name} ms"), percent, 10.0)).collect())
    });
}

const FIG6_ROWS: &[&str] = &[
    "λ {}, cache {} % of the index: on the GPU",
    "λ {}, cache {} % of the index: post-processing",
    "λ {}, cache {} % of the index: queries post-processed",
    "λ {}, cache {} % of the index: hit rate",
    "hit rate, λ 0.75 over λ 1, cache 10 % of the index",
];

/// Tests the values of each λ (or of each cache size, if `by_cache` is false) in ascending order.
fn along(
    results: &Results,
    what: &str,
    by_cache: bool,
    test: impl Fn(&[(String, f64)]) -> Found<Outcome>,
) -> Found<Outcome> {
    let form = format!("λ {{}}, cache {{}} % of the index: {what}");
    let mut lines: Vec<(String, Vec<(String, f64)>)> = Vec::new();
    for row in &results.rows {
        let Some(parts) = captured(&form, &row.name) else { continue };
        let Some(value) = row.ours else { return results.like(&form).map(|_| outcome(false, "")) };
        let line = parts[usize::from(!by_cache)].to_owned();
        let point = (format!("λ {}, {} %", parts[0], parts[1]), value);
        match lines.iter_mut().find(|(name, _)| *name == line) {
            Some((_, points)) => points.push(point),
            None => lines.push((line, vec![point])),
        }
    }
    if lines.is_empty() {
        results.like(&form)?;
    }
    let tested = lines.iter().map(|(_, points)| test(points)).collect::<Found<Vec<_>>>()?;
    tested
        .iter()
        .find(|outcome| !outcome.held)
        .or(tested.first())
        .cloned()
        .ok_or_else(|| Gap("nothing measured".into()))
}

fn fig6(judge: &mut Judge<'_>) {
    judge.claim("A larger cache reduces the time on the GPU, at every λ", |r| {
        along(r, "on the GPU", true, |times| falling(times, 0.0))
    });
    judge.claim("A larger cache increases the hit rate, at every λ", |r| {
        along(r, "hit rate", true, |rates| rising(rates, 0.0))
    });
    judge.claim("A smaller λ increases post-processing (10 % tolerance)", |r| {
        along(r, "post-processing", false, |times| falling(times, 0.1))
    });
    judge.claim("A smaller λ reduces the work of the GPU (5 % tolerance)", |r| {
        along(r, "on the GPU", false, |times| rising(times, 0.05))
    });
    judge.claim("λ from 0.75 to 1 changes the hit rate by about 5 points (2 to 8, cache 10 % of the index)", |r| {
        let found = with_papers(r, "hit rate, λ 0.75 over λ 1, cache 10 % of the index")?;
        every(found, "near", |ours, papers| (ours - papers).abs() <= 3.0)
    });
    judge.claim("About 30 % of the lists hit a cache of 10 % of the index (10 points)", |r| {
        let found = with_papers(r, "λ 1, cache 10 % of the index: hit rate")?;
        every(found, "near", |ours, papers| (ours - papers).abs() <= 10.0)
    });
}

const FIG7_ROWS: &[&str] = &[
    "{}, cache {} % of M: moved",
    "{}, cache {} % of M: hit rate",
    "VFB: moved, over Qtf, mean over the sizes",
    "VFB: moved, over QtfDf, mean over the sizes",
];

/// Cases of two policies at each cache size.
fn policies(results: &Results, first: &str, second: &str, what: &str) -> Found<Vec<super::cases::Case>> {
    let form = |policy: &str| format!("{policy}, cache {{}} % of M: {what}");
    let cases = joined(results, &form(first), &form(second))?;
    Ok(cases.into_iter().map(|(size, a, b)| (format!("{size} %, {first} and {second}"), a, b)).collect())
}

const VFB: &str = "VFB, λ 0.95";

fn fig7(judge: &mut Judge<'_>) {
    judge.claim("VFB moves the fewest bytes at every cache size", |r| {
        let mut cases = policies(r, VFB, "Qtf", "moved")?;
        cases.extend(policies(r, VFB, "QtfDf", "moved")?);
        below(cases)
    });
    judge.claim("The hit rate of VFB is comparable to that of Qtf (within 10 points, or higher)", |r| {
        every(policies(r, VFB, "Qtf", "hit rate")?, "not far below", |vfb, qtf| vfb >= qtf - 10.0)
    });
    judge.claim("QtfDf has a much higher hit rate than the others (by 5 points)", |r| {
        let mut cases = policies(r, "QtfDf", "Qtf", "hit rate")?;
        cases.extend(policies(r, "QtfDf", VFB, "hit rate")?);
        every(cases, "5 points above", |a, b| a >= b + 5.0)
    });
    judge.claim("QtfDf moves the most bytes", |r| above(policies(r, "QtfDf", "Qtf", "moved")?));
}

const FIG8_ROWS: &[&str] = &[
    "M {} %, {}: throughput",
    "?M {} %, {}: S_c",
    "?M {} %, {}: the second thread is busy",
    "M {} %, VFB over {}",
    "{}: how linear, correlation with M",
];

const ONE_THREAD: &str = "one thread post-processes: with four threads VFB is faster there as well";

/// Whether VFB with four threads that post-process exceeds each other policy wherever VFB with one thread does not.
fn by_more_threads(results: &Results, [before, behind]: [&str; 2], others: &[&str]) -> bool {
    let rates = |policy: &str| results.like(&format!("{before}{{}}{behind}, {policy}: throughput")).unwrap_or_default();
    let with_four = rates("VFB, {} threads post-process");
    let of = |rates: &[(String, f64)], at: &str| {
        rates.iter().find(|(name, _)| name.split(", ").next() == Some(at)).map(|(_, qps)| *qps)
    };
    let (one, mut slower) = (rates("VFB"), 0);
    others.iter().flat_map(|other| rates(other)).all(|(at, other_qps)| {
        let is_slower = of(&one, &at).is_some_and(|vfb_qps| vfb_qps <= other_qps);
        slower += usize::from(is_slower);
        !is_slower || of(&with_four, &at).is_some_and(|vfb_qps| vfb_qps > other_qps)
    }) && slower > 0
}

fn fig8(judge: &mut Judge<'_>) {
    judge.claim("Throughput rises almost linearly with memory for every policy (correlation of 0.95)", |r| {
        let found = r.like("{}: how linear, correlation with M")?;
        above(found.into_iter().map(|(policy, r)| (policy, r, 0.95)).collect())
    });
    for other in ["Qtf", "QtfDf"] {
        judge.claim(format!("VFB has a higher throughput than {other} in every memory"), |r| {
            let gains = r.like(&format!("M {{}} %, VFB over {other}"))?;
            let found = above(gains.into_iter().map(|(m, gain)| (format!("M {m} %, gain in %"), gain, 0.0)).collect())?;
            let is_one_threads = by_more_threads(r, ["M ", " %"], &[other]);
            Ok(found.because(is_one_threads, ONE_THREAD))
        });
    }
    for (other, percent) in [("Qtf", 30.0), ("QtfDf", 140.0)] {
        judge.claim(format!("The gain over {other} reaches {percent} % (at least three quarters of that)"), |r| {
            let gains = r.like(&format!("M {{}} %, VFB over {other}"))?;
            let most = gains.iter().map(|(_, gain)| *gain).fold(f64::NEG_INFINITY, f64::max);
            above(vec![("greatest gain in %".into(), most, 0.75 * percent)])
        });
    }
}

const FIG9_ROWS: &[&str] = &[
    "θ {} ms, {}: throughput",
    "θ {} ms, {}: response time, mean",
    "?θ {} ms, {}: the second thread is busy",
    "?θ {} ms, {} threads post-process: throughput",
    "limits under which VFB is best, {}",
];

fn fig9(judge: &mut Judge<'_>) {
    judge.claim("VFB has a higher throughput than Qtf and QtfDf under every limit", |r| {
        let mut cases = joined(r, "θ {} ms, VFB: throughput", "θ {} ms, Qtf: throughput")?;
        cases.extend(joined(r, "θ {} ms, VFB: throughput", "θ {} ms, QtfDf: throughput")?);
        let found = above(cases)?;
        Ok(found.because(by_more_threads(r, ["θ ", " ms"], &["Qtf", "QtfDf"]), ONE_THREAD))
    });
    judge.claim("High throughput is achieved under a limit as well (80 % of that without one, from 5 ms on)", |r| {
        let all = r.like("θ {} ms, VFB: throughput")?;
        let most = all.iter().map(|(_, qps)| *qps).fold(0.0, f64::max);
        let long = all.into_iter().filter(|(limit, _)| limit.parse::<f64>().is_ok_and(|ms| ms >= 5.0));
        above(long.map(|(limit, qps)| (format!("θ {limit} ms"), qps, 0.8 * most)).collect())
    });
    judge.claim("The response time stays within the limit", |r| {
        let times = r.like("θ {} ms, {}: response time, mean")?;
        let case = |(name, ms): (String, f64)| Some((name.clone(), ms, name.split(',').next()?.parse().ok()?));
        every(times.into_iter().filter_map(case).collect(), "within", |ms, limit| ms <= limit)
    });
}

fn fig10(judge: &mut Judge<'_>) {
    judge.claim("The GPU is faster than eight CPU threads at every k", |r| {
        let gains = r.like("k {}, GPU over CPU-8")?;
        above(gains.into_iter().map(|(k, gain)| (format!("k {k}, gain in %"), gain, 0.0)).collect())
    });
    judge.claim("It gains 3, 19, 24 and 24 % at k 1, 5, 10 and 15 (within 20 points)", |r| {
        every(with_papers(r, "k {}, GPU over CPU-8")?, "near", |ours, papers| (ours - papers).abs() <= 20.0)
    });
    judge.claim("Both processors together are faster than the GPU alone at every k", |r| {
        above(joined(r, "k {}, combined", "k {}, GPU with VFB")?)
    });
    judge.claim("More CPU threads are faster at every k", |r| above(joined(r, "k {}, CPU-8", "k {}, CPU-1")?));
}
