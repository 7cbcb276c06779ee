//! Static placement: posting blocks that stay device-resident under a budget of GPU memory; all others are
//! host-resident.
//!
//! A query log gives the expected reads of each list. Blocks are ordered by reads per row, and a budget is a border in
//! that order. The order is computed once, on the host, before any query runs.
//!
//! The blocks of a list stay together. Most reads are of lists of which queries need all blocks, so an order by the
//! best impact of each block gained nothing.
//!
//! ```text
//!   log ──▶ read_counter: sectors of sample queries ──▶ expected_reads: reads of all other queries
//!                │                                                  │
//!                ▼                                                  ▼
//!           learned_reads: expected reads of every list ──▶ row_order: order of all rows ──▶ border of the budget
//! ```

pub(crate) mod expected_reads;
pub(crate) mod learned_reads;
pub(crate) mod list_rows;
pub(crate) mod read_counter;
pub(crate) mod row_order;
