//! Effectiveness of rankings by human judgements.
//!
//! ```text
//! AP   = 1/R Σ precision(i) over the ranks i of relevant documents        R: relevant documents in all
//! RR   = 1/rank of the first relevant document                            recall = relevant documents found / R
//! nDCG = DCG / best possible DCG,   DCG@10 = Σ gain(i) / log2(i + 1), i from 1 to 10,   gain: the grade
//! ```
//!
//! Documents without a judgement count as irrelevant. Means are over the judged queries, answered or not. Sources:
//! Buckley and Voorhees, "Evaluating Evaluation Measure Stability", SIGIR 2000 (AP); Järvelin and Kekäläinen,
//! "Cumulated Gain-Based Evaluation of IR Techniques", TOIS 2002 (nDCG).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use tandem_model::files::{InputError, read_lines};

/// Judgements of one query: a grade per document, above zero if it is relevant.
pub type Judgements = HashMap<String, u32>;

/// Judgements of a collection's queries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qrels {
    queries: BTreeMap<String, Judgements>,
}

/// Means over the judged queries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effectiveness {
    /// Number of judged queries.
    pub queries: usize,
    /// Mean average precision, at the depth of the rankings.
    pub map: f64,
    /// Mean nDCG at rank 10.
    pub ndcg_at_10: f64,
    /// Mean reciprocal rank of the first relevant document, or 0 without one.
    pub reciprocal_rank: f64,
    /// Mean share of the relevant documents that were found, at the depth of the rankings.
    pub recall: f64,
}

impl Qrels {
    /// Reads TREC's format: `query iteration document grade`, separated by white space. Negative grades count as 0.
    /// Fails if a line has another format, a document is judged twice for a query, or there is no judgement.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let mut qrels = Self::default();
        for line in read_lines(path)? {
            let (number, line) = line?;
            let fields: Vec<&str> = line.split_whitespace().collect();
            let &[query, _, doc, grade] = fields.as_slice() else {
                if fields.is_empty() {
                    continue;
                }
                let message = format!("{} fields, expected 4: query, iteration, document, grade", fields.len());
                return Err(InputError::line(path, number, message));
            };
            let at = |part, message| InputError::at_part(path, number, &line, part, message);
            let relevance: i64 =
                grade.parse().map_err(|_| at(grade, format!("the grade is \"{grade}\", expected a whole number")))?;
            let relevance = u32::try_from(relevance.max(0))
                .map_err(|_| at(grade, format!("the grade {relevance} is too large")))?;
            let judgements = qrels.queries.entry(query.to_owned()).or_default();
            if judgements.insert(doc.to_owned(), relevance).is_some() {
                return Err(at(doc, format!("document {doc} is judged twice for query {query}")));
            }
        }
        if qrels.queries.is_empty() {
            return Err(InputError::file(path, "contains no judgement"));
        }
        Ok(qrels)
    }

    /// The documents that are judged for any query.
    pub fn documents(&self) -> HashSet<&str> {
        self.queries.values().flat_map(|of_query| of_query.keys().map(String::as_str)).collect()
    }

    /// Whether the query of this name is judged.
    pub fn has(&self, query: &str) -> bool {
        self.queries.contains_key(query)
    }

    /// Leaves out the queries that were not asked, and returns their number.
    pub fn keep_asked(&mut self, is_asked: impl Fn(&str) -> bool) -> usize {
        let all = self.queries.len();
        self.queries.retain(|query, _| is_asked(query));
        all - self.queries.len()
    }

    /// Judges rankings: each query's label and its documents, best first. Queries without judgements are left out, and
    /// judged queries without a ranking count as 0.
    pub fn judge<'a>(&self, rankings: impl IntoIterator<Item = (&'a str, &'a [String])>) -> Effectiveness {
        let rankings: HashMap<&str, &[String]> = rankings.into_iter().collect();
        let mut sum = Effectiveness { queries: self.queries.len(), ..Effectiveness::default() };
        for (query, judgements) in &self.queries {
            let ranked = rankings.get(query.as_str()).copied().unwrap_or_default();
            sum.map += average_precision(ranked, judgements);
            sum.ndcg_at_10 += ndcg(ranked, judgements, 10);
            sum.reciprocal_rank += reciprocal_rank(ranked, judgements);
            sum.recall += recall(ranked, judgements);
        }
        let queries = self.queries.len().max(1) as f64;
        Effectiveness {
            queries: sum.queries,
            map: sum.map / queries,
            ndcg_at_10: sum.ndcg_at_10 / queries,
            reciprocal_rank: sum.reciprocal_rank / queries,
            recall: sum.recall / queries,
        }
    }
}

/// Average precision of a ranking, or 0 if nothing is relevant.
pub fn average_precision(ranked: &[String], judgements: &Judgements) -> f64 {
    let relevant = judgements.values().filter(|&&grade| grade > 0).count();
    let mut found = 0;
    let mut sum = 0.0;
    for (rank, doc) in (1..).zip(ranked) {
        if judgements.get(doc).is_some_and(|&grade| grade > 0) {
            found += 1;
            sum += f64::from(found) / f64::from(rank);
        }
    }
    sum / relevant.max(1) as f64
}

/// Reciprocal rank of the first relevant document, or 0 if there is none.
pub fn reciprocal_rank(ranked: &[String], judgements: &Judgements) -> f64 {
    let is_relevant = |doc: &String| judgements.get(doc).is_some_and(|&grade| grade > 0);
    ranked.iter().position(is_relevant).map_or(0.0, |before| 1.0 / (before as f64 + 1.0))
}

/// Share of the relevant documents in a ranking, or 0 if nothing is relevant.
pub fn recall(ranked: &[String], judgements: &Judgements) -> f64 {
    let relevant = judgements.values().filter(|&&grade| grade > 0).count();
    let found = ranked.iter().filter(|&doc| judgements.get(doc).is_some_and(|&grade| grade > 0)).count();
    found as f64 / relevant.max(1) as f64
}

/// nDCG of a ranking at rank `depth`, or 0 if nothing is relevant.
pub fn ndcg(ranked: &[String], judgements: &Judgements, depth: usize) -> f64 {
    let dcg = |grades: &mut dyn Iterator<Item = u32>| -> f64 {
        (1..).zip(grades.take(depth)).map(|(rank, grade)| f64::from(grade) / (f64::from(rank) + 1.0).log2()).sum()
    };
    let mut best: Vec<u32> = judgements.values().copied().collect();
    best.sort_unstable_by(|a, b| b.cmp(a));
    let ideal = dcg(&mut best.into_iter());
    if ideal == 0.0 {
        return 0.0;
    }
    dcg(&mut ranked.iter().map(|doc| judgements.get(doc).copied().unwrap_or(0))) / ideal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(docs: &[&str]) -> Vec<String> {
        docs.iter().map(|&doc| doc.to_owned()).collect()
    }

    #[test]
    fn measures_equal_figures_worked_out_by_hand() {
        let judgements: Judgements = [("a", 2), ("b", 1), ("c", 0), ("d", 1)].map(|(d, g)| (d.to_owned(), g)).into();
        let docs = ranked(&["b", "x", "a"]);
        assert!((average_precision(&docs, &judgements) - (1.0 + 2.0 / 3.0) / 3.0).abs() < 1e-12);
        let ideal = 2.0 + 1.0 / 3f64.log2() + 1.0 / 2.0;
        assert!((ndcg(&docs, &judgements, 10) - (1.0 + 2.0 / 2.0) / ideal).abs() < 1e-12);
        assert_eq!(ndcg(&ranked(&["a", "b", "d"]), &judgements, 10), 1.0);
        assert_eq!(ndcg(&docs, &Judgements::new(), 10), 0.0);
        assert_eq!(reciprocal_rank(&ranked(&["x", "c", "d", "a"]), &judgements), 1.0 / 3.0);
        assert_eq!((recall(&docs, &judgements), recall(&ranked(&["c"]), &judgements)), (2.0 / 3.0, 0.0));
        assert_eq!((reciprocal_rank(&docs, &Judgements::new()), recall(&docs, &Judgements::new())), (0.0, 0.0));
    }

    #[test]
    fn unanswered_judged_queries_count_and_unjudged_answers_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q.qrels");
        std::fs::write(&path, "1 0 a 1\n2\t0\tb\t-1\n\n3 0 b 4\n").unwrap();
        let qrels = Qrels::read(&path).unwrap();
        let (answer, other) = (ranked(&["a"]), ranked(&["z"]));
        let found = qrels.judge([("1", answer.as_slice()), ("9", other.as_slice())]);
        assert_eq!(found.queries, 3);
        assert!((found.map - 1.0 / 3.0).abs() < 1e-12 && (found.ndcg_at_10 - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn bad_judgements_are_refused_with_their_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q.qrels");
        for (text, expected) in [
            ("1 0 a 1\n1 0 b\n", ":2: 3 fields"),
            ("1 0 a high\n", ":1:7: the grade is \"high\""),
            ("1 0 a 1\n1 0 a 0\n", ":2:5: document a is judged twice"),
            ("\n", "contains no judgement"),
        ] {
            std::fs::write(&path, text).unwrap();
            let message = Qrels::read(&path).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
