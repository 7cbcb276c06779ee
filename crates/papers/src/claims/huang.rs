//! Statements of Huang, Ren, Zhao, Stones, Zhang, Wang and Liu, 2017.

use super::cases::{above, below, every, falling, joined, near, rising, with_papers};
use super::{Judge, Statements, on_queries};
use crate::results::{Found, Gap, Results, captured};

pub(super) const ALL: &[Statements] = &[
    on_queries(
        "huang-fig3",
        &["{}, {} to {} blocks ({} queries), CPU", "?{}, {} to {} blocks ({} queries), GPU"],
        fig3,
    ),
    on_queries("huang-fig4", FIG4_ROWS, fig4),
    on_queries("huang-table1", TABLE1_ROWS, table1),
    on_queries("huang-fig5", &["{}, P {}: initialisation", "{}, P {}: scoring", "{}, P {}: merging"], fig5),
    on_queries("huang-fig6", &["{}, P {}: best S", "{}, P {}: time at the best S", "{}, P {}: S {}"], fig6),
    on_queries("huang-table2", TABLE2_ROWS, table2),
    on_queries("huang-table3", TABLE3_ROWS, table3),
    on_queries(
        "huang-fig7",
        &["{}: CPU, one thread", "?{}: GPU", "?{}: GPU, {}", "?{}: CPU and GPU, {}", "?{}: four GPUs, {}"],
        fig7,
    ),
];

const STRATEGIES: [&str; 4] = ["AND", "OR", "WAND", "BMW"];
/// Smallest number of queries of a length, which are repeated up to a batch.
const LEAST_IN_BIN: f64 = 20.0;

/// CPU and GPU times by strategy for bins with enough queries, in ascending order of length.
fn bins(results: &Results, strategy: &str) -> Found<Vec<(String, f64, f64)>> {
    let of = |side: &str| results.like(&format!("{strategy}, {{}} to {{}} blocks ({{}} queries), {side}"));
    let (cpu, gpu) = (of("CPU")?, of("GPU")?);
    let pairs = cpu.into_iter().filter_map(|(name, cpu)| {
        let parts: Vec<f64> = name.split(", ").filter_map(|part| part.parse().ok()).collect();
        let gpu = gpu.iter().find(|(other, _)| *other == name)?.1;
        (*parts.get(2)? >= LEAST_IN_BIN).then_some((format!("{strategy}, {} blocks", parts[0]), cpu, gpu))
    });
    let pairs: Vec<_> = pairs.collect();
    if pairs.len() < 2 {
        return Err(Gap(format!("too few samples: no two lengths have {LEAST_IN_BIN} queries")));
    }
    Ok(pairs)
}

fn fig3(judge: &mut Judge<'_>) {
    judge.claim("The CPU is faster on the longest queries for AND, WAND and BMW", |r| {
        let longest = |strategy| Ok(bins(r, strategy)?.pop().into_iter());
        let cases = ["AND", "WAND", "BMW"].into_iter().map(longest).collect::<Found<Vec<_>>>()?;
        below(cases.into_iter().flatten().collect())
    });
    judge.claim("The GPU is faster on the longest queries for OR", |r| {
        above(bins(r, "OR")?.pop().into_iter().collect())
    });
    judge.claim("The GPU is faster on short queries", |r| {
        let shortest = |strategy| Ok(bins(r, strategy)?.into_iter().next());
        let cases = STRATEGIES.into_iter().map(shortest).collect::<Found<Vec<_>>>()?;
        above(cases.into_iter().flatten().collect())
    });
}

const FIG4_ROWS: &[&str] = &[
    "below {} blocks",
    "below {} blocks: {} in a collection of this size",
    "blocks that {} % of the queries do not exceed",
];

fn fig4(judge: &mut Judge<'_>) {
    judge.claim("81 % of the queries have fewer than 50,000 blocks, scaled to the collection (10 points)", |r| {
        let found = with_papers(r, "below {} blocks: 50000 in a collection of this size")?;
        every(found, "near", |ours, papers| (ours - papers).abs() <= 10.0)
    });
}

const TABLE1_ROWS: &[&str] = &["{}, top {}: CPU, one thread", "?{}, top {}: GPU, {}", "?{}, top {}: queries of both"];

/// Milliseconds of a strategy by threads per query.
fn by_threads(results: &Results, strategy: &str, k: usize) -> Found<Vec<(String, f64)>> {
    let form = format!("{strategy}, top {k}: GPU, P {{}}");
    let is_plain = |(threads, _): &(String, f64)| threads.parse::<u32>().is_ok();
    Ok(results.like(&form)?.into_iter().filter(is_plain).collect())
}

fn fastest(times: &[(String, f64)]) -> Found<&(String, f64)> {
    times.iter().min_by(|a, b| a.1.total_cmp(&b.1)).ok_or_else(|| Gap(String::from("nothing was measured")))
}

/// Fails for files whose CPU column is a mean of fewer queries than the GPU's.
fn equal_queries(results: &Results) -> Found<()> {
    let is_less = |note: &str| note.contains("of which the CPU answered");
    let has_less = results.provenance.lines().any(|(key, note)| key == "note" && is_less(note));
    if has_less && !results.has("{}, top {}: queries of both") {
        return Err(Gap(String::from("CPU and GPU columns are means of different queries")));
    }
    Ok(())
}

fn table1(judge: &mut Judge<'_>) {
    judge.claim("The GPU is faster than the CPU for every strategy (P 64, top 10)", |r| {
        equal_queries(r)?;
        below(joined(r, "{}, top 10: GPU, P 64", "{}, top 10: CPU, one thread")?)
    });
    judge.claim("It saves 50 to 55 % of the time (within 10 points, P 64, top 10)", |r| {
        equal_queries(r)?;
        let pairs = joined(r, "{}, top 10: GPU, P 64", "{}, top 10: CPU, one thread")?;
        let saved = pairs.into_iter().map(|(name, gpu, cpu)| (name, 100.0 * (1.0 - gpu / cpu), 52.5));
        every(saved.collect(), "near", |saved, papers| (saved - papers).abs() <= 12.5)
    });
    judge.claim("P 64 is the best number of threads for AND, WAND and BMW (top 10)", |r| {
        let best = |strategy: &str| {
            let times = by_threads(r, strategy, 10)?;
            let at = fastest(&times)?.0.parse().unwrap_or(0.0);
            Ok((format!("{strategy}, best P"), at, 64.0))
        };
        near(["AND", "WAND", "BMW"].into_iter().map(best).collect::<Found<_>>()?, 0.0)
    });
    judge.claim("Time rises with k for every strategy and P (2 % tolerance)", |r| {
        let mut cases = joined(r, "{}, top 10: GPU, P {}", "{}, top 1: GPU, P {}")?;
        cases.extend(joined(r, "{}, top 20: GPU, P {}", "{}, top 10: GPU, P {}")?);
        every(cases, "above", |more, fewer| more >= 0.98 * fewer)
    });
    judge.claim("BMW is the fastest strategy of the GPU at each system's best P (top 10; 4.47 ms, AND 5.81)", |r| {
        let best = |strategy: &str| Ok(fastest(&by_threads(r, strategy, 10)?)?.1);
        let bmw = best("BMW")?;
        let case = |strategy: &str| Ok((format!("BMW and {strategy}"), bmw, best(strategy)?));
        below(["AND", "OR", "WAND"].into_iter().map(case).collect::<Found<_>>()?)
    });
    judge.claim("On the CPU BMW is faster than AND, WAND and OR (top 10)", |r| {
        let bmw = r.ours("BMW, top 10: CPU, one thread")?;
        let case = |strategy: &str| {
            Ok((format!("BMW and {strategy}"), bmw, r.ours(&format!("{strategy}, top 10: CPU, one thread"))?))
        };
        below(["AND", "OR", "WAND"].into_iter().map(case).collect::<Found<_>>()?)
    });
}

/// Values of rows such as `AND, P 32: scoring` by strategy, in ascending order of P.
fn by_p(results: &Results, what: &str) -> Found<Vec<Vec<(String, f64)>>> {
    let named = |strategy: &str| {
        let values = results.like(&format!("{strategy}, P {{}}: {what}"))?;
        Ok(values.into_iter().map(|(p, value)| (format!("{strategy}, P {p}"), value)).collect())
    };
    STRATEGIES.into_iter().map(named).collect()
}

fn fig5(judge: &mut Judge<'_>) {
    judge.claim("Scoring takes most of the time for every strategy and P", |r| {
        let all = by_p(r, "scoring")?.into_iter().flatten();
        above(all.map(|(name, share)| (name, share, 50.0)).collect())
    });
    judge.claim("The share of scoring falls with P", |r| combined(by_p(r, "scoring")?, |shares| falling(shares, 0.0)));
    for stage in ["initialisation", "merging"] {
        judge.claim(format!("The share of {stage} rises with P"), |r| {
            combined(by_p(r, stage)?, |shares| rising(shares, 0.0))
        });
    }
}

/// Holds if a test holds for every strategy; shows the evidence of the first that fails, or of the first.
fn combined(
    strategies: Vec<Vec<(String, f64)>>,
    test: impl Fn(&[(String, f64)]) -> Found<super::Outcome>,
) -> Found<super::Outcome> {
    let tested = strategies.iter().map(|values| test(values)).collect::<Found<Vec<_>>>()?;
    let shown = tested.iter().find(|outcome| !outcome.held).or(tested.first()).cloned();
    shown.ok_or_else(|| Gap(String::from("nothing was measured")))
}

fn fig6(judge: &mut Judge<'_>) {
    judge.claim("S 30,000 is the best threshold in every case (within 10 % of the best time)", |r| {
        let best = STRATEGIES.into_iter().map(|strategy| {
            let time = r.ours(&format!("{strategy}, P 64: S 30000"))?;
            Ok((strategy.to_owned(), time, r.ours(&format!("{strategy}, P 64: time at the best S"))?))
        });
        near(best.collect::<Found<_>>()?, 0.1)
    });
    judge.claim("P 64 is almost always the best number of threads", |r| {
        let best = by_p(r, "time at the best S")?;
        let cases = best.iter().map(|times| {
            let (name, _) = fastest(times)?;
            let p = captured("{}, P {}", name).and_then(|parts| parts[1].parse().ok()).unwrap_or(0.0);
            Ok((name.clone(), p, 64.0))
        });
        near(cases.collect::<Found<_>>()?, 0.0)
    });
}

const TABLE2_ROWS: &[&str] = &[
    "{}, P {}: SD",
    "{}, P {}: LBD at its best S",
    "{}, P {}: saved",
    "{}, P {}: the best S",
    "{}, P {}: queries for the GPU there",
    "{}, P {}: LBD as composed of both sides alone",
];

fn table2(judge: &mut Judge<'_>) {
    judge.claim("LBD is faster than SD in every case", |r| {
        below(joined(r, "{}, P {}: LBD at its best S", "{}, P {}: SD")?)
    });
    judge.claim("The gain is greatest for BMW (P 64)", |r| {
        let bmw = r.ours("BMW, P 64: saved")?;
        let case = |strategy: &str| {
            Ok((format!("% saved, BMW and {strategy}"), bmw, r.ours(&format!("{strategy}, P 64: saved"))?))
        };
        above(["AND", "OR", "WAND"].into_iter().map(case).collect::<Found<_>>()?)
    });
    judge.claim("LBD saves 39 to 62 % of SD's time (at least 39 % in every case)", |r| {
        above(r.like("{}, P {}: saved")?.into_iter().map(|(name, saved)| (name, saved, 39.0)).collect())
    });
}

const TABLE3_ROWS: &[&str] = &["{}, P {}: one GPU", "?{}, P {}: four GPUs", "?{}, P {}: {} GPUs, {}"];

/// The row name of four GPUs: measured on four, or computed.
fn four(results: &Results) -> &'static str {
    if results.has("{}, P {}: four GPUs") { "four GPUs" } else { "four GPUs, computed from one's batches" }
}

/// Fails if the quarter of the log that each of four GPUs gets leaves most of it idle.
fn enough_per_gpu(results: &Results) -> Found<()> {
    const LEAST: u64 = 500;
    match results.queries().map(|queries| queries / 4) {
        Some(each) if each < LEAST => {
            Err(Gap(format!("too few samples: {each} queries on each of four GPUs, at least {LEAST} are needed")))
        }
        _ => Ok(()),
    }
}

fn table3(judge: &mut Judge<'_>) {
    judge.claim("Four GPUs save 74 to 83 % of one GPU's time (at least 70 % in every case)", |r| {
        enough_per_gpu(r)?;
        let pairs = joined(r, &format!("{{}}, P {{}}: {}", four(r)), "{}, P {}: one GPU")?;
        below(pairs.into_iter().map(|(name, four, one)| (name, four, 0.3 * one)).collect())
    });
    judge.claim("P 128 is the best number of threads for four GPUs", |r| {
        enough_per_gpu(r)?;
        let times = by_p(r, four(r))?;
        let cases = times.iter().map(|times| {
            let (name, _) = fastest(times)?;
            let p = captured("{}, P {}", name).and_then(|parts| parts[1].parse().ok()).unwrap_or(0.0);
            Ok((name.clone(), p, 128.0))
        });
        near(cases.collect::<Found<_>>()?, 0.0)
    });
    judge.claim("OR gains more than four times by four GPUs", |r| {
        enough_per_gpu(r)?;
        let times = joined(r, "OR, P {}: one GPU", &format!("OR, P {{}}: {}", four(r)))?;
        above(times.into_iter().map(|(name, one, four)| (format!("P {name}"), one, 4.0 * four)).collect())
    });
}

fn fig7(judge: &mut Judge<'_>) {
    judge.claim("A GPU is faster than the CPU for every strategy", |r| {
        below(joined(r, "{}: GPU", "{}: CPU, one thread")?)
    });
    judge.claim("Of CPU, GPU, SD and LBD, LBD takes the least time for every strategy", |r| {
        let mut cases = joined(r, "{}: CPU and GPU, LBD", "{}: CPU, one thread")?;
        cases.extend(joined(r, "{}: CPU and GPU, LBD", "{}: GPU")?);
        cases.extend(joined(r, "{}: CPU and GPU, LBD", "{}: CPU and GPU, SD")?);
        below(cases)
    });
    judge.claim("LBD takes about 84 % less time than the CPU (10 points)", |r| {
        let pairs = joined(r, "{}: CPU and GPU, LBD", "{}: CPU, one thread")?;
        let less = pairs.into_iter().map(|(name, lbd, cpu)| (name, 100.0 * (1.0 - lbd / cpu), 84.0));
        every(less.collect(), "near", |ours, papers| (ours - papers).abs() <= 10.0)
    });
    let four = "{}: four GPUs, computed from one's batches";
    judge.claim("Four GPUs take about 89 % less time than the CPU (10 points)", |r| {
        enough_per_gpu(r)?;
        let pairs = joined(r, four, "{}: CPU, one thread")?;
        let less = pairs.into_iter().map(|(name, gpus, cpu)| (name, 100.0 * (1.0 - gpus / cpu), 89.0));
        every(less.collect(), "near", |ours, papers| (ours - papers).abs() <= 10.0)
    });
    judge.claim("Four GPUs are faster than one", |r| {
        enough_per_gpu(r)?;
        below(joined(r, four, "{}: GPU")?)
    });
}
