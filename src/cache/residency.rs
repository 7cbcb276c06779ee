//! Pages that follow the queries, played: what an executor's batches would find near.
//!
//! The order of events is the executor's own ([`Epochs`], [`Turns`]), and so is what moves ([`OnlineTier`]). How long things take is up
//! to a [`Pace`]: a simulation has a clock and a bus, a count takes everything as done [at once](AtOnce).

use std::convert::Infallible;

use super::{Carrier, Epochs, ListRead, Moves, NearBlocks, NotedReads, OnlineTier, Reads, Task, Turns};

/// How long it takes to carry out what an epoch asks for.
pub trait Pace {
    /// An epoch is being decided from now on.
    fn begin_deciding(&mut self);

    /// Whether that is done.
    fn has_decided(&mut self) -> bool;

    /// So many pages come from now on; 0 where only maps change.
    fn begin_task(&mut self, coming: usize);

    /// Whether the last of these has ended.
    fn has_ended(&mut self) -> bool;
}

/// All is done by the next border.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtOnce;

impl Pace for AtOnce {
    fn begin_deciding(&mut self) {}

    fn has_decided(&mut self) -> bool {
        true
    }

    fn begin_task(&mut self, _coming: usize) {}

    fn has_ended(&mut self) -> bool {
        true
    }
}

/// What has come of it so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Followed {
    /// What queries were expected to read of the maps that they saw.
    pub reads: Reads,
    /// Epochs that were decided,
    pub epochs: u64,
    /// and pages that have begun to come.
    pub pages: u64,
}

/// What lies near, batch by batch.
#[derive(Clone, Debug)]
pub struct Residency {
    tier: OnlineTier,
    epochs: Epochs,
    turns: Turns,
    maps: [NearBlocks; 2],
    decision: Option<(Moves, NotedReads)>,
    followed: Followed,
}

impl Residency {
    /// What `tier` says is near, in both maps.
    #[must_use]
    pub fn new(tier: OnlineTier) -> Self {
        Self {
            epochs: Epochs::new(tier.options().epoch_queries),
            turns: Turns::default(),
            maps: [tier.near().clone(), tier.near().clone()],
            tier,
            decision: None,
            followed: Followed::default(),
        }
    }

    /// The border of a batch, and its start: the map that it sees, [`near`](Self::near) until the next border. It must
    /// [leave](Self::leave) it.
    pub fn start<Q: Copy, R: IntoIterator<Item = ListRead>>(
        &mut self,
        batch: &[Q],
        reads_of: impl Fn(Q) -> R,
        pace: &mut impl Pace,
    ) -> usize {
        self.epochs.note(batch.iter().copied(), &reads_of);
        let Self { tier, decision, followed, .. } = self;
        let mut carrier = Played { tier, decision, epochs: &mut followed.epochs, pace };
        let Ok(task) = self.epochs.border(&mut self.turns, &mut carrier);
        if let Some(task) = task {
            let coming = self.carry_out(task);
            pace.begin_task(coming);
        }
        let near = &self.maps[self.turns.current()];
        batch.iter().for_each(|&query| self.followed.reads += near.reads(reads_of(query)));
        self.turns.enter()
    }

    /// A batch that entered a map has ended.
    ///
    /// # Panics
    /// If there is none.
    pub fn leave(&mut self, map: usize) {
        self.turns.leave(map);
    }

    /// The map that a batch which starts now sees, if it meets nothing at its border.
    #[must_use]
    pub fn near(&self) -> &NearBlocks {
        &self.maps[self.turns.current()]
    }

    /// What has come of it.
    #[must_use]
    pub fn followed(&self) -> Followed {
        self.followed
    }

    /// Notes in a map what a task changes there; how many pages come by it.
    fn carry_out(&mut self, task: Task) -> usize {
        let (map, goes, comes) = task.notes();
        let Moves { gone, come } = self.epochs.moves();
        let (pages, near) = (self.tier.pages(), &mut self.maps[map]);
        gone.iter().filter(|_| goes).for_each(|&(page, _)| near.put(pages, page, false));
        come.iter().filter(|_| comes).for_each(|&(page, _)| near.put(pages, page, true));
        if !matches!(task, Task::Bring { .. }) {
            return 0;
        }
        self.followed.pages += come.len() as u64;
        come.len()
    }
}

/// A carrier that does in no time what it is asked for, and says that it has done so when its pace allows.
struct Played<'a, P> {
    tier: &'a mut OnlineTier,
    decision: &'a mut Option<(Moves, NotedReads)>,
    epochs: &'a mut u64,
    pace: &'a mut P,
}

impl<P: Pace> Carrier for Played<'_, P> {
    type Error = Infallible;

    fn decide(&mut self, mut reads: NotedReads) -> Result<(), Infallible> {
        reads.drain(..).for_each(|(list, reads)| self.tier.record(list, reads));
        *self.epochs += 1;
        *self.decision = Some((self.tier.end_epoch(), reads));
        self.pace.begin_deciding();
        Ok(())
    }

    fn decided(&mut self) -> Result<Option<(Moves, NotedReads)>, Infallible> {
        Ok(if self.pace.has_decided() { self.decision.take() } else { None })
    }

    fn has_ended(&mut self, _coming: Option<&[(u32, u32)]>) -> Result<bool, Infallible> {
        Ok(self.pace.has_ended())
    }
}
