//! A real GPU that fails in the middle of a run: a kernel that writes to an invalid address, kernels that never end.
//!
//! A fault destroys its CUDA context. Each test therefore breaks a GPU in a process of its own. The GPU lane of a live run has a
//! CPU as its fallback. Without a GPU these tests print a note and pass; with `TANDEM_REQUIRE_GPU` set they fail.
#![cfg(feature = "gpu")]

mod occupied;
mod skipped;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cudarc::driver::{CudaContext, LaunchConfig};
use cudarc::nvrtc::Ptx;
use occupied::{flag, in_a_process_that_waits, occupy};
use tandem::base::ids::{JobId, QueryId};
use tandem::base::machine::{FaultKind, FaultPlan, Machine, PerClass};
use tandem::base::time::Nanos;
use tandem::cost::{Cost, MachineModel};
use tandem::index::{Bm25, Index, IndexBuilder};
use tandem::live::{self, Ending, LanePool, LaneWork, LiveOutcome, LiveQuery, LiveRun, QuerySet};
use tandem::query::Query;
use tandem::sched::{Job, Jobs, Lane, LanesToPoll, Next, Policy};
use tandem::search::cpu::CpuExecutor;
use tandem::search::device::DRIVER_FUNCTIONS;
use tandem::search::gpu::GpuExecutor;
use tandem::search::{Answers, Executor, Pipeline, Request};
use tandem::traffic::Mode;

/// The binding loads each function at its first call, and panics without it. The program holds the names of those that it can call.
#[test]
fn every_function_of_the_driver_is_looked_for_at_the_start() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_tandem")).unwrap();
    let is_name = |text: &[u8]| {
        text.starts_with(b"cu") && text[2].is_ascii_uppercase() && text[3..].iter().all(u8::is_ascii_alphabetic)
    };
    let places = (0..program.len() - 64).filter(|&at| is_name(&program[at..at + 6]));
    let (mut found, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    for text in places.map(|at| &program[at..at + 64]) {
        // Some names begin with others.
        let known = DRIVER_FUNCTIONS.iter().filter(|name| text.starts_with(name.to_bytes()));
        match known.max_by_key(|name| name.count_bytes()) {
            Some(name) => found.insert(name.to_string_lossy()),
            None => unknown.insert(String::from_utf8_lossy(&text[..40])),
        };
    }
    assert!(unknown.is_empty(), "add to DRIVER_FUNCTIONS: {unknown:?}");
    assert_eq!(found.len(), DRIVER_FUNCTIONS.len(), "{found:?}");
}

/// A kernel that writes to an invalid address.
const WILD: &str = "
.version 7.0
.target sm_70
.address_size 64

.visible .entry wild()
{
    .reg .b64 %address;
    .reg .b32 %value;
    mov.u64 %address, 64;
    mov.u32 %value, 1;
    st.global.u32 [%address], %value;
    ret;
}
";

/// Time from the start of the run to the fault; the run lasts several times as long.
const AFTER: Duration = Duration::from_millis(100);
const QUERIES: u32 = 4000;
/// Gap between arrivals: ten come in a millisecond.
const GAP: Nanos = Nanos(100_000);
/// Watchdogs for a GPU that hangs, and for one whose driver reports an error, which may take long on several GPUs.
const WATCHDOG: Nanos = Nanos(200_000_000);
const PATIENT: Nanos = Nanos(20_000_000_000);
/// The limit of waits for a GPU in the test of other uses than live runs, in seconds.
const WAIT_S: f64 = 3.0;

/// First come, first served, in batches of up to 64.
struct Fifo;

impl Policy for Fifo {
    fn name(&self) -> &str {
        "fifo"
    }

    fn arrive(&mut self, _: &Job, _: &Jobs, _: Nanos) -> LanesToPoll {
        LanesToPoll::Everyone
    }

    fn next(&mut self, _: Lane, jobs: &Jobs, _: Nanos, batch: &mut Vec<JobId>) -> Next {
        batch.extend(jobs.iter_waiting().take(64).map(|job| job.id));
        if batch.is_empty() { Next::Wait } else { Next::Run }
    }
}

/// Runs the test of this `name` in a process of its own, if there is a GPU.
fn in_its_own_process(name: &str, test: impl FnOnce()) {
    in_a_process_that_waits(name, 120.0, test);
}

fn write_index() -> Arc<Index> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let num_docs = 50_000;
    let mut builder = IndexBuilder::new((0..num_docs).map(|doc| 10 + doc % 90).collect(), Vec::new(), Bm25::default());
    for term in 0..20_u32 {
        let list: Vec<(u32, u32)> = (0..num_docs).step_by(3 + term as usize).map(|doc| (doc, 1 + doc % 3)).collect();
        builder.add(&format!("t{term:03}"), &list).unwrap();
    }
    builder.write(&path).unwrap();
    Arc::new(Index::open(&path).unwrap())
}

/// A run on a GPU's lane, which `break_it` breaks from another thread.
fn run_on_gpu(watchdog: Nanos, break_it: impl FnOnce(&Arc<CudaContext>) + Send) -> LiveOutcome {
    let index = write_index();
    let queries = (0..100_u32).map(|id| {
        let terms = [id % 20, (id / 5 + 7) % 20].map(|term| format!("t{term:03}"));
        let query = Query::prepare(QueryId(id), "q", &terms, &index).unwrap();
        LiveQuery { id: QueryId(id), query, mode: Mode::Or, results: None }
    });
    let queries = Arc::new(QuerySet::new(10, queries));
    let gpu = Box::new(GpuExecutor::new(&index, Bm25::default()).unwrap());
    let fallback = Box::new(CpuExecutor::new(Arc::clone(&index), Bm25::default()));
    let faults = FaultPlan::new(Vec::new(), watchdog);
    let model = MachineModel { faults, ..Machine::default().with_gpus(1, 1, 2).into() };
    let mut lane_pool =
        LanePool::spawn(model, vec![LaneWork::WithFallback(gpu, fallback)], queries, Vec::new()).unwrap();
    lane_pool.warm_up(Duration::from_millis(50)).unwrap();
    let costs = PerClass::from_fn(|_| Cost::alone(Nanos(1000)));
    let told: Vec<_> = (0..100).map(|id| (QueryId(id), costs)).collect();
    let arrivals = (0..QUERIES).map(|i| (Nanos(u64::from(i) * GAP.0), i % 100));
    let jobs = live::plan(arrivals, &told, Nanos::MAX);
    // This is the executor's own context: a process has one for each device.
    let context = CudaContext::new(0).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            context.bind_to_thread().unwrap();
            std::thread::sleep(AFTER);
            break_it(&context);
        });
        let run = LiveRun::new(Box::new(Fifo), &jobs);
        live::run(&mut lane_pool, run).unwrap()
    })
}

/// Checks that every query was answered once and the lane's fault is of this `kind`. The answers were compared with
/// earlier ones during the run.
fn assert_survived(outcome: &LiveOutcome, kind: FaultKind) {
    assert!(matches!(outcome.ending, Ending::Complete), "{:?}", outcome.ending);
    let ids: Vec<u32> = outcome.log.rows.iter().map(|row| row.job.0).collect();
    assert_eq!(ids, (0..QUERIES).collect::<Vec<_>>());
    let [fault] = &outcome.log.faults[..] else { panic!("{:?}", outcome.log.faults) };
    println!("{fault:?}");
    assert!(fault.kind == kind && fault.is_retired && fault.queries > 0, "{fault:?}");
    let again = outcome.log.rows.iter().filter(|row| row.again).count();
    assert!(again >= fault.queries, "{again} rows ran again");
    // The GPU answered before the fault, the CPU after it.
    assert!(outcome.log.rows.iter().any(|row| row.finished < fault.at));
    assert!(outcome.log.rows.iter().any(|row| row.started > fault.at));
}

#[test]
fn an_illegal_write_costs_the_gpu_and_no_answer() {
    in_its_own_process("an_illegal_write_costs_the_gpu_and_no_answer", || {
        let outcome = run_on_gpu(PATIENT, |context| {
            let module = context.load_module(Ptx::from_src(WILD)).unwrap();
            let wild = module.load_function("wild").unwrap();
            let stream = context.new_stream().unwrap();
            let shape = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
            // SAFETY: the kernel takes no arguments, and is meant to destroy the context.
            unsafe { stream.launch_builder(&wild).launch(shape) }.unwrap();
            // The call fails by now; memory of the context cannot be freed.
            let _ = stream.synchronize();
            std::mem::forget((wild, module, stream));
        });
        assert_survived(&outcome, FaultKind::Error);
    });
}

#[test]
fn the_watchdog_leaves_a_hanging_gpu_and_loses_no_query() {
    in_its_own_process("the_watchdog_leaves_a_hanging_gpu_and_loses_no_query", || {
        let flag = flag();
        let outcome = run_on_gpu(WATCHDOG, |context| occupy(context, flag));
        flag.store(1, Ordering::SeqCst);
        assert_survived(&outcome, FaultKind::Hang);
        let waited = outcome.log.faults[0].at;
        assert!(waited >= WATCHDOG, "{waited:?}");
    });
}

#[test]
fn a_hanging_gpu_ends_every_use_in_an_error() {
    let name = "a_hanging_gpu_ends_every_use_in_an_error";
    in_a_process_that_waits(name, WAIT_S, || {
        let index = write_index();
        let executor = || GpuExecutor::new(&index, Bm25::default()).unwrap();
        let (mut alone, mut together, mut piped) = (executor(), executor(), executor());
        let query = Query::prepare(QueryId(0), "lost", &["t001", "t002"], &index).unwrap();
        let batch = [Request { query: &query, mode: Mode::Or, k: 10 }; 300];
        let mut answers = Answers::default();
        together.search_batch(&batch, &mut answers).unwrap();
        piped.submit(&batch).unwrap();
        while piped.poll(&mut answers).is_none() {}

        let flag = flag();
        occupy(&CudaContext::new(0).unwrap(), flag);
        piped.submit(&batch).unwrap();
        let began = Instant::now();
        let error = alone.search(&query, Mode::Or, 10, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("query lost") && error.contains("CUDA_ERROR_TIMEOUT"), "{error}");
        assert!(began.elapsed().as_secs_f64() >= WAIT_S);
        let error = together.search_batch(&batch, &mut answers).unwrap_err().to_string();
        assert!(error.contains("a batch of 300") && error.contains("CUDA_ERROR_TIMEOUT"), "{error}");
        let polled = loop {
            if let Some(polled) = piped.poll(&mut answers) {
                break polled;
            }
        };
        let error = polled.unwrap_err().to_string();
        assert!(error.contains("a batch of 300") && error.contains("CUDA_ERROR_TIMEOUT"), "{error}");
        let error = alone.search(&query, Mode::Or, 10, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("stopped at an earlier error"), "{error}");
        drop((alone, together, piped));

        let error = GpuExecutor::new(&index, Bm25::default()).unwrap_err().to_string();
        assert!(error.contains("did not answer"), "{error}");
        assert!(began.elapsed().as_secs_f64() < 3.0 * WAIT_S, "only the first wait takes its time");
        flag.store(1, Ordering::SeqCst);
    });
}
