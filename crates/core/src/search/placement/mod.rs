//! Static placement: which rows of posting blocks are device-resident under a budget of GPU memory, and which host-resident.
//!
//! A log of queries gives the expected reads of each list. Blocks are ordered by reads per row; a budget is a border in that order.
//! The order is computed once, on the host, before any query runs.
//!
//! ```text
//!   log ──▶ read_counter: reads of sample queries ──▶ read_rates: reads by list length
//!                                                        │
//!   log ──▶ expected_reads: reads of each query ◀────────┘
//!                │
//!                ▼
//!           learned_reads: expected reads of every list ──▶ row_order: one order of all rows ──▶ border of the budget
//! ```
//!
//! | file | content |
//! | --- | --- |
//! | `read_counter` | [`read_counter::read_rates`]: counts the sectors that sample queries read on a GPU, without a GPU |
//! | `read_rates` | [`read_rates::ReadRates`]: reads of a list for each document that could be looked up in it, by list length |
//! | `expected_reads` | [`expected_reads::expected_reads`]: the reads that a query is expected to make of its lists |
//! | `learned_reads` | [`learned_reads::LearnedReads`]: the reads that future queries are expected to make of every list |
//! | `list_rows` | [`list_rows::list_blocks`], [`list_rows::list_sizes`]: blocks and rows of lists in the GPU's layout |
//! | `row_order` | [`row_order::place_blocks`], [`row_order::RowOrder`]: the order of all rows, and the border of a budget |

pub(super) mod expected_reads;
pub(super) mod learned_reads;
pub(super) mod list_rows;
pub(super) mod read_counter;
pub(super) mod read_rates;
pub(super) mod row_order;
