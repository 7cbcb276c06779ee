//! Expected reads of every list, learned from the queries of a log.
//!
//! Counts of rare events mislead: a list with two reads in the log may be popular or lucky, and lists without reads
//! will be read later. The estimate lies between a list's count and the mean of its length class (empirical Bayes;
//! Robbins 1956):
//!
//! ```text
//!   expected = counted + prior · mean of the class          a class spans a quarter of an octave of list lengths
//! ```
//!
//! The best prior is small if queries recur and large if each query uses other lists. Cross-validation between the two
//! halves of the log selects it.

use std::collections::BTreeMap;

/// Length classes per octave.
const CLASSES_AN_OCTAVE: f64 = 4.0;
/// Candidate priors. The last one nearly ignores the counts.
const PRIORS: [f64; 8] = [0.0, 0.25, 1.0, 4.0, 16.0, 64.0, 256.0, 1e6];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListSize {
    pub(crate) postings: u32,
    pub(crate) rows: u64,
}

impl ListSize {
    fn class(self) -> usize {
        (CLASSES_AN_OCTAVE * f64::from(self.postings.max(1)).log2()) as usize
    }
}

/// Reads of each list by the queries of a log, counted separately for each half of the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LearnedReads {
    /// Lists without reads are absent.
    halves: [BTreeMap<u32, f64>; 2],
}

#[derive(Clone, Debug, Default)]
struct Classes {
    lists: Vec<f64>,
    rows: Vec<f64>,
}

impl LearnedReads {
    /// Adds `reads` of a list by query number `query` of the log.
    pub(crate) fn record(&mut self, query: usize, list: u32, reads: f64) {
        *self.halves[query % 2].entry(list).or_insert(0.0) += reads;
    }

    /// Reads by list over the whole log. Lists without reads are absent.
    fn counted(&self) -> BTreeMap<u32, f64> {
        let [mut all, other] = self.halves.clone();
        other.into_iter().for_each(|(list, reads)| *all.entry(list).or_insert(0.0) += reads);
        all
    }

    /// Expected reads per row of each list, relative to other lists.
    pub(crate) fn row_reads(&self, lists: &[ListSize]) -> Vec<f32> {
        let classes = Classes::of(lists);
        let prior = self.best_prior(lists, &classes);
        let counted = self.counted();
        // The prior was chosen for the counts of half a log.
        let means = classes.means(lists, &counted).into_iter().map(|mean| prior * mean / 2.0).collect::<Vec<f64>>();
        let expected = |(number, list): (u32, &ListSize)| {
            let reads = counted.get(&number).copied().unwrap_or(0.0) + means[list.class()];
            (reads / list.rows.max(1) as f64) as f32
        };
        (0..).zip(lists).map(expected).collect()
    }

    /// The prior with which one half of the log best predicts the other half.
    fn best_prior(&self, lists: &[ListSize], classes: &Classes) -> f64 {
        let lateness = |prior: f64| -> f64 {
            let [first, second] = &self.halves;
            classes.lateness(lists, first, second, prior) + classes.lateness(lists, second, first, prior)
        };
        let best = PRIORS.into_iter().map(|prior| (lateness(prior), prior)).min_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or(0.0, |(_, prior)| prior)
    }
}

impl Classes {
    fn of(lists: &[ListSize]) -> Self {
        let num_classes = lists.iter().map(|list| list.class() + 1).max().unwrap_or(0);
        let mut classes = Self { lists: vec![0.0; num_classes], rows: vec![0.0; num_classes] };
        for list in lists {
            classes.lists[list.class()] += 1.0;
            classes.rows[list.class()] += list.rows as f64;
        }
        classes
    }

    fn means(&self, lists: &[ListSize], reads: &BTreeMap<u32, f64>) -> Vec<f64> {
        let mut means = vec![0.0; self.lists.len()];
        reads.iter().for_each(|(&list, reads)| means[lists[list as usize].class()] += reads);
        means.iter_mut().zip(&self.lists).for_each(|(mean, lists)| *mean /= lists.max(1.0));
        means
    }

    /// Mean place, from 0 to 1, of the `asked` reads in the order by `known` reads. It is the host-resident share of
    /// reads, averaged over all budgets. Lists of a class without known reads share one place.
    fn lateness(&self, lists: &[ListSize], known: &BTreeMap<u32, f64>, asked: &BTreeMap<u32, f64>, prior: f64) -> f64 {
        let means = self.means(lists, known);
        // Each triple holds reads per row, rows and asked reads.
        let mut parts: Vec<(f64, f64, f64)> = Vec::with_capacity(known.len() + means.len());
        let mut unknown: Vec<(f64, f64)> = self.rows.iter().map(|&rows| (rows, 0.0)).collect();
        for (list, reads) in known {
            let ListSize { rows, .. } = lists[*list as usize];
            let (class, rows) = (lists[*list as usize].class(), rows as f64);
            unknown[class].0 -= rows;
            parts.push(((reads + prior * means[class]) / rows.max(1.0), rows, asked.get(list).copied().unwrap_or(0.0)));
        }
        for (list, reads) in asked.iter().filter(|(list, _)| !known.contains_key(list)) {
            unknown[lists[*list as usize].class()].1 += reads;
        }
        for (class, (rows, reads)) in unknown.into_iter().enumerate().filter(|(_, (rows, _))| *rows > 0.0) {
            let of_a_list = rows / self.lists[class].max(1.0);
            parts.push((prior * means[class] / of_a_list.max(1.0), rows, reads));
        }
        parts.sort_by(|a, b| b.0.total_cmp(&a.0));
        let all_rows: f64 = self.rows.iter().sum();
        let (mut before, mut sum, mut all_reads) = (0.0, 0.0, 0.0);
        for (_, rows, reads) in parts {
            sum += reads * (before + rows / 2.0);
            before += rows;
            all_reads += reads;
        }
        if all_reads > 0.0 { sum / (all_reads * all_rows.max(1.0)) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    /// 1000 lists of 1000 postings and 10 rows, and 1000 lists of 100,000 postings and 1000 rows.
    fn lists() -> Vec<ListSize> {
        let of = |postings, rows| vec![ListSize { postings, rows }; 1000];
        [of(1000, 10), of(100_000, 1000)].concat()
    }

    /// Share of the reads of `asked` behind the first hundredth of all rows.
    fn host_share(row_reads: &[f32], lists: &[ListSize], asked: &LearnedReads) -> f64 {
        let mut order: Vec<usize> = (0..lists.len()).collect();
        order.sort_by(|&a, &b| row_reads[b].total_cmp(&row_reads[a]));
        let border = lists.iter().map(|list| list.rows).sum::<u64>() / 100;
        let asked = asked.counted();
        let (mut rows, mut on_host, mut all) = (0, 0.0, 0.0);
        for list in order {
            rows += lists[list].rows;
            let reads = asked.get(&(list as u32)).copied().unwrap_or(0.0);
            all += reads;
            on_host += if rows > border { reads } else { 0.0 };
        }
        on_host / all
    }

    #[test]
    fn where_queries_recur_counts_decide() {
        // Ten lists get all reads.
        let mut reads = LearnedReads::default();
        (0..1000).for_each(|query| reads.record(query, 1000 + (query as u32 / 2) % 10, 5.0));
        let row_reads = reads.row_reads(&lists());
        let least_known = (1000..1010).map(|list| row_reads[list]).fold(f32::MAX, f32::min);
        let most_unknown =
            (0..2000).filter(|list| !(1000..1010).contains(list)).map(|list| row_reads[list]).fold(0.0, f32::max);
        assert!(least_known > 100.0 * most_unknown, "{least_known} and {most_unknown}");
    }

    #[test]
    fn where_each_query_names_another_list_its_class_decides() {
        // Queries read any short list; one in eight reads a long list, which has a hundred times as many rows.
        let draw = |seed: u64, count: usize| {
            let (mut random, mut reads) = (Random::new(seed, 0), LearnedReads::default());
            for query in 0..count {
                let is_long = random.below(8) == 0;
                reads.record(query, random.below(1000) + if is_long { 1000 } else { 0 }, 1.0);
            }
            reads
        };
        let (log, later) = (draw(1, 600), draw(2, 4000));
        let row_reads = log.row_reads(&lists());
        // Short lists without reads come before long lists with reads.
        assert!(row_reads[..1000].iter().all(|&short| row_reads[1000..].iter().all(|&long| short > long)));
        let counted_only: Vec<f32> = (0..2000_u32)
            .map(|list| {
                log.counted().get(&list).map_or(0.0, |&reads| (reads / lists()[list as usize].rows as f64) as f32)
            })
            .collect();
        let (with, without) = (host_share(&row_reads, &lists(), &later), host_share(&counted_only, &lists(), &later));
        assert!(with < 0.15 && without > 0.4, "{with} and {without}");
    }

    #[test]
    fn without_reads_nothing_is_expected() {
        assert!(LearnedReads::default().row_reads(&lists()).iter().all(|&reads| reads == 0.0));
    }
}
