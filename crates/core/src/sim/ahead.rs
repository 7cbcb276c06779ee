//! Looking at arrivals before they come.

use crate::base::time::Nanos;

/// Arrivals that are drawn at a time,
const DRAWN_TOGETHER: usize = 16;
/// and held: one such group is played while the next one's rows come from memory.
const HELD: usize = 2 * DRAWN_TOGETHER;

/// Gives the arrivals of an iterator, and shows the row of each to `look` some arrivals before: to ask for memory that
/// it will read.
///
/// Times and rows are kept apart and drawn in groups: a processor draws several at once, and what is passed on has left
/// its store buffers long since (a pair that is read in one piece right after it was written in two makes it wait).
#[derive(Clone, Debug)]
pub(super) struct Ahead<I, F> {
    inner: I,
    look: F,
    times: [Nanos; HELD],
    rows: [u32; HELD],
    /// How many have been drawn from the iterator, and given; places in the two rings by the remainder.
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
