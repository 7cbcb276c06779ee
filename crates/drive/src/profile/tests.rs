use tandem_engine::query::QueryTerm;
use tandem_engine::search::Execution;
use tandem_engine::search::{ExecError, Hit};
use tandem_model::base::ids::{DocId, TermId};

use super::*;

/// Returns as many documents as the query's list is long, and may be wrong from a given search on.
struct Mock {
    kind: Class,
    searches: usize,
    score_from: (usize, f32),
}

impl Executor for Mock {
    fn class(&self) -> Class {
        self.kind
    }

    fn device(&self) -> String {
        "mock".to_owned()
    }

    fn search(&mut self, query: &Query, _: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        self.searches += 1;
        let score = if self.searches > self.score_from.0 { self.score_from.1 } else { 1.0 };
        let len = (query.terms[0].doc_freq as usize).min(k);
        hits.clear();
        hits.extend((0..len as u32).map(|doc| Hit { doc: DocId(doc), score }));
        if k > tandem_engine::search::MAX_K {
            return Err(ExecError::BadK(k));
        }
        Ok(Execution { device_us: (self.kind == Class::GPU).then_some(0.5), ..Execution::default() })
    }
}

fn mock(kind: Class, score_from: (usize, f32)) -> Box<dyn Executor> {
    Box::new(Mock { kind, searches: 0, score_from })
}

fn queries() -> Vec<Query> {
    (0..5)
        .map(|i| Query {
            id: QueryId(i * 10),
            label: format!("q{i}"),
            terms: vec![QueryTerm { term: TermId(i), doc_freq: i + 1, qtf: 1 }],
            dropped_terms: 0,
        })
        .collect()
}

#[test]
fn every_query_is_measured_in_every_mode_on_every_processor() {
    let batches = BatchOptions { sizes: vec![1, 2, 4], repeats: 4, time_a_size: Duration::ZERO, seed: 1 };
    let options = ProfileOptions { k: 3, repeats: 4, batches: Some(batches), ..ProfileOptions::default() };
    let mut executors = [mock(Class::CPU, (0, 1.0)), mock(Class::GPU, (0, 1.0))];
    let mut last = 0;
    let (rows, batches) = measure(&mut executors, &queries(), &options, &mut |done| last = done).unwrap();
    assert_eq!(rows.len(), 15);
    for (i, row) in rows.iter().enumerate() {
        assert_eq!((row.query, row.mode), (i % 5, Mode::ALL[i / 5]));
        assert_eq!(row.results, (row.query as u32 + 1).min(3));
        let (cpu, gpu) = (row.measured[Class::CPU].unwrap(), row.measured[Class::GPU].unwrap());
        assert!(cpu.median_us > 0.0 && cpu.spread_us >= 0.0 && cpu.device_us.is_none());
        assert_eq!(gpu.device_us, Some(0.5));
    }
    assert!(batches.0[Class::GPU].is_some() && batches.0[Class::CPU].is_none());
    assert_eq!(options.searches(2, 5), 150);
    assert_eq!(last, 128);
}

#[test]
fn what_one_processor_refuses_is_measured_on_the_others_alone() {
    struct Picky(Mock);
    impl Executor for Picky {
        fn class(&self) -> Class {
            self.0.class()
        }
        fn device(&self) -> String {
            self.0.device()
        }
        fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
            if query.terms[0].doc_freq == 4 {
                return Err(ExecError::BeyondGpu {
                    what: "the number of the query's terms is",
                    count: 65,
                    most: 64,
                    cpu_most: 1024,
                });
            }
            self.0.search(query, mode, k, hits)
        }
    }
    let picky = || Box::new(Picky(Mock { kind: Class::GPU, searches: 0, score_from: (0, 1.0) })) as Box<dyn Executor>;
    let batches = BatchOptions { sizes: vec![1, 2, 4], repeats: 4, time_a_size: Duration::ZERO, seed: 1 };
    let options = ProfileOptions { batches: Some(batches), ..ProfileOptions::default() };
    let mut executors = [picky(), mock(Class::CPU, (0, 1.0))];
    let (rows, batches) = measure(&mut executors, &queries(), &options, &mut |_| ()).unwrap();
    for row in &rows {
        assert_eq!(row.measured[Class::GPU].is_some(), row.query != 3);
        assert!(row.measured[Class::CPU].is_some());
        assert_eq!(row.results, row.query as u32 + 1);
    }
    assert!(batches.0[Class::GPU].is_some());
    let error = measure(&mut [picky()], &queries(), &options, &mut |_| ()).unwrap_err().to_string();
    assert!(error.starts_with("query q3, and, on gpu: "), "{error}");
}

#[test]
fn processors_that_disagree_are_an_error_that_names_the_query() {
    let mut executors = [mock(Class::CPU, (0, 1.0)), mock(Class::GPU, (7, 2.0))];
    let error = measure(&mut executors, &queries(), &ProfileOptions::default(), &mut |_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "query q2, or: cpu and gpu differ at rank 1: document 0 with score 1, and document 0 with score 2"
    );
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let cpu = || mock(Class::CPU, (0, 1.0));
    let refused = |executors: &mut [Box<dyn Executor>], queries: &[Query], options: ProfileOptions| {
        measure(executors, queries, &options, &mut |_| ()).unwrap_err().to_string()
    };
    let usual = ProfileOptions::default;
    let queries = queries();
    assert!(refused(&mut [], &queries, usual()).starts_with("a profile takes one processor of a kind"));
    assert!(refused(&mut [cpu(), cpu()], &queries, usual()).starts_with("a profile takes one processor of a kind"));
    assert_eq!(refused(&mut [cpu()], &[], usual()), "there are no queries to measure");
    let none = ProfileOptions { repeats: 0, ..usual() };
    assert_eq!(refused(&mut [cpu()], &queries, none), "repeats is 0, expected 1 or more");
    let many = ProfileOptions { k: 10_001, ..usual() };
    assert_eq!(refused(&mut [cpu()], &queries, many), "query q0, and, on cpu: k is 10001, expected 1 to 10000");
}
