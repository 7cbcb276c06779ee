//! The laws of a synthetic collection, on a small one.

use std::num::NonZeroUsize;
use std::path::Path;

use tandem_base::base::ids::TermId;

use super::*;
use crate::index::{FILE_NAME, Index};

const NUM_DOCS: u32 = 20_000;

fn build(dir: &Path, threads: usize, num_queries: usize) -> SynthReport {
    let options = SynthOptions { num_queries, threads: NonZeroUsize::new(threads), ..SynthOptions::new(NUM_DOCS, 3) };
    build_synthetic(&options, dir, &|_, _| ()).unwrap()
}

#[test]
fn one_and_four_threads_write_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let (one, four) = (dir.path().join("one"), dir.path().join("four"));
    build(&one, 1, 100);
    build(&four, 4, 100);
    for file in [FILE_NAME, "queries.tsv"] {
        assert!(std::fs::read(one.join(file)).unwrap() == std::fs::read(four.join(file)).unwrap(), "{file} differs");
    }
}

#[test]
fn the_index_has_the_laws_of_a_collection() {
    let dir = tempfile::tempdir().unwrap();
    let report = build(dir.path(), 2, 2000);
    let index = Index::open(dir.path()).unwrap();
    assert_eq!(index.num_postings(), report.num_postings);

    // Zipf's law is tested on ranks 500 to 8000, away from the head and from lists of one posting, in octaves that
    // average the draw.
    let mean_freq = |from: u32| {
        (from..2 * from).map(|rank| f64::from(index.list(TermId(rank)).doc_freq())).sum::<f64>() / f64::from(from)
    };
    let slope = (mean_freq(500) / mean_freq(4000)).log2() / 3.0;
    assert!((1.0..1.3).contains(&slope), "document frequencies fall by 2^{slope} an octave");

    // Postings and occurrences match the fit and the lengths on average, not document by document.
    let distinct = report.num_postings as f64 / f64::from(NUM_DOCS);
    assert!((distinct / (0.46 * SynthOptions::MEAN_LENGTH) - 1.0).abs() < 0.05, "{distinct} distinct terms a document");
    assert!((index.average_length() / SynthOptions::MEAN_LENGTH - 1.0).abs() < 0.05, "{}", index.average_length());
    let drawn = report.num_occurrences as f64 / index.num_tokens() as f64;
    assert!((0.85..1.15).contains(&drawn), "{drawn} occurrences drawn a token");

    let wanted = MEAN_QUERY_SHARE * f64::from(NUM_DOCS);
    assert!((report.mean_query_postings / wanted - 1.0).abs() < 0.05, "{} of {wanted}", report.mean_query_postings);
}

#[test]
fn heaps_law_gives_the_vocabulary() {
    let ratio = f64::from(Vocabulary::heaps_size(10_000_000)) / f64::from(Vocabulary::heaps_size(10_000));
    assert!((ratio.log10() / 3.0 - 0.6).abs() < 0.001, "{ratio}");
}

#[test]
fn lists_are_clustered() {
    let dir = tempfile::tempdir().unwrap();
    build(dir.path(), 2, 0);
    let index = Index::open(dir.path()).unwrap();
    let mut saved = Vec::new();
    for term in (200..1200).step_by(50) {
        let docs: Vec<u32> = index.list(TermId(term)).postings().map(|(doc, _)| doc).collect();
        let gaps = docs.windows(2).map(|pair| f64::from(pair[1] - pair[0]));
        let mean_bits = gaps.map(f64::log2).sum::<f64>() / (docs.len() - 1) as f64;
        // The gaps of a random list are nearly geometric: E log2 = log2(mean) - γ / ln 2, and more for small means.
        let random_bits = (f64::from(NUM_DOCS) / docs.len() as f64).log2() - 0.833;
        saved.push(random_bits - mean_bits);
    }
    let mean = saved.iter().sum::<f64>() / saved.len() as f64;
    assert!(mean > 0.3, "bits saved a gap: {saved:?}");
}

#[test]
fn queries_have_the_papers_mean_postings() {
    let vocabulary = Vocabulary::fit(1_000_000, 240.0, Vocabulary::heaps_size(1_000_000)).unwrap();
    let queries = synthetic_queries(&vocabulary, 1_000_000, 1, 20_000, 0.0).unwrap();
    let postings: Vec<f64> =
        queries.iter().map(|terms| terms.iter().map(|&term| vocabulary.doc_freqs()[term]).sum()).collect();
    let mean = postings.iter().sum::<f64>() / 20_000.0 / 1e6;
    assert!((mean / MEAN_QUERY_SHARE - 1.0).abs() < 0.05, "{mean}");
    let below = postings.iter().filter(|&&n| n < MEAN_QUERY_SHARE * 1e6).count();
    assert!(below > 12_000, "most queries are below the mean, a few far above: {below}");
    let terms = queries.iter().map(Vec::len).sum::<usize>() as f64 / 20_000.0;
    assert!((terms - 2.8).abs() < 0.03, "{terms}");
}

#[test]
fn options_out_of_range_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refuse = |options: SynthOptions| build_synthetic(&options, dir.path(), &|_, _| ()).unwrap_err().to_string();
    assert!(refuse(SynthOptions::new(10, 0)).contains("10 documents, expected"));
    let base = SynthOptions::new(2000, 0);
    assert!(refuse(SynthOptions { mean_length: f64::NAN, ..base.clone() }).contains("mean length NaN"));
    let queries = SynthOptions { num_queries: usize::MAX, ..base.clone() };
    assert!(refuse(queries).contains("18446744073709551615 queries, expected at most 100000000"));
    assert!(refuse(SynthOptions { num_terms: Some(99), ..base.clone() }).contains("99 terms, expected 100"));
    assert!(refuse(SynthOptions { num_terms: Some(100), ..base.clone() }).contains("too few"));
    assert!(refuse(SynthOptions { num_terms: Some(1 << 20), ..base }).contains("too many"));
}

#[test]
fn terms_of_a_topic_occur_together_and_lists_keep_their_lengths() {
    let full_ands = |correlation: f64| {
        let dir = tempfile::tempdir().unwrap();
        let options = SynthOptions { correlation, num_queries: 4000, ..SynthOptions::new(NUM_DOCS, 3) };
        let report = build_synthetic(&options, dir.path(), &|_, _| ()).unwrap();
        let distinct = report.num_postings as f64 / f64::from(NUM_DOCS);
        let expected = 0.46 * SynthOptions::MEAN_LENGTH;
        assert!((distinct / expected - 1.0).abs() < 0.05, "{distinct} distinct terms a document");
        let index = Index::open(dir.path()).unwrap();
        let log = std::fs::read_to_string(dir.path().join("queries.tsv")).unwrap();
        let queries = log.lines().map(|line| line.split_once('\t').unwrap().1.split(' ').collect::<Vec<_>>());
        let (mut several, mut full) = (0, 0);
        for terms in queries.filter(|terms| terms.len() > 1) {
            let lists = terms.iter().map(|term| index.list(index.term(term).unwrap()).docs());
            let common = lists.reduce(|a, b| a.into_iter().filter(|doc| b.binary_search(doc).is_ok()).collect());
            several += 1;
            full += usize::from(common.unwrap().len() >= 10);
        }
        full as f64 / f64::from(several)
    };
    // The standard error of a share of some thousand queries is below 0.01.
    let [none, most] = [0.0, 1.0].map(full_ands);
    assert!(none + 0.02 < most, "{none} {most}");
}

#[test]
fn shapes_out_of_range_are_refused() {
    let base = SynthOptions::new(2000, 0);
    let refuse = |options: SynthOptions| options.check().unwrap_err().to_string();
    assert!(
        refuse(SynthOptions { clustering: Some(0.4), ..base.clone() }).contains("clustering of 0.4, expected 0 to 0.3")
    );
    assert!(refuse(SynthOptions { correlation: f64::NAN, ..base }).contains("correlation of NaN, expected 0 to 1"));
}
