//! Huang et al., section 5: a dynamic cache of lists for distribution by length, counted without a GPU.
//!
//! "The GPU list cache policy could be optimized for the LBD method, e.g., by designing a dynamic caching algorithm". The paper caches all
//! lists of more than one block, which take all of its memory. Here a memory holds a share of the lists of the log. Static, the longest
//! lists stay; another static cache has the lists that the first half of the log moves most; the dynamic one replaces the least recently
//! used list. The second half of the log counts.

use std::collections::{BTreeMap, HashMap};

use super::cooperation::LBD_BLOCKS;
use crate::context::GOV2_DOCS;
use crate::findings::{Chart, Curve};
use crate::huang::ranges::index::num_blocks;
use crate::wang::cache::dynamic::{DynamicCache, Replayed};
use crate::wang::cache::sizes::Sizes;
use crate::{Context, Findings, Result};
use tandem_core::base::ids::TermId;
use tandem_core::query::Query;

const DOCS: u32 = 500_000;
const QUERIES: usize = 20_000;
const PERCENTS: [u32; 5] = [5, 10, 20, 40, 80];

/// Lists with two bytes per posting: about the size of documents and frequencies in `NewPFD`.
#[derive(Debug)]
struct Lists {
    lens: Vec<u32>,
}

impl Sizes for Lists {
    fn num_lists(&self) -> usize {
        self.lens.len()
    }

    fn len(&self, list: u32) -> u32 {
        self.lens[list as usize]
    }

    fn bytes(&self, _: u32, postings: u32) -> u64 {
        2 * u64::from(postings)
    }
}

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let input = context.input(DOCS, QUERIES, findings)?;
    let mut numbers: HashMap<TermId, u32> = HashMap::new();
    let mut lists = Lists { lens: Vec::new() };
    for term in input.queries.iter().flat_map(|query| &query.terms) {
        numbers.entry(term.term).or_insert_with(|| {
            lists.lens.push(term.doc_freq);
            lists.lens.len() as u32 - 1
        });
    }
    // The paper's threshold, scaled from its collection to this one.
    let scaled = LBD_BLOCKS as f64 * f64::from(input.index.num_docs()) / f64::from(GOV2_DOCS);
    let named = |queries: &[Query], most: f64| -> Vec<u32> {
        let to_gpu = queries.iter().filter(|query| (num_blocks(query) as f64) < most);
        to_gpu.flat_map(|query| &query.terms).map(|term| numbers[&term.term]).collect()
    };
    let (first, second) = input.queries.split_at(input.queries.len() / 2);
    let (warm_up, counted) = (named(first, scaled), named(second, scaled));
    let everything = (named(first, f64::INFINITY), named(second, f64::INFINITY));
    let mut moved = vec![0; lists.num_lists()];
    warm_up.iter().for_each(|&list| moved[list as usize] += lists.whole_bytes(list));
    let most_moved = order_by(&lists, |list| moved[list as usize]);
    let longest = order_by(&lists, |list| lists.whole_bytes(list));
    let mut curves: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for percent in PERCENTS {
        let budget = lists.all_bytes() * u64::from(percent) / 100;
        let found = [
            ("static", fixed(&lists, &longest, budget, &counted)),
            ("most needed", fixed(&lists, &most_moved, budget, &counted)),
            ("dynamic", dynamic(&lists, budget, &warm_up, &counted)),
            ("all queries, dynamic", dynamic(&lists, budget, &everything.0, &everything.1)),
        ];
        for (name, counts) in found {
            let mb = counts.moved_bytes as f64 / 1e6;
            let hits = 100.0 * counts.hits as f64 / counts.requests.max(1) as f64;
            findings.add(format!("{name}, cache {percent} %: hits"), "%", hits);
            findings.add(format!("{name}, cache {percent} %: moved"), "MB", mb);
            curves.entry(name).or_default().push((f64::from(percent), mb));
        }
    }
    let curves = curves.into_iter().enumerate().map(|(colour, (name, points))| Curve::ours(name, colour, points));
    let title = "Lists moved for LBD, static and dynamic (Huang et al., section 5)";
    findings.chart(Chart::new("moved", title, ["cache (% of the lists)", "MB"], curves));
    findings.note(format!(
        "Queries of fewer than {scaled:.0} blocks go to the GPU: the paper's {LBD_BLOCKS} in a collection of this size. Most needed: \
         bytes that the first half of the log would move."
    ));
    Ok(())
}

/// All lists, the greatest value first.
fn order_by(lists: &Lists, value: impl Fn(u32) -> u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..lists.num_lists() as u32).collect();
    order.sort_by_cached_key(|&list| std::cmp::Reverse(value(list)));
    order
}

/// Counts requests to a cache that holds the first lists of an order that fit.
fn fixed(lists: &Lists, order: &[u32], budget_bytes: u64, requests: &[u32]) -> Replayed {
    let (mut is_held, mut bytes) = (vec![false; lists.num_lists()], 0);
    for &list in order {
        let size = lists.whole_bytes(list);
        if bytes + size <= budget_bytes {
            bytes += size;
            is_held[list as usize] = true;
        }
    }
    let mut counts = Replayed { requests: requests.len() as u64, ..Replayed::default() };
    for &list in requests {
        counts.hits += u64::from(is_held[list as usize]);
        counts.moved_bytes += if is_held[list as usize] { 0 } else { lists.whole_bytes(list) };
    }
    counts
}

fn dynamic(lists: &Lists, budget_bytes: u64, warm_up: &[u32], requests: &[u32]) -> Replayed {
    let mut cache = DynamicCache::new(lists, budget_bytes, 0, u32::MAX);
    let mut counts = Replayed::default();
    warm_up.iter().for_each(|&list| cache.read(list, 1, &mut counts));
    counts = Replayed::default();
    requests.iter().for_each(|&list| cache.read(list, 1, &mut counts));
    counts
}
