//! Judged collections and real queries, through the binary, against an independent BM25.
//!
//! The reference implementation here, `Twin`, shares no code with the library: it has its own tokens, hash maps for
//! lists, and double precision. Data are found by `TANDEM_DATA` (its README describes the files); without it these tests
//! are skipped with a note.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use tandem::report::effectiveness::Qrels;

use crate::skipped;

/// Single precision rounds each of some hundred additions by 6e-8 of the sum; the largest error seen is far below.
const TOLERANCE: f64 = 1e-5;

/// Published means have four digits.
const FOUR_DIGITS: f64 = 0.5e-4 + 1e-9;

const EXPECTED_BM25: Bm25 = Bm25 { k1: 0.9, b: 0.4 };

#[derive(Clone, Copy)]
struct Bm25 {
    k1: f64,
    b: f64,
}

/// Each query's documents and scores, best first.
type Run = BTreeMap<String, Vec<(String, f64)>>;

#[test]
fn cranfield_equals_plain_bm25_and_its_published_effectiveness() {
    judged("cranfield", 0.2538, 0.3163);
}

#[test]
fn cacm_equals_plain_bm25_and_its_published_effectiveness() {
    judged("cacm", 0.2459, 0.3645);
}

#[test]
fn vaswani_equals_plain_bm25_and_its_published_effectiveness() {
    judged("vaswani", 0.2208, 0.3697);
}

/// Ranks the first 500 queries of a web log over a slice of Wikipedia; the index stays in
/// `target/tmp` for the next run.
#[test]
fn wikipedia_with_real_web_queries_equals_the_expected_results() {
    let Some(data) = data() else { return };
    let index = index(&data, "enwiki-2014-261k");
    let log = fs::read_to_string(data.join("queries/trec-tb05-efficiency-50k.tsv")).unwrap();
    let first: String = log.lines().take(500).flat_map(|line| [line, "\n"]).collect();
    let queries = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tb05-first500.tsv");
    fs::write(&queries, first).unwrap();
    let expected = expected(&data, "enwiki-2014-tb05-first500");
    let found = search(&index, &queries, EXPECTED_BM25, 10);
    assert_eq!(found.len(), expected.len(), "queries with a result");
    for (query, expected) in &expected {
        let found = &found[query];
        assert_eq!(found.len(), expected.len(), "query {query}");
        for (rank, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert!(is_near(found.1, expected.1), "query {query}, rank {}: {found:?} {expected:?}", rank + 1);
        }
        // Near ties may swap, and even leave the list at the last rank.
        let last = expected[expected.len() - 1].1;
        for (doc, score) in expected.iter().filter(|(_, score)| !is_near(*score, last)) {
            let place = found.iter().find(|(other, _)| other == doc);
            assert!(place.is_some_and(|(_, found)| is_near(*found, *score)), "query {query}: {doc} {score} {place:?}");
        }
    }
}

/// Checks one judged collection and prints a row of the README's table.
fn judged(name: &str, map: f64, ndcg: f64) {
    let Some(data) = data() else { return };
    let index = index(&data, name);
    let queries = data.join(format!("queries/{name}.tsv"));
    let qrels = Qrels::read(&data.join(format!("qrels/{name}.qrels"))).unwrap();
    let twin = Twin::read(&data.join(format!("corpus/{name}.jsonl.zst")));

    let run = search(&index, &queries, EXPECTED_BM25, 1000);
    twin.compare(&queries, EXPECTED_BM25, &run);
    let expected = expected(&data, name);
    assert_eq!(run.len(), expected.len(), "queries with a result");
    for (query, expected) in &expected {
        for (found, expected) in run[query].iter().zip(expected) {
            assert!(is_near(found.1, expected.1), "query {query}: {found:?} {expected:?}");
        }
    }

    let measured = judge(&qrels, &run);
    let default = judge(&qrels, &search(&index, &queries, Bm25 { k1: 1.2, b: 0.75 }, 1000));
    println!(
        "| {name} | {} | {:.4} | {:.4} | {:.4} | {:.4} |",
        measured.0, measured.1, measured.2, default.1, default.2
    );
    assert!((measured.1 - map).abs() <= FOUR_DIGITS, "MAP {} {map}", measured.1);
    assert!((measured.2 - ndcg).abs() <= FOUR_DIGITS, "nDCG@10 {} {ndcg}", measured.2);

    // Long queries are whole texts: those of the documents judged relevant, up to 1024 distinct words.
    let qrels_file = data.join(format!("qrels/{name}.qrels"));
    let long = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-long.tsv"));
    let (most, longer) = twin.write_long_queries(&queries, &qrels_file, &long);
    assert!(most > 500 && longer > 20, "{longer} queries of more than 64 words, the longest of {most}");
    let run = search(&index, &long, EXPECTED_BM25, 1000);
    twin.compare(&long, EXPECTED_BM25, &run);
    let (found, due) = (judge(&qrels, &run), judge(&qrels, &twin.rank(&long, EXPECTED_BM25)));
    println!("{name}: {longer} queries of more than 64 words, the longest of {most}: MAP {:.4} {:.4}", found.1, due.1);
    assert!((found.1 - due.1).abs() <= FOUR_DIGITS, "MAP {} {}", found.1, due.1);
    assert!((found.2 - due.2).abs() <= FOUR_DIGITS, "nDCG@10 {} {}", found.2, due.2);
}

/// Judged queries, MAP and nDCG@10.
fn judge(qrels: &Qrels, run: &Run) -> (usize, f64, f64) {
    let docs: Vec<Vec<String>> = run.values().map(|hits| hits.iter().map(|(doc, _)| doc.clone()).collect()).collect();
    let found = qrels.judge(run.keys().map(String::as_str).zip(docs.iter().map(Vec::as_slice)));
    (found.queries, found.map, found.ndcg_at_10)
}

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
}

fn data() -> Option<PathBuf> {
    let data = std::env::var_os("TANDEM_DATA").map(PathBuf::from);
    if data.is_none() {
        skipped::skipped("TANDEM_DATA is not set");
    }
    data
}

/// The index of a collection, built by the binary unless an earlier test run left it.
fn index(data: &Path, name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.index"));
    let opens = Command::new(env!("CARGO_BIN_EXE_tandem")).args(["index", "info"]).arg(&dir).output().unwrap();
    if !opens.status.success() {
        // The index is missing, or was left by a build with another format.
        let corpus = data.join(format!("corpus/{name}.jsonl.zst"));
        run(Command::new(env!("CARGO_BIN_EXE_tandem"))
            .args(["index", "build", "--tokenizer", "ascii", "-o"])
            .args([&dir, &corpus]));
    }
    dir
}

/// Runs `tandem search` in mode OR and reads its TREC output.
fn search(index: &Path, queries: &Path, bm25: Bm25, k: usize) -> Run {
    let (k1, b, k) = (bm25.k1.to_string(), bm25.b.to_string(), k.to_string());
    let text = run(Command::new(env!("CARGO_BIN_EXE_tandem"))
        .arg("search")
        .arg(index)
        .arg("--queries")
        .arg(queries)
        .args(["--mode", "or", "--format", "trec", "--k1", &k1, "--b", &b, "-k", &k]));
    let mut found = Run::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [query, "Q0", doc, rank, score, "tandem"] = fields[..] else { panic!("not a TREC run line: {line}") };
        let hits = found.entry(query.to_owned()).or_default();
        hits.push((doc.to_owned(), score.parse().unwrap()));
        assert_eq!(rank, hits.len().to_string(), "{line}");
    }
    found
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn expected(data: &Path, name: &str) -> Run {
    let mut expected = Run::new();
    for line in fs::read_to_string(data.join(format!("expected/{name}-bm25-top10.tsv"))).unwrap().lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [query, _, doc, score] = fields[..] else { panic!("not an expected result: {line}") };
        expected.entry(query.to_owned()).or_default().push((doc.to_owned(), score.parse().unwrap()));
    }
    expected
}

const MAX_TERMS: usize = 1024;

/// A collection in hash maps, with a reference implementation of BM25.
struct Twin {
    ids: Vec<String>,
    texts: Vec<Vec<String>>,
    lengths: Vec<f64>,
    lists: HashMap<String, HashMap<usize, f64>>,
}

impl Twin {
    fn read(corpus: &Path) -> Self {
        let mut twin = Self { ids: Vec::new(), texts: Vec::new(), lengths: Vec::new(), lists: HashMap::new() };
        let file = zstd::stream::read::Decoder::new(fs::File::open(corpus).unwrap()).unwrap();
        for (doc, line) in BufReader::new(file).lines().enumerate() {
            let object: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            let text = format!("{} {}", object["title"].as_str().unwrap_or(""), object["text"].as_str().unwrap());
            let tokens = tokens(&text);
            twin.ids.push(object["id"].as_str().unwrap().to_owned());
            twin.lengths.push(tokens.len() as f64);
            twin.texts.push(tokens.clone());
            for token in tokens {
                *twin.lists.entry(token).or_default().entry(doc).or_insert(0.0) += 1.0;
            }
        }
        twin
    }

    /// All scores above zero, by external id.
    fn scores(&self, tokens: &[String], bm25: Bm25) -> HashMap<&str, f64> {
        let n = self.ids.len() as f64;
        let average = self.lengths.iter().sum::<f64>() / n;
        let mut scores = vec![0.0; self.ids.len()];
        for list in tokens.iter().filter_map(|token| self.lists.get(token)) {
            let df = list.len() as f64;
            let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
            for (&doc, tf) in list {
                let norm = bm25.k1 * (1.0 - bm25.b + bm25.b * self.lengths[doc] / average);
                scores[doc] += idf * tf * (bm25.k1 + 1.0) / (tf + norm);
            }
        }
        let scores = self.ids.iter().map(String::as_str).zip(scores);
        scores.filter(|&(_, score)| score > 0.0).collect()
    }

    /// Writes long queries from the words of relevant documents. Returns the largest number of distinct words in a query,
    /// and the number of queries with more than 64.
    fn write_long_queries(&self, queries: &Path, qrels: &Path, to: &Path) -> (usize, usize) {
        let numbers: HashMap<&str, usize> = (0..).zip(&self.ids).map(|(number, id)| (id.as_str(), number)).collect();
        let qrels = fs::read_to_string(qrels).unwrap();
        let (mut text, mut most, mut longer) = (String::new(), 0, 0);
        for line in fs::read_to_string(queries).unwrap().lines() {
            let (query, words) = line.split_once('\t').unwrap();
            let mut all = tokens(words);
            let mut distinct: HashSet<String> = all.iter().cloned().collect();
            for line in qrels.lines() {
                let [of, _, doc, grade] = line.split_whitespace().collect::<Vec<_>>()[..] else { continue };
                let Some(&number) = numbers.get(doc).filter(|_| of == query && grade != "0") else { continue };
                for word in &self.texts[number] {
                    if distinct.len() < MAX_TERMS || distinct.contains(word) {
                        distinct.insert(word.clone());
                        all.push(word.clone());
                    }
                }
            }
            most = most.max(distinct.len());
            longer += usize::from(distinct.len() > 64);
            text += &format!("{query}\t{}\n", all.join(" "));
        }
        fs::write(to, text).unwrap();
        (most, longer)
    }

    /// The thousand best documents of every query; ties go to the smaller document.
    fn rank(&self, queries: &Path, bm25: Bm25) -> Run {
        let numbers: HashMap<&str, usize> = (0..).zip(&self.ids).map(|(number, id)| (id.as_str(), number)).collect();
        let rank = |words: &str| {
            let mut hits: Vec<(&str, f64)> = self.scores(&tokens(words), bm25).into_iter().collect();
            hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(numbers[a.0].cmp(&numbers[b.0])));
            hits.into_iter().take(1000).map(|(doc, score)| (doc.to_owned(), score)).collect()
        };
        let queries = fs::read_to_string(queries).unwrap();
        queries.lines().filter_map(|line| line.split_once('\t')).map(|(id, text)| (id.to_owned(), rank(text))).collect()
    }

    /// Checks every query's ranking against all scores: right scores, right order, and no better document left out.
    fn compare(&self, queries: &Path, bm25: Bm25, run: &Run) {
        for line in fs::read_to_string(queries).unwrap().lines() {
            let (query, words) = line.split_once('\t').unwrap();
            let scores = self.scores(&tokens(words), bm25);
            let found = run.get(query).map(Vec::as_slice).unwrap_or_default();
            assert_eq!(found.len(), scores.len().min(1000), "query {query}");
            let mut best: Vec<f64> = scores.values().copied().collect();
            best.sort_by(|a, b| b.total_cmp(a));
            for ((doc, score), best) in found.iter().zip(&best) {
                assert!(is_near(*score, scores[doc.as_str()]), "query {query}: {doc} {score} {}", scores[doc.as_str()]);
                assert!(is_near(*score, *best), "query {query}: {doc} {score} where {best} is due");
            }
        }
    }
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens = vec![String::new()];
    for c in text.to_lowercase().chars() {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            tokens.last_mut().unwrap().push(c);
        } else {
            tokens.push(String::new());
        }
    }
    tokens.retain(|token| !token.is_empty());
    tokens
}
