//! The lanes of a machine as the dispatcher sees them: what each holds, and which have room.

use std::collections::VecDeque;

use super::{Job, Lane};
use crate::ids::ProcessorId;
use crate::machine::{Class, Machine, PerClass};
use crate::time::Nanos;

/// A batch under way.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) jobs: Vec<Job>,
    pub(super) number: u32,
    pub(super) started: Nanos,
    pub(super) stolen: bool,
}

/// A set of lanes, by position; its first member is found in a 64th of the machine's size.
#[derive(Clone, Debug, Default)]
struct LaneSet {
    words: Vec<u64>,
}

impl LaneSet {
    fn with_room_for(lanes: usize) -> Self {
        Self { words: vec![0; lanes.div_ceil(64)] }
    }

    fn set(&mut self, lane: usize, is_member: bool) {
        let (word, bit) = (lane / 64, 1 << (lane % 64));
        if is_member { self.words[word] |= bit } else { self.words[word] &= !bit }
    }

    /// The first member from position `from` on.
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

/// What the lanes hold.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    classes: Vec<Class>,
    depths: Vec<u32>,
    running: Vec<VecDeque<Running>>,
    /// Lanes with room, by class: those that hold nothing,
    idle: PerClass<LaneSet>,
    /// and those that hold something.
    partly: PerClass<LaneSet>,
    /// Batches under way in all lanes together.
    pub(super) under_way: usize,
    /// Memory of batches that have ended.
    spare: Vec<Vec<Job>>,
}

impl Lanes {
    pub(super) fn of(machine: &Machine) -> Self {
        let mut lanes = Self {
            classes: machine.processors().map(|(_, processor)| processor.class).collect(),
            depths: machine.processors().map(|(_, processor)| processor.depth).collect(),
            running: machine.processors().map(|_| VecDeque::new()).collect(),
            idle: PerClass::from_fn(|_| LaneSet::with_room_for(machine.len())),
            partly: PerClass::from_fn(|_| LaneSet::with_room_for(machine.len())),
            under_way: 0,
            spare: Vec::new(),
        };
        for (i, &class) in lanes.classes.iter().enumerate() {
            lanes.idle[class].set(i, true);
        }
        lanes
    }

    /// As a policy sees it.
    pub(super) fn lane(&self, processor: ProcessorId) -> Lane {
        let i = processor.index();
        Lane { processor, class: self.classes[i], under_way: self.running[i].len() as u32 }
    }

    /// Whether it can hold another batch.
    pub(super) fn has_room(&self, processor: ProcessorId) -> bool {
        self.running[processor.index()].len() < self.depths[processor.index()] as usize
    }

    /// A lane of `class` with room; an idle one if there is one.
    pub(super) fn first_with_room(&self, class: Class) -> Option<ProcessorId> {
        let found = self.idle[class].first_from(0).or_else(|| self.partly[class].first_from(0));
        found.map(|i| ProcessorId(i as u32))
    }

    /// The first lane with room from position `from` on, of any class.
    pub(super) fn next_with_room(&self, from: usize) -> Option<ProcessorId> {
        let sets = Class::ALL.into_iter().flat_map(|class| [&self.idle[class], &self.partly[class]]);
        sets.filter_map(|set| set.first_from(from)).min().map(|i| ProcessorId(i as u32))
    }

    /// Room for the jobs of a batch.
    pub(super) fn empty_batch(&mut self) -> Vec<Job> {
        self.spare.pop().unwrap_or_default()
    }

    pub(super) fn start(&mut self, processor: ProcessorId, batch: Running) {
        let i = processor.index();
        self.running[i].push_back(batch);
        self.under_way += 1;
        self.note_room(i);
    }

    /// The oldest batch of the lane, which has ended; give its memory back with [`recycle`](Self::recycle).
    pub(super) fn finish(&mut self, processor: ProcessorId) -> Option<Running> {
        let i = processor.index();
        let batch = self.running.get_mut(i)?.pop_front()?;
        self.under_way -= 1;
        self.note_room(i);
        Some(batch)
    }

    pub(super) fn recycle(&mut self, mut jobs: Vec<Job>) {
        jobs.clear();
        self.spare.push(jobs);
    }

    /// The batch of this number, if it is under way there.
    pub(super) fn batch(&self, processor: ProcessorId, number: u32) -> Option<&[Job]> {
        let running = self.running.get(processor.index())?;
        running.iter().rev().find(|batch| batch.number == number).map(|batch| &batch.jobs[..])
    }

    fn note_room(&mut self, i: usize) {
        let (held, class) = (self.running[i].len(), self.classes[i]);
        self.idle[class].set(i, held == 0);
        self.partly[class].set(i, held > 0 && held < self.depths[i] as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_with_room_is_found_idle_ones_first() {
        let machine = Machine::new(70, 0).with_gpus(2, 1, 2);
        let mut lanes = Lanes::of(&machine);
        let batch = |number| Running { jobs: Vec::new(), number, started: Nanos::ZERO, stolen: false };
        for cpu in (0..70).map(ProcessorId) {
            assert_eq!(lanes.first_with_room(Class::CPU), Some(cpu));
            lanes.start(cpu, batch(cpu.0));
        }
        assert_eq!(lanes.first_with_room(Class::CPU), None);
        assert_eq!(lanes.next_with_room(3), Some(ProcessorId(70)));
        // Both GPUs get a batch before either gets two.
        for (gpu, number) in [(70, 70), (71, 71), (70, 72), (71, 73)] {
            assert_eq!(lanes.first_with_room(Class::GPU), Some(ProcessorId(gpu)));
            lanes.start(ProcessorId(gpu), batch(number));
        }
        assert_eq!((lanes.first_with_room(Class::GPU), lanes.under_way), (None, 74));
        assert_eq!(lanes.finish(ProcessorId(71)).map(|batch| batch.number), Some(71));
        assert_eq!(lanes.lane(ProcessorId(71)).under_way, 1);
        assert!(lanes.has_room(ProcessorId(71)) && !lanes.has_room(ProcessorId(70)));
        assert_eq!(lanes.first_with_room(Class::GPU), Some(ProcessorId(71)));
        assert!(lanes.batch(ProcessorId(70), 72).is_some() && lanes.batch(ProcessorId(70), 71).is_none());
    }
}
