//! Identifiers, one type each, so that a document can't be passed for a term; and the processors
//! that some of them name.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[derive(bytemuck::Pod, bytemuck::Zeroable)]
        #[serde(transparent)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// As a position in an array.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A document's number inside its index, from 0, in the order of the collection.
    DocId
}
id! {
    /// A term's number inside its index: its rank in byte order of the vocabulary, from 0.
    TermId
}
id! {
    /// A query's number inside its log or workload file.
    QueryId
}
id! {
    /// One arrival of a query in a run, from 0 in order of arrival; the same query may arrive often.
    JobId
}
id! {
    /// A processor's position in its machine's list.
    ProcessorId
}

impl DocId {
    /// Past the last posting of every list. Documents are numbered below 2^31.
    pub const END: Self = Self(u32::MAX);
}

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
