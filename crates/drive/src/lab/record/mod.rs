//! The record: live runs with what was predicted of them, kept to judge the simulator by.
//!
//! ```text
//!  recorded/2026-11-25-1f0c….csv       one row per live run: a cell (`cell.rs`)
//!  recorded/workloads/HASH….csv.zst    measured queries, by content
//!  recorded/machines/HASH.json         machine files, by content
//!  recorded/baseline.csv               the errors that were accepted last
//!
//!  record ──replay──▶ predictions by today's simulator ──compare──▶ errors, old and new ──baseline──▶ worse or not
//! ```
//!
//! A file of cells is never changed. Each row stands alone: with the workload and the machine file that it names, the
//! simulator repeats its prediction. Replays are deterministic, so that errors change only if the program does.

mod ablation;
mod cell;
mod compare;
mod read;
mod replay;
mod write;

pub use ablation::{Ablated, Number};
pub use cell::{Cell, DRAWN, RecordedCell};
pub use compare::{BASELINE, Compared, Quantity, STEADY, median, read_baseline, worsened, write_baseline};
pub use read::read_record;
pub use replay::{Given, replay};
pub use write::{Recording, write_record};
