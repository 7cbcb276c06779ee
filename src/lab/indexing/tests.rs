use proptest::prelude::*;

use super::*;
use crate::files::Provenance;
use crate::time::Nanos;

fn us(us: u64) -> Nanos {
    Nanos(us * 1000)
}

/// A run of so many microseconds of reading, parsing and jobs on a CPU; a GPU's warp takes ten times as long.
fn run(reading: u64, parsing: u64, jobs: &[u64]) -> IndexRun {
    let job = |&cost: &u64| IndexJob {
        tokens: cost * 10,
        stream_bytes: cost * 40,
        tree_bytes: cost * 1000,
        cpu: Some(us(cost)),
        gpu: Some((us(cost * 10), us(cost))),
    };
    IndexRun {
        text_bytes: 1_000_000,
        reading: us(reading),
        unpacking: us(0),
        parsing: us(parsing),
        preparing: us(1),
        collecting: us(2),
        jobs: jobs.iter().map(job).collect(),
    }
}

/// A trace whose threads don't slow each other.
fn trace(runs: Vec<IndexRun>) -> IndexTrace {
    IndexTrace { runs, company: Company::default() }
}

fn all_us(trace: &IndexTrace, machine: IndexMachine, policy: Option<IndexPolicy>) -> f64 {
    simulate_indexing(trace, &machine, policy).all.as_us()
}

#[test]
fn parsers_alone_are_bound_by_their_number_and_then_by_the_disk() {
    let trace = trace(vec![run(10, 30, &[1]); 40]);
    let time = |parsers| all_us(&trace, IndexMachine::new(parsers, 1, 0), None);
    // One parser reads and parses in turn; two side by side; four or more are as fast as the disk reads.
    assert_eq!(time(1), 40.0 * 40.0);
    assert_eq!(time(2), 10.0 + 20.0 * 40.0);
    assert_eq!((time(4), time(7)), (40.0 * 10.0 + 30.0, 40.0 * 10.0 + 30.0));
}

#[test]
fn runs_wait_for_parsers_or_parsers_for_runs() {
    // One run: read, parse, prepare, index, collect.
    let one = trace(vec![run(10, 30, &[20, 20])]);
    assert_eq!(all_us(&one, IndexMachine::new(1, 2, 0), Some(IndexPolicy::Split)), 10.0 + 30.0 + 1.0 + 20.0 + 2.0);
    // Many: whoever is slower decides.
    let many = trace(vec![run(10, 30, &[20, 20]); 100]);
    let slow_parser = all_us(&many, IndexMachine::new(1, 2, 0), Some(IndexPolicy::Split));
    assert_eq!(slow_parser, 100.0 * 40.0 + 23.0);
    let slow_indexers = all_us(&many, IndexMachine::new(4, 1, 0), Some(IndexPolicy::Split));
    assert_eq!(slow_indexers, 40.0 + 100.0 * 43.0);
}

#[test]
fn threads_that_work_at_once_slow_each_other() {
    let company = Company::new([(2, 1.5), (3, 2.0)]);
    // One parser reads and parses for 40 us while nobody else works; then the next run is parsed beside one that is indexed.
    let slowed = IndexTrace { runs: vec![run(10, 30, &[20]); 2], company: company.clone() };
    let machine = IndexMachine::new(1, 1, 0);
    // 1 + 20 + 2 us of the first run at 1.5 times, in which the parser does as much, and 17 left alone; the second run alone.
    assert_eq!(all_us(&slowed, machine, Some(IndexPolicy::Split)), 40.0 + 1.5 * 23.0 + 17.0 + 23.0);
    // Two CPUs, of which one is done after 10 us of work: three threads until then, and two after it.
    let uneven = IndexTrace { runs: vec![run(10, 30, &[10, 20]); 2], company: company.clone() };
    let all = all_us(&uneven, IndexMachine::new(1, 2, 0), Some(IndexPolicy::Split));
    assert_eq!(all, 40.0 + 1.5 * 1.0 + 2.0 * 10.0 + 1.5 * 12.0 + 17.0 + 1.0 + 1.5 * 10.0 + 10.0 + 2.0);
    // Parsers alone: the disk for the first, then all three at once.
    let parsers = IndexTrace { runs: vec![run(0, 30, &[1]); 3], company };
    assert_eq!(all_us(&parsers, IndexMachine::new(3, 1, 0), None), 60.0);
}

#[test]
fn a_split_that_a_sample_made_is_kept_and_others_mend_it() {
    // Half of the collection has its tokens in group 0, half in groups 1 and 2.
    let (first, second) = (run(0, 0, &[90, 10, 10, 10]), run(0, 0, &[10, 30, 30, 30]));
    let trace = trace([vec![first; 10], vec![second; 10]].concat());
    let machine = IndexMachine::new(1, 2, 0);
    let split = all_us(&trace, machine, Some(IndexPolicy::Split));
    let mct = all_us(&trace, machine, Some(IndexPolicy::Mct));
    let stealing = all_us(&trace, machine, Some(IndexPolicy::Stealing));
    // Groups 1 to 3 are on one CPU by the sample: 90 us a run of the second half, which others cut to 60 or less.
    assert!(mct < 0.9 * split && stealing < 0.9 * split, "split {split}, mct {mct}, stealing {stealing}");
    let moved = |policy| simulate_indexing(&trace, &machine, Some(policy)).moved_bytes;
    assert_eq!(moved(IndexPolicy::Split), 0);
    assert!(moved(IndexPolicy::Mct) > 0 && moved(IndexPolicy::Stealing) > 0);
}

#[test]
fn the_bound_of_two_jobs_is_the_one_worked_out_by_hand() {
    // Job 0: 10 us on the CPU, 100 us of 10 warps on the GPU; job 1: 10 and 20. Best: the GPU takes job 1 (2 us a GPU) and x
    // of job 0: 10 (1 - x) = 2 + 10 x, x = 0.4, T = 6.
    let job = |cpu, gpu| IndexJob { tokens: 1, cpu: Some(us(cpu)), gpu: Some((us(gpu), us(0))), ..IndexJob::default() };
    let run = IndexRun { text_bytes: 6_000_000, jobs: vec![job(10, 100), job(10, 20)], ..IndexRun::default() };
    let machine = IndexMachine { gpu_warps: 10, ..IndexMachine::new(1, 1, 1) };
    let bound = lp_bound(&trace(vec![run]), &machine).unwrap();
    assert!((bound / 1e12 - 1.0).abs() < 1e-9, "{bound}");
}

#[test]
fn jobs_come_back_from_their_file_and_files_out_of_order_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.index.csv");
    let mut trace = trace(vec![run(1, 2, &[3, 4]), run(5, 6, &[7, 8])]);
    trace.company = Company::new([(2, 1.25), (4, 2.0)]);
    trace.runs[1].jobs[0].gpu = None;
    trace.write(&path, &Provenance::new()).unwrap();
    assert_eq!(IndexTrace::read(&path).unwrap(), trace);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("# company: [[2,1.25],[4,2.0]]\n"), "{text}");
    std::fs::write(&path, text.replace("[4,2.0]", "[4,0.5]")).unwrap();
    let message = IndexTrace::read(&path).unwrap_err().to_string();
    assert!(message.contains("`company`: expected numbers of threads that ascend from 1"), "{message}");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for (kept, expected) in
        [(vec![0, 1, 2, 4], "out of order"), (vec![0, 1, 2, 3], "run 1 has not as many"), (vec![0], "has no jobs")]
    {
        let some: String = kept.iter().map(|&line| format!("{}\n", lines[line])).collect();
        std::fs::write(&path, some).unwrap();
        let message = IndexTrace::read(&path).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

proptest! {
    #[test]
    fn no_policy_beats_the_bound(
        costs in prop::collection::vec(prop::collection::vec(0_u64..200, 6), 1..12),
        (parsers, cpus, gpus) in (1_usize..4, 0_usize..4, 0_usize..3),
        reading in 0_u64..40,
        parsing in 0_u64..400,
        slower in 1.0_f64..4.0,
    ) {
        prop_assume!(cpus + gpus > 0);
        let trace = trace(costs.iter().map(|jobs| run(reading, parsing, jobs)).collect());
        let machine = IndexMachine { gpu_warps: 20, ..IndexMachine::new(parsers, cpus, gpus) };
        let bound = lp_bound(&trace, &machine).unwrap();
        let slowed = IndexTrace { company: Company::new([(4, slower)]), ..trace.clone() };
        for policy in IndexPolicy::ALL {
            let outcome = simulate_indexing(&trace, &machine, Some(policy));
            prop_assert!(outcome.all <= simulate_indexing(&slowed, &machine, Some(policy)).all);
            prop_assert!(outcome.bytes_per_s() <= bound * (1.0 + 1e-6), "{policy}: {} of {bound}", outcome.bytes_per_s());
            let alone = simulate_indexing(&trace, &machine, None);
            prop_assert!(alone.all <= outcome.all);
        }
    }
}
