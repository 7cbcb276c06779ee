//! The machine that a run is on: processors of two kinds, in one row.
//!
//! A scheduler knows of each processor its number and its kind. The kind matters because a query costs about the same on
//! all processors of a kind and something else on those of the other: so costs, estimates and utilisations come in
//! pairs, [`PerKind`].
//!
//! ```text
//! Machine::new(2, 1)      ProcessorId   0    1    2
//!                         kind         cpu  cpu  gpu
//! ```
//!
//! Simulated and live machines are described alike. What stands behind a processor (a core, several that share a query, a
//! stream, or the recorded times of one) is known to [`live`](crate::live) only.

use serde::{Deserialize, Serialize};

use crate::ids::ProcessorId;

/// What a processor is: costs are measured and predicted for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessorKind {
    /// One CPU worker thread.
    Cpu,
    /// One GPU stream.
    Gpu,
}

impl ProcessorKind {
    /// Both kinds, in the order used in files and tables.
    pub const ALL: [Self; 2] = [Self::Cpu, Self::Gpu];

    /// The other kind.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Cpu => Self::Gpu,
            Self::Gpu => Self::Cpu,
        }
    }

    /// `cpu` or `gpu`, as in files and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        }
    }
}

impl std::fmt::Display for ProcessorKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// One value for each kind of processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerKind<T> {
    /// The value for CPU workers.
    pub cpu: T,
    /// The value for GPU streams.
    pub gpu: T,
}

impl<T> PerKind<T> {
    /// Makes each value from its kind.
    pub fn from_fn(mut make: impl FnMut(ProcessorKind) -> T) -> Self {
        Self { cpu: make(ProcessorKind::Cpu), gpu: make(ProcessorKind::Gpu) }
    }
}

impl<T: PartialOrd> PerKind<T> {
    /// The kind of the smaller value; the CPU if both are equal.
    #[must_use]
    pub fn least(&self) -> ProcessorKind {
        if self.cpu <= self.gpu { ProcessorKind::Cpu } else { ProcessorKind::Gpu }
    }
}

impl<T> std::ops::Index<ProcessorKind> for PerKind<T> {
    type Output = T;
    fn index(&self, kind: ProcessorKind) -> &T {
        match kind {
            ProcessorKind::Cpu => &self.cpu,
            ProcessorKind::Gpu => &self.gpu,
        }
    }
}

impl<T> std::ops::IndexMut<ProcessorKind> for PerKind<T> {
    fn index_mut(&mut self, kind: ProcessorKind) -> &mut T {
        match kind {
            ProcessorKind::Cpu => &mut self.cpu,
            ProcessorKind::Gpu => &mut self.gpu,
        }
    }
}

/// The processors of a run, CPUs first; a [`ProcessorId`] is a position in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    kinds: Vec<ProcessorKind>,
}

impl Machine {
    /// A machine of `cpus` CPU workers followed by `gpus` GPU streams.
    #[must_use]
    pub fn new(cpus: usize, gpus: usize) -> Self {
        let mut kinds = vec![ProcessorKind::Cpu; cpus];
        kinds.resize(cpus + gpus, ProcessorKind::Gpu);
        Self { kinds }
    }

    /// The processors with their kinds, in order.
    pub fn processors(&self) -> impl Iterator<Item = (ProcessorId, ProcessorKind)> + '_ {
        self.kinds.iter().enumerate().map(|(i, &kind)| (ProcessorId(i as u32), kind))
    }

    /// The kind of `processor`.
    ///
    /// # Panics
    /// If the machine has no such processor.
    #[must_use]
    pub fn kind(&self, processor: ProcessorId) -> ProcessorKind {
        self.kinds[processor.index()]
    }

    /// How many processors of `kind` there are.
    #[must_use]
    pub fn count(&self, kind: ProcessorKind) -> usize {
        self.kinds.iter().filter(|&&k| k == kind).count()
    }

    /// How many processors there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there is no processor at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
}
