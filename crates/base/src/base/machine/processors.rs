//! The processors of a machine, in order.

use super::{Class, PerClass};
use crate::base::ids::{DeviceId, ProcessorId};

/// A lane that takes work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Class of the processor, which selects its column of costs.
    pub class: Class,
    /// Device that it shares with other lanes: the package of cores, or the GPU. Devices are numbered from 0 within the
    /// class.
    pub device: DeviceId,
    /// Number of the lane on its device, from 0.
    pub stream: u32,
    /// Number of batches that it holds at once, at least 1. While one runs, the next is prepared.
    pub depth: u32,
}

/// The processors of a run. A [`ProcessorId`] is a position among them; methods panic at any other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    processors: Vec<Processor>,
    counts: PerClass<usize>,
}

impl Machine {
    /// A machine of `cpus` CPU workers followed by `gpus` GPUs of one stream each, every lane one batch deep.
    #[inline]
    pub fn new(cpus: usize, gpus: usize) -> Self {
        Self::default().with_cpus(cpus).with_gpus(gpus, 1, 1)
    }

    /// Adds `count` CPU workers.
    #[must_use]
    #[inline]
    pub fn with_cpus(self, count: usize) -> Self {
        let worker = |stream| Processor { class: Class::CPU, device: DeviceId(0), stream, depth: 1 };
        (0..count as u32).map(worker).fold(self, Self::with)
    }

    /// Adds `gpus` GPUs of `streams` streams each, every stream `depth` batches deep.
    #[must_use]
    pub fn with_gpus(self, gpus: usize, streams: usize, depth: u32) -> Self {
        let first = self.num_devices(Class::GPU) as u32;
        let devices = first..first + gpus as u32;
        let lanes = devices.flat_map(|device| (0..streams as u32).map(move |stream| (DeviceId(device), stream)));
        lanes.fold(self, |machine, (device, stream)| {
            machine.with(Processor { class: Class::GPU, device, stream, depth })
        })
    }

    /// Adds one processor. Panics if its depth is 0.
    #[must_use]
    #[inline]
    pub fn with(mut self, processor: Processor) -> Self {
        assert!(processor.depth > 0, "a lane that holds no batch never works");
        self.counts[processor.class] += 1;
        self.processors.push(processor);
        self
    }

    /// The processors, in order.
    #[inline]
    pub fn processors(&self) -> impl Iterator<Item = (ProcessorId, Processor)> + '_ {
        self.processors.iter().enumerate().map(|(i, &processor)| (ProcessorId(i as u32), processor))
    }

    /// The processor with this id.
    #[inline]
    pub fn processor(&self, processor: ProcessorId) -> Processor {
        self.processors[processor.index()]
    }

    /// The class of `processor`.
    #[inline]
    pub fn class(&self, processor: ProcessorId) -> Class {
        self.processors[processor.index()].class
    }

    /// The classes of its processors, in order.
    #[inline]
    pub fn classes(&self) -> impl Iterator<Item = Class> + '_ {
        Class::ALL.into_iter().filter(|&class| self.count(class) > 0)
    }

    /// Number of processors of `class`.
    #[inline]
    pub fn count(&self, class: Class) -> usize {
        self.counts[class]
    }

    /// Number of devices of the processors of `class`.
    #[inline]
    pub fn num_devices(&self, class: Class) -> usize {
        let devices = self.processors.iter().filter(|processor| processor.class == class);
        devices.map(|processor| processor.device.index() + 1).max().unwrap_or(0)
    }

    /// Number of processors.
    #[inline]
    pub fn len(&self) -> usize {
        self.processors.len()
    }

    /// Whether there is no processor.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.processors.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_gpus_are_not_two_streams_of_one() {
        let devices = Machine::new(1, 2);
        let streams = Machine::new(1, 0).with_gpus(1, 2, 1);
        let places = |machine: &Machine| -> Vec<(u32, u32)> {
            machine.processors().map(|(_, processor)| (processor.device.0, processor.stream)).collect()
        };
        assert_eq!(places(&devices), [(0, 0), (0, 0), (1, 0)]);
        assert_eq!(places(&streams), [(0, 0), (0, 0), (0, 1)]);
        assert_eq!((devices.num_devices(Class::GPU), streams.num_devices(Class::GPU)), (2, 1));
        assert_eq!((devices.count(Class::GPU), streams.count(Class::GPU)), (2, 2));
    }
}
