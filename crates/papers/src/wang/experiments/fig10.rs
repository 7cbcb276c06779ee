//! Wang et al., figure 10: against one to eight CPU threads, by k; and both processors together.

use std::time::Instant;

use super::backlog::{Sharing, serve};
use super::bench::Bench;
use super::charts::{chart, line, papers_line};
use super::fig8::winner;
use crate::wang::cache::Prefixes;
use crate::wang::cpu::{CPU_ROUND, answer, answer_all};
use crate::wang::data::{MEMORY_SHARE, World};
use crate::wang::gpu::Session;
use crate::wang::report::RunOptions;
use crate::wang::train_test_split::RankedQuery;
use crate::{Context, ExperimentError, Findings};

/// Numbers of documents, and what the GPU gained over eight threads in the paper, in percent.
const KS: [(usize, f64); 4] = [(1, 3.0), (5, 19.0), (10, 24.0), (15, 24.0)];
/// Threads.
const THREADS: [usize; 4] = [1, 2, 4, 8];
/// Queries that may wait for each worker before the other side helps: one of them is the tuned one.
const PATIENCES: [u32; 6] = [4, 16, 64, 256, 512, 1024];
/// Queries that the GPU takes at a time when both work.
const GPU_QUERIES: u32 = 4096;
/// Runs of which the fastest counts.
const REPEATS: usize = 3;
/// Threads beside the GPU's main thread and the one that post-processes.
const OWN_THREADS: usize = 2;

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut world = World::to_train(context, &mut findings)?;
    let memory = world.share_bytes(MEMORY_SHARE);
    let mut curves = Curves::new(context.cores);
    let mut has_gpu = false;
    for (k, papers_gain) in KS {
        world.train_for(k);
        let cpu_qps = curves.add_cpu(&world, k, &mut findings);
        let bench = if k == KS[0].0 {
            Bench::open(&world, &mut findings)?
        } else {
            Bench::open(&world, &mut Findings::default())?
        };
        has_gpu = bench.is_some();
        let rates = bench.map(|bench| with_gpu(&bench, memory, context.cores, k)).transpose()?.unwrap_or_default();
        curves.add_gpu(rates, cpu_qps, k, papers_gain, &mut findings);
    }
    let most = curves.most_threads();
    curves.draw(has_gpu, &mut findings);
    findings.note(format!(
        "M is {:.1} MB. The CPU runs the same algorithm, a query a thread, in rounds of {CPU_ROUND} documents; up to \
         {most} threads on {} cores. Combined: a backlog under `cached-first`, the policy that the lab simulates, too: fully \
         cached queries first to the GPU, up to {GPU_QUERIES} at a time, the rest to as many threads as cores are left, at most \
         8, and help where one side has too many; how many may wait for each thread before is the best of {PATIENCES:?}.",
        memory as f64 / 1e6,
        context.cores
    ));
    Ok(findings)
}

/// Queries a second, by k.
struct Curves {
    threads: Vec<usize>,
    /// The CPU's, by number of threads.
    on_cpu: Vec<Vec<(f64, f64)>>,
    on_gpu: Vec<(f64, f64)>,
    combined: Vec<(f64, f64)>,
    /// What the GPU gains over the most threads, in percent.
    gains: Vec<(f64, f64)>,
}

impl Curves {
    fn new(cores: usize) -> Self {
        let mut threads: Vec<usize> = THREADS.into_iter().filter(|&threads| threads <= cores).collect();
        if threads.is_empty() {
            threads.push(1);
        }
        let on_cpu = vec![Vec::new(); threads.len()];
        Self { threads, on_cpu, on_gpu: Vec::new(), combined: Vec::new(), gains: Vec::new() }
    }

    fn most_threads(&self) -> usize {
        self.threads.iter().copied().max().unwrap_or(1)
    }

    /// Measures each number of threads; returns what most of them reach.
    fn add_cpu(&mut self, world: &World, k: usize, findings: &mut Findings) -> f64 {
        let mut qps = 0.0;
        for (points, &threads) in self.on_cpu.iter_mut().zip(&self.threads) {
            let seconds = (0..REPEATS).map(|_| answer_all(&world.ranker(), &world.lists, &world.test, k, threads).1);
            qps = world.test.len() as f64 / seconds.fold(f64::INFINITY, f64::min);
            findings.compare(format!("k {k}, CPU-{threads}"), "q/s", None, qps);
            points.push((k as f64, qps));
        }
        qps
    }

    /// Tells what was measured with a GPU, beside what most threads reach.
    fn add_gpu(&mut self, rates: WithGpu, cpu_qps: f64, k: usize, papers_gain: f64, findings: &mut Findings) {
        let (most, WithGpu { gpu_qps, combined_qps, to_gpu }) = (self.most_threads(), rates);
        let over_cpu = |qps: f64| 100.0 * (qps / cpu_qps - 1.0);
        findings.compare(format!("k {k}, GPU with VFB"), "q/s", None, gpu_qps);
        let gain = gpu_qps.map(over_cpu);
        // The paper's gain is over eight threads.
        findings.compare(format!("k {k}, GPU over CPU-{most}"), "%", (most == 8).then_some(papers_gain), gain);
        findings.compare(format!("k {k}, combined"), "q/s", None, combined_qps);
        let percent_to_gpu = to_gpu.map(|share| 100.0 * share);
        findings.compare(format!("k {k}, combined: queries to the GPU"), "%", None, percent_to_gpu);
        findings.compare(format!("k {k}, combined over CPU-{most}"), "%", None, combined_qps.map(over_cpu));
        self.on_gpu.extend(gpu_qps.map(|qps| (k as f64, qps)));
        self.combined.extend(combined_qps.map(|qps| (k as f64, qps)));
        self.gains.extend(gain.map(|gain| (k as f64, gain)));
    }

    fn draw(self, has_gpu: bool, findings: &mut Findings) {
        let most = self.most_threads();
        let on_cpu = self.on_cpu.into_iter().zip(&self.threads).enumerate();
        let mut lines: Vec<_> =
            on_cpu.map(|(colour, (points, threads))| line(format!("CPU-{threads}"), colour, points)).collect();
        if has_gpu {
            lines.push(line("GPU with VFB", 4, self.on_gpu));
            lines.push(line("combined", 5, self.combined));
            let papers = papers_line("GPU over CPU-8", 0, KS.map(|(k, gain)| (k as f64, gain)).to_vec());
            let gains = vec![papers, line(format!("GPU over CPU-{most}"), 0, self.gains)];
            findings.chart(chart("gain", "Gain over the CPU", 10, "k", "%", gains));
        }
        findings.chart(chart("throughput", "Throughput by k", 10, "k", "queries/s", lines));
    }
}

/// Queries a second with a GPU, where there is one and the memory is enough.
#[derive(Clone, Copy, Debug, Default)]
struct WithGpu {
    gpu_qps: Option<f64>,
    combined_qps: Option<f64>,
    /// The share of queries that the GPU serves when both work.
    to_gpu: Option<f64>,
}

/// Measures the GPU by itself, by the division that suits it best, and with that beside the CPU.
fn with_gpu(bench: &Bench<'_>, memory: u64, cores: usize, k: usize) -> Result<WithGpu, ExperimentError> {
    let Some(winner) = winner(bench, 2, memory, f64::INFINITY)? else { return Ok(WithGpu::default()) };
    let world = bench.world;
    let prefixes = world.admission(winner.policy)?.within(winner.division.cache_bytes, &world.lists);
    let division = (winner.division.cache_bytes, winner.division.buffer_bytes);
    let workers = cores.saturating_sub(OWN_THREADS).clamp(1, 8);
    let (qps, to_gpu) = together(bench, &prefixes, division, workers, k)?;
    Ok(WithGpu { gpu_qps: Some(winner.report.qps()), combined_qps: Some(qps), to_gpu: Some(to_gpu) })
}

/// Queries a second of both processors together, and the share of them that the GPU served with which that was reached.
fn together(
    bench: &Bench<'_>,
    prefixes: &Prefixes,
    (cache_bytes, buffer_bytes): (u64, u64),
    workers: usize,
    k: usize,
) -> Result<(f64, f64), ExperimentError> {
    let world = bench.world;
    let is_cached = |query: &RankedQuery| query.lists.iter().all(|&list| prefixes.is_cached(list));
    let is_held: Vec<bool> = world.test.iter().map(is_cached).collect();
    let mut session = Session::new(&bench.gpu, prefixes.clone(), cache_bytes, buffer_bytes)?;
    let mut best = (0.0, 0.0);
    for patience in PATIENCES {
        for _ in 0..REPEATS {
            let began = Instant::now();
            let log = serve(
                &is_held,
                Sharing { workers, patience, batch_limit: GPU_QUERIES },
                |rows| {
                    let batch: Vec<&RankedQuery> = rows.iter().map(|&row| &world.test[row as usize]).collect();
                    session.run(&batch, RunOptions::new(k)).map(drop)
                },
                |row| drop(std::hint::black_box(answer(&world.ranker(), &world.lists, &world.test[row as usize], k))),
            )?;
            let qps = is_held.len() as f64 / began.elapsed().as_secs_f64();
            if qps > best.0 {
                let on_gpu = log.rows.iter().filter(|row| row.class.is_gpu()).count();
                best = (qps, on_gpu as f64 / is_held.len() as f64);
            }
        }
    }
    Ok(best)
}
