//! Expected reads of every list, learned from the queries of a log.
//!
//! Counts of rare events mislead: a list with two reads in the log may be popular or lucky, and lists without reads
//! will be read later. The estimate lies between a list's count and what lists of like length read (empirical Bayes;
//! Robbins 1956):
//!
//! ```text
//!   expected = counted + prior · rows · mean reads per row      of lists of like length
//! ```
//!
//! A log reads few lists of any one length, so the mean is smoothed over lengths: lists an octave away count 0.6 times.
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

/// Rows by length class.
#[derive(Clone, Debug, Default)]
struct Classes {
    rows: Vec<f64>,
}

impl LearnedReads {
    /// Adds `reads` of a list by a query. Queries of even and odd numbers are the two halves.
    pub(crate) fn record(&mut self, query: usize, list: u32, reads: f64) {
        if reads > 0.0 {
            *self.halves[query % 2].entry(list).or_insert(0.0) += reads;
        }
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
            let reads = counted.get(&number).copied().unwrap_or(0.0);
            (reads / list.rows.max(1) as f64 + means[list.class()]) as f32
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
        let mut rows = vec![0.0; num_classes];
        lists.iter().for_each(|list| rows[list.class()] += list.rows as f64);
        Self { rows }
    }

    /// Smoothed reads per row of each class. Lists weigh by the normal density of their distance, in octaves.
    fn means(&self, lists: &[ListSize], reads: &BTreeMap<u32, f64>) -> Vec<f64> {
        let mut of_class = vec![0.0; self.rows.len()];
        reads.iter().for_each(|(&list, reads)| of_class[lists[list as usize].class()] += reads);
        let mean = |class: usize| {
            let (mut reads, mut rows) = (0.0, 0.0);
            for (other, (of_other, other_rows)) in of_class.iter().zip(&self.rows).enumerate() {
                let octaves = class.abs_diff(other) as f64 / CLASSES_AN_OCTAVE;
                let weight = (-octaves * octaves / 2.0).exp();
                reads += weight * of_other;
                rows += weight * other_rows;
            }
            reads / rows.max(1.0)
        };
        (0..of_class.len()).map(mean).collect()
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
            let asked = asked.get(list).copied().unwrap_or(0.0);
            parts.push((reads / rows.max(1.0) + prior * means[class], rows, asked));
        }
        for (list, reads) in asked.iter().filter(|(list, _)| !known.contains_key(list)) {
            unknown[lists[*list as usize].class()].1 += reads;
        }
        for (class, (rows, reads)) in unknown.into_iter().enumerate().filter(|(_, (rows, _))| *rows > 0.0) {
            parts.push((prior * means[class], rows, reads));
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
    use tandem_base::base::random::Random;

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
    fn unread_lists_get_their_neighbours_reads() {
        // A length per class. The log reads no list of every second one, and each list once.
        let lists: Vec<ListSize> = (0..9)
            .flat_map(|class| {
                let postings = (1000.0 * 2_f64.powf(f64::from(class) / CLASSES_AN_OCTAVE)) as u32;
                vec![ListSize { postings, rows: u64::from(postings / 10) }; 100]
            })
            .collect();
        let mut log = LearnedReads::default();
        (0..200).for_each(|query| log.record(query, (query as u32 / 40) * 200 + query as u32 % 40, 1000.0));
        let row_reads = log.row_reads(&lists);
        // The last list of each length is not in the log.
        let unread: Vec<f32> = (0..9).map(|class| row_reads[100 * class + 99]).collect();
        for near in unread.windows(2) {
            assert!(near[0] > 0.0 && (0.7..1.4).contains(&(near[1] / near[0])), "{unread:?}");
        }
    }

    #[test]
    fn without_reads_nothing_is_expected() {
        assert!(LearnedReads::default().row_reads(&lists()).iter().all(|&reads| reads == 0.0));
    }
}
