//! Tests of a worker's own times on a lane that overlaps batches.

use tandem_engine::query::Query;
use tandem_model::base::ids::QueryId;
use tandem_model::traffic::Mode;

use super::super::LiveQuery;
use super::*;

/// A device that takes every batch and ends none.
struct Accepting;

impl Pipeline for Accepting {
    fn depth(&self) -> usize {
        2
    }

    fn submit(&mut self, _: &[Request<'_>]) -> Result<(), ExecError> {
        Ok(())
    }

    fn poll(&mut self, _: &mut Answers) -> Option<Result<Execution, ExecError>> {
        None
    }
}

fn worker(queries: &Arc<QuerySet>) -> Worker {
    Worker {
        processor: ProcessorId(0),
        class: Class::GPU,
        queries: Arc::clone(queries),
        rings: Arc::new(Rings::new(2, 1)),
        driver: Arc::default(),
        driver_sleeps: false,
        // Times of the lane pool are far larger than those of a batch.
        epoch: Instant::now() - Duration::from_secs(1),
        depth: 2,
        owns_core: false,
        spins: Arc::default(),
        thread: 0,
        taken: 0,
        completed: 0,
        again: 0,
        without_memory: 0,
        last_done: 0,
    }
}

#[test]
fn host_time_is_of_requests_and_of_comparing_answers() {
    const QUERIES: u32 = 10_000;
    // No machine handles a query in a tenth of a nanosecond.
    const LEAST_NS: u64 = 1000;
    let live = |id| LiveQuery {
        id: QueryId(id),
        query: Query { id: QueryId(id), label: String::new(), terms: Vec::new(), dropped_terms: 0 },
        mode: Mode::And,
        results: None,
    };
    let queries = Arc::new(QuerySet::new(1, (0..QUERIES).map(live)));
    let (mut worker, mut belt) = (worker(&queries), Belt::new(2));
    worker.rings.order(1, 0..QUERIES, 0, 0);
    worker.submit_next(&mut Accepting, &queries, &mut belt);
    assert_eq!(belt.under_way.len(), 1);
    assert!(belt.host > LEAST_NS, "{} ns for requests", belt.host);
    belt.host = 0;
    belt.unchecked = Some((0..QUERIES).collect());
    (0..QUERIES).for_each(|_| belt.desk.answers.push(&[]));
    worker.check_ended(&queries, &mut belt);
    assert!(belt.unchecked.is_none() && belt.used.len() == 1);
    assert!(belt.host > LEAST_NS, "{} ns to compare answers", belt.host);
}
