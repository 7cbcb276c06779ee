//! Ding et al., section 8.1: blocks that AND decodes, step by step and document at a time.
//!
//! "The number of blocks that can be skipped under this method is in fact the same as the number of blocks skipped under a
//! variant of DAAT query processing in which forward seeks are used in all lists except for the shortest one". Both are
//! counted here: the first on skips of decoded lists, the second by cursors over coded lists. A third row leaps in all lists,
//! as the CPU side of table 2 does. The blocks of the shortest list, which is decoded whole, are left out.

use tandem_engine::index::Index;
use tandem_engine::query::{Query, QueryTerm};
use tandem_model::base::ids::DocId;

use crate::codec::{Codec, Pfor};
use crate::context::terms_of;
use crate::ding::daat::cursor::{Advance, Cursor};
use crate::ding::daat::lists::CodedLists;
use crate::{Context, Findings, Input, Result};

const DOCS: u32 = 1_000_000;
const QUERIES: usize = 200;
const REAL_QUERIES: usize = 5000;

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    context.on_both((DOCS, QUERIES), REAL_QUERIES, findings, |input, _, findings| count_on(input, findings))
}

/// Adds the means over queries of several terms.
fn count_on(input: &Input, findings: &mut Findings) -> Result<()> {
    let queries: Vec<&Query> = input.queries.iter().filter(|query| query.terms.len() > 1).collect();
    findings.add("queries", "", queries.len() as f64);
    let codecs: [(usize, Box<dyn Codec>); 2] = [(128, Box::new(Pfor::<128>)), (512, Box::new(Pfor::<512>))];
    for (block_len, codec) in codecs {
        let lists = CodedLists::encode(&input.index, &terms_of(&input.queries), codec, 0..input.index.num_docs())?;
        let (mut steps, mut one_by_one, mut leaping, mut all) = (0, 0, 0, 0);
        for query in &queries {
            let (decoded, blocks) = step_by_step(&input.index, &query.terms, block_len);
            (steps, all) = (steps + decoded, all + blocks);
            one_by_one += document_at_a_time(&lists, &query.terms, false);
            leaping += document_at_a_time(&lists, &query.terms, true);
        }
        let mean = |blocks: usize| blocks as f64 / queries.len().max(1) as f64;
        let ways = [("step by step", steps), ("document at a time", one_by_one), ("leaping in all lists", leaping)];
        for (way, blocks) in ways {
            findings.add(format!("{way}, blocks of {block_len}: decoded"), "blocks a query", mean(blocks));
            let share = 100.0 * blocks as f64 / all.max(1) as f64;
            findings.add(format!("{way}, blocks of {block_len}: decoded, of all"), "%", share);
        }
    }
    Ok(())
}

/// Returns the blocks of the longer lists that candidates fall into, list after list, and all blocks of these lists.
fn step_by_step(index: &Index, terms: &[QueryTerm], block_len: usize) -> (usize, usize) {
    let mut candidates = index.list(terms[0].term).docs();
    let (mut decoded, mut all) = (0, 0);
    for term in &terms[1..] {
        let docs = index.list(term.term).docs();
        let lasts: Vec<u32> = docs.chunks(block_len).map(|block| block[block.len() - 1]).collect();
        let mut blocks: Vec<usize> = candidates.iter().map(|doc| lasts.partition_point(|last| last < doc)).collect();
        blocks.dedup();
        decoded += blocks.iter().filter(|&&block| block < lasts.len()).count();
        all += lasts.len();
        candidates.retain(|doc| docs.binary_search(doc).is_ok());
    }
    (decoded, all)
}

/// Returns the blocks of the longer lists that forward seeks decode. Documents of the shortest list are taken one at a time, or leaped over.
fn document_at_a_time(lists: &CodedLists, terms: &[QueryTerm], is_leaping: bool) -> usize {
    let mut cursors: Vec<Cursor<'_>> = terms.iter().map(|term| lists.cursor(term.term)).collect();
    let Some((shortest, others)) = cursors.split_first_mut() else { return 0 };
    let mut target = 0;
    loop {
        let doc = shortest.seek(target, Advance::BySkips);
        if doc == DocId::END.0 {
            return others.iter().map(|cursor| cursor.decoded()).sum();
        }
        let beyond = others.iter_mut().map(|cursor| cursor.seek(doc, Advance::BySkips)).find(|&found| found > doc);
        target = if is_leaping { beyond.unwrap_or(doc + 1) } else { doc + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{coded, query_of};

    #[test]
    fn both_ways_decode_the_blocks_of_common_candidates() {
        // The second list ends before the last document; the third is asked for the one document that the first two share.
        let lists = [vec![1, 500, 1999], (0..1000).map(|doc| 2 * doc).collect(), (0..2000).collect::<Vec<u32>>()];
        let named = lists
            .iter()
            .enumerate()
            .map(|(term, docs)| (format!("t{term:04}"), docs.iter().map(|&doc| (doc, 1)).collect::<Vec<_>>()));
        let index = Index::from_lists(&named.collect::<Vec<_>>()).unwrap();
        let terms = query_of(&index, 0..3).terms;
        assert_eq!(step_by_step(&index, &terms, 128), (2 + 1, 8 + 16));
        let lists = coded(&index, Box::new(Pfor::<128>), 0..2000);
        // Skips name the first documents of blocks, so that only the last block shows that no document follows.
        assert_eq!(document_at_a_time(&lists, &terms, false), 3 + 1);
        assert!(document_at_a_time(&lists, &terms, true) <= 3 + 1);
    }
}
