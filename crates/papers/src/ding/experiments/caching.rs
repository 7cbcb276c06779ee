//! Ding et al., section 5: lists cached in the GPU's memory, others copied there while other queries are worked on.
//!
//! The paper's table 2 has all lists where they are read; its architecture keeps a part of them in the GPU's memory, at "around
//! 50% to 80%" hits, and hides the copies of the others behind other queries. Neither is measured there. Here both are, on one
//! stream of queries, whose first half fills the cache and whose second half counts: hits by the cache's size, which needs no
//! GPU, and what a query takes with its copies before its kernels, with copies hidden, and without any.

use std::sync::Arc;
use std::time::Instant;

use super::lists::terms;
use super::table2::are_equal;
use crate::codec::PForDelta;
use crate::ding::gpu::{CachedSearch, HostLists, LockedLists, PublishedGpu, PublishedSearch, Requests, requests_of};
use crate::{Chart, Context, ExperimentError, Findings, Input, Line};
use tandem_core::query::{Mode, Query};
use tandem_core::search::Hit;

/// Sizes of the cache, in percent of the bytes of all lists that the stream names.
const SIZES: [u32; 20] = [5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100];
/// Those that queries are run with.
const TIMED: [u32; 6] = [10, 20, 40, 60, 80, 100];
/// Hits in the GPU's memory: "around 50% to 80%"; whether of requests or of bytes is not said.
const PAPERS_HITS: [f64; 2] = [50.0, 80.0];
/// Of a cache in main memory: "90% or more are obtained as long as about 20% or more of the index data can be kept".
const PAPERS_MAIN_MEMORY: (u32, f64) = (20, 90.0);
/// Each way is timed so often, in turns; the fastest counts.
const ROUNDS: usize = 2;
/// Queries whose lists travel while another is worked on.
const AHEAD: usize = 1;

/// Measures the caching of an input's lists; `of` is the section, `stem` names the charts.
pub(super) fn measure(
    context: &Context<'_>,
    input: &Input,
    gpu: Option<&Arc<PublishedGpu>>,
    (of, stem): (&str, &str),
    modes: &[Mode],
    findings: &mut Findings,
) -> Result<(), ExperimentError> {
    findings.section(of);
    let queries = &input.queries;
    let bm25 = input.index.built_with();
    let lists = Arc::new(HostLists::encode(&input.index, &terms(input), bm25, PForDelta::new(1))?);
    let (warm_up, counted) = queries.split_at(queries.len() / 2);
    let largest = queries.iter().map(|query| lists.bytes_of(query)).max().unwrap_or(0);
    let budget = |percent: u32| lists.bytes() * u64::from(percent) / 100;
    let fits = |percent: &u32| budget(*percent) >= largest;
    findings.compare("queries that count", "", None, counted.len() as f64);
    findings.compare("their lists and those before, compressed", "MB", None, lists.bytes() as f64 / 1e6);
    findings.compare("lists of the largest query", "% of these", None, 100.0 * largest as f64 / lists.bytes() as f64);

    let mut hits: Vec<(u32, Requests)> = Vec::new();
    for percent in SIZES.into_iter().filter(fits) {
        let requests = requests_of(&lists, budget(percent), warm_up, counted)?;
        if TIMED.contains(&percent) {
            let name = format!("cache of {percent} %");
            findings.compare(format!("{name}: requests that hit"), "%", None, requests.hit_percent());
            let (papers_percent, papers_hits) = PAPERS_MAIN_MEMORY;
            let papers = (percent == papers_percent).then_some(papers_hits);
            findings.compare(format!("{name}: bytes that hit"), "%", papers, requests.byte_hit_percent());
            let moved_mb = requests.moved_bytes as f64 / 1e6 / requests.queries.max(1) as f64;
            findings.compare(format!("{name}: moved a query"), "MB", None, moved_mb);
        }
        hits.push((percent, requests));
    }
    type Share = fn(&Requests) -> f64;
    let shares: [(&str, Share); 2] = [("requests", Requests::hit_percent), ("bytes", Requests::byte_hit_percent)];
    for wanted in PAPERS_HITS {
        for (what, share) in shares {
            let enough = hits.iter().find(|(_, requests)| share(requests) >= wanted);
            let percent = enough.map(|&(percent, _)| f64::from(percent));
            findings.compare(format!("smallest cache that {wanted} % of {what} hit"), "% of the lists", None, percent);
        }
    }
    findings.chart(hits_chart(stem, of, &hits));
    if let Some(gpu) = gpu {
        let timed: Vec<(u32, u64)> = TIMED.into_iter().filter(fits).map(|percent| (percent, budget(percent))).collect();
        let device = OnDevice {
            resident: PublishedSearch::upload(gpu, &lists)?,
            locked: Arc::new(LockedLists::new(gpu, &lists)?),
            k: context.k,
            warm_up,
            counted,
        };
        device.compare(context, modes, &timed, (of, stem), findings)?;
    }
    findings.section("");
    Ok(())
}

/// What queries are run with on the GPU.
struct OnDevice<'a> {
    resident: PublishedSearch,
    locked: Arc<LockedLists>,
    k: usize,
    warm_up: &'a [Query],
    counted: &'a [Query],
}

/// What a query takes, in the mean.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// To its answer.
    ms: f64,
    /// The device's time of copying.
    copying_ms: f64,
    /// Of the bytes that were copied, in the device's time of copying.
    gigabytes_a_s: f64,
    compactions: usize,
}

impl OnDevice<'_> {
    /// Times all sizes in all modes, and compares answers with those from resident lists.
    fn compare(
        mut self,
        context: &Context<'_>,
        modes: &[Mode],
        sizes: &[(u32, u64)],
        (of, stem): (&str, &str),
        findings: &mut Findings,
    ) -> Result<(), ExperimentError> {
        let mut steps = context.steps("sizes of the cache", modes.len() * sizes.len());
        for &mode in modes {
            let (expected, resident_ms) = self.resident(mode)?;
            findings.compare(format!("{mode}, all lists resident: a query"), "ms", None, resident_ms);
            let mut lines = ["copies before kernels", "copies hidden", "all resident"].map(|name| (name, Vec::new()));
            for &(percent, budget_bytes) in sizes {
                let [serial, hidden] = self.cached(mode, budget_bytes, &expected)?;
                let name = format!("{mode}, cache of {percent} %");
                findings.compare(format!("{name}: a query, copies before kernels"), "ms", None, serial.ms);
                findings.compare(format!("{name}: a query, copies hidden"), "ms", None, hidden.ms);
                findings.compare(format!("{name}: copies alone"), "ms", None, serial.copying_ms);
                findings.compare(format!("{name}: rate of copies"), "GB/s", None, serial.gigabytes_a_s);
                let compactions = serial.compactions as f64;
                findings.compare(format!("{name}: times that lists moved together"), "", None, compactions);
                for ((_, line), ms) in lines.iter_mut().zip([serial.ms, hidden.ms, resident_ms]) {
                    line.push((f64::from(percent), ms));
                }
                steps.done();
            }
            let lines = lines.into_iter().enumerate().map(|(colour, (name, points))| line(name, colour, points));
            findings.chart(Chart {
                stem: format!("{stem}-{mode}"),
                title: format!("{mode} with {of} (Ding et al., section 5)"),
                x_label: String::from("size of the cache (% of the lists)"),
                y_label: String::from("mean time of a query (ms)"),
                is_x_log: false,
                is_y_log: false,
                lines: lines.collect(),
            });
        }
        Ok(())
    }

    /// Answers and mean milliseconds with all lists in device memory.
    fn resident(&mut self, mode: Mode) -> Result<(Vec<Vec<Hit>>, f64), ExperimentError> {
        let mut answers = vec![Vec::new(); self.counted.len()];
        let mut fastest_ms = f64::INFINITY;
        for _ in 0..ROUNDS {
            let began = Instant::now();
            for (query, hits) in self.counted.iter().zip(&mut answers) {
                self.resident.search(query, mode, self.k, false, hits)?;
            }
            fastest_ms = fastest_ms.min(began.elapsed().as_secs_f64() * 1e3 / self.counted.len() as f64);
        }
        Ok((answers, fastest_ms))
    }

    /// Copies before kernels, and copies hidden, with a cache of `budget_bytes`.
    fn cached(&self, mode: Mode, budget_bytes: u64, expected: &[Vec<Hit>]) -> Result<[Times; 2], ExperimentError> {
        let mut fastest =
            [self.timed(mode, budget_bytes, 0, expected)?, self.timed(mode, budget_bytes, AHEAD, expected)?];
        for _ in 1..ROUNDS {
            for (ahead, fastest) in [0, AHEAD].into_iter().zip(&mut fastest) {
                let times = self.timed(mode, budget_bytes, ahead, expected)?;
                if times.ms < fastest.ms {
                    *fastest = times;
                }
            }
        }
        Ok(fastest)
    }

    /// One round with `ahead` queries' lists on their way.
    fn timed(
        &self,
        mode: Mode,
        budget_bytes: u64,
        ahead: usize,
        expected: &[Vec<Hit>],
    ) -> Result<Times, ExperimentError> {
        let mut search = CachedSearch::new(&self.locked, budget_bytes)?;
        let mut answers = Vec::new();
        search.run(self.warm_up, mode, self.k, ahead, &mut answers)?;
        let stream = search.run(self.counted, mode, self.k, ahead, &mut answers)?;
        let wrong = answers.iter().zip(expected).position(|(found, expected)| !are_equal(found, expected));
        if let Some(place) = wrong {
            let label = &self.counted[place].label;
            return Err(ExperimentError::Wrong(format!(
                "query {label} gets other results from cached lists than from resident ones, {mode}"
            )));
        }
        let a_query = 1.0 / self.counted.len() as f64;
        Ok(Times {
            ms: 1e3 * stream.seconds * a_query,
            copying_ms: 1e-3 * stream.copying_us * a_query,
            gigabytes_a_s: 1e-3 * stream.requests.moved_bytes as f64 / stream.copying_us.max(1e-3),
            compactions: stream.requests.compactions,
        })
    }
}

fn line(name: &str, colour: usize, points: Vec<(f64, f64)>) -> Line {
    Line { name: name.to_owned(), is_papers: false, colour, points }
}

/// Hits by the cache's size, between the paper's.
fn hits_chart(stem: &str, of: &str, hits: &[(u32, Requests)]) -> Chart {
    let of_each = |value: fn(&Requests) -> f64| {
        hits.iter().map(|(percent, requests)| (f64::from(*percent), value(requests))).collect()
    };
    let papers = PAPERS_HITS.map(|percent| Line {
        name: format!("{percent} %"),
        is_papers: true,
        colour: 2,
        points: vec![(0.0, percent), (100.0, percent)],
    });
    let ours =
        [line("requests", 0, of_each(Requests::hit_percent)), line("bytes", 1, of_each(Requests::byte_hit_percent))];
    Chart {
        stem: format!("{stem}-hits"),
        title: format!("Hits with {of} (Ding et al., section 5)"),
        x_label: String::from("size of the cache (% of the lists)"),
        y_label: String::from("hits (%)"),
        is_x_log: false,
        is_y_log: false,
        lines: ours.into_iter().chain(papers).collect(),
    }
}
