//! Ding et al., figure 6: intersecting two uncompressed lists of one length by Parallel Merge Find, with 0 to 4
//! levels of recursion.
//!
//! Both lists are drawn at random from as many documents as GOV2 has. A run looks up every element of the first list in
//! the second and compacts the matches. Beside it, one CPU core merges the same two lists.

use std::sync::Arc;

use super::lists::GOV2_DOCS;
use crate::ding::experiments::measured::{fastest_us, open_gpu};
use crate::ding::gpu::{ListIntersection, PublishedGpu};
use crate::{Chart, Context, ExperimentError, Findings, Line};
use tandem_core::base::quantile::median;
use tandem_core::base::random::Random;

/// Thousands of elements of a list: the paper's 5 K to 16 million.
const LENGTHS_K: [u32; 13] = [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10_240, 16_000];
const LEVELS: u32 = 4;
const REPEATS: usize = 9;
const CPU_REPEATS: usize = 3;
/// "Costs below 4 ns an element for larger lists", with two or three levels.
const PAPERS_NS: f64 = 4.0;
/// The second experiment, "not shown due to space": thousands of elements of the shorter list, which stays, and of the
/// longer one.
const SHORTER_K: u32 = 200;
const LONGER_K: [u32; 7] = [200, 400, 800, 1600, 3200, 6400, 12_800];
/// "A moderate rise in cost from about 4 to 15 ns".
const PAPERS_UNEVEN: [(u32, f64); 2] = [(200, 4.0), (12_800, 15.0)];

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    findings.provenance("input", format!("random lists of {GOV2_DOCS} documents, seed {}", context.seed));
    let gpu = open_gpu(&mut findings)?;
    let mut steps = context.steps("list lengths", LENGTHS_K.len() + LONGER_K.len());

    let mut lines = lines();
    for length_k in LENGTHS_K {
        let times_ns = intersect(gpu.as_ref(), context.seed, length_k, length_k)?;
        for (place, (line, ns)) in lines.iter_mut().zip(times_ns).enumerate() {
            let is_papers_best = length_k == LENGTHS_K[LENGTHS_K.len() - 1] && (place == 2 || place == 3);
            findings.compare(format!("{length_k} K: {}", line.name), "ns/int", is_papers_best.then_some(PAPERS_NS), ns);
            line.points.extend(ns.map(|ns| (f64::from(length_k), ns)));
        }
        steps.done();
    }
    let last = f64::from(LENGTHS_K[LENGTHS_K.len() - 1]);
    let papers = vec![(last / 4.0, PAPERS_NS), (last, PAPERS_NS)];
    findings.chart(chart("intersection", "Intersection", "length of both lists (1000 docIDs)", lines, papers));

    let mut lines = self::lines();
    for length_k in LONGER_K {
        let times_ns = intersect(gpu.as_ref(), context.seed, SHORTER_K, length_k)?;
        for (place, (line, ns)) in lines.iter_mut().zip(times_ns).enumerate() {
            let papers = PAPERS_UNEVEN.iter().find(|&&(papers_k, _)| place == 3 && papers_k == length_k);
            let name = format!("{SHORTER_K} K in {length_k} K: {}", line.name);
            findings.compare(name, "ns/int", papers.map(|&(_, ns)| ns), ns);
            line.points.extend(ns.map(|ns| (f64::from(length_k), ns)));
        }
        steps.done();
    }
    let papers = PAPERS_UNEVEN.iter().map(|&(length_k, ns)| (f64::from(length_k), ns)).collect();
    let title = "Intersection of 200 K docIDs with more";
    findings.chart(chart("uneven", title, "length of the longer list (1000 docIDs)", lines, papers));
    findings.note(
        "The paper: for long lists recursion is far better than a binary search in the whole list, and two or three \
         levels stay below 4 ns; 200 K in longer lists take from about 4 to 15 ns. A whole list fits today's 50 MB of \
         second-level cache, where a binary search is cheap. Times are the device's, launches included: with lists of \
         some thousands there is nothing else.",
    );
    Ok(findings)
}

/// A line a level of recursion, and one of a CPU core; all empty.
fn lines() -> Vec<Line> {
    (0..=LEVELS)
        .map(|levels| (format!("GPU, {levels} level{}", if levels == 1 { "" } else { "s" }), levels as usize))
        .chain([(String::from("one CPU core"), LEVELS as usize + 1)])
        .map(|(name, colour)| Line { name, is_papers: false, colour, points: Vec::new() })
        .collect()
}

/// Nanoseconds an element of the shorter list, for each line: a list of `shorter_k` thousand against one of `longer_k`.
fn intersect(
    gpu: Option<&Arc<PublishedGpu>>,
    seed: u64,
    shorter_k: u32,
    longer_k: u32,
) -> Result<Vec<Option<f64>>, ExperimentError> {
    let [a, b] = [(1, shorter_k), (2, longer_k)].map(|(stream, k)| draw(k * 1000, &mut Random::new(seed, stream)));
    let mut matches = Vec::new();
    let cpu_us = fastest_us(CPU_REPEATS, || {
        merge(&a, &b, &mut matches);
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

fn chart(stem: &str, title: &str, x_label: &str, mut lines: Vec<Line>, papers: Vec<(f64, f64)>) -> Chart {
    lines.retain(|line| !line.points.is_empty());
    lines.push(Line { name: String::from("2-3 levels"), is_papers: true, colour: 3, points: papers });
    Chart {
        stem: stem.to_owned(),
        title: format!("{title} by Parallel Merge Find (Ding et al., figure 6)"),
        x_label: x_label.to_owned(),
        y_label: String::from("ns an integer of the shorter list"),
        is_x_log: true,
        is_y_log: true,
        lines,
    }
}

/// `len` ascending documents of a collection of GOV2's size, each as likely as any.
fn draw(len: u32, random: &mut Random) -> Vec<u32> {
    let mut docs = Vec::with_capacity(len as usize);
    let mut wanted = len;
    for doc in 0..GOV2_DOCS {
        // Knuth's selection sampling: of the documents that are left, as many as are still wanted.
        if random.below(GOV2_DOCS - doc) < wanted {
            docs.push(doc);
            wanted -= 1;
        }
    }
    docs
}

/// What both lists have.
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

#[cfg(test)]
mod tests {
    use super::*;

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
