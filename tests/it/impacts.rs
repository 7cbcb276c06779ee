//! Learned sparse retrieval from the user's view: imported impacts, and queries of weighted terms.

use std::fs;
use std::path::Path;
use std::process::Command;

use tandem::base::ids::DocId;
use tandem::index::{Bm25, Index};

fn tandem(dir: &Path, arguments: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tandem"))
        .current_dir(dir)
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The impact of a term in a document, by a small generator; 0 if the document lacks it.
fn impact(doc: u32, term: u32) -> u32 {
    let hash = doc.wrapping_mul(2_654_435_761).wrapping_add(term.wrapping_mul(0x9e37_79b9));
    let hash = (hash ^ hash >> 15).wrapping_mul(0x2c1b_3c6d);
    let hash = hash ^ hash >> 12;
    if hash % (2 + term) < 2 { 1 + (hash >> 8) % 255 } else { 0 }
}

/// Scores are sums of weight times impact on every path of the program: by file of vectors, through CIFF, and for queries as
/// text and as JSON.
#[test]
fn weighted_queries_score_imported_impacts_as_by_hand() {
    const DOCS: u32 = 700;
    const TERMS: u32 = 12;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let vectors: String = (0..DOCS)
        .map(|doc| {
            let pairs = (0..TERMS).map(|term| (term, impact(doc, term))).filter(|&(_, impact)| impact > 0);
            let pairs: Vec<String> = pairs.map(|(term, impact)| format!("\"##t{term}\": {impact}")).collect();
            format!("{{\"id\": {doc}, \"contents\": \"x\", \"vector\": {{{}}}}}\n", pairs.join(", "))
        })
        .collect();
    fs::write(at.join("v.jsonl"), vectors).unwrap();
    tandem(at, "index import v.jsonl -o own");
    tandem(at, "index export own -o x.ciff");
    tandem(at, "index import x.ciff --impacts -o back");
    for name in ["own", "back"] {
        assert_eq!(Index::open(&at.join(name)).unwrap().built_with(), Bm25::IMPACTS, "{name}");
    }

    // Weights with fractions become whole: the largest is 255.
    let queries = [vec![(0, 7.0), (5, 1.0), (9, 255.0)], vec![(1, 2.5), (3, 0.5)], vec![(11, 0.3)]];
    let whole = [vec![(0, 7), (5, 1), (9, 255)], vec![(1, 255), (3, 51)], vec![(11, 255)]];
    let text = |open: &str, middle: &str, join: &str, close: &str| -> String {
        let query = |(id, terms): (usize, &Vec<(u32, f64)>)| {
            let words: Vec<String> =
                terms.iter().map(|(term, weight)| format!("{open}##t{term}{middle}{weight}")).collect();
            match close {
                "" => format!("q{id}\t{}\n", words.join(join)),
                _ => format!("{{\"id\": \"q{id}\", \"vector\": {{{}{close}}}\n", words.join(join)),
            }
        };
        queries.iter().enumerate().map(query).collect()
    };
    fs::write(at.join("q.tsv"), text("", "^", " ", "")).unwrap();
    fs::write(at.join("q.json"), text("\"", "\": ", ", ", "}")).unwrap();

    let mut expected = Vec::new();
    for (id, terms) in whole.iter().enumerate() {
        let score = |doc| terms.iter().map(|&(term, weight)| weight * impact(doc, term)).sum::<u32>();
        let mut scored: Vec<(u32, u32)> =
            (0..DOCS).map(|doc| (score(doc), doc)).filter(|&(score, _)| score > 0).collect();
        scored.sort_by_key(|&(score, doc)| (std::cmp::Reverse(score), doc));
        expected.extend(scored.iter().take(20).map(|&(score, doc)| (format!("q{id}"), doc.to_string(), score)));
    }
    for (index, log) in [("own", "q.tsv"), ("own", "q.json"), ("back", "q.tsv")] {
        tandem(at, &format!("search {index} --queries {log} --mode or -k 20 --on cpu --format trec -o run"));
        let run = fs::read_to_string(at.join("run")).unwrap();
        let found: Vec<_> = run
            .lines()
            .map(|line| {
                let cells: Vec<&str> = line.split_whitespace().collect();
                (cells[0].to_owned(), cells[2].to_owned(), cells[4].parse::<f64>().unwrap() as u32)
            })
            .collect();
        assert_eq!(found, expected, "{index} {log}");
        fs::remove_file(at.join("run")).unwrap();
    }
    let index = Index::open(&at.join("own")).unwrap();
    assert_eq!(index.external_id(DocId(0)), "0");
}

#[test]
fn impacts_above_255_are_scaled_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("v.jsonl"), "{\"id\": 1, \"vector\": {\"a\": 510, \"b\": 2}}\n").unwrap();
    tandem(at, "index import v.jsonl -o scaled");
    let index = Index::open(&at.join("scaled")).unwrap();
    let impacts = ["a", "b"].map(|term| index.list(index.term(term).unwrap()).postings().next().unwrap().1);
    assert_eq!(impacts, [255, 1]);
    for (arguments, expected) in [
        ("index import v.jsonl -o x --impacts --k1 1", "cannot be used with"),
        ("index import v.jsonl -o x --k1 1", "vectors hold impacts"),
        ("index import none.jsonl -o x", "none.jsonl: cannot open"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tandem"))
            .current_dir(at)
            .args(arguments.split_whitespace())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains(expected), "{arguments}: {errors}");
    }
}
