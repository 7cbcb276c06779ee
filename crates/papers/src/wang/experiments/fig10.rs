//! Wang et al., figure 10: the GPU against one to eight CPU threads by k, and both processors together.

use std::time::Instant;

use super::backlog::{Sharing, serve};
use super::bench::Bench;
use super::fig8::winner;
use crate::findings::{Chart, Curve};
use crate::wang::cache::prefixes::Prefixes;
use crate::wang::cpu::{CPU_ROUND, answer, answer_all};
use crate::wang::data::{ExperimentData, MEMORY_SHARE};
use crate::wang::gpu::Session;
use crate::wang::report::RunOptions;
use crate::wang::train_test_split::RankedQuery;
use crate::{Context, Findings, Result};

/// Values of k, and the paper's gain of the GPU over eight threads in percent.
const KS: [(usize, f64); 4] = [(1, 3.0), (5, 19.0), (10, 24.0), (15, 24.0)];
const THREADS: [usize; 4] = [1, 2, 4, 8];
/// Queries that may wait for each worker before the other side helps. The best value counts.
const PATIENCES: [u32; 6] = [4, 16, 64, 256, 512, 1024];
/// Maximum number of queries of the GPU's batches when both processors work.
const GPU_QUERIES: u32 = 4096;
/// Runs, of which the fastest counts.
const REPEATS: usize = 3;
/// Threads of the GPU's side: the main thread, and the one that post-processes.
const OWN_THREADS: usize = 2;

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let mut data = ExperimentData::to_train(context, findings)?;
    let memory = data.share_bytes(MEMORY_SHARE);
    let mut curves = Curves::new(context.cores);
    let mut has_gpu = false;
    for (k, papers_gain) in KS {
        data.train_for(k);
        let cpu_qps = curves.add_cpu(&data, k, findings);
        // The GPU is described once.
        let mut described = Findings::default();
        let bench = Bench::open(&data, if k == KS[0].0 { &mut *findings } else { &mut described })?;
        has_gpu = bench.is_some();
        let rates = bench.map(|bench| with_gpu(&bench, memory, context.cores, k)).transpose()?.unwrap_or_default();
        curves.add_gpu(rates, cpu_qps, k, papers_gain, findings);
    }
    let most = curves.most_threads();
    curves.draw(has_gpu, findings);
    findings.note(format!(
        "M is {:.1} MB. The CPU runs the same algorithm, one query per thread, in rounds of {CPU_ROUND} documents, with up to \
         {most} threads on {} cores. Combined: a backlog by the rule of section 4.4. Fully \
         cached queries go to the GPU first, up to {GPU_QUERIES} at a time. The others go to threads on the remaining cores, at \
         most 8. A side helps if too many queries wait for the other; the number per thread is the best of {PATIENCES:?}.",
        memory as f64 / 1e6,
        context.cores
    ));
    Ok(())
}

struct Curves {
    threads: Vec<usize>,
    /// Rates of the CPU by number of threads.
    on_cpu: Vec<Vec<(f64, f64)>>,
    on_gpu: Vec<(f64, f64)>,
    combined: Vec<(f64, f64)>,
    /// Gains of the GPU over the most threads, in percent.
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

    /// Measures each number of threads; returns the rate of the most threads.
    fn add_cpu(&mut self, data: &ExperimentData, k: usize, findings: &mut Findings) -> f64 {
        let mut qps = 0.0;
        for (points, &threads) in self.on_cpu.iter_mut().zip(&self.threads) {
            let seconds = (0..REPEATS).map(|_| answer_all(&data.ranker(), &data.lists, &data.test, k, threads).1);
            qps = data.test.len() as f64 / seconds.fold(f64::INFINITY, f64::min);
            findings.add(format!("k {k}, CPU-{threads}"), "q/s", qps);
            points.push((k as f64, qps));
        }
        qps
    }

    /// Adds measurements with a GPU, and gains over the rate of the most threads.
    fn add_gpu(&mut self, rates: WithGpu, cpu_qps: f64, k: usize, papers_gain: f64, findings: &mut Findings) {
        let (most, WithGpu { gpu_qps, combined_qps, to_gpu }) = (self.most_threads(), rates);
        let over_cpu = |qps: f64| 100.0 * (qps / cpu_qps - 1.0);
        findings.add(format!("k {k}, GPU with VFB"), "q/s", gpu_qps);
        let gain = gpu_qps.map(over_cpu);
        // The paper's gain is over eight threads.
        findings.compare(format!("k {k}, GPU over CPU-{most}"), "%", (most == 8).then_some(papers_gain), gain);
        findings.add(format!("k {k}, combined"), "q/s", combined_qps);
        findings.add(format!("k {k}, combined: queries to the GPU"), "%", to_gpu.map(|share| 100.0 * share));
        findings.add(format!("k {k}, combined over CPU-{most}"), "%", combined_qps.map(over_cpu));
        self.on_gpu.extend(gpu_qps.map(|qps| (k as f64, qps)));
        self.combined.extend(combined_qps.map(|qps| (k as f64, qps)));
        self.gains.extend(gain.map(|gain| (k as f64, gain)));
    }

    fn draw(self, has_gpu: bool, findings: &mut Findings) {
        let most = self.most_threads();
        let on_cpu = self.on_cpu.into_iter().zip(&self.threads).enumerate();
        let on_cpu = on_cpu.map(|(colour, (points, threads))| Curve::ours(format!("CPU-{threads}"), colour, points));
        let with_gpu = [Curve::ours("GPU with VFB", 4, self.on_gpu), Curve::ours("combined", 5, self.combined)];
        if has_gpu {
            let papers = Curve::papers("GPU over CPU-8", 0, KS.map(|(k, gain)| (k as f64, gain)).to_vec());
            let gains = [papers, Curve::ours(format!("GPU over CPU-{most}"), 0, self.gains)];
            findings.chart(Chart::new("gain", "Gain over the CPU (Wang et al., figure 10)", ["k", "%"], gains));
        }
        let title = "Throughput by k (Wang et al., figure 10)";
        findings.chart(Chart::new("throughput", title, ["k", "queries/s"], on_cpu.chain(with_gpu)));
    }
}

/// Rates with a GPU; `None` without a GPU or with too little memory.
#[derive(Clone, Copy, Debug, Default)]
struct WithGpu {
    gpu_qps: Option<f64>,
    combined_qps: Option<f64>,
    /// Share of queries that the GPU serves when both processors work.
    to_gpu: Option<f64>,
}

/// Measures the GPU alone with its best division, and with the same division together with the CPU.
fn with_gpu(bench: &Bench<'_>, memory: u64, cores: usize, k: usize) -> Result<WithGpu> {
    let Some(winner) = winner(bench, 2, memory, f64::INFINITY)? else { return Ok(WithGpu::default()) };
    let data = bench.data;
    let prefixes = data.admission(winner.policy)?.within(winner.division.cache_bytes, &data.lists);
    let division = (winner.division.cache_bytes, winner.division.buffer_bytes);
    let workers = cores.saturating_sub(OWN_THREADS).clamp(1, 8);
    let (qps, to_gpu) = together(bench, &prefixes, division, workers, k)?;
    Ok(WithGpu { gpu_qps: Some(winner.report.qps()), combined_qps: Some(qps), to_gpu: Some(to_gpu) })
}

/// Returns the best rate of both processors together, in queries per second, and the GPU's share of queries at that rate.
fn together(
    bench: &Bench<'_>,
    prefixes: &Prefixes,
    (cache_bytes, buffer_bytes): (u64, u64),
    workers: usize,
    k: usize,
) -> Result<(f64, f64)> {
    let data = bench.data;
    let is_cached = |query: &RankedQuery| query.lists.iter().all(|&list| prefixes.is_cached(list));
    let is_held: Vec<bool> = data.test.iter().map(is_cached).collect();
    let mut session = Session::new(&bench.gpu, prefixes.clone(), cache_bytes, buffer_bytes)?;
    let mut best = (0.0, 0.0);
    for patience in PATIENCES {
        for _ in 0..REPEATS {
            let began = Instant::now();
            let on_gpu = serve(
                &is_held,
                Sharing { workers, patience, batch_limit: GPU_QUERIES },
                |rows| {
                    let batch: Vec<&RankedQuery> = rows.iter().map(|&row| &data.test[row as usize]).collect();
                    session.run(&batch, RunOptions::new(k)).map(drop)
                },
                |row| drop(std::hint::black_box(answer(&data.ranker(), &data.lists, &data.test[row as usize], k))),
            )?;
            let qps = is_held.len() as f64 / began.elapsed().as_secs_f64();
            if qps > best.0 {
                best = (qps, on_gpu as f64 / is_held.len() as f64);
            }
        }
    }
    Ok(best)
}
