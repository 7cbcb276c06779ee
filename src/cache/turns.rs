//! Two maps of what lies where, in turns, so that pages come while queries run and each query sees one map.
//!
//! ```text
//!   map 0   |== read ==|.. drained ..| pages come | goes and comes are noted |== read ==> next epoch, turned round
//!   map 1   | what goes is noted |======= read =======|.. drained ..| what comes is noted |
//! ```
//!
//! What goes is far in the map that is read while others come into its frames; the map before, in which it is still near, has no
//! reader left by then. Nobody waits: neither queries for copies, nor copies for anything but the queries that began before.

/// What is to be done before the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Note in this map that what goes is far.
    Part {
        /// One that nobody reads.
        map: usize,
    },
    /// Bring what comes into its frames, and note in this map what goes and what comes.
    Bring {
        /// One that nobody reads.
        map: usize,
    },
    /// Note in this map, too, that what comes is near.
    Settle {
        /// One that nobody reads.
        map: usize,
    },
}

impl Task {
    /// The map that is changed, and whether it is noted there that pages go, and that others come.
    #[must_use]
    pub fn notes(self) -> (usize, bool, bool) {
        match self {
            Self::Part { map } => (map, true, false),
            Self::Bring { map } => (map, true, true),
            Self::Settle { map } => (map, false, true),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Idle,
    Parting,
    Draining,
    Bringing,
    Clearing,
    Settling,
}

/// Whose turn it is.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    current: usize,
    readers: [u32; 2],
    stage: Stage,
}

impl Turns {
    /// The map that queries which begin now read.
    #[must_use]
    pub fn current(&self) -> usize {
        self.current
    }

    /// The map that queries which begin now read, until they [leave](Self::leave) it.
    pub fn enter(&mut self) -> usize {
        self.readers[self.current] += 1;
        self.current
    }

    /// Queries that entered a map have ended.
    ///
    /// # Panics
    /// If nobody reads it.
    pub fn leave(&mut self, map: usize) {
        assert!(self.readers[map] > 0, "nobody reads map {map}");
        self.readers[map] -= 1;
    }

    /// Whether an epoch may begin.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }

    /// Whether pages are coming.
    #[must_use]
    pub fn is_bringing(&self) -> bool {
        self.stage == Stage::Bringing
    }

    /// Begins an epoch in which something moves.
    ///
    /// # Panics
    /// If one is under way.
    pub fn begin(&mut self) -> Task {
        assert!(self.is_idle(), "an epoch is under way");
        self.stage = Stage::Parting;
        Task::Part { map: 1 - self.current }
    }

    /// What is to be done now, if `is_done` what was to be done before; `None` if others must end first, or the epoch is over.
    pub fn step(&mut self, is_done: bool) -> Option<Task> {
        match self.stage {
            Stage::Parting if is_done => {
                self.current = 1 - self.current;
                self.stage = Stage::Draining;
            }
            Stage::Bringing if is_done => {
                self.current = 1 - self.current;
                self.stage = Stage::Clearing;
            }
            Stage::Settling if is_done => self.stage = Stage::Idle,
            _ => {}
        }
        let map = 1 - self.current;
        if self.readers[map] > 0 {
            return None;
        }
        match self.stage {
            Stage::Draining => {
                self.stage = Stage::Bringing;
                Some(Task::Bring { map })
            }
            Stage::Clearing => {
                self.stage = Stage::Settling;
                Some(Task::Settle { map })
            }
            _ => None,
        }
    }
}
