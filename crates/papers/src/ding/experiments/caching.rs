//! Ding et al., section 5: how much of a log's lists a cache of a part of them serves.
//!
//! "90% or more" of the bytes come from main memory "as long as about 20% or more of the index data can be kept", and
//! "around 50% to 80%" from a GPU's. The first half of the queries fills the cache, and the second half counts. The paper does
//! not name its eviction policy; this one evicts the list with the fewest requests, of which old ones count less.

use std::collections::BTreeSet;

use tandem_engine::query::Query;

use crate::codec::PForDelta;
use crate::context::terms_of;
use crate::ding::gpu::lists::HostLists;
use crate::findings::{Chart, Curve};
use crate::{Findings, Input, Result};

/// Cache sizes in percent of the bytes of all lists that the stream names.
const SIZES: [u32; 20] = [5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100];
/// Cache sizes with rows.
const TOLD: [u32; 6] = [10, 20, 40, 60, 80, 100];
/// Hits in GPU memory: "around 50% to 80%". The paper does not say whether of requests or of bytes.
const PAPERS_HITS: [f64; 2] = [50.0, 80.0];
/// Main memory: "90% or more are obtained as long as about 20% or more of the index data can be kept".
const PAPERS_MAIN_MEMORY: (u32, f64) = (20, 90.0);
/// Requests after which older ones count half, those of a few thousand queries.
const HALF_LIFE: f64 = 10_000.0;

/// Counts the hits of an input's lists. `stem` begins the name of the chart.
pub(crate) fn measure(input: &Input, (section, stem): (&str, &str), findings: &mut Findings) -> Result<()> {
    findings.section(section);
    let queries = &input.queries;
    let lists = HostLists::encode(&input.index, &terms_of(queries), input.index.built_with(), PForDelta::new(1))?;
    let (warm_up, counted) = queries.split_at(queries.len() / 2);
    let largest = queries.iter().map(|query| lists.bytes_of(query)).max().unwrap_or(0);
    findings.add("queries that count", "", counted.len() as f64);
    findings.add("their lists and those before, compressed", "MB", lists.bytes() as f64 / 1e6);
    findings.add("lists of the largest query", "% of these", 100.0 * largest as f64 / lists.bytes() as f64);

    let mut hits: Vec<(u32, [f64; 2])> = Vec::new();
    for percent in SIZES {
        let budget = lists.bytes() * u64::from(percent) / 100;
        if budget < largest {
            continue;
        }
        let requests = requests_of(&lists, budget, warm_up, counted);
        let shares = [requests.hit_percent(), requests.byte_hit_percent()];
        if TOLD.contains(&percent) {
            let name = format!("cache of {percent} %");
            findings.add(format!("{name}: requests that hit"), "%", shares[0]);
            let (papers_percent, papers_hits) = PAPERS_MAIN_MEMORY;
            let papers = (percent == papers_percent).then_some(papers_hits);
            findings.compare(format!("{name}: bytes that hit"), "%", papers, shares[1]);
            let moved_mb = requests.moved_bytes as f64 / 1e6 / counted.len().max(1) as f64;
            findings.add(format!("{name}: moved a query"), "MB", moved_mb);
        }
        hits.push((percent, shares));
    }
    let whats = ["requests", "bytes"];
    for wanted in PAPERS_HITS {
        for (number, what) in whats.into_iter().enumerate() {
            let enough = hits.iter().find(|(_, shares)| shares[number] >= wanted);
            let percent = enough.map(|&(percent, _)| f64::from(percent));
            findings.add(format!("smallest cache that {wanted} % of {what} hit"), "% of the lists", percent);
        }
    }
    let ours = whats.into_iter().enumerate().map(|(number, what)| {
        let points = hits.iter().map(|(percent, shares)| (f64::from(*percent), shares[number]));
        Curve::ours(what, number, points.collect())
    });
    let papers = PAPERS_HITS.map(|hits| Curve::papers(format!("{hits} %"), 2, vec![(0.0, hits), (100.0, hits)]));
    let title = format!("Hits with {section} (Ding et al., section 5)");
    let labels = ["size of the cache (% of the lists)", "hits (%)"];
    findings.chart(Chart::new(format!("{stem}-hits"), title, labels, ours.chain(papers)));
    findings.section("");
    Ok(())
}

/// Requests of a stream of queries to a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Requests {
    lists: usize,
    hits: usize,
    bytes: u64,
    moved_bytes: u64,
}

impl Requests {
    fn hit_percent(&self) -> f64 {
        100.0 * self.hits as f64 / self.lists.max(1) as f64
    }

    fn byte_hit_percent(&self) -> f64 {
        100.0 * (1.0 - self.moved_bytes as f64 / self.bytes.max(1) as f64)
    }
}

/// Counts the requests of `queries` to a cache of `budget` bytes, which holds the lists of any of them; those of `warm_up` go
/// first and do not count.
fn requests_of(lists: &HostLists, budget: u64, warm_up: &[Query], queries: &[Query]) -> Requests {
    let growth = 0.5_f64.powf(-1.0 / HALF_LIFE);
    // Requests for each list, weighted by the growth at their time, and the held lists by these. The bits of non-negative floats
    // order as their values do.
    let (mut saved, mut weight) = (vec![0.0_f64; lists.len()], 1.0);
    let mut held: BTreeSet<(u64, u32, u64)> = BTreeSet::new();
    let (mut used, mut requests) = (0, Requests::default());
    for (number, query) in warm_up.iter().chain(queries).enumerate() {
        if number == warm_up.len() {
            requests = Requests::default();
        }
        let named: Vec<(u32, u64)> =
            query.terms.iter().map(|term| lists.list(term.term)).map(|list| (list.number, list.bytes())).collect();
        let mut missing = Vec::new();
        for &(list, bytes) in &named {
            weight *= growth;
            let count = &mut saved[list as usize];
            let is_hit = held.remove(&(count.to_bits(), list, bytes));
            *count += weight;
            requests.lists += 1;
            requests.bytes += bytes;
            if is_hit {
                held.insert((count.to_bits(), list, bytes));
                requests.hits += 1;
            } else {
                requests.moved_bytes += bytes;
                missing.push((count.to_bits(), list, bytes));
            }
        }
        used += missing.iter().map(|(.., bytes)| bytes).sum::<u64>();
        while used > budget {
            let is_named = |list: u32| named.iter().any(|&(of_query, _)| of_query == list);
            let Some(&victim) = held.iter().find(|(_, list, _)| !is_named(*list)) else { break };
            held.remove(&victim);
            used -= victim.2;
        }
        held.extend(missing);
    }
    requests
}

#[cfg(test)]
mod tests {
    use tandem_engine::index::Bm25;
    use tandem_model::base::ids::QueryId;
    use tandem_model::base::random::Random;

    use super::*;
    use crate::test_support::bursty_index;

    #[test]
    fn a_larger_cache_moves_less_and_a_whole_one_each_list_once() {
        let mut random = Random::new(5, 0);
        let (index, terms) = bursty_index(&mut random);
        let lists = HostLists::encode(&index, &terms, Bm25::default(), PForDelta::new(1)).unwrap();
        let mut term = || {
            let most = random.below(terms.len() as u32);
            format!("t{}", random.below(1 + most))
        };
        let query = |number: u32| {
            let names: Vec<String> = (0..1 + number % 4).map(|_| term()).collect();
            Query::prepare(QueryId(number), "q", &names, &index).unwrap()
        };
        let queries: Vec<Query> = (0..400).map(query).collect();
        let largest = queries.iter().map(|query| lists.bytes_of(query)).max().unwrap();
        let named: usize = queries.iter().map(|query| query.terms.len()).sum();
        let mut before = u64::MAX;
        for budget in [largest, (largest + lists.bytes()) / 2, lists.bytes()] {
            let requests = requests_of(&lists, budget, &[], &queries);
            assert_eq!(requests.lists, named);
            assert!(requests.moved_bytes <= before, "{requests:?}");
            before = requests.moved_bytes;
        }
        let whole = requests_of(&lists, lists.bytes(), &[], &queries);
        assert_eq!(whole.lists - whole.hits, terms_of(&queries).len());
        let again = requests_of(&lists, lists.bytes(), &queries, &queries);
        assert_eq!((again.hits, again.moved_bytes), (named, 0));
    }
}
