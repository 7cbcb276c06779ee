//! Wei and JaJa, section III.B: the worth of the caches of four bytes in the nodes.
//!
//! "It is highly likely that the necessary comparison between two term strings can be done with only these four bytes". All tokens are
//! looked up in the trees of their collection: with caches, and by the strings behind the keys' pointers, as nodes without caches need.
//! Both find the keys of a node by bisection.

use std::cmp::Ordering;
use std::hint::black_box;

use super::bench::Bench;
use super::tokens::{Parsed, SerialIndexer, Tokens, ns_per_token};
use crate::wei::trie::dictionary::Dictionary;
use crate::wei::trie::node::{Node, cache_of};
use crate::wei::trie::slots::slot_of;
use crate::wei::trie::stream::first_string;
use crate::{Context, ExperimentError, Findings, Result};

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::new(context, findings)?;
    let tokens = Parsed::of(&bench)?.tokens;
    let mut indexer = SerialIndexer::default();
    tokens.for_each(|doc, term| {
        let (slot, cut) = slot_of(term);
        indexer.add(slot, &term[cut..], doc);
    });
    let dictionary = indexer.into_dictionary();
    let (mut counts, mut not_needed) = (Counts::default(), Counts::default());
    let cached =
        look_up(&dictionary, &tokens, |node, place, bytes| by_cache(&dictionary, node, place, bytes, &mut counts));
    let plain = look_up(&dictionary, &tokens, |node, place, bytes| by_string(&dictionary, node, place, bytes));
    if cached != plain {
        return Err(ExperimentError::Wrong(String::from("both searches find different terms")));
    }
    let time = |compare: &mut dyn FnMut(&Node, usize, &[u8]) -> Ordering| {
        ns_per_token(tokens.len(), || drop(black_box(look_up(&dictionary, &tokens, &mut *compare))))
    };
    let with_ns = time(&mut |node, place, bytes| by_cache(&dictionary, node, place, bytes, &mut not_needed));
    let without_ns = time(&mut |node, place, bytes| by_string(&dictionary, node, place, bytes));
    findings.add("caches: a look-up", "ns", with_ns);
    findings.add("no caches: a look-up", "ns", without_ns);
    findings.add("caches: gain", "x", without_ns / with_ns);
    findings.add(
        "comparisons decided by a cache",
        "%",
        100.0 * (1.0 - counts.strings as f64 / counts.all.max(1) as f64),
    );
    Ok(())
}

/// Comparisons of a term with a key, and those that needed the string behind the cache.
#[derive(Debug, Default)]
struct Counts {
    all: u64,
    strings: u64,
}

/// Returns the numbers of the terms of all tokens, found with `compare` of the key at a place of a node and bytes.
fn look_up(
    dictionary: &Dictionary,
    tokens: &Tokens,
    mut compare: impl FnMut(&Node, usize, &[u8]) -> Ordering,
) -> Vec<u32> {
    let mut found = Vec::with_capacity(tokens.len());
    tokens.for_each(|_, term| {
        let (slot, cut) = slot_of(term);
        let bytes = &term[cut..];
        let mut node = &dictionary.nodes[dictionary.roots[usize::from(slot)] as usize];
        loop {
            let (mut low, mut high) = (0, node.len as usize);
            let mut key = None;
            while low < high && key.is_none() {
                let middle = usize::midpoint(low, high);
                match compare(node, middle, bytes) {
                    Ordering::Less => low = middle + 1,
                    Ordering::Equal => key = Some(node.terms[middle]),
                    Ordering::Greater => high = middle,
                }
            }
            if let Some(key) = key {
                return found.push(key);
            }
            node = &dictionary.nodes[node.children[low] as usize];
        }
    });
    found
}

/// Compares the key at `place` with bytes by its cache, and by its string if both begin with the same four bytes.
fn by_cache(dictionary: &Dictionary, node: &Node, place: usize, bytes: &[u8], counts: &mut Counts) -> Ordering {
    let (cache, rest) = cache_of(bytes);
    counts.all += 1;
    node.caches[place].cmp(&cache).then_with(|| {
        if node.rests[place] == 0 {
            return [].as_slice().cmp(rest);
        }
        counts.strings += 1;
        first_string(&dictionary.strings[node.rests[place] as usize..]).cmp(rest)
    })
}

/// Compares the key at `place` with bytes by its string, which is read through the term's number.
fn by_string(dictionary: &Dictionary, node: &Node, place: usize, bytes: &[u8]) -> Ordering {
    let (cache, rest) = cache_of(bytes);
    let term = &dictionary.terms[node.terms[place] as usize];
    let rest_of_key = || if term.rest == 0 { &[][..] } else { first_string(&dictionary.strings[term.rest as usize..]) };
    term.cache.cmp(&cache).then_with(|| rest_of_key().cmp(rest))
}
