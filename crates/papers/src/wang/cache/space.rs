//! Places of lists in a memory of fixed size. Each list is in one piece.
//!
//! A list gets the lowest gap that is large enough. If only the sum of all gaps is large enough, all lists move down
//! and the free space becomes one gap at the end:
//!
//! ```text
//!   |aaaa|    |bb|   |cccccc|  |   ── compact ──▶   |aaaa|bb|cccccc|         |
//! ```

use std::collections::BTreeMap;

/// Adjacent lists that move down together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    /// Old place, which the new one may overlap.
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) len: u64,
}

/// Places in a memory. Lengths and places have the unit of the memory's length.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    len: u64,
    /// List and length at each used place.
    held: BTreeMap<u64, (u32, u64)>,
    places: Vec<Option<u64>>,
}

impl Space {
    pub(crate) fn new(num_lists: usize, len: u64) -> Self {
        Self { len, held: BTreeMap::new(), places: vec![None; num_lists] }
    }

    /// Returns the place of a list; `None` if it has none.
    pub(crate) fn place_of(&self, list: u32) -> Option<u64> {
        self.places[list as usize]
    }

    /// Gives the lowest possible place to a list that has none; `None` if no gap is large enough. Takes time
    /// proportional to the number of held lists.
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

    /// Frees the place of a list, if it has one.
    pub(crate) fn free(&mut self, list: u32) {
        if let Some(place) = self.places[list as usize].take() {
            self.held.remove(&place);
        }
    }

    /// Frees the places of all lists that are not `wanted`.
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

    /// Moves all lists to the beginning. The moves, at most one per gap, must be made in this order.
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
