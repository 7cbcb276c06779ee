//! Part of the dictionary: the B-trees of one indexer's slots, their strings, and the terms by number.
//!
//! ```text
//! slot ──▶ root ──▶ nodes of 512 bytes ──▶ strings: what a node's cache does not hold
//!                          └─────────────▶ term's number: its postings, in every run
//! ```
//!
//! Full nodes are split on the way down even if nothing is inserted below, so that a tree is traversed once. The
//! kernels in `kernels/wei` take the same steps; if slots are indexed in the same order, the arrays are equal.

use std::cmp::Ordering;

use bytemuck::{Pod, Zeroable};

use super::node::{Key, Node, cache_of};
use super::slots::{NUM_SLOTS, prefix_of};
use super::stream::{first_string, push_string};

/// Root of a slot without terms.
pub(crate) const NO_NODE: u32 = u32::MAX;
/// First place of a string; place 0 stands for the empty string.
pub(crate) const FIRST_STRING: usize = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Term {
    pub(crate) slot: u32,
    /// First bytes behind those of the slot.
    pub(crate) cache: u32,
    /// Place of the remaining bytes.
    pub(crate) rest: u32,
}

/// Trees by slot.
#[derive(Clone, Debug)]
pub(crate) struct Dictionary {
    pub(crate) roots: Vec<u32>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) strings: Vec<u8>,
    pub(crate) terms: Vec<Term>,
}

impl Default for Dictionary {
    fn default() -> Self {
        Self { roots: vec![NO_NODE; NUM_SLOTS], nodes: Vec::new(), strings: vec![0; FIRST_STRING], terms: Vec::new() }
    }
}

/// Place of a string among a node's keys.
enum Found {
    Key(usize),
    /// This number of keys is below the string.
    Below(usize),
}

impl Dictionary {
    /// Returns the number of the term with `bytes` behind the slot's; a new term gets the next number.
    #[inline]
    pub(crate) fn insert(&mut self, slot: u16, bytes: &[u8]) -> u32 {
        let (cache, rest) = cache_of(bytes);
        let mut at = self.roots[usize::from(slot)];
        if at == NO_NODE {
            at = self.push_node(Node::new(true));
            self.roots[usize::from(slot)] = at;
        } else if self.nodes[at as usize].is_full() {
            let mut root = Node::new(false);
            root.children[0] = at;
            at = self.push_node(root);
            self.roots[usize::from(slot)] = at;
            self.split_child(at, 0);
        }
        loop {
            let node = &self.nodes[at as usize];
            let place = match self.find(node, cache, rest) {
                Found::Key(place) => return node.terms[place],
                Found::Below(place) => place,
            };
            if node.is_leaf != 0 {
                let key = self.push_term(slot, cache, rest);
                self.nodes[at as usize].insert(place, key);
                return key.term;
            }
            let mut child = node.children[place];
            if self.nodes[child as usize].is_full() {
                self.split_child(at, place);
                let node = &self.nodes[at as usize];
                match self.compare(node, place, cache, rest) {
                    Ordering::Equal => return node.terms[place],
                    Ordering::Less => child = node.children[place + 1],
                    Ordering::Greater => {}
                }
            }
            at = child;
        }
    }

    /// Appends the numbers of a slot's terms in byte order of the terms.
    pub(crate) fn append_sorted(&self, slot: u16, numbers: &mut Vec<u32>) {
        let root = self.roots[usize::from(slot)];
        if root != NO_NODE {
            self.append_below(root, numbers);
        }
    }

    pub(crate) fn append_term(&self, number: u32, bytes: &mut Vec<u8>) {
        let term = &self.terms[number as usize];
        bytes.extend_from_slice(&prefix_of(term.slot as u16));
        append_string(term, &self.strings, bytes);
    }

    pub(crate) fn bytes(&self) -> u64 {
        let Self { roots, nodes, strings, terms } = self;
        let bytes = size_of_val(roots.as_slice()) + size_of_val(nodes.as_slice()) + size_of_val(terms.as_slice());
        (bytes + strings.len()) as u64
    }

    /// Returns the bytes of all terms, including those of the slots.
    pub(crate) fn characters(&self) -> u64 {
        let mut bytes = Vec::new();
        let mut all = 0;
        for number in 0..self.terms.len() as u32 {
            bytes.clear();
            self.append_term(number, &mut bytes);
            all += bytes.len() as u64;
        }
        all
    }

    fn append_below(&self, at: u32, numbers: &mut Vec<u32>) {
        let node = &self.nodes[at as usize];
        let len = node.len as usize;
        for place in 0..=len {
            if node.is_leaf == 0 {
                self.append_below(node.children[place], numbers);
            }
            if place < len {
                numbers.push(node.terms[place]);
            }
        }
    }

    fn push_node(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    fn push_term(&mut self, slot: u16, cache: u32, rest: &[u8]) -> Key {
        let at = if rest.is_empty() { 0 } else { self.strings.len() as u32 };
        if at != 0 {
            push_string(&mut self.strings, rest);
        }
        self.terms.push(Term { slot: u32::from(slot), cache, rest: at });
        Key { cache, rest: at, term: self.terms.len() as u32 - 1 }
    }

    /// Splits the full child at `place` of node `at`, which is not full.
    fn split_child(&mut self, at: u32, place: usize) {
        let child = self.nodes[at as usize].children[place];
        let (key, upper) = self.nodes[child as usize].split();
        let upper = self.push_node(upper);
        let node = &mut self.nodes[at as usize];
        node.insert(place, key);
        node.insert_child(place + 1, upper);
    }

    #[inline]
    fn find(&self, node: &Node, cache: u32, rest: &[u8]) -> Found {
        let mut place = node.below(cache);
        while place < node.len as usize && node.caches[place] == cache {
            match self.compare(node, place, cache, rest) {
                Ordering::Less => place += 1,
                Ordering::Equal => return Found::Key(place),
                Ordering::Greater => break,
            }
        }
        Found::Below(place)
    }

    /// Compares the key at `place` with a string.
    #[inline]
    fn compare(&self, node: &Node, place: usize, cache: u32, rest: &[u8]) -> Ordering {
        let rest_of_key = || match node.rests[place] {
            0 => &[][..],
            at => first_string(&self.strings[at as usize..]),
        };
        node.caches[place].cmp(&cache).then_with(|| rest_of_key().cmp(rest))
    }
}

/// Appends the bytes of a term behind those of its slot.
fn append_string(term: &Term, strings: &[u8], bytes: &mut Vec<u8>) {
    let cache = term.cache.to_be_bytes();
    bytes.extend(cache.iter().take_while(|&&byte| byte != 0));
    if term.rest != 0 {
        bytes.extend_from_slice(first_string(&strings[term.rest as usize..]));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::node::{DEGREE, MAX_KEYS};
    use super::super::slots::slot_of;
    use super::*;

    /// Checks the laws of B-trees below a node; returns the height, and the keys in order.
    fn check_below(dictionary: &Dictionary, at: u32, is_root: bool, keys: &mut Vec<Vec<u8>>) -> usize {
        let node = &dictionary.nodes[at as usize];
        let len = node.len as usize;
        assert!(len <= MAX_KEYS && (is_root || len >= DEGREE - 1), "{len} keys");
        assert!(node.caches[len..].iter().all(|&cache| cache == super::super::node::NO_KEY));
        let mut heights = Vec::new();
        for place in 0..=len {
            if node.is_leaf == 0 {
                heights.push(check_below(dictionary, node.children[place], false, keys));
            }
            if place < len {
                let mut bytes = Vec::new();
                dictionary.append_term(node.terms[place], &mut bytes);
                let term = dictionary.terms[node.terms[place] as usize];
                assert_eq!((term.cache, term.rest), (node.caches[place], node.rests[place]));
                keys.push(bytes);
            }
        }
        assert!(heights.windows(2).all(|pair| pair[0] == pair[1]), "leaves of one depth");
        1 + heights.first().copied().unwrap_or(0)
    }

    fn check(terms: &[Vec<u8>]) {
        let mut dictionary = Dictionary::default();
        let mut numbers: BTreeMap<&[u8], u32> = BTreeMap::new();
        for term in terms {
            let (slot, cut) = slot_of(term);
            let next = numbers.len() as u32;
            let expected = *numbers.entry(term).or_insert(next);
            assert_eq!(dictionary.insert(slot, &term[cut..]), expected);
        }
        let mut by_slot: BTreeMap<u16, Vec<(&[u8], u32)>> = BTreeMap::new();
        for (&term, &number) in &numbers {
            by_slot.entry(slot_of(term).0).or_default().push((term, number));
        }
        for (slot, root) in (0..).zip(&dictionary.roots) {
            let expected = by_slot.get(&slot).cloned().unwrap_or_default();
            let (mut keys, mut sorted) = (Vec::new(), Vec::new());
            if *root != NO_NODE {
                let height = check_below(&dictionary, *root, true, &mut keys);
                // A tree of degree t with n keys has at most log_t((n + 1) / 2) levels below its root.
                let most = (((keys.len() + 1) as f64 / 2.0).log(DEGREE as f64) + 1e-9).floor() as usize + 1;
                assert!(height <= most, "{height} levels for {} keys", keys.len());
            }
            dictionary.append_sorted(slot, &mut sorted);
            assert_eq!(keys, expected.iter().map(|(term, _)| term.to_vec()).collect::<Vec<_>>());
            assert_eq!(sorted, expected.iter().map(|&(_, number)| number).collect::<Vec<_>>());
        }
    }

    #[test]
    fn terms_of_all_lengths_are_told_apart() {
        let mut terms: Vec<Vec<u8>> = (0..=300).map(|len| vec![b'a'; len.max(1)]).collect();
        terms.extend((0..300).map(|at| {
            let mut term = vec![b'a'; 300];
            term[at] = b'b';
            term
        }));
        terms.extend(terms.clone());
        check(&terms);
    }

    #[test]
    fn one_slot_may_hold_everything_in_any_order() {
        let ascending: Vec<Vec<u8>> = (0..20_000).map(|number| format!("comp{number:05}").into_bytes()).collect();
        check(&ascending);
        check(&ascending.iter().rev().cloned().collect::<Vec<_>>());
        let step = 7_919;
        check(&(0..20_000).map(|place| ascending[place * step % 20_000].clone()).collect::<Vec<_>>());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn trees_keep_the_laws_of_b_trees(terms in prop::collection::vec("(aaa)?[a-b]{1,7}|[0-9]{1,3}|[a-zé]{1,12}", 0..1500)) {
            check(&terms.into_iter().map(String::into_bytes).collect::<Vec<_>>());
        }
    }
}
