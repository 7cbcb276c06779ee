//! Wei and JaJa, section III.B: the height of the trie.
//!
//! "The height of three for the trie seems to work best": a smaller height makes collections of very different sizes, a larger one many
//! small collections. One thread indexes regrouped terms under heights of one to four. Numbers, short terms and others have the slots of
//! the paper at every height.

use std::collections::BTreeMap;

use super::bench::Bench;
use super::tokens::{Parsed, SerialIndexer, Tokens, ns_per_token};
use crate::wei::trie::slots::{NUM_SLOTS, slot_of};
use crate::{Context, Findings, Result};

const HEIGHTS: [usize; 4] = [1, 2, 3, 4];
/// Slots of a dictionary; taller tries take several dictionaries.
const SLOTS: u32 = NUM_SLOTS as u32;

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::new(context, findings)?;
    let tokens = Parsed::of(&bench)?.tokens;
    for height in HEIGHTS {
        let slots = regrouped(&tokens, height);
        let ns = ns_per_token(tokens.len(), || {
            let mut indexers: BTreeMap<u32, SerialIndexer> = BTreeMap::new();
            for (&slot, tokens) in &slots {
                let indexer = indexers.entry(slot / SLOTS).or_default();
                tokens.for_each(|doc, bytes| indexer.add((slot % SLOTS) as u16, bytes, doc));
            }
        });
        let largest = slots.values().map(Tokens::len).max().unwrap_or(0);
        findings.add(format!("height {height}: indexing"), "ns a token", ns);
        findings.add(format!("height {height}: slots with terms"), "", slots.len() as f64);
        let share = 100.0 * largest as f64 / tokens.len().max(1) as f64;
        findings.add(format!("height {height}: tokens of the largest"), "%", share);
    }
    Ok(())
}

/// The tokens of each slot of a trie of this height, without the letters that the slot implies.
fn regrouped(tokens: &Tokens, height: usize) -> BTreeMap<u32, Tokens> {
    let mut slots: BTreeMap<u32, Tokens> = BTreeMap::new();
    tokens.for_each(|doc, term| {
        let (slot, cut) = slot_at(term, height);
        slots.entry(slot).or_default().push(doc, &term[cut..]);
    });
    slots
}

/// Returns the slot of a term and the number of its bytes that the slot implies. Terms of more than `height` letters have a slot behind
/// the paper's for their first letters.
fn slot_at(term: &[u8], height: usize) -> (u32, usize) {
    let letters = term.iter().take(height).filter(|byte| byte.is_ascii_lowercase()).count();
    if letters < height || term.len() == height {
        // The paper's slot of a long term would imply three letters.
        let (slot, cut) = slot_of(if term.len() == height { &term[..height.min(3)] } else { term });
        return (u32::from(slot), cut);
    }
    let number = term[..height].iter().fold(0, |number, &letter| 26 * number + u32::from(letter - b'a'));
    (SLOTS + number, height)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_imply_the_letters_of_their_height() {
        assert_eq!(slot_at(b"aaab", 3), (SLOTS, 3));
        assert_eq!(slot_at(b"ab", 1), (SLOTS, 1));
        assert_eq!(slot_at(b"zzzzy", 4), (SLOTS + 26_u32.pow(4) - 1, 4));
        // Short terms and numbers are where the paper has them.
        assert_eq!(slot_at(b"abc", 3), (11, 1));
        assert_eq!(slot_at(b"abcd", 4), (11, 1));
        assert_eq!(slot_at(b"0195", 2), (1, 1));
    }
}
