//! Slots of the trie: the tree of a term, and the prefix that the slot implies.
//!
//! The trie has a fixed height of three and is therefore a table. Every slot has a tree of its own:
//!
//! | slot | terms | cut off |
//! | --- | --- | --- |
//! | 0 | that fall into no other: `3d`, `česky` | nothing |
//! | 1 to 10 | numbers, by their first digit: `0195` is in 1 | the digit |
//! | 11 to 36 | that begin with a to z, of at most three letters or with another character among the first three: `at`, `añonuevo` | the letter |
//! | 37 + 676 a + 26 b + c | longer ones that begin with the letters a, b, c (from 0): `aaat` is in 37 | the three letters |
//!
//! Source: Wei and JaJa 2011, table I.

pub(crate) const NUM_SLOTS: usize = 17_613;

const FIRST_NUMBER: u16 = 1;
const FIRST_SHORT: u16 = 11;
const FIRST_LONG: u16 = 37;
const LETTERS: u16 = 26;

/// Returns the slot of a term, and the number of its bytes that the slot implies.
#[inline]
pub(crate) fn slot_of(term: &[u8]) -> (u16, usize) {
    let number_of = |byte: u8| u16::from(byte - b'a');
    match *term {
        [a @ b'a'..=b'z', b @ b'a'..=b'z', c @ b'a'..=b'z', _, ..] => {
            (FIRST_LONG + (number_of(a) * LETTERS + number_of(b)) * LETTERS + number_of(c), 3)
        }
        [first @ b'a'..=b'z', ..] => (FIRST_SHORT + number_of(first), 1),
        [first @ b'0'..=b'9', ..] if term.iter().all(u8::is_ascii_digit) => (FIRST_NUMBER + u16::from(first - b'0'), 1),
        _ => (0, 0),
    }
}

/// Returns the prefix of all terms of a slot.
pub(crate) fn prefix_of(slot: u16) -> Vec<u8> {
    let letter = |number: u16| b'a' + number as u8;
    match slot {
        0 => Vec::new(),
        FIRST_NUMBER..FIRST_SHORT => vec![b'0' + (slot - FIRST_NUMBER) as u8],
        FIRST_SHORT..FIRST_LONG => vec![letter(slot - FIRST_SHORT)],
        _ => {
            let long = slot - FIRST_LONG;
            [long / (LETTERS * LETTERS), long / LETTERS % LETTERS, long % LETTERS].map(letter).to_vec()
        }
    }
}

/// Returns groups of slots. Within a group, the terms of consecutive slots are in byte order.
pub(crate) fn sorted_groups() -> [std::ops::Range<u16>; 4] {
    [0..FIRST_NUMBER, FIRST_NUMBER..FIRST_SHORT, FIRST_SHORT..FIRST_LONG, FIRST_LONG..NUM_SLOTS as u16]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn terms_are_in_the_slots_of_the_papers_table() {
        let cases = [
            (0, "-80 3d česky Zoo 80s"),
            (1, "01 0195"),
            (8, "7"),
            (10, "9 954"),
            (11, "a at act añonuevo a1b2"),
            (36, "z zoo zoé"),
            (37, "aaat aaaé"),
            (38, "aabomycin"),
            (37 + 15 * 26 + 15, "application"),
            (17_612, "zzzy"),
        ];
        for (slot, term) in cases.iter().flat_map(|&(slot, terms)| terms.split(' ').map(move |term| (slot, term))) {
            let (found, cut) = slot_of(term.as_bytes());
            assert_eq!(found, slot, "{term}");
            assert_eq!(&term.as_bytes()[..cut], prefix_of(slot), "{term}");
        }
        assert_eq!(usize::from(slot_of(b"zzzz").0) + 1, NUM_SLOTS);
    }

    #[test]
    fn every_slot_that_cuts_off_letters_is_that_of_what_it_cuts_off() {
        for slot in 1..NUM_SLOTS as u16 {
            let mut term = prefix_of(slot);
            if term.len() == 3 {
                term.push(b'x');
            }
            assert_eq!(slot_of(&term), (slot, prefix_of(slot).len()));
        }
    }

    proptest! {
        #[test]
        fn in_a_group_the_order_of_slots_is_that_of_terms(a in "[a-c0-9é]{1,5}", b in "[a-c0-9é]{1,5}") {
            let (slot_a, slot_b) = (slot_of(a.as_bytes()).0, slot_of(b.as_bytes()).0);
            let group = |slot| sorted_groups().iter().position(|group| group.contains(&slot));
            if group(slot_a) == group(slot_b) && slot_a != slot_b {
                prop_assert_eq!(slot_a < slot_b, a < b);
            }
        }
    }
}
