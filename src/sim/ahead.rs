//! Looking at arrivals before they come.

/// How many arrivals ahead of the one that comes.
const AHEAD: usize = 8;

/// Gives what an iterator gives, and shows each item to `look` some items before: to ask for memory that it will read.
#[derive(Clone, Debug)]
pub(super) struct Ahead<I: Iterator, F> {
    inner: I,
    look: F,
    /// The next items: the first is at `at`; as many as the inner iterator still had.
    ring: [Option<I::Item>; AHEAD],
    at: usize,
}

impl<I: Iterator, F: FnMut(&I::Item)> Ahead<I, F> {
    pub(super) fn of(mut inner: I, mut look: F) -> Self {
        let ring = std::array::from_fn(|_| inner.next().inspect(&mut look));
        Self { inner, look, ring, at: 0 }
    }
}

impl<I: Iterator, F: FnMut(&I::Item)> Iterator for Ahead<I, F> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        let next = self.inner.next().inspect(&mut self.look);
        let item = std::mem::replace(&mut self.ring[self.at], next);
        self.at = (self.at + 1) % AHEAD;
        item
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let held = self.ring.iter().flatten().count();
        let (least, most) = self.inner.size_hint();
        (least + held, most.map(|most| most + held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_items_come_in_order_and_each_is_seen_some_items_before() {
        for count in [0, 1, AHEAD - 1, AHEAD, 50] {
            let seen = std::cell::Cell::new(0);
            let mut ahead = Ahead::of(0..count, |_| seen.set(seen.get() + 1));
            for i in 0..count {
                assert_eq!((seen.get(), ahead.size_hint().0), (count.min(i + AHEAD), count - i));
                assert_eq!(ahead.next(), Some(i));
            }
            assert_eq!((ahead.next(), ahead.next()), (None, None));
        }
    }
}
