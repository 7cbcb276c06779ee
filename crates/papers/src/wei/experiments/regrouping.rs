//! Wei and JaJa, section III.C: gain and cost of regrouping terms by slot, for one CPU thread.
//!
//! "The overhead of this regrouping step is relatively small, about 5% of the total running time of the whole parser", and "even in the
//! case when indexing is carried out by a serial CPU thread, regrouping results in approximately 15-fold speedup". Three serial indexers
//! insert the same tokens: slot after slot, in the order of the text, and into one tree without slots.

use super::bench::Bench;
use super::tokens::{Parsed, SerialIndexer, Tokens, ns_per_token};
use crate::wei::trie::buffer::Buffer;
use crate::wei::trie::slots::{NUM_SLOTS, slot_of};
use crate::wei::trie::stream::Item;
use crate::{Context, Findings, Result};

/// Part of the documents for which the gain is measured as well, because it depends on the size of the dictionary.
const PART: u32 = 10;

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::new(context, findings)?;
    let Parsed { buffer, tokens, seconds: [regrouping_s, plain_s] } = Parsed::of(&bench)?;
    let [regrouped_ns, in_order_ns] = times(&buffer, &tokens, tokens.num_docs());
    let [regrouped_part_ns, in_order_part_ns] = times(&buffer, &tokens, tokens.num_docs() / PART);
    let one_tree_ns = ns_per_token(tokens.len(), || {
        let mut indexer = SerialIndexer::default();
        tokens.for_each(|doc, term| indexer.add(0, term, doc));
    });
    findings.add("regrouped: indexing", "ns a token", regrouped_ns);
    findings.add("not regrouped: indexing", "ns a token", in_order_ns);
    findings.add("one tree: indexing", "ns a token", one_tree_ns);
    findings.compare("regrouping: gain", "x", 15.0, in_order_ns / regrouped_ns);
    findings.add("regrouping: gain, a tenth of the documents", "x", in_order_part_ns / regrouped_part_ns);
    findings.add("one tree: gain of slots", "x", one_tree_ns / in_order_ns);
    let share = 100.0 * (regrouping_s - plain_s) / regrouping_s;
    findings.compare("regrouping: share of parsing", "%", 5.0, share);
    Ok(())
}

/// Returns nanoseconds per token of the first documents: slot after slot, and in the order of the text.
fn times(buffer: &Buffer, tokens: &Tokens, num_docs: u32) -> [f64; 2] {
    let mut count = 0;
    tokens.for_each(|doc, _| count += usize::from(doc < num_docs));
    let regrouped_ns = ns_per_token(count, || {
        let mut indexer = SerialIndexer::default();
        for slot in 0..NUM_SLOTS as u16 {
            let mut doc = 0;
            for item in buffer.stream(slot).items() {
                match item {
                    Item::Document(next) if next >= num_docs => break,
                    Item::Document(next) => doc = next,
                    Item::Term(bytes) => indexer.add(slot, bytes, doc),
                }
            }
        }
    });
    let in_order_ns = ns_per_token(count, || {
        let mut indexer = SerialIndexer::default();
        tokens.for_each(|doc, term| {
            if doc < num_docs {
                let (slot, cut) = slot_of(term);
                indexer.add(slot, &term[cut..], doc);
            }
        });
    });
    [regrouped_ns, in_order_ns]
}
