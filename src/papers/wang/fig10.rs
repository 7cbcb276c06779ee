//! Wang et al., figure 10: against one to eight CPU threads, by k; and both processors together.

use std::time::Instant;

use super::bench::Bench;
use super::charts::{chart, line, papers_line};
use super::cpu::{CPU_ROUND, answer, answer_all};
use super::fig8::winner;
use super::halves::RankedQuery;
use super::report::RunOptions;
use super::world::{MEMORY_SHARE, World};
use crate::cache::Prefixes;
use crate::papers::wang_gpu::Session;
use crate::papers::{Context, ExperimentError, Findings};

/// Numbers of documents, and what the GPU gained over eight threads in the paper, in percent.
const KS: [(usize, f64); 4] = [(1, 3.0), (5, 19.0), (10, 24.0), (15, 24.0)];
/// Threads.
const THREADS: [usize; 4] = [1, 2, 4, 8];
/// Shares of the queries that the GPU takes when both work: one of them is the tuned one.
const GPU_SHARES: [f64; 8] = [0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98];
/// Runs of which the fastest counts.
const REPEATS: usize = 3;
/// Threads beside the GPU's main thread and the one that post-processes.
const OWN_THREADS: usize = 2;

pub(in crate::papers) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut world = World::of(context, &mut findings)?;
    let memory = world.share_bytes(MEMORY_SHARE);
    let mut threads: Vec<usize> = THREADS.into_iter().filter(|&threads| threads <= context.cores).collect();
    if threads.is_empty() {
        threads.push(1);
    }
    let most = threads[threads.len() - 1];
    let mut by_threads = vec![Vec::new(); threads.len()];
    let (mut on_gpu, mut combined, mut gains) = (Vec::new(), Vec::new(), Vec::new());
    let mut has_gpu = false;
    for (k, papers) in KS {
        world.train_for(k);
        let mut cpu = 0.0;
        for (points, &threads) in by_threads.iter_mut().zip(&threads) {
            let seconds = (0..REPEATS).map(|_| answer_all(&world.ranker(), &world.lists, &world.test, k, threads).1);
            cpu = world.test.len() as f64 / seconds.fold(f64::INFINITY, f64::min);
            findings.compare(format!("k {k}, CPU-{threads}"), "q/s", None, cpu);
            points.push((k as f64, cpu));
        }
        let bench = if k == KS[0].0 {
            Bench::open(&world, &mut findings)?
        } else {
            Bench::open(&world, &mut Findings::default())?
        };
        has_gpu = bench.is_some();
        let winner = match &bench {
            Some(bench) => winner(bench, 2, memory, f64::INFINITY)?,
            None => None,
        };
        let gpu = winner.as_ref().map(|winner| winner.report.qps());
        findings.compare(format!("k {k}, GPU with VFB"), "q/s", None, gpu);
        let gain = gpu.map(|gpu| 100.0 * (gpu / cpu - 1.0));
        // The paper's gain is over eight threads.
        findings.compare(format!("k {k}, GPU over CPU-{most}"), "%", (most == 8).then_some(papers), gain);
        let both = match (&bench, &winner) {
            (Some(bench), Some(winner)) => {
                let prefixes = world.admission(winner.policy)?.within(winner.division.cache_bytes, &world.lists);
                let (cache, buffer) = (winner.division.cache_bytes, winner.division.buffer_bytes);
                let workers = context.cores.saturating_sub(OWN_THREADS).clamp(1, 8);
                Some(together(bench, &prefixes, (cache, buffer), workers, k)?)
            }
            _ => None,
        };
        findings.compare(format!("k {k}, combined"), "q/s", None, both.map(|(qps, _)| qps));
        findings.compare(
            format!("k {k}, combined: queries to the GPU"),
            "%",
            None,
            both.map(|(_, share)| 100.0 * share),
        );
        let gain_both = both.map(|(qps, _)| 100.0 * (qps / cpu - 1.0));
        findings.compare(format!("k {k}, combined over CPU-{most}"), "%", None, gain_both);
        on_gpu.extend(gpu.map(|qps| (k as f64, qps)));
        combined.extend(both.map(|(qps, _)| (k as f64, qps)));
        gains.extend(gain.map(|gain| (k as f64, gain)));
    }
    let mut lines: Vec<_> = by_threads
        .into_iter()
        .zip(&threads)
        .enumerate()
        .map(|(colour, (points, threads))| line(format!("CPU-{threads}"), colour, points))
        .collect();
    if has_gpu {
        lines.push(line("GPU with VFB", 4, on_gpu));
        lines.push(line("combined", 5, combined));
        let papers = KS.map(|(k, gain)| (k as f64, gain)).to_vec();
        let gains = vec![papers_line("GPU over CPU-8", 0, papers), line(format!("GPU over CPU-{most}"), 0, gains)];
        findings.chart(chart("gain", "Gain over the CPU", 10, "k", "%", gains));
    }
    findings.chart(chart("throughput", "Throughput by k", 10, "k", "queries/s", lines));
    findings.note(format!(
        "M is {:.1} MB. The CPU runs the same algorithm, a query a thread, in rounds of {CPU_ROUND} documents; up to \
         {most} threads on {} cores. Combined: fully cached queries first to the GPU, the rest to as many threads as cores \
         are left, at most 8; the share of the GPU is the best of {GPU_SHARES:?}.",
        memory as f64 / 1e6,
        context.cores
    ));
    Ok(findings)
}

/// Queries a second of both processors together, and the GPU's share of the queries with which that was reached.
fn together(
    bench: &Bench<'_>,
    prefixes: &Prefixes,
    (cache_bytes, buffer_bytes): (u64, u64),
    workers: usize,
    k: usize,
) -> Result<(f64, f64), ExperimentError> {
    let world = bench.world;
    // Fully cached queries first; both parts keep their order.
    let is_cached = |query: &&RankedQuery| query.lists.iter().all(|&list| prefixes.is_cached(list));
    let (mut order, others): (Vec<&RankedQuery>, Vec<&RankedQuery>) = world.test.iter().partition(is_cached);
    order.extend(others);
    let mut session = Session::new(&bench.gpu, prefixes.clone(), cache_bytes, buffer_bytes)?;
    let mut best = (0.0, 0.0);
    for share in GPU_SHARES {
        let (to_gpu, to_cpu) = order.split_at((order.len() as f64 * share) as usize);
        for _ in 0..REPEATS {
            let began = Instant::now();
            std::thread::scope(|scope| {
                for worker in 0..workers {
                    scope.spawn(move || {
                        for query in to_cpu.iter().skip(worker).step_by(workers) {
                            std::hint::black_box(answer(&world.ranker(), &world.lists, query, k));
                        }
                    });
                }
                session.run(to_gpu, RunOptions::new(k)).map(drop)
            })?;
            let qps = order.len() as f64 / began.elapsed().as_secs_f64();
            if qps > best.0 {
                best = (qps, share);
            }
        }
    }
    Ok(best)
}
