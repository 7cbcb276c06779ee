//! Arrivals with a lookahead.

use crate::base::time::Nanos;

/// Arrivals drawn in one group.
const DRAWN_TOGETHER: usize = 16;
/// Arrivals held: one group is played while the rows of the next one come from memory.
const HELD: usize = 2 * DRAWN_TOGETHER;

/// Yields the arrivals of an iterator, and passes the row of each to `look` some arrivals earlier, to prefetch the memory
/// of that row.
///
/// Times and rows are kept apart and drawn in groups: a processor draws several at once, and a value has left the store
/// buffers before it is read. A pair that is written in two pieces and read in one right afterwards would stall.
#[derive(Clone, Debug)]
pub(super) struct Ahead<I, F> {
    inner: I,
    look: F,
    times: [Nanos; HELD],
    rows: [u32; HELD],
    /// Arrivals drawn from the iterator, and arrivals yielded; the remainder gives the place in both rings.
    drawn: usize,
    given: usize,
    is_over: bool,
}

impl<I: Iterator<Item = (Nanos, u32)>, F: FnMut(u32)> Ahead<I, F> {
    pub(super) fn of(inner: I, look: F) -> Self {
        let (times, rows) = ([Nanos::ZERO; HELD], [0; HELD]);
        let mut ahead = Self { inner, look, times, rows, drawn: 0, given: 0, is_over: false };
        ahead.draw();
        ahead.draw();
        ahead
    }

    fn draw(&mut self) {
        if self.is_over {
            return;
        }
        for _ in 0..DRAWN_TOGETHER {
            let Some((time, row)) = self.inner.next() else {
                self.is_over = true;
                return;
            };
            (self.look)(row);
            let place = self.drawn % HELD;
            (self.times[place], self.rows[place]) = (time, row);
            self.drawn += 1;
        }
    }
}

impl<I: Iterator<Item = (Nanos, u32)>, F: FnMut(u32)> Iterator for Ahead<I, F> {
    type Item = (Nanos, u32);

    #[inline]
    fn next(&mut self) -> Option<(Nanos, u32)> {
        if self.given == self.drawn {
            return None;
        }
        let place = self.given % HELD;
        let item = (self.times[place], self.rows[place]);
        self.given += 1;
        if self.given.is_multiple_of(DRAWN_TOGETHER) {
            self.draw();
        }
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let held = self.drawn - self.given;
        let (least, most) = if self.is_over { (0, Some(0)) } else { self.inner.size_hint() };
        (least + held, most.map(|most| most + held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_arrivals_come_in_order_and_each_is_seen_some_arrivals_before() {
        for count in [0, 1, DRAWN_TOGETHER - 1, DRAWN_TOGETHER, HELD, HELD + 1, 150] {
            let seen = std::cell::Cell::new(0);
            let arrivals = (0..count).map(|i| (Nanos(3 * i as u64), i as u32));
            let mut ahead = Ahead::of(arrivals, |_| seen.set(seen.get() + 1));
            for i in 0..count {
                assert!(seen.get() >= count.min(i + DRAWN_TOGETHER) && seen.get() <= i + HELD);
                assert_eq!(ahead.size_hint(), (count - i, Some(count - i)));
                assert_eq!(ahead.next(), Some((Nanos(3 * i as u64), i as u32)));
            }
            assert_eq!((ahead.next(), ahead.next()), (None, None));
        }
    }
}
