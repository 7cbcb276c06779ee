//! Identifiers of different types, so that a document can't be passed for a term.
//!
//! Each is a number from 0. The `Index` owns the documents and terms, a
//! [`Machine`](crate::base::machine::Machine) the processors.

use serde::{Deserialize, Serialize};

/// Postings in a full block of a list.
pub const BLOCK_LEN: usize = 128;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[derive(bytemuck::Pod, bytemuck::Zeroable)]
        #[serde(transparent)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// Position in an array.
            #[inline]
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
    /// An arrival of a query in a run, numbered from 0 in order of arrival. The same query may arrive often.
    JobId
}
id! {
    /// A processor's position in its machine's list.
    ProcessorId
}
id! {
    /// A device's number within its class: the ordinal of a GPU, or 0 for the host's cores.
    DeviceId
}

impl DocId {
    /// Past the last posting of every list, because documents are numbered below 2^31.
    pub const END: Self = Self(u32::MAX);
}
