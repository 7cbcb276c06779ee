//! The pages of an index, as far as some queries read them: what a simulation needs to know of where lists lie.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Demands;
use crate::cache::{ListPages, ListRead, Pages, ReadRates, expected_reads};
use crate::cost::{TierError, Workload, WorkloadRow};
use crate::exec::{DeviceRows, block_reads, learned_reads, read_rates};
use crate::files::Provenance;
use crate::ids::TermId;
use crate::index::{BLOCK_LEN, Index};
use crate::query::Query;

/// The pages of an index in a GPU's memory, as far as queries read them: lists in the order in which they lie. Those that nobody reads
/// are counted, no more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexPages {
    /// The comment lines of its file: the index, the logs.
    pub provenance: Provenance,
    /// What all lists have in common.
    pub layout: PageLayout,
    /// What is read of lists, by their length.
    pub rates: ReadRates,
    /// The lists, the one first whose pages are.
    pub lists: Vec<ListOfPages>,
}

/// Pages as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageLayout {
    /// All pages of the index.
    pub num_pages: u32,
    /// Rows of 16 bytes of each.
    pub page_rows: u32,
    /// Bytes of all blocks' headers, which lie in GPU memory twice where pages follow the queries.
    pub headers_bytes: u64,
}

/// One list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListOfPages {
    /// Its length.
    pub postings: u32,
    /// How often the log that pages were ordered by reads each of its blocks.
    pub reads: f32,
    /// Where it lies.
    pub pages: ListPages,
    /// The queries that name it: their numbers in their log, ascending.
    pub queries: Vec<u32>,
}

impl IndexPages {
    /// Of an index, for the queries of a log; pages are ordered by what `learned` tells of reads.
    #[must_use]
    pub fn of(index: &Arc<Index>, queries: &[Query], learned: &[Query], page_rows: u32) -> Self {
        let rows = DeviceRows::new(index);
        let rates = read_rates(index, learned);
        let order = learned_reads(learned, &rates).order(&rows.list_sizes(index));
        let pages = rows.pages(index, &order, page_rows);
        let mut named: HashMap<u32, BTreeSet<u32>> = HashMap::new();
        for query in queries {
            for term in &query.terms {
                named.entry(term.term.0).or_default().insert(query.id.0);
            }
        }
        let reads: HashMap<u32, f32> = block_reads(learned, &rates).iter().collect();
        let lie = pages.of_each_list(index.num_terms() as usize);
        let of_list = |list: u32| {
            let queries = named.remove(&list);
            if queries.is_none() && !reads.contains_key(&list) {
                return None;
            }
            Some(ListOfPages {
                postings: index.list(TermId(list)).doc_freq(),
                reads: reads.get(&list).copied().unwrap_or(0.0),
                pages: lie[list as usize].clone(),
                queries: queries.into_iter().flatten().collect(),
            })
        };
        let lists = order.into_iter().filter_map(of_list).collect();
        Self {
            provenance: Provenance::new().with("index", format!("{:016x}", index.fingerprint())),
            lists,
            layout: PageLayout { num_pages: pages.num_pages(), page_rows, headers_bytes: rows.headers_bytes() },
            rates,
        }
    }

    /// The pages, with lists numbered by their place here.
    #[must_use]
    pub fn pages(&self) -> Pages {
        let PageLayout { num_pages, page_rows, .. } = self.layout;
        Pages::of_lists(num_pages, page_rows, self.lists.iter().map(|list| &list.pages))
    }

    /// What the rows of a workload read.
    ///
    /// # Errors
    /// If these are pages of another index, or the lists of a row's query are not all known.
    pub fn demands(&self, workload: &Workload) -> Result<Demands, TierError> {
        let of_workload = workload.provenance.get("index").unwrap_or("unknown");
        let of_pages = self.provenance.get("index").unwrap_or("unknown");
        if of_workload != of_pages {
            return Err(TierError::PagesOfAnotherIndex {
                pages: of_pages.to_owned(),
                workload: of_workload.to_owned(),
            });
        }
        let mut lists: HashMap<u32, Vec<(u32, u32)>> = HashMap::new();
        for (number, list) in (0..).zip(&self.lists) {
            list.queries.iter().for_each(|&id| lists.entry(id).or_default().push((number, list.postings)));
        }
        let reads = |row: &WorkloadRow| {
            let of_row = lists.get(&row.log_id).map_or(&[][..], Vec::as_slice);
            let postings: u64 = of_row.iter().map(|&(_, postings)| u64::from(postings)).sum();
            if of_row.len() != row.features.terms as usize || postings != row.features.postings {
                return Err(TierError::PagesOfOtherQueries { query: row.query_id, log_id: row.log_id });
            }
            Ok(expected_reads(of_row.iter().copied(), BLOCK_LEN as u32, &self.rates).collect::<Vec<ListRead>>())
        };
        Ok(Demands::new(workload.rows.iter().map(reads).collect::<Result<Vec<_>, _>>()?))
    }
}
