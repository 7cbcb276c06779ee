//! What a run's queries found near, told again from its log.

use super::{Bus, Follower, Following};
use crate::cost::Cost;
use crate::time::Nanos;

/// A run that has been, batch by batch in the order of their starts: pages move as they would in a simulation of the very same
/// batches, so that what the queries cost is known as a simulation knows it.
#[derive(Clone, Debug)]
pub struct Retold<'a> {
    following: &'a Following,
    gpus: Vec<(Follower, Bus)>,
}

impl<'a> Retold<'a> {
    /// Before the first batch of a run on so many GPUs.
    #[must_use]
    pub fn new(following: &'a Following, num_gpus: usize) -> Self {
        Self { following, gpus: vec![(Follower::new(following), Bus::default()); num_gpus] }
    }

    /// A batch of these rows, on a GPU from `started` to `finished`: what its queries cost then, of which each costs `near` with all
    /// that it reads near.
    ///
    /// # Panics
    /// If there is no such GPU.
    pub fn batch(
        &mut self,
        gpu: usize,
        rows: &[u32],
        (started, finished): (Nanos, Nanos),
        near: impl Fn(u32) -> Cost,
    ) -> Vec<Cost> {
        let (follower, bus) = &mut self.gpus[gpu];
        follower.start(self.following, rows, started, bus);
        let costs: Vec<Cost> = rows.iter().map(|&row| follower.cost(self.following, row, near(row))).collect();
        bus.read(started, costs.iter().fold(Nanos::ZERO, |sum, cost| sum + cost.bus));
        follower.end_at(finished);
        costs
    }
}
