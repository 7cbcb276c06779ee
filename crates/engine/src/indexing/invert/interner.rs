//! Numbers for words by hashing. The text of distinct words is stored once, in one piece of memory.

use xxhash_rust::xxh3::xxh3_64;

/// Distinct words, numbered in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    /// Hash table with linear probing by the lowest bits of the hash. Its size is a power of two, and at most half of
    /// it is taken.
    slots: Vec<Slot>,
    keys: Vec<Key>,
    text: Vec<u8>,
}

/// The data that most lookups need, in one place.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    first_eight: u64,
    /// The hash, with the word's length of at most 255 in its lowest bits.
    check: u32,
    /// The word's number plus one, or 0 in a free slot.
    number: u32,
}

/// The keys by which a word is found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hashed {
    first_eight: u64,
    hash: u32,
}

impl Hashed {
    #[inline]
    pub(crate) fn of(word: &[u8]) -> Self {
        let first_eight = first_eight(word);
        Self { first_eight, hash: hash(word, first_eight) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Key {
    at: u32,
    len: u32,
    hash: u32,
}

const FIRST_SLOTS: usize = 1 << 12;

impl Interner {
    /// The number of `word`. A new word gets the next number.
    #[inline]
    pub(crate) fn intern(&mut self, word: &[u8]) -> u32 {
        self.intern_hashed(word, Hashed::of(word))
    }

    /// Reads the memory that [`intern_hashed`](Self::intern_hashed) will read first, to prefetch it. The result depends
    /// on it.
    #[inline]
    pub(crate) fn touch(&self, hashed: Hashed) -> u32 {
        let place = hashed.hash as usize & self.slots.len().wrapping_sub(1);
        self.slots.get(place).map_or(0, |slot| slot.number)
    }

    /// The number of a word whose hash is known: see [`intern`](Self::intern).
    #[inline]
    pub(crate) fn intern_hashed(&mut self, word: &[u8], hashed: Hashed) -> u32 {
        if self.keys.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let Hashed { first_eight, hash } = hashed;
        let check = check(hash, word.len());
        let mask = self.slots.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let slot = self.slots[place];
            if slot.number == 0 {
                break;
            }
            // Words hold no zero byte, so a short word equals its first eight bytes.
            let may_be_same = slot.first_eight == first_eight && slot.check == check;
            if may_be_same && (word.len() <= 8 || self.word(slot.number - 1) == word) {
                return slot.number - 1;
            }
            place = (place + 1) & mask;
        }
        self.keys.push(Key { at: self.text.len() as u32, len: word.len() as u32, hash });
        self.text.extend_from_slice(word);
        self.slots[place] = Slot { first_eight, check, number: self.keys.len() as u32 };
        self.keys.len() as u32 - 1
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn word(&self, number: u32) -> &[u8] {
        let Key { at, len, .. } = self.keys[number as usize];
        &self.text[at as usize..][..len as usize]
    }

    /// Numbers of all words, in byte order of the words.
    pub(crate) fn sorted(&self) -> Vec<u32> {
        let mut order: Vec<(u64, u32)> =
            (0..self.keys.len() as u32).map(|number| (first_eight(self.word(number)).swap_bytes(), number)).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.word(a.1).cmp(self.word(b.1))));
        order.into_iter().map(|(_, number)| number).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot>() + self.keys.len() * size_of::<Key>() + self.text.len()
    }

    /// Removes all words, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.slots.fill(Slot::default());
        self.keys.clear();
        self.text.clear();
    }

    #[cold]
    fn grow(&mut self) {
        let len = (self.slots.len() * 2).max(FIRST_SLOTS);
        let before = std::mem::replace(&mut self.slots, vec![Slot::default(); len]);
        for slot in before.into_iter().filter(|slot| slot.number != 0) {
            let mut place = self.keys[slot.number as usize - 1].hash as usize & (len - 1);
            while self.slots[place].number != 0 {
                place = (place + 1) & (len - 1);
            }
            self.slots[place] = slot;
        }
    }
}

#[inline]
fn check(hash: u32, len: usize) -> u32 {
    hash & !0xff | len.min(0xff) as u32
}

/// The first eight bytes, the first of them lowest, padded with zeros.
#[inline]
pub(crate) fn first_eight(word: &[u8]) -> u64 {
    if let Some(eight) = word.first_chunk() {
        return u64::from_le_bytes(*eight);
    }
    let len = word.len();
    if let (Some(first), Some(last)) = (word.first_chunk(), word.last_chunk()) {
        // The two halves overlap in equal bytes.
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (len - 4));
    }
    match *word {
        [] => 0,
        [a, ..] => {
            u64::from(a) | u64::from(word[len / 2]) << (8 * (len / 2)) | u64::from(word[len - 1]) << (8 * (len - 1))
        }
    }
}

#[inline]
fn hash(word: &[u8], first_eight: u64) -> u32 {
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xd6e8_feb8_6659_fd93;
    if word.len() > 16 {
        return xxh3_64(word) as u32;
    }
    let last_eight = word.last_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
    let product = u128::from(first_eight ^ A) * u128::from(last_eight ^ B ^ word.len() as u64);
    let folded = (product >> 64) as u64 ^ product as u64;
    (folded >> 32) as u32 ^ folded as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use tandem_base::base::random::Random;

    #[test]
    fn words_of_all_lengths_get_one_number_each_and_sort() {
        let mut random = Random::new(5, 0);
        let mut interner = Interner::default();
        let mut expected: HashMap<Vec<u8>, u32> = HashMap::new();
        for _ in 0..30_000 {
            let len = 1 + random.below(24);
            let word: Vec<u8> = (0..len).map(|_| b"ab"[random.below(2) as usize]).collect();
            let next = expected.len() as u32;
            let number = *expected.entry(word.clone()).or_insert(next);
            assert_eq!(interner.intern(&word), number);
        }
        assert_eq!(interner.len(), expected.len());
        let mut words: Vec<&[u8]> = expected.keys().map(Vec::as_slice).collect();
        words.sort_unstable();
        let sorted = interner.sorted();
        assert_eq!(sorted.iter().map(|&number| interner.word(number)).collect::<Vec<_>>(), words);
        interner.clear();
        assert_eq!((interner.len(), interner.intern(b"x")), (0, 0));
    }
}
