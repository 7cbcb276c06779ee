//! Tables and figures of Huang, Ren, Zhao, Stones, Zhang, Wang and Liu, "GPU-Accelerated Block-Max Query Processing", 2017.
//!
//! All of them run the published system ([`ranges`](crate::huang::ranges)): its index, its four strategies on one thread of the CPU
//! and on GPUs, its batches. A time a query is what all queries took together, from the first batch's packing to the last
//! answers on the host, by the number of queries. Whatever the GPU answers is compared with the CPU's answers, bit by bit.
//!
//! | file | what it shows |
//! | --- | --- |
//! | `fig3.rs` | time by length |
//! | `fig4.rs` | how long queries are |
//! | `table1.rs` | threads a query and k |
//! | `fig5.rs` | stages |
//! | `fig6.rs`, `table2.rs` | CPU and GPU together: by length (LBD), by random halves (SD) |
//! | `table3.rs` | several GPUs |
//! | `fig7.rs` | all of it side by side |
//!
//! What a machine can't show is left out (no GPU: the CPU's part alone, or an error where nothing else is there) or
//! computed from what was measured (four GPUs), and says so.

mod answers;
mod bench;
mod cooperation;
pub(crate) mod fig3;
pub(crate) mod fig4;
pub(crate) mod fig5;
pub(crate) mod fig6;
pub(crate) mod fig7;
pub(crate) mod table1;
pub(crate) mod table2;
pub(crate) mod table3;

use crate::huang::ranges::strategy::Strategy;

/// Threads a query at which the paper compares, and at which it has most of its results.
const PAPERS_P: u32 = 64;
/// Documents that a query asks for there.
const PAPERS_K: usize = 10;
/// Queries to run, unless the user says otherwise. Most of the time goes to the CPU's one thread.
const QUERIES: usize = 1000;
/// Documents of TREC GOV2, which the synthetic index stands for.
const GOV2_DOCS: u32 = 25_200_000;

/// The paper's milliseconds a query at P 64, top 10: one thread of the CPU, one GPU, SD, LBD, four GPUs.
struct Papers {
    strategy: Strategy,
    cpu: f64,
    gpu: f64,
    sd: f64,
    lbd: f64,
    four_gpus: f64,
}

const PAPERS: [Papers; 4] = [
    Papers { strategy: Strategy::And, cpu: 12.82, gpu: 5.81, sd: 4.2, lbd: 2.11, four_gpus: 1.51 },
    Papers { strategy: Strategy::Or, cpu: 66.08, gpu: 30.32, sd: 17.54, lbd: 8.76, four_gpus: 5.67 },
    Papers { strategy: Strategy::Wand, cpu: 15.25, gpu: 7.45, sd: 4.85, lbd: 2.69, four_gpus: 1.75 },
    Papers { strategy: Strategy::Bmw, cpu: 8.96, gpu: 4.47, sd: 3.82, lbd: 1.44, four_gpus: 0.94 },
];
