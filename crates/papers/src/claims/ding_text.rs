//! Statements in the text of Ding, He, Yan and Suel, WWW 2009: skipped blocks, costs by size, and quantised scores.

use super::cases::{above, against, below, every, joined, near, pair, rising, with_papers};
use super::ding::{MUCH, SLIGHTLY, least, on, sections};
use super::{Judge, Outcome, Statements, on_queries, outcome};
use crate::results::shown;

pub(super) const ALL: &[Statements] = &[
    on_queries("ding-skipping", &["{} blocks of {}: {}", "queries", "?real lists: {}"], skipping),
    on_queries("ding-costs", &["{} of {}: {}", "?real lists: {}"], costs),
    on_queries("ding-quantised", &["or: {}", "?real lists: or: {}"], quantised),
];

fn skipping(judge: &mut Judge<'_>) {
    for section in sections(judge.results, "queries") {
        judge.claim(
            format!("The blocks skipped equal those of document-at-a-time forward seeks (1 %){}", on(section)),
            |r| {
                let form = |how: &str| format!("{section}{how} blocks of {{}}: decoded");
                near(joined(r, &form("step by step,"), &form("document at a time,"))?, 0.01)
            },
        );
        judge.claim(format!("Most blocks of the longer lists can be skipped{}", on(section)), |r| {
            below(against(r, &format!("{section}step by step, blocks of {{}}: decoded, of all"), 50.0)?)
        });
    }
}

fn costs(judge: &mut Judge<'_>) {
    for section in sections(judge.results, "and of {}: CPU") {
        let terms = format!("{section}{{}} of {{}} terms: CPU");
        judge.claim(format!("Costs grow with the number of terms, OR (10 % tolerance){}", on(section)), |r| {
            let or: Vec<_> = r.like(&terms)?.into_iter().filter(|(name, _)| name.starts_with("or,")).collect();
            rising(&or, SLIGHTLY)
        });
        judge.claim(
            format!(
                "The ratio of GPU and CPU stays about the same by number of terms, AND (factor of 2){}",
                on(section)
            ),
            |r| {
                let cases = joined(r, &terms, &terms.replace("CPU", "GPU"))?;
                let of_and = cases.into_iter().filter(|(name, ..)| name.starts_with("and,"));
                let (ratios, gpu_ms): (Vec<f64>, Vec<f64>) = of_and.map(|(_, cpu, gpu)| (cpu / gpu, gpu)).unzip();
                let (low, high) = (least(&ratios), ratios.iter().copied().fold(0.0, f64::max));
                let found = outcome(high <= 2.0 * low, format!("CPU over GPU from {} to {}", shown(low), shown(high)));
                Ok(because_of_steps(found, &gpu_ms))
            },
        );
        judge.claim(
            format!("OR: the CPU is faster for small queries and the GPU for large ones{}", on(section)),
            |r| {
                let form = |side: &str| format!("{section}or of {{}} postings: {side}");
                let bins = joined(r, &form("CPU"), &form("GPU"))?;
                let (first, last) = (&bins[0], &bins[bins.len() - 1]);
                let evidence = format!("CPU over GPU {} and {}", shown(first.1 / first.2), shown(last.1 / last.2));
                Ok(outcome(first.1 < first.2 && last.1 > last.2, evidence))
            },
        );
        judge.claim(
            format!(
                "OR: the GPU significantly outperforms the CPU for all but the smallest queries (by 20 %, 80 % of the \
                 queries){}",
                on(section)
            ),
            |r| {
                let form = |what: &str| format!("{section}or of {{}} postings: {what}");
                let bins = joined(r, &form("CPU"), &form("GPU"))?;
                let counts = r.like(&form("queries"))?;
                let all: f64 = counts.iter().map(|(_, count)| count).sum();
                let slow: Vec<_> = bins.iter().filter(|(_, cpu, gpu)| *cpu < MUCH * gpu).collect();
                let of_slow =
                    |(size, count): &(String, f64)| if slow.iter().any(|(s, ..)| s == size) { *count } else { 0.0 };
                let share = 100.0 * (1.0 - counts.iter().map(of_slow).sum::<f64>() / all);
                let found = above(vec![("% of the queries".into(), share, 80.0)])?;
                let (floor, most) = (bins[0].2, slow.iter().map(|(.., gpu)| *gpu).fold(0.0, f64::max));
                let cause = format!(
                    "a floor: the GPU takes {} ms for the shortest lists, and at most {} ms where it is not faster",
                    shown(floor),
                    shown(most)
                );
                Ok(found.because(most < 3.0 * floor, cause))
            },
        );
    }
}

/// Adds the cause of a GPU's times that grow with the terms of a query, whose first member has one term, by equal steps.
fn because_of_steps(found: Outcome, gpu_ms: &[f64]) -> Outcome {
    let steps: Vec<f64> = gpu_ms.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let Some((_, inner)) = steps.split_last() else { return found };
    let (low, high) = (least(inner), inner.iter().copied().fold(0.0, f64::max));
    let cause =
        format!("a GPU works term by term: each term up to the fourth adds {} to {} ms", shown(low), shown(high));
    found.because(inner.len() > 1 && high <= 1.5 * low, cause)
}

fn quantised(judge: &mut Judge<'_>) {
    for section in sections(judge.results, "or: scores") {
        let row = |name: &str| format!("{section}or: {name}");
        judge
            .claim(format!("About 40 % of the CPU's time for OR is spent on scores (10 points){}", on(section)), |r| {
                every(with_papers(r, &row("scores"))?, "near", |ours, papers| (ours - papers).abs() <= 10.0)
            });
        judge.claim(format!("Precomputed quantised scores make OR faster{}", on(section)), |r| {
            below(pair(r, &row("quantised scores"), &row("BM25 from frequencies"))?)
        });
        judge.claim(format!("They save less than half of the time, far from a GPU's 7 times{}", on(section)), |r| {
            let (quantised, plain) = (r.ours(&row("quantised scores"))?, r.ours(&row("BM25 from frequencies"))?);
            above(vec![("ms, quantised and half".into(), quantised, 0.5 * plain)])
        });
        judge.claim(
            format!("Quantised scores take more room than frequencies (8 bits, 4 to 5 there){}", on(section)),
            |r| above(pair(r, &row("bits of a quantised score"), &row("bits of a frequency"))?),
        );
    }
}
