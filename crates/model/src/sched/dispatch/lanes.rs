//! The lanes of a machine in the dispatcher: what each holds, and which have room.

use super::super::{Lane, LanesToPoll};
use crate::base::ids::{JobId, ProcessorId};
use crate::base::machine::{Class, Machine, PerClass};
use crate::base::time::Nanos;

/// The rows of a batch, and the lanes that help it, each with the time at which it joined.
type Team<'a> = (&'a [u32], &'a [(ProcessorId, Nanos)]);

/// A batch under way. The lane owns and reuses its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    pub(super) jobs: Vec<JobId>,
    /// The jobs' rows in the workload, for the code that runs the batch.
    pub(super) rows: Vec<u32>,
    pub(super) number: u32,
    pub(super) started: Nanos,
    pub(super) stolen: bool,
    /// Whether the batch is rerun on the lane's fallback executor.
    pub(super) again: bool,
    /// Lanes that help with it, in the order in which they joined, each with the time.
    pub(super) helpers: Vec<(ProcessorId, Nanos)>,
}

/// A set of lanes, by position. Finding its first member costs a 64th of the machine's size.
#[derive(Clone, Debug, Default)]
struct LaneSet {
    words: Vec<u64>,
}

impl LaneSet {
    fn with_room_for(lanes: usize) -> Self {
        Self { words: vec![0; lanes.div_ceil(64)] }
    }

    #[inline]
    fn set(&mut self, lane: usize, is_member: bool) {
        let (word, bit) = (&mut self.words[lane / 64], lane % 64);
        *word = *word & !(1 << bit) | u64::from(is_member) << bit;
    }

    #[inline]
    fn first_from(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.words.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.words.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}

/// One lane: a ring with one place for each batch that the lane can hold.
#[derive(Clone, Debug)]
struct Ring {
    class: Class,
    batches: Vec<Running>,
    /// The oldest batch's place and the number of batches.
    oldest: usize,
    held: usize,
    /// Whether it helps another lane. It then holds no batch and has no room.
    helps: bool,
}

impl Ring {
    /// The place of the batch that follows `after` older ones.
    #[inline]
    fn place(&self, after: usize) -> usize {
        let place = self.oldest + after;
        if place < self.batches.len() { place } else { place - self.batches.len() }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Lanes {
    rings: Vec<Ring>,
    idle: PerClass<LaneSet>,
    /// Lanes, by class, that hold a batch and have room for another.
    partly: PerClass<LaneSet>,
    pub(super) under_way: usize,
}

impl Lanes {
    pub(super) fn of(machine: &Machine) -> Self {
        let ring = |class, depth: u32| Ring {
            class,
            batches: vec![Running::default(); depth as usize],
            oldest: 0,
            held: 0,
            helps: false,
        };
        let mut lanes = Self {
            rings: machine.processors().map(|(_, processor)| ring(processor.class, processor.depth)).collect(),
            idle: PerClass::from_fn(|_| LaneSet::with_room_for(machine.len())),
            partly: PerClass::from_fn(|_| LaneSet::with_room_for(machine.len())),
            under_way: 0,
        };
        for (i, ring) in lanes.rings.iter().enumerate() {
            lanes.idle[ring.class].set(i, true);
        }
        lanes
    }

    #[inline(always)]
    pub(super) fn lane(&self, processor: ProcessorId) -> Lane {
        let ring = &self.rings[processor.index()];
        Lane { processor, class: ring.class, under_way: ring.held as u32 }
    }

    #[inline]
    pub(super) fn has_room(&self, processor: ProcessorId) -> bool {
        let ring = &self.rings[processor.index()];
        ring.held < ring.batches.len() && !ring.helps
    }

    /// A lane of `class` with room, preferably an idle one.
    #[inline]
    pub(super) fn first_with_room(&self, class: Class) -> Option<ProcessorId> {
        let found = self.idle[class].first_from(0).or_else(|| self.partly[class].first_from(0));
        found.map(|i| ProcessorId(i as u32))
    }

    /// The first lane with room from position `from` on, of any class.
    #[inline]
    pub(super) fn next_with_room(&self, from: usize) -> Option<ProcessorId> {
        let sets = Class::ALL.into_iter().flat_map(|class| [&self.idle[class], &self.partly[class]]);
        sets.filter_map(|set| set.first_from(from)).min().map(|i| ProcessorId(i as u32))
    }

    /// Adds a batch, without jobs yet, to a lane with room.
    #[inline(always)]
    pub(super) fn start(&mut self, processor: ProcessorId) -> &mut Running {
        let i = processor.index();
        let ring = &mut self.rings[i];
        let place = ring.place(ring.held);
        ring.held += 1;
        self.under_way += 1;
        if ring.held == 1 {
            self.idle[ring.class].set(i, false);
        }
        // A lane that holds at most one batch is idle or full.
        if ring.batches.len() > 1 {
            self.partly[ring.class].set(i, ring.held < ring.batches.len());
        }
        let batch = &mut ring.batches[place];
        batch.jobs.clear();
        batch.rows.clear();
        batch
    }

    /// The lane after its oldest batch has ended, and that batch. The batch stays readable until another takes its place.
    #[inline(always)]
    pub(super) fn finish(&mut self, processor: ProcessorId) -> Option<(Lane, &Running)> {
        let i = processor.index();
        let ring = self.rings.get_mut(i).filter(|ring| ring.held > 0)?;
        let ended = ring.oldest;
        ring.oldest = ring.place(1);
        ring.held -= 1;
        self.under_way -= 1;
        if ring.held == 0 {
            self.idle[ring.class].set(i, true);
        }
        if ring.batches.len() > 1 {
            self.partly[ring.class].set(i, ring.held > 0);
        }
        let lane = Lane { processor, class: ring.class, under_way: ring.held as u32 };
        Some((lane, &ring.batches[ended]))
    }

    /// An idle lane of `class`.
    #[inline]
    pub(super) fn first_idle(&self, class: Class) -> Option<ProcessorId> {
        self.idle[class].first_from(0).map(|i| ProcessorId(i as u32))
    }

    /// The idle lane `helper` joins the one job of `lead`. Returns `None` if that cannot be: the helper is not idle, the classes
    /// differ, or the lead does not run exactly one job.
    pub(super) fn join(&mut self, lead: ProcessorId, helper: ProcessorId, now: Nanos) -> Option<()> {
        let class = self.rings.get(lead.index()).filter(|ring| ring.held == 1)?.class;
        let ring = self.rings.get_mut(helper.index())?;
        if ring.class != class || ring.held > 0 || ring.helps {
            return None;
        }
        ring.helps = true;
        let lead = &mut self.rings[lead.index()];
        let batch = &mut lead.batches[lead.oldest];
        if batch.jobs.len() != 1 {
            self.rings[helper.index()].helps = false;
            return None;
        }
        batch.helpers.push((helper, now));
        self.idle[class].set(helper.index(), false);
        Some(())
    }

    /// The helpers of the oldest batch of `lead`, and its rows.
    #[inline]
    pub(super) fn team(&self, lead: ProcessorId) -> Option<Team<'_>> {
        let ring = self.rings.get(lead.index()).filter(|ring| ring.held > 0)?;
        let batch = &ring.batches[ring.oldest];
        Some((&batch.rows, &batch.helpers))
    }

    /// Releases the helpers of the oldest batch of `lead`. Returns the number of lanes that it occupied at its end, and the lane
    /// time of the helpers.
    pub(super) fn release(&mut self, lead: ProcessorId, now: Nanos) -> (u32, Nanos) {
        let Some(ring) = self.rings.get_mut(lead.index()).filter(|ring| ring.held > 0) else { return (1, Nanos::ZERO) };
        let (class, oldest) = (ring.class, ring.oldest);
        let helpers = std::mem::take(&mut ring.batches[oldest].helpers);
        let mut helped = Nanos::ZERO;
        for &(helper, since) in &helpers {
            self.rings[helper.index()].helps = false;
            self.idle[class].set(helper.index(), true);
            helped += now.since(since);
        }
        (helpers.len() as u32 + 1, helped)
    }

    /// The batch of this number, if it is under way on the processor.
    #[inline]
    pub(super) fn batch(&self, processor: ProcessorId, number: u32) -> Option<&Running> {
        let ring = self.rings.get(processor.index())?;
        // The latest batch is asked for most.
        let places = (0..ring.held).rev().map(|after| &ring.batches[ring.place(after)]);
        places.into_iter().find(|batch| batch.number == number)
    }

    /// The batch of this number, mutable, if it is under way on the processor.
    #[inline]
    pub(super) fn batch_mut(&mut self, processor: ProcessorId, number: u32) -> Option<&mut Running> {
        let ring = self.rings.get_mut(processor.index())?;
        let place =
            (0..ring.held).map(|after| ring.place(after)).find(|&place| ring.batches[place].number == number)?;
        Some(&mut ring.batches[place])
    }
}

/// The lanes to poll for the events since the last decision.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingPolls {
    pub(super) processors: Vec<ProcessorId>,
    /// Bit c is set if lanes of class c must be polled.
    pub(super) classes: u8,
    /// By class: number of its lanes to poll.
    pub(super) lanes: PerClass<u32>,
    /// By class: whether to poll other classes if fewer of these lanes start something.
    pub(super) others_too: PerClass<bool>,
    pub(super) everyone: bool,
}

impl PendingPolls {
    #[inline]
    pub(super) fn add(&mut self, lanes: LanesToPoll) {
        match lanes {
            LanesToPoll::Nobody => {}
            LanesToPoll::Processor(processor) => self.processors.push(processor),
            LanesToPoll::Class(class) => {
                self.classes |= 1 << class.index();
                self.lanes[class] += 1;
            }
            LanesToPoll::ClassThenOthers(class) => {
                self.classes |= 1 << class.index();
                self.lanes[class] += 1;
                self.others_too[class] = true;
            }
            LanesToPoll::Everyone => self.everyone = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_with_room_is_found_idle_ones_first() {
        let machine = Machine::new(70, 0).with_gpus(2, 1, 2);
        let mut lanes = Lanes::of(&machine);
        for cpu in (0..70).map(ProcessorId) {
            assert_eq!(lanes.first_with_room(Class::CPU), Some(cpu));
            lanes.start(cpu).number = cpu.0;
        }
        assert_eq!(lanes.first_with_room(Class::CPU), None);
        assert_eq!(lanes.next_with_room(3), Some(ProcessorId(70)));
        // Both GPUs get a batch before either gets two.
        for (gpu, number) in [(70, 70), (71, 71), (70, 72), (71, 73)] {
            assert_eq!(lanes.first_with_room(Class::GPU), Some(ProcessorId(gpu)));
            lanes.start(ProcessorId(gpu)).number = number;
        }
        assert_eq!((lanes.first_with_room(Class::GPU), lanes.under_way), (None, 74));
        assert_eq!(lanes.finish(ProcessorId(71)).map(|(_, batch)| batch.number), Some(71));
        assert_eq!(lanes.lane(ProcessorId(71)).under_way, 1);
        assert!(lanes.has_room(ProcessorId(71)) && !lanes.has_room(ProcessorId(70)));
        assert_eq!(lanes.first_with_room(Class::GPU), Some(ProcessorId(71)));
        assert!(lanes.batch(ProcessorId(70), 72).is_some() && lanes.batch(ProcessorId(70), 71).is_none());
        lanes.start(ProcessorId(71)).number = 74;
        let order: Vec<u32> =
            (0..2).filter_map(|_| lanes.finish(ProcessorId(71)).map(|(_, batch)| batch.number)).collect();
        assert_eq!(order, [73, 74]);
        assert!(lanes.finish(ProcessorId(71)).is_none() && lanes.finish(ProcessorId(99)).is_none());
    }
}
