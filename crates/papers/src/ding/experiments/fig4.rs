//! Ding et al., figure 4: decoding speed of PForDelta against list length.
//!
//! Lists of the queries' terms are put in bins by length, each twice as long as the one before; a list is decoded
//! alone, as when a query needs it. Three lines are the paper's: CPU, GPU with the localised prefix sum, GPU without, by
//! the device's clock, lists following one another. A fourth has what the host sees, from the call to the last value, with
//! the launch; a fifth decodes a bin's lists together, which is what short lists need on a GPU.
//!
//! In the paper the prefix sum costs much, here little: its steps are between a warp's registers. How near decoding comes
//! to what memory gives, reading and writing, is told for the longest lists.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::lists::{GOV2_DOCS, terms};
use crate::codec::{Codec, Column, PForDelta};
use crate::ding::experiments::measured::{decode_on_cpu, fastest_us, open_gpu};
use crate::ding::gpu::{PforBatch, PublishedGpu};
use crate::{Chart, Context, ExperimentError, Findings, Input, Line};
use tandem_core::base::ids::TermId;
use tandem_core::base::quantile::median;

/// Queries whose lists are decoded.
const QUERIES: usize = 1000;
/// Lists of a bin at most.
const LISTS_A_BIN: usize = 16;
/// Shorter lists go into the first bin.
const SHORTEST_BITS: u32 = 10;
const REPEATS: usize = 7;
/// "Up to 2.5 billion integers per second for longer lists": all that the text tells of the figure.
const PAPERS_LONG: [(f64, f64); 2] = [(4096.0, 2500.0), (16_384.0, 2500.0)];

/// The lines: the paper's three, and two of ours.
const LINES: [&str; 5] =
    ["CPU", "GPU with prefix sum", "GPU without", "GPU with, launch and wait included", "GPU with, a bin at once"];

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let input = context.input(GOV2_DOCS, QUERIES)?;
    let mut findings = Findings::default();
    findings.provenance("input", &input.name);
    let gpu = open_gpu(&mut findings)?;
    let bins = bins(&input);
    let codec = PForDelta::new(1);
    let mut lines = LINES.map(|_| Vec::new());
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
            of_gpu.tell_sums(&name, &mut findings);
            times_us[1..].copy_from_slice(&of_gpu.by_line().map(Some));
            let encoded_words: usize = encoded.iter().map(Vec::len).sum();
            longest = Some(4.0 * (encoded_words + postings) as f64 / of_gpu.at_once_us * 1e6);
        }
        for ((name_of_line, line), time_us) in LINES.iter().zip(&mut lines).zip(times_us) {
            let rate = time_us.map(|us| postings as f64 / us);
            findings.compare(format!("{name}: {name_of_line}"), "M ints/s", None, rate);
            line.extend(rate.map(|rate| (length, rate)));
        }
        steps.done();
    }
    drop(steps);
    if let (Some(gpu), Some(bytes_per_s)) = (&gpu, longest) {
        let share = 100.0 * bytes_per_s / gpu.copy_rate(REPEATS)?;
        findings.compare("longest lists at once, with prefix sum: bytes moved, of the copy's rate", "%", None, share);
    }
    findings.chart(speeds(lines));
    findings.note(
        "The paper: the GPU without prefix sum reaches 2500 M ints/s on long lists, and the CPU wins on short ones. \
         Lists are decoded one after another but for the last line; GPU times are the device's own but where the launch is \
         included. The sums are made between a warp's registers: what they cost, and how near memory is to its limit with \
         them, stands above.",
    );
    Ok(findings)
}

/// Some lists of each length, by the power of two that is no less.
fn bins(input: &Input) -> BTreeMap<u32, Vec<TermId>> {
    let mut bins: BTreeMap<u32, Vec<TermId>> = BTreeMap::new();
    for term in terms(input) {
        let bits = input.index.list(term).doc_freq().max(1).next_power_of_two().ilog2().max(SHORTEST_BITS);
        let bin = bins.entry(bits).or_default();
        if bin.len() < LISTS_A_BIN {
            bin.push(term);
        }
    }
    bins
}

/// How long a GPU decodes the lists of a bin, in microseconds.
struct GpuTimes {
    /// One after another, by the device's clock,
    with_sums_us: f64,
    /// and without prefix sums,
    without_sums_us: f64,
    /// and as the host sees it.
    wall_us: f64,
    /// All together,
    at_once_us: f64,
    /// and without prefix sums.
    at_once_without_us: f64,
}

impl GpuTimes {
    fn measure(gpu: &Arc<PublishedGpu>, encoded: &[Vec<u32>]) -> Result<Self, ExperimentError> {
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

    /// In the order of the [lines](LINES), without the CPU.
    fn by_line(&self) -> [f64; 4] {
        [self.with_sums_us, self.without_sums_us, self.wall_us, self.at_once_us]
    }

    /// What prefix sums cost.
    fn tell_sums(&self, name: &str, findings: &mut Findings) {
        let share = 100.0 * (1.0 - self.without_sums_us / self.with_sums_us);
        findings.compare(format!("{name}: prefix sum"), "% of time", None, share);
        let share = 100.0 * (1.0 - self.at_once_without_us / self.at_once_us);
        findings.compare(format!("{name}: prefix sum, a bin at once"), "% of time", None, share);
    }
}

/// The figure: those lines that have points, and what the paper tells of one.
fn speeds(lines: [Vec<(f64, f64)>; 5]) -> Chart {
    let lines = LINES.iter().zip(lines).enumerate().filter(|(_, (_, points))| !points.is_empty());
    let papers = Line { name: LINES[2].to_owned(), is_papers: true, colour: 2, points: PAPERS_LONG.to_vec() };
    Chart {
        stem: String::from("speed"),
        title: String::from("Decoding PForDelta (Ding et al., figure 4)"),
        x_label: String::from("length of a list (1024 docIDs)"),
        y_label: String::from("million integers a second"),
        is_x_log: true,
        is_y_log: true,
        lines: lines
            .map(|(colour, (name, points))| Line { name: (*name).to_owned(), is_papers: false, colour, points })
            .chain([papers])
            .collect(),
    }
}
