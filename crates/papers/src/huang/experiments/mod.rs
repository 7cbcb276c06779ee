//! Experiments of Huang, Ren, Zhao, Stones, Zhang, Wang and Liu, "GPU-Accelerated Block-Max Query Processing", 2017.
//!
//! All experiments run the published system ([`ranges`](crate::huang::ranges)): its index, its four strategies on one thread
//! of the CPU and on GPUs, and its batches. A time per query is the time of all queries, from packing the first batch to the
//! last answers on the host, over their number. All answers of GPUs are compared with those of the CPU bit by bit.
//!
//! | file | subject |
//! | --- | --- |
//! | `fig3.rs` | time by length |
//! | `fig4.rs` | lengths of queries |
//! | `table1.rs` | threads per query, and k |
//! | `fig5.rs` | stages |
//! | `fig6.rs`, `table2.rs` | CPU and GPU together: by length (LBD), by random halves (SD) |
//! | `table3.rs` | several GPUs |
//! | `fig7.rs` | all configurations |
//!
//! Without a GPU an experiment measures the CPU's part, or fails if there is none. Four GPUs are computed from measurements
//! of one if the machine has fewer; the rows say so.

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
