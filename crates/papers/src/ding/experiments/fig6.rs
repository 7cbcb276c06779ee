//! Ding et al., figure 6: intersection of two uncompressed lists by Parallel Merge Find, with 0 to 4 levels of recursion.
//!
//! Both lists are random documents of a collection of GOV2's size. A run looks up every element of the first list in the
//! second and compacts the matches. One CPU core intersects the same lists for
//! comparison: it merges lists of similar lengths, and gallops through much longer ones.

use std::sync::Arc;

use tandem_model::base::quantile::median;
use tandem_model::base::random::Random;

use super::common::open_gpu;
use crate::context::GOV2_DOCS;
use crate::ding::gpu::PublishedGpu;
use crate::ding::gpu::merge_find::ListIntersection;
use crate::findings::{Chart, Curve};
use crate::measure::fastest_us;
use crate::{Context, ExperimentError, Findings, Result};

/// Lengths in thousands of elements: the paper's 5 K to 16 million.
const LENGTHS_K: [u32; 13] = [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10_240, 16_000];
const LONGEST_K: u32 = LENGTHS_K[LENGTHS_K.len() - 1];
const LEVELS: u32 = 4;
const REPEATS: usize = 9;
const CPU_REPEATS: usize = 3;
/// "Costs below 4 ns an element for larger lists", with two or three levels.
const PAPERS_NS: f64 = 4.0;
/// Second experiment, "not shown due to space": thousands of elements of the shorter list.
const SHORTER_K: u32 = 200;
/// Second experiment: thousands of elements of the longer list.
const LONGER_K: [u32; 7] = [200, 400, 800, 1600, 3200, 6400, 12_800];
/// Ratio of lengths from which a CPU core gallops through the longer list instead of merging.
const GALLOPING: u32 = 4;
/// "A moderate rise in cost from about 4 to 15 ns".
const PAPERS_UNEVEN: [(u32, f64); 2] = [(200, 4.0), (12_800, 15.0)];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    findings.provenance("input", format!("random lists of {GOV2_DOCS} documents, seed {}", context.seed));
    let gpu = open_gpu(findings)?;
    let mut steps = context.steps("list lengths", LENGTHS_K.len() + LONGER_K.len());

    let mut even = curves();
    for length_k in LENGTHS_K {
        let times_ns = intersect(gpu.as_ref(), context.seed, length_k, length_k)?;
        for (place, (curve, ns)) in even.iter_mut().zip(times_ns).enumerate() {
            let papers = (length_k == LONGEST_K && (place == 2 || place == 3)).then_some(PAPERS_NS);
            findings.compare(format!("{length_k} K: {}", curve.name), "ns/int", papers, ns);
            curve.points.extend(ns.map(|ns| (f64::from(length_k), ns)));
        }
        steps.done();
    }
    let last = f64::from(LONGEST_K);
    let papers = vec![(last / 4.0, PAPERS_NS), (last, PAPERS_NS)];
    findings.chart(chart("intersection", "Intersection", "length of both lists (1000 docIDs)", even, papers));

    let mut uneven = curves();
    for length_k in LONGER_K {
        let times_ns = intersect(gpu.as_ref(), context.seed, SHORTER_K, length_k)?;
        for (place, (curve, ns)) in uneven.iter_mut().zip(times_ns).enumerate() {
            let papers = PAPERS_UNEVEN.iter().find(|&&(papers_k, _)| place == 3 && papers_k == length_k);
            let name = format!("{SHORTER_K} K in {length_k} K: {}", curve.name);
            findings.compare(name, "ns/int", papers.map(|&(_, ns)| ns), ns);
            curve.points.extend(ns.map(|ns| (f64::from(length_k), ns)));
        }
        steps.done();
    }
    let papers = PAPERS_UNEVEN.iter().map(|&(length_k, ns)| (f64::from(length_k), ns)).collect();
    let title = "Intersection of 200 K docIDs with more";
    findings.chart(chart("uneven", title, "length of the longer list (1000 docIDs)", uneven, papers));
    findings.note(
        "Times are the device's and include launches, which dominate for some \
         thousands of docIDs.",
    );
    Ok(())
}

/// Returns a curve without points for each level of recursion, and one for a CPU core.
fn curves() -> Vec<Curve> {
    (0..=LEVELS)
        .map(|levels| format!("GPU, {levels} level{}", if levels == 1 { "" } else { "s" }))
        .chain([String::from("one CPU core")])
        .enumerate()
        .map(|(colour, name)| Curve::ours(name, colour, Vec::new()))
        .collect()
}

/// Returns nanoseconds per element of the shorter list for each curve; lengths are in thousands.
fn intersect(gpu: Option<&Arc<PublishedGpu>>, seed: u64, shorter_k: u32, longer_k: u32) -> Result<Vec<Option<f64>>> {
    let [a, b] = [(1, shorter_k), (2, longer_k)].map(|(stream, k)| draw(k * 1000, &mut Random::new(seed, stream)));
    let mut matches = Vec::new();
    let cpu_us = fastest_us(CPU_REPEATS, || {
        if longer_k >= GALLOPING * shorter_k {
            gallop(&a, &b, &mut matches)
        } else {
            merge(&a, &b, &mut matches)
        }
        Ok(())
    })?;
    let mut times_us = vec![None; LEVELS as usize + 1];
    if let Some(gpu) = gpu {
        let mut intersection = ListIntersection::upload(gpu, &a, &b)?;
        for (levels, time_us) in (0..).zip(&mut times_us) {
            *time_us = Some(median(gpu.time_us(REPEATS, || intersection.run(levels))?));
            if intersection.docs()? != matches {
                return Err(ExperimentError::Wrong(format!(
                    "the GPU intersected lists of {shorter_k} K and {longer_k} K wrongly, {levels} levels"
                )));
            }
        }
    }
    times_us.push(Some(cpu_us));
    Ok(times_us.into_iter().map(|us| us.map(|us| us / f64::from(shorter_k))).collect())
}

fn chart(stem: &str, title: &str, x_label: &str, curves: Vec<Curve>, papers: Vec<(f64, f64)>) -> Chart {
    let title = format!("{title} by Parallel Merge Find (Ding et al., figure 6)");
    let curves = curves.into_iter().chain([Curve::papers("2-3 levels", 3, papers)]);
    Chart::new(stem, title, [x_label, "ns an integer of the shorter list"], curves).log_x().log_y()
}

/// Draws `len` ascending documents of a collection of GOV2's size, each with the same probability.
fn draw(len: u32, random: &mut Random) -> Vec<u32> {
    let mut docs = Vec::with_capacity(len as usize);
    let mut wanted = len;
    for doc in 0..GOV2_DOCS {
        // Knuth's selection sampling takes a document with probability wanted / remaining.
        if random.below(GOV2_DOCS - doc) < wanted {
            docs.push(doc);
            wanted -= 1;
        }
    }
    docs
}

fn merge(a: &[u32], b: &[u32], common: &mut Vec<u32>) {
    common.clear();
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            common.push(a[i]);
        }
        let (left, right) = (a[i], b[j]);
        i += usize::from(left <= right);
        j += usize::from(right <= left);
    }
}

/// Finds the common elements by a search from the last place, whose step doubles until it is too long.
fn gallop(short: &[u32], long: &[u32], common: &mut Vec<u32>) {
    common.clear();
    let mut at = 0;
    for &doc in short {
        let mut step = 1;
        while at + step < long.len() && long[at + step] < doc {
            at += step;
            step *= 2;
        }
        let until = (at + step + 1).min(long.len());
        at += long[at..until].partition_point(|&other| other < doc);
        if long.get(at) == Some(&doc) {
            common.push(doc);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn galloping_finds_what_merging_finds() {
        let [short, long] = [(1, 3_000), (2, 200_000)].map(|(stream, n)| draw(n, &mut Random::new(1, stream)));
        let [mut merged, mut galloped] = [Vec::new(), Vec::new()];
        merge(&short, &long, &mut merged);
        gallop(&short, &long, &mut galloped);
        assert!(!merged.is_empty() && merged == galloped);
        gallop(&[7], &[], &mut galloped);
        assert!(galloped.is_empty());
    }

    #[test]
    fn merging_gives_what_both_have() {
        let mut common = Vec::new();
        merge(&[1, 3, 5, 9], &[0, 3, 4, 9, 12], &mut common);
        assert_eq!(common, [3, 9]);
        merge(&[], &[1], &mut common);
        assert!(common.is_empty());
    }

    #[test]
    fn draws_have_their_length_and_ascend() {
        let docs = draw(1000, &mut Random::new(1, 1));
        assert_eq!(docs.len(), 1000);
        assert!(docs.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
