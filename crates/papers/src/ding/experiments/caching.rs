//! Ding et al., section 5: lists cached in GPU memory, and copies that overlap with other queries.
//!
//! The paper's table 2 has all lists in the memory that is searched. Its architecture caches a part of them in GPU memory,
//! at "around 50% to 80%" hits, and hides copies behind other queries, but the paper measures neither. Here both are
//! measured on one stream of queries. Its first half fills the cache, and its second half counts. Hits by cache size need no
//! GPU. The time per query is measured with copies before kernels, with hidden copies, and without copies.

use std::sync::Arc;
use std::time::Instant;

use tandem_engine::query::Query;
use tandem_engine::search::Hit;
use tandem_model::traffic::Mode;

use crate::codec::PForDelta;
use crate::context::terms_of;
use crate::ding::gpu::PublishedGpu;
use crate::ding::gpu::cache::{Requests, requests_of};
use crate::ding::gpu::cached::{CachedSearch, LockedLists};
use crate::ding::gpu::lists::HostLists;
use crate::ding::gpu::search::PublishedSearch;
use crate::findings::{Chart, Curve};
use crate::measure::are_equal;
use crate::{Context, ExperimentError, Findings, Input, Result};

/// Cache sizes in percent of the bytes of all lists that the stream names.
const SIZES: [u32; 20] = [5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100];
/// Cache sizes at which queries run.
const TIMED: [u32; 6] = [10, 20, 40, 60, 80, 100];
/// Hits in GPU memory: "around 50% to 80%". The paper does not say whether of requests or of bytes.
const PAPERS_HITS: [f64; 2] = [50.0, 80.0];
/// Main memory: "90% or more are obtained as long as about 20% or more of the index data can be kept".
const PAPERS_MAIN_MEMORY: (u32, f64) = (20, 90.0);
/// Timed rounds, of which the fastest counts.
const ROUNDS: usize = 2;
/// Queries whose lists are copied while another query runs.
const AHEAD: usize = 1;

/// Measures the caching of an input's lists. `stem` begins the names of the charts.
pub(crate) fn measure(
    context: &Context<'_>,
    input: &Input,
    gpu: Option<&Arc<PublishedGpu>>,
    (section, stem): (&str, &str),
    modes: &[Mode],
    findings: &mut Findings,
) -> Result<()> {
    findings.section(section);
    let queries = &input.queries;
    let bm25 = input.index.built_with();
    let lists = Arc::new(HostLists::encode(&input.index, &terms_of(queries), bm25, PForDelta::new(1))?);
    let (warm_up, counted) = queries.split_at(queries.len() / 2);
    let largest = queries.iter().map(|query| lists.bytes_of(query)).max().unwrap_or(0);
    let budget = |percent: u32| lists.bytes() * u64::from(percent) / 100;
    let fits = |percent: &u32| budget(*percent) >= largest;
    findings.add("queries that count", "", counted.len() as f64);
    findings.add("their lists and those before, compressed", "MB", lists.bytes() as f64 / 1e6);
    findings.add("lists of the largest query", "% of these", 100.0 * largest as f64 / lists.bytes() as f64);

    let mut hits: Vec<(u32, Requests)> = Vec::new();
    for percent in SIZES.into_iter().filter(fits) {
        let requests = requests_of(&lists, budget(percent), warm_up, counted)?;
        if TIMED.contains(&percent) {
            let name = format!("cache of {percent} %");
            findings.add(format!("{name}: requests that hit"), "%", requests.hit_percent());
            let (papers_percent, papers_hits) = PAPERS_MAIN_MEMORY;
            let papers = (percent == papers_percent).then_some(papers_hits);
            findings.compare(format!("{name}: bytes that hit"), "%", papers, requests.byte_hit_percent());
            let moved_mb = requests.moved_bytes as f64 / 1e6 / requests.queries.max(1) as f64;
            findings.add(format!("{name}: moved a query"), "MB", moved_mb);
        }
        hits.push((percent, requests));
    }
    type Share = fn(&Requests) -> f64;
    let shares: [(&str, Share); 2] = [("requests", Requests::hit_percent), ("bytes", Requests::byte_hit_percent)];
    for wanted in PAPERS_HITS {
        for (what, share) in shares {
            let enough = hits.iter().find(|(_, requests)| share(requests) >= wanted);
            let percent = enough.map(|&(percent, _)| f64::from(percent));
            findings.add(format!("smallest cache that {wanted} % of {what} hit"), "% of the lists", percent);
        }
    }
    let ours = shares.into_iter().enumerate().map(|(colour, (what, share))| {
        let points = hits.iter().map(|(percent, requests)| (f64::from(*percent), share(requests)));
        Curve::ours(what, colour, points.collect())
    });
    let papers = PAPERS_HITS.map(|hits| Curve::papers(format!("{hits} %"), 2, vec![(0.0, hits), (100.0, hits)]));
    let title = format!("Hits with {section} (Ding et al., section 5)");
    let labels = ["size of the cache (% of the lists)", "hits (%)"];
    findings.chart(Chart::new(format!("{stem}-hits"), title, labels, ours.chain(papers)));
    if let Some(gpu) = gpu {
        let timed: Vec<(u32, u64)> = TIMED.into_iter().filter(fits).map(|percent| (percent, budget(percent))).collect();
        let device = OnDevice {
            resident: PublishedSearch::upload(gpu, &lists)?,
            locked: Arc::new(LockedLists::new(gpu, &lists)?),
            k: context.k,
            warm_up,
            counted,
        };
        device.compare(context, modes, &timed, (section, stem), findings)?;
    }
    findings.section("");
    Ok(())
}

/// Lists and queries of the runs on a GPU.
struct OnDevice<'a> {
    resident: PublishedSearch,
    locked: Arc<LockedLists>,
    k: usize,
    warm_up: &'a [Query],
    counted: &'a [Query],
}

#[derive(Clone, Copy, Debug)]
struct Times {
    ms: f64,
    /// Device time of copies.
    copying_ms: f64,
    /// Bytes copied over the device time of copies.
    gigabytes_per_s: f64,
    compactions: usize,
}

impl OnDevice<'_> {
    /// Times all sizes in all modes, and compares answers with those of device-resident lists.
    fn compare(
        mut self,
        context: &Context<'_>,
        modes: &[Mode],
        sizes: &[(u32, u64)],
        (section, stem): (&str, &str),
        findings: &mut Findings,
    ) -> Result<()> {
        let mut steps = context.steps("sizes of the cache", modes.len() * sizes.len());
        for &mode in modes {
            let (expected, resident_ms) = self.resident(mode)?;
            findings.add(format!("{mode}, all lists resident: a query"), "ms", resident_ms);
            let mut curves = ["copies before kernels", "copies hidden", "all resident"].map(|name| (name, Vec::new()));
            for &(percent, budget_bytes) in sizes {
                let [serial, hidden] = self.cached(mode, budget_bytes, &expected)?;
                let name = format!("{mode}, cache of {percent} %");
                findings.add(format!("{name}: a query, copies before kernels"), "ms", serial.ms);
                findings.add(format!("{name}: a query, copies hidden"), "ms", hidden.ms);
                findings.add(format!("{name}: copies alone"), "ms", serial.copying_ms);
                findings.add(format!("{name}: rate of copies"), "GB/s", serial.gigabytes_per_s);
                findings.add(format!("{name}: times that lists moved together"), "", serial.compactions as f64);
                for ((_, points), ms) in curves.iter_mut().zip([serial.ms, hidden.ms, resident_ms]) {
                    points.push((f64::from(percent), ms));
                }
                steps.done();
            }
            let curves =
                curves.into_iter().enumerate().map(|(colour, (name, points))| Curve::ours(name, colour, points));
            let title = format!("{mode} with {section} (Ding et al., section 5)");
            let labels = ["size of the cache (% of the lists)", "mean time of a query (ms)"];
            findings.chart(Chart::new(format!("{stem}-{mode}"), title, labels, curves));
        }
        Ok(())
    }

    /// Returns answers and mean milliseconds with all lists in device memory.
    fn resident(&mut self, mode: Mode) -> Result<(Vec<Vec<Hit>>, f64)> {
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

    /// Returns times with copies before kernels and with hidden copies.
    fn cached(&self, mode: Mode, budget_bytes: u64, expected: &[Vec<Hit>]) -> Result<[Times; 2]> {
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

    /// Runs one round that copies the lists of `ahead` later queries.
    fn timed(&self, mode: Mode, budget_bytes: u64, ahead: usize, expected: &[Vec<Hit>]) -> Result<Times> {
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
        let queries = self.counted.len() as f64;
        Ok(Times {
            ms: 1e3 * stream.seconds / queries,
            copying_ms: 1e-3 * stream.copying_us / queries,
            gigabytes_per_s: 1e-3 * stream.requests.moved_bytes as f64 / stream.copying_us.max(1e-3),
            compactions: stream.requests.compactions,
        })
    }
}
