//! Ding et al., figure 4: decode rate of PForDelta against list length.
//!
//! Lists of the queries are binned by length; each bin is twice as wide as the one before. Three curves are the paper's:
//! CPU, GPU with the localised prefix sum, and GPU without it. They decode list after list and use the device's clock.
//! A fourth curve is the time on the host from the call to the last value. A fifth decodes the lists of a bin together.
//!
//! The prefix sum costs much in the paper and little here, where its steps run between the registers of a warp. For the
//! longest lists the bytes read and written are compared with the rate of a copy.

use std::collections::BTreeMap;
use std::sync::Arc;

use tandem_model::base::ids::TermId;
use tandem_model::base::quantile::median;

use super::common::{decode_on_cpu, open_gpu};
use crate::codec::{Codec, Column, PForDelta};
use crate::context::{GOV2_DOCS, terms_of};
use crate::ding::gpu::{PforBatch, PublishedGpu};
use crate::findings::{Chart, Curve};
use crate::measure::fastest_us;
use crate::{Context, Findings, Input, Result};

const QUERIES: usize = 1000;
const LISTS_PER_BIN: usize = 16;
/// The first bin holds all lists up to two to this power.
const SHORTEST_BITS: u32 = 10;
const REPEATS: usize = 7;
/// "Up to 2.5 billion integers per second for longer lists", the only numbers in the paper's text.
const PAPERS_LONG: [(f64, f64); 2] = [(4096.0, 2500.0), (16_384.0, 2500.0)];
/// Names of the curves: three of the paper and two of ours.
const CURVES: [&str; 5] =
    ["CPU", "GPU with prefix sum", "GPU without", "GPU with, launch and wait included", "GPU with, a bin at once"];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let input = context.input(GOV2_DOCS, QUERIES, findings)?;
    let gpu = open_gpu(findings)?;
    let bins = bins(&input);
    let codec = PForDelta::new(1);
    let mut curves = CURVES.map(|_| Vec::new());
    let mut longest = None;
    let mut steps = context.steps("list lengths", bins.len());
    for (bits, bin) in bins {
        let lists: Vec<Vec<u32>> = bin.iter().map(|&term| input.index.list(term).docs()).collect();
        let postings: usize = lists.iter().map(Vec::len).sum();
        let encoded = lists.iter().map(|docs| codec.encode_list(Column::Docs, docs)).collect::<Result<Vec<_>, _>>()?;
        let mut decoded = Vec::new();
        let cpu_us = fastest_us(REPEATS, || decode_on_cpu(&codec, &encoded, &mut decoded))?;
        let length = f64::from(1 << (bits - SHORTEST_BITS));
        let name = format!("up to {length} K docIDs");
        let mut times_us = [Some(cpu_us), None, None, None, None];
        if let Some(gpu) = &gpu {
            let of_gpu = GpuTimes::measure(gpu, &encoded)?;
            of_gpu.add_prefix_sums(&name, findings);
            times_us[1..].copy_from_slice(&of_gpu.by_curve().map(Some));
            let encoded_words: usize = encoded.iter().map(Vec::len).sum();
            longest = Some(4.0 * (encoded_words + postings) as f64 / of_gpu.at_once_us * 1e6);
        }
        for ((curve, points), time_us) in CURVES.iter().zip(&mut curves).zip(times_us) {
            let rate = time_us.map(|us| postings as f64 / us);
            findings.add(format!("{name}: {curve}"), "M ints/s", rate);
            points.extend(rate.map(|rate| (length, rate)));
        }
        steps.done();
    }
    drop(steps);
    if let (Some(gpu), Some(bytes_per_s)) = (&gpu, longest) {
        let share = 100.0 * bytes_per_s / gpu.copy_rate(REPEATS)?;
        findings.add("longest lists at once, with prefix sum: bytes moved, of the copy's rate", "%", share);
    }
    let curves = CURVES.into_iter().zip(curves).enumerate();
    let curves = curves.map(|(colour, (name, points))| Curve::ours(name, colour, points));
    let curves = curves.chain([Curve::papers(CURVES[2], 2, PAPERS_LONG.to_vec())]);
    let labels = ["length of a list (1024 docIDs)", "million integers a second"];
    findings.chart(Chart::new("speed", "Decoding PForDelta (Ding et al., figure 4)", labels, curves).log_x().log_y());
    findings.note(
        "Lists are decoded one after another except in the last curve. GPU times are the device's own unless the launch is \
         included. The prefix sum runs between the registers of a warp.",
    );
    Ok(())
}

/// Returns some lists of each length, by the logarithm of the next power of two.
fn bins(input: &Input) -> BTreeMap<u32, Vec<TermId>> {
    let mut bins: BTreeMap<u32, Vec<TermId>> = BTreeMap::new();
    for term in terms_of(&input.queries) {
        let bits = input.index.list(term).doc_freq().max(1).next_power_of_two().ilog2().max(SHORTEST_BITS);
        let bin = bins.entry(bits).or_default();
        if bin.len() < LISTS_PER_BIN {
            bin.push(term);
        }
    }
    bins
}

/// GPU times of decoding the lists of a bin.
struct GpuTimes {
    /// List after list with prefix sums, by the device's clock.
    with_sums_us: f64,
    /// List after list without prefix sums, by the device's clock.
    without_sums_us: f64,
    /// List after list with prefix sums, by the host's clock.
    wall_us: f64,
    /// All lists together with prefix sums.
    at_once_us: f64,
    /// All lists together without prefix sums.
    at_once_without_us: f64,
}

impl GpuTimes {
    fn measure(gpu: &Arc<PublishedGpu>, encoded: &[Vec<u32>]) -> Result<Self> {
        let single: Result<Vec<_>, _> =
            encoded.iter().map(|list| PforBatch::upload(gpu, Column::Docs, [list.as_slice()])).collect();
        let single = single?;
        let one_by_one_us = |with_sums| {
            let each = || single.iter().try_for_each(|list| list.decode(with_sums));
            gpu.time_us(REPEATS, each).map(median)
        };
        let (with_sums_us, without_sums_us) = (one_by_one_us(true)?, one_by_one_us(false)?);
        let wall_us = |list: &PforBatch| gpu.wall_us(REPEATS, || list.decode(true)).map(median);
        let wall_us = single.iter().map(wall_us).sum::<Result<f64, _>>()?;
        drop(single);
        let batch = PforBatch::upload(gpu, Column::Docs, encoded.iter().map(Vec::as_slice))?;
        let at_once_us = median(gpu.time_us(REPEATS, || batch.decode(true))?);
        let at_once_without_us = median(gpu.time_us(REPEATS, || batch.decode(false))?);
        Ok(Self { with_sums_us, without_sums_us, wall_us, at_once_us, at_once_without_us })
    }

    /// Returns the times in the order of [`CURVES`], without the CPU.
    fn by_curve(&self) -> [f64; 4] {
        [self.with_sums_us, self.without_sums_us, self.wall_us, self.at_once_us]
    }

    fn add_prefix_sums(&self, name: &str, findings: &mut Findings) {
        let share = 100.0 * (1.0 - self.without_sums_us / self.with_sums_us);
        findings.add(format!("{name}: prefix sum"), "% of time", share);
        let share = 100.0 * (1.0 - self.at_once_without_us / self.at_once_us);
        findings.add(format!("{name}: prefix sum, a bin at once"), "% of time", share);
    }
}
