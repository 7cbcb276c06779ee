//! Costs of lists in the host's memory, for tests that only play them.

use tandem::cache::FarCurve;
use tandem::cost::{Far, TierModel};

/// An index between two memories, of which so many bytes stay in a GPU's and so many may lie there. Of what its queries take
/// longer with all lists far, the bus is taken for half, in batches of any size.
pub(crate) fn tier_model(staying_bytes: u64, rows_bytes: u64) -> TierModel {
    TierModel {
        staying_bytes,
        rows_bytes,
        bus_and: 0.5,
        bus_or: 0.5,
        bus_and_or: 0.5,
        crowding: Vec::new(),
        samples: 10,
        mean_relative_error: 0.0,
    }
}

/// A query that takes so long alone with all lists far, and whose reads are spread evenly over all rows.
pub(crate) fn far_evenly(all_far_us: f64) -> Far {
    Far { all_far_us, bus_us: None, curve: FarCurve::of(&[(1.0, (0.0, 1.0))]) }
}
