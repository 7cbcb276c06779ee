//! Static placement: posting blocks that stay device-resident under a budget of GPU memory; all others are
//! host-resident.
//!
//! A query log gives the expected reads of each list. Blocks are ordered by reads per row, and a budget is a border in
//! that order. The order is computed once, on the host, before any query runs.
//!
//! ```text
//!   log ──▶ read_counter: reads of sample queries ──▶ ReadRates: reads by list length
//!                                                        │
//!   log ──▶ expected_reads: reads of each query ◀────────┘
//!                │
//!                ▼
//!           learned_reads: expected reads of every list ──▶ row_order: order of all rows ──▶ border of the budget
//! ```

pub(crate) mod expected_reads;
pub(crate) mod learned_reads;
pub(crate) mod list_rows;
pub(crate) mod read_counter;
pub(crate) mod row_order;
