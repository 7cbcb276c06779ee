//! Where lists lie in a memory of fixed size: each in one piece, none over another.
//!
//! A list goes to the lowest gap that holds it. When what is free would do but no gap does, all lists move down until they
//! lie side by side, and what is free is one gap at the end:
//!
//! ```text
//!   |aaaa|    |bb|   |cccccc|  |   ── compact ──▶   |aaaa|bb|cccccc|         |
//! ```

use std::collections::BTreeMap;

/// Lists that lie side by side and move down together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    /// Where they lay; their new place may overlap the old one.
    pub(crate) from: u64,
    /// Where they lie now.
    pub(crate) to: u64,
    /// How long they are.
    pub(crate) len: u64,
}

/// Places in a memory. Lengths and places are in the unit that the memory's length is in.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    len: u64,
    /// By place: the list there, and its length.
    held: BTreeMap<u64, (u32, u64)>,
    /// By list.
    places: Vec<Option<u64>>,
}

impl Space {
    /// An empty memory for so many lists.
    #[must_use]
    pub(crate) fn new(num_lists: usize, len: u64) -> Self {
        Self { len, held: BTreeMap::new(), places: vec![None; num_lists] }
    }

    /// Where the list lies; `None` if it has no place.
    #[must_use]
    pub(crate) fn place_of(&self, list: u32) -> Option<u64> {
        self.places[list as usize]
    }

    /// Gives a list, which has no place yet and is not empty, the lowest one; `None` if no gap is long enough. Takes time
    /// in proportion to the lists that are held.
    pub(crate) fn place(&mut self, list: u32, len: u64) -> Option<u64> {
        let mut free_from = 0;
        for (&start, &(_, held)) in &self.held {
            if start - free_from >= len {
                break;
            }
            free_from = start + held;
        }
        if self.len - free_from < len {
            return None;
        }
        self.held.insert(free_from, (list, len));
        self.places[list as usize] = Some(free_from);
        Some(free_from)
    }

    /// Frees the list's place, if it has one.
    pub(crate) fn free(&mut self, list: u32) {
        if let Some(place) = self.places[list as usize].take() {
            self.held.remove(&place);
        }
    }

    /// Frees the places of all lists but those that are `wanted`.
    pub(crate) fn retain(&mut self, wanted: impl Fn(u32) -> bool) {
        let places = &mut self.places;
        self.held.retain(|_, &mut (list, _)| {
            let is_wanted = wanted(list);
            if !is_wanted {
                places[list as usize] = None;
            }
            is_wanted
        });
    }

    /// Moves all lists down to the beginning: at most one move for each gap, to be made one after another, in this order.
    pub(crate) fn compact(&mut self) -> Vec<Move> {
        let mut to = 0;
        let mut moves: Vec<Move> = Vec::new();
        for (from, (list, len)) in std::mem::take(&mut self.held) {
            match moves.last_mut() {
                Some(last) if last.from + last.len == from => last.len += len,
                _ if from == to => {}
                _ => moves.push(Move { from, to, len }),
            }
            self.held.insert(to, (list, len));
            self.places[list as usize] = Some(to);
            to += len;
        }
        moves
    }
}
