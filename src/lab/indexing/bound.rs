//! What no policy can undercut: a linear program a run.
//!
//! Let jobs be divided at will, at no cost: of job `j` a share `x_j` on CPUs, `1 - x_j` on GPUs. The run then takes at least
//!
//! ```text
//! minimise T   such that   Σ c_j x_j ≤ C T,   Σ g_j (1 - x_j) ≤ G T,   0 ≤ x_j ≤ 1
//! ```
//!
//! with `c_j` a CPU's time and `g_j` the share of a GPU's warps. No moving, no waiting for a longest warp: whatever a policy
//! does is one of these divisions, or worse. Around it everything else of the pipeline takes what it takes.

use microlp::{ComparisonOp, LinearExpr, OptimizationDirection, Problem, SolveOutcome};

use super::jobs::{IndexRun, IndexTrace};
use super::pipeline::IndexMachine;

/// The most text a second, in bytes, that any policy can index on the machine.
///
/// # Errors
/// What the solver says, if it has no solution.
///
/// # Panics
/// As [`simulate_indexing`](super::simulate_indexing).
pub fn lp_bound(trace: &IndexTrace, machine: &IndexMachine) -> Result<f64, String> {
    let mut indexing_ns = 0.0;
    for run in &trace.runs {
        indexing_ns += least_ns(run, machine)? + (run.preparing.0 + run.collecting.0) as f64;
    }
    let sum = |of: fn(&IndexRun) -> u64| trace.runs.iter().map(of).sum::<u64>() as f64;
    let reading_ns = sum(|run| run.reading.0);
    let parsing_ns = sum(|run| run.reading.0 + run.unpacking.0 + run.parsing.0) / machine.parsers as f64;
    Ok(trace.text_bytes() as f64 / indexing_ns.max(reading_ns).max(parsing_ns) * 1e9)
}

/// The least time that a run's jobs take.
fn least_ns(run: &IndexRun, machine: &IndexMachine) -> Result<f64, String> {
    let cpu_ns = |job: &super::IndexJob| job.cpu.expect("a job without its time on a CPU").0 as f64;
    if machine.gpus == 0 {
        return Ok(run.jobs.iter().map(cpu_ns).sum::<f64>() / machine.cpus as f64);
    }
    let gpu_ns = |job: &super::IndexJob| {
        job.gpu.expect("a job without its time on a GPU").0.0 as f64 / f64::from(machine.gpu_warps)
    };
    if machine.cpus == 0 {
        return Ok(run.jobs.iter().map(gpu_ns).sum::<f64>() / machine.gpus as f64);
    }
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let time = problem.add_var(1.0, (0.0, f64::INFINITY));
    let (mut on_cpus, mut on_gpus) = (LinearExpr::empty(), LinearExpr::empty());
    on_cpus.add(time, -(machine.cpus as f64));
    on_gpus.add(time, -(machine.gpus as f64));
    // In microseconds, so that numbers are neither large nor small.
    let mut all_gpu_us = 0.0;
    for job in &run.jobs {
        let share = problem.add_var(0.0, (0.0, 1.0));
        on_cpus.add(share, cpu_ns(job) / 1e3);
        on_gpus.add(share, -gpu_ns(job) / 1e3);
        all_gpu_us += gpu_ns(job) / 1e3;
    }
    problem.add_constraint(on_cpus, ComparisonOp::Le, 0.0);
    problem.add_constraint(on_gpus, ComparisonOp::Le, -all_gpu_us);
    match problem.solve().map_err(|e| e.to_string())? {
        SolveOutcome::Solution(solution) => Ok(solution.objective() * 1e3),
        SolveOutcome::Interrupted(_) => Err("the solver of linear programs was interrupted".to_owned()),
    }
}
