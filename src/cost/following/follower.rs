//! What lies near on one GPU while a run is played.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Following;
use crate::cache::{Followed, Pace, Residency};
use crate::cost::Cost;
use crate::time::Nanos;

/// The share of the bus that copies get while reads wait for it: 4 GB/s of 55.5, on an H200 (docs/gpu.md).
pub(super) const COPY_SHARE: f64 = 4.0 / 55.5;

/// A device's bus to the host's memory: reads one after another, and pages that come beside them.
///
/// ```text
///   reads     |~~A~~|        |~~~B~~~~|        they go on beside copies, a little slower
///   copies       ··==========··········==|     all of the bus where nobody reads, else a share of it
/// ```
///
/// What copies take of the bus reads lack, and the other way round: nothing is lost or gained by their being side by side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bus {
    /// When the reads so far will have ended, or copies have been reckoned with, whichever is later.
    free: Nanos,
    /// Time of the whole bus that pages on their way still need,
    copying: Nanos,
    /// and when they have come, once that is known.
    copied: Nanos,
}

impl Bus {
    /// When reads have ended that may begin at `ready` and take the bus for so long.
    #[inline]
    pub(crate) fn read(&mut self, ready: Nanos, time: Nanos) -> Nanos {
        if self.copying > Nanos::ZERO {
            return self.read_beside_copies(ready, time);
        }
        self.free = ready.max(self.free) + time;
        self.free
    }

    #[cold]
    fn read_beside_copies(&mut self, ready: Nanos, time: Nanos) -> Nanos {
        self.pass_to(ready);
        let begin = ready.max(self.free);
        let (left, beside) = (self.copying, time.scaled(COPY_SHARE));
        if left <= beside {
            self.copied = begin + left.scaled((1.0 + COPY_SHARE) / COPY_SHARE);
            self.copying = Nanos::ZERO;
            self.free = begin + time + left;
        } else {
            self.copying = left - beside;
            self.free = begin + time + beside;
        }
        self.free
    }

    /// Copies go on while nobody reads, until `now`.
    fn pass_to(&mut self, now: Nanos) {
        let idle = now.since(self.free);
        if self.copying > Nanos::ZERO && idle > Nanos::ZERO {
            let done = idle.min(self.copying);
            self.copying = self.copying - done;
            self.copied = self.free + done;
            self.free = now;
        }
    }

    /// Pages are on their way from `now` on, which take the whole bus for so long.
    pub(super) fn copy(&mut self, now: Nanos, time: Nanos) {
        // Reads that have been promised to end later go on.
        (self.copying, self.copied) = (time, now);
        self.free = self.free.max(now);
    }

    /// Whether they have come by `now`.
    pub(super) fn has_copied(&mut self, now: Nanos) -> bool {
        self.pass_to(now);
        self.copying == Nanos::ZERO && self.copied <= now
    }
}

/// What lies near on a GPU.
#[derive(Clone, Debug)]
pub(crate) struct Follower {
    residency: Residency,
    /// When batches end that see a map: the first first.
    readers: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// The map that the batch sees that was started last.
    map: usize,
    /// When the decision that was asked for last is there.
    decided: Nanos,
}

impl Follower {
    /// Nothing has moved yet.
    pub(crate) fn new(following: &Following) -> Self {
        let residency = Residency::new(following.tier.clone());
        Self { residency, readers: BinaryHeap::new(), map: 0, decided: Nanos::ZERO }
    }

    /// A batch of these rows starts at `now`: from here on [`cost`](Self::cost) tells of what it finds near. When it
    /// [ends](Self::end_at) must be said before the next one.
    pub(crate) fn start(&mut self, following: &Following, rows: &[u32], now: Nanos, bus: &mut Bus) {
        while let Some(&Reverse((_, map))) = self.readers.peek().filter(|reader| reader.0.0 <= now) {
            self.readers.pop();
            self.residency.leave(map);
        }
        let mut clock = Clock { following, now, bus, decided: &mut self.decided };
        self.map = self.residency.start(rows, |row| following.demands.of(row), &mut clock);
    }

    /// When the batch ends that was started last.
    pub(crate) fn end_at(&mut self, finish: Nanos) {
        self.readers.push(Reverse((finish, self.map)));
    }

    /// What the query in a row costs now, which costs `near` with all that it reads near.
    pub(crate) fn cost(&self, following: &Following, row: u32, near: Cost) -> Cost {
        following.cost(row, near, self.far_share(following, row))
    }

    /// What it is expected to cost now, which is expected to cost `near`.
    pub(crate) fn expected(&self, following: &Following, row: u32, near: Cost) -> Cost {
        following.expected(row, near, self.far_share(following, row))
    }

    /// What has come of it.
    pub(crate) fn followed(&self) -> Followed {
        self.residency.followed()
    }

    fn far_share(&self, following: &Following, row: u32) -> f64 {
        self.residency.near().reads(following.demands.of(row)).far_share()
    }
}

/// A pace in the time of a run.
struct Clock<'a> {
    following: &'a Following,
    now: Nanos,
    bus: &'a mut Bus,
    decided: &'a mut Nanos,
}

impl Pace for Clock<'_> {
    fn begin_deciding(&mut self) {
        *self.decided = self.now + self.following.decide;
    }

    fn has_decided(&mut self) -> bool {
        *self.decided <= self.now
    }

    fn begin_task(&mut self, coming: usize) {
        self.bus.copy(self.now, Nanos(self.following.copy_page.0.saturating_mul(coming as u64)));
    }

    fn has_ended(&mut self) -> bool {
        self.bus.has_copied(self.now)
    }
}
