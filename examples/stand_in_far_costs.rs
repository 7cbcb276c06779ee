//! What queries may cost with an index in the host's memory, where no GPU could measure them: a stand-in, for figures that say so.
//!
//! Takes a workload that `tandem profile --mode or --pages` wrote on a machine without a GPU, and gives it
//! 1. the GPU times that `--gpu replay` would take: recorded, or those of a model of the GPU;
//!    Batches take what they did with a workload that ships;
//! 2. for each query a time with all lists far: FACTOR times what it takes with them near, the same for all. It is what was measured
//!    where rates of queries alone were, with all lists near and all far.
//!
//! ```sh
//! cargo run --release --example stand_in_far_costs -- in.workload.csv in.pages.csv.zst TIERS.csv FACTOR out.workload.csv.zst
//! ```
//!
//! TIERS.csv is a file with a comment line `# tiers: {...}`, as `bench --what gpu-budgets` writes it.

use std::error::Error;
use std::path::Path;

use tandem::cache::FarCurve;
use tandem::cost::{Far, IndexPages, TierModel, Workload, replay_gpu_times, shipped};
use tandem::machine::Class;
use tandem::query::Mode;

/// The workload that says what batches take.
const BATCHES: &str = "enwiki-tb05-h200";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, pages, tiers, factor, output] = &arguments[..] else {
        return Err("expected IN.workload.csv IN.pages.csv TIERS.csv FACTOR OUT.workload.csv".into());
    };
    let mut workload = Workload::read(Path::new(input))?.only(Mode::Or);
    let pages = IndexPages::read(Path::new(pages))?;
    let tiers = std::fs::read_to_string(tiers)?;
    let line = tiers.lines().find_map(|line| line.strip_prefix("# tiers: ")).ok_or("no line `# tiers: {...}`")?;
    let tiers: TierModel = serde_json::from_str(line)?;
    let recorded = replay_gpu_times(&mut workload)?;
    workload.batches = shipped::workload(BATCHES)?.batches;

    let factor: f64 = factor.parse()?;

    let demands = pages.demands(&workload)?;
    let all = f64::from(pages.layout.num_pages);
    for (number, row) in (0..).zip(&mut workload.rows) {
        let Some(near) = row.measured[Class::GPU] else { continue };
        let parts: Vec<(f64, (f64, f64))> = demands
            .of(number)
            .map(|read| {
                let lie = &pages.lists[read.list as usize].pages;
                let (from, to) = (lie.first_page, lie.first_page as usize + lie.blocks.len());
                (read.reads, (f64::from(from) / all, to as f64 / all))
            })
            .collect();
        row.far = Some(Far { all_far_us: near.median_us * factor, bus_us: None, curve: FarCurve::of(&parts) });
    }
    workload.provenance = workload
        .provenance
        .with("gpu", format!("none: {recorded}"))
        .with("gpu_far_us", format!("none: {factor} times gpu_us, for all queries"));
    workload.tiers = Some(tiers);
    workload.write(Path::new(output))?;
    println!("{} queries, {recorded}", workload.rows.len());
    Ok(())
}
