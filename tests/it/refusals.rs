//! Errors of users, command by command. Each refusal names the error and its place, exits with 2, comes before long work,
//! and leaves no file behind.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `tandem` with these arguments, separated by white space, inside `dir`.
fn tandem(dir: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.current_dir(dir).args(arguments.split_whitespace()).output().unwrap()
}

#[track_caller]
fn succeeds(dir: &Path, arguments: &str) -> String {
    let output = tandem(dir, arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments}: {errors}");
    errors
}

/// Checks that the error contains `expected`, that no file appears or vanishes, and that only errors are printed.
#[track_caller]
fn refuses(dir: &Path, arguments: &str, expected: &str) {
    let before = files(dir);
    let output = tandem(dir, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {errors}");
    let error = errors.find("error: ").map_or("", |start| &errors[start..]);
    assert!(error.contains(expected), "{arguments}: {errors}");
    assert!(output.stdout.is_empty(), "{arguments}: {}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(files(dir), before, "{arguments}");
}

fn files(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            found.push(path.display().to_string());
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A synthetic index in `i` with the log `i/queries.tsv`, its costs in `w.csv`, a file and an empty folder.
fn world() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    succeeds(dir.path(), "index synth --docs 1000 --num-queries 60 -o i");
    succeeds(dir.path(), "profile i --queries i/queries.tsv -o w.csv --repeats 1 --on cpu");
    fs::write(dir.path().join("file"), "").unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    dir
}

#[test]
fn negative_numbers_reach_the_checks_that_explain_them() {
    let dir = world();
    for (arguments, expected) in [
        ("simulate --rate -1", "--rate: rate -1 is out of range"),
        ("simulate --deadline-ms -1", "--deadline-ms is -1, expected above 0"),
        ("simulate --set cost-weight=-1", "--set cost-weight=-1: expected a number from 0"),
        ("simulate --num-queries -1", "invalid value '-1' for '--num-queries"),
        ("live i --queries i/queries.tsv --seconds -2", "--seconds is -2, expected above 0"),
        ("validate --live-seconds -2", "--live-seconds is -2, expected above 0"),
        ("trace --rate -3", "--rate: rate -3 is out of range"),
        ("index synth --docs -5 -o s", "invalid value '-5' for '--docs"),
        ("index build file -o s --k1 -1", "--k1 is -1, expected 0 to 1000"),
        ("index reorder i -o s --max-share -1", "--max-share is -1, expected 0 to 1"),
    ] {
        refuses(dir.path(), arguments, expected);
    }
}

#[test]
fn wrong_settings_and_old_options_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        ("simulate --set batch-limt=8", "the nearest is batch-limit (see `tandem help settings`)"),
        (
            "live --set shard-costs=independent",
            "live does not read shard-costs: simulate, sweep do (see `tandem help settings`)",
        ),
        ("sweep --set patience=few", "patience: invalid digit found in string (see `tandem help settings`)"),
        ("validate --set patience=3 --set patience=4", "--set: a key is given twice"),
        ("search i --set gpu-memory-log=q.tsv word", "--set gpu-memory-log: needs --gpu-memory BYTES"),
        ("profile --set idle=sleep", "--set idle: needs --machine"),
        ("simulate --batch-limit 8", "--batch-limit is no option: it is now --set batch-limit=VALUE"),
        ("live --time-warp", "--time-warp is no option: it is now --set time-warp=VALUE, a setting of live"),
        ("capacity --miss-share=0.01", "--miss-share is no option: it is now --objective miss-share=X"),
        ("train --sed 1", "unexpected argument '--sed' found"),
    ] {
        refuses(dir.path(), arguments, expected);
    }
    let help = tandem(dir.path(), "help settings");
    assert!(String::from_utf8_lossy(&help.stdout).contains("  --set shed=<WHICH>"));
}

#[test]
fn unwritable_results_are_refused_before_the_work() {
    let dir = world();
    let log = "i --queries i/queries.tsv";
    for (arguments, expected) in [
        (String::from("simulate --out file"), "cannot write file/summary.csv: Not a directory"),
        (format!("live {log} --out file/x"), "cannot write file/x/summary.csv: Not a directory"),
        (format!("capacity {log} --out file"), "cannot write file/live_runs.csv: Not a directory"),
        (String::from("validate --out file"), "cannot write file/live_runs.csv: Not a directory"),
        (format!("bench {log} --out file"), "cannot write file/bench.csv: Not a directory"),
        (String::from("reproduce tatikonda-fig7 --out file"), "cannot write file/tatikonda-fig7.csv: Not a directory"),
        (format!("profile {log} -o folder"), "cannot write folder: is a directory"),
        (String::from("train w.csv -o folder"), "cannot write folder: is a directory"),
        (String::from("trace -o folder"), "cannot write folder: is a directory"),
        (format!("search {log} -o folder"), "cannot write folder: is a directory"),
        (String::from("index synth --docs 1000 -o file"), "cannot write file/index.tandem: Not a directory"),
        (
            String::from("index synth --docs 1000 --num-queries 9 --queries-out folder -o s"),
            "cannot write folder: is a directory",
        ),
        (String::from("index build folder -o file"), "cannot write file/index.tandem: Not a directory"),
        (String::from("index import x.ciff -o file"), "cannot write file/index.tandem: Not a directory"),
        (String::from("index reorder i -o r --permutation-out folder"), "cannot write folder: is a directory"),
        (String::from("index quantise i -o file"), "cannot write file/index.tandem: Not a directory"),
    ] {
        refuses(dir.path(), &arguments, expected);
    }
}

#[test]
fn what_is_missing_is_said_before_the_work() {
    let dir = world();
    succeeds(dir.path(), "index quantise i -o q");
    let live = "live i --queries i/queries.tsv";
    let rest = "--out o";
    for (arguments, expected) in [
        (format!("{live} --estimates none.json {rest}"), "none.json: cannot open: "),
        (
            String::from("capacity i --queries i/queries.tsv --gpu replay --out o"),
            "--gpu replay: recorded times are not of this machine",
        ),
        (String::from("capacity i --queries i/queries.tsv --seeds 1,1 --out o"), "--seeds 1,1: 1 is given twice"),
        (
            String::from("capacity i --queries i/queries.tsv --live-seconds 0 --out o"),
            "--live-seconds is 0, expected above 0 and at most 86400",
        ),
        (String::from("capacity i --queries i/queries.tsv --cpus 900 --out o"), "--cpus is 900, and this machine has"),
        (
            format!("{live} --estimates none {rest}"),
            "none: is no file, and no model of this name ships (those that do: ",
        ),
        (format!("{live} --arrivals none {rest}"), "none: no such file, and none of poisson"),
        (
            format!("{live} --rate 1e9 --seconds 100 {rest}"),
            "100000000000 queries at 1000000000 per second are too many",
        ),
        (String::from("live file --queries i/queries.tsv --out o"), "file: is a file, expected the folder of an index"),
        (String::from("index info i/index.tandem"), "i/index.tandem: is a file, expected the folder of an index"),
        (format!("{live} --trace none.csv {rest}"), "none.csv: cannot open: "),
        (format!("validate -k 0 {rest}"), "k is 0, expected 1 to 10000"),
        (format!("validate -k 10001 {rest}"), "k is 10001, expected 1 to 10000"),
        (
            format!("validate --gpu none --policy stealing,gpu-only {rest}"),
            "policy stealing needs a GPU, and --gpu is none",
        ),
        (String::from("simulate --estimates none.json"), "none.json: cannot open: "),
        (String::from("simulate --estimates file"), "file:1:1: EOF while parsing a value"),
        (String::from("trace --rate 1e300"), "--rate: rate 1e300 is out of range"),
        (String::from("trace --num-queries 4000000000"), "4000000000 is not in 1..=100000000"),
        (String::from("index synth --docs 2147483648 -o s"), "--docs is 2147483648, expected 1000 to 2147483647"),
        (
            String::from("index synth --docs 2147483647 -o s"),
            "2147483647 documents of 240 tokens hold 2.4e11 postings, and an index has at most",
        ),
        (
            String::from("index synth --docs 1000 --num-queries 18446744073709551615 -o s"),
            "18446744073709551615 queries, expected at most 100000000",
        ),
        (format!("validate --docs 2147483647 {rest}"), "2147483647 documents of 240 tokens hold"),
        (String::from("index reorder i -o r --by length --max-share 0.2"), "--max-share is for --by bisection"),
        (String::from("index reorder i -o i"), "it is an input of this command (i/index.tandem)"),
        (String::from("index quantise i -o i"), "it is an input of this command (i/index.tandem)"),
        (String::from("index quantise q -o r"), "q: holds impacts already, expected an index of frequencies"),
        (String::from("index build folder -o s"), "folder: the collection is empty"),
        (String::from("index build file -o s"), "file: the collection is empty"),
    ] {
        refuses(dir.path(), &arguments, expected);
    }
}

#[test]
fn bytes_that_are_no_text_are_named_by_line_and_column() {
    let dir = world();
    fs::write(dir.path().join("latin1.txt"), b"the\nna\xefve\n").unwrap();
    let header = "query_id,mode,terms,shortest,second_shortest,postings,cpu_us,gpu_us,results\n";
    fs::write(dir.path().join("bad.csv"), [header.as_bytes(), b"0,or,\xff\n"].concat()).unwrap();
    fs::write(dir.path().join("bad.trace.csv"), b"arrival_us,query_id\n0,0\n\xff\n").unwrap();
    fs::write(dir.path().join("bad.qrels"), b"1 0 \xe4 1\n").unwrap();
    let not_utf8 = |place: &str| format!("{place}: is not UTF-8");
    for (arguments, place) in [
        ("index build folder -o s --stop-words latin1.txt", "latin1.txt:2:3"),
        ("index reorder i -o s --by score --file latin1.txt", "latin1.txt:1:1: \"the\", expected a number"),
        ("search i --queries i/queries.tsv --qrels bad.qrels", "bad.qrels:1:5"),
        ("train bad.csv -o m.json", "bad.csv:2:6"),
        ("simulate --workload bad.csv --out o", "bad.csv:2:6"),
        ("simulate --workload w.csv --gpus 0 --mode and --trace bad.trace.csv --out o", "bad.trace.csv:3:1"),
        ("trace --arrivals bad.trace.csv -o o", "bad.trace.csv:3:1"),
    ] {
        let expected = if place.contains("expected") { place.to_owned() } else { not_utf8(place) };
        refuses(dir.path(), arguments, &expected);
    }
}

#[test]
fn a_trace_of_unknown_queries_is_refused_with_its_place() {
    let dir = world();
    let trace = "arrival_us,query_id\n0,59\n5, 60\n";
    fs::write(dir.path().join("unknown.trace.csv"), trace).unwrap();
    let live = "live i --queries i/queries.tsv --gpu none --mode and --trace unknown.trace.csv --out o";
    let measured = "unknown.trace.csv:3:4: `query_id` is 60, and without --workload there are 0 to 59 only";
    refuses(dir.path(), live, measured);
    let profiled = "unknown.trace.csv:3:4: `query_id` is 60, and the workload has no such query in mode and";
    refuses(dir.path(), "simulate --workload w.csv --gpus 0 --mode and --trace unknown.trace.csv --out o", profiled);
}

#[test]
fn byte_order_marks_and_windows_line_ends_are_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let with_mark = |name: &str, text: &str| fs::write(dir.path().join(name), format!("\u{feff}{text}")).unwrap();
    with_mark("c.jsonl", "{\"id\":\"a\",\"text\":\"apple pear\"}\r\n{\"id\":\"b\",\"text\":\"pear\"}\r\n");
    with_mark("q.tsv", "1\tpear\r\n");
    with_mark("q.qrels", "1 0 a 1\r\n");
    with_mark("stop.txt", "apple\r\n");
    succeeds(dir.path(), "index build c.jsonl -o i --stop-words stop.txt");
    let errors = succeeds(dir.path(), "search i --queries q.tsv --qrels q.qrels");
    assert!(errors.contains("1 query, 2 results,") && errors.contains("1 judged query: MAP 1.0000"), "{errors}");
    refuses(dir.path(), "search i apple", "the query is empty: it holds no word, or only stop words");

    succeeds(dir.path(), "profile i --queries q.tsv -o w.csv --repeats 1 --on cpu --mode or");
    let workload = fs::read_to_string(dir.path().join("w.csv")).unwrap();
    with_mark("windows.csv", &workload.replace('\n', "\r\n"));
    with_mark("windows.trace.csv", "arrival_us,query_id\r\n10,0\r\n20,0\r\n");
    let simulate = "simulate --workload windows.csv --gpus 0 --estimates oracle --trace windows.trace.csv";
    succeeds(dir.path(), simulate);
}

#[cfg(unix)]
#[test]
fn names_of_files_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt;
    let dir = world();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.current_dir(dir.path()).args(["search", "i", "--queries", "i/queries.tsv", "--format", "csv", "-o"]);
    let output = command.arg(std::ffi::OsStr::from_bytes(b"r\xff.csv")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(files(dir.path()).iter().any(|file| file.ends_with("r\u{fffd}.csv")));
}

#[test]
fn names_of_queries_tell_results_apart() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("c.jsonl"), "{\"id\":\"a\",\"text\":\"apple pear\"}\n").unwrap();
    fs::write(dir.path().join("q.tsv"), "1\tpear\n1\tapple\n").unwrap();
    fs::write(dir.path().join("other.qrels"), "9 0 a 1\n").unwrap();
    succeeds(dir.path(), "index build c.jsonl -o i");
    let twice = "q.tsv: two queries are named \"1\", expected a name for each in a TREC run";
    refuses(dir.path(), "search i --queries q.tsv --format trec", twice);
    refuses(dir.path(), "search i --queries q.tsv --qrels other.qrels", twice);
    succeeds(dir.path(), "search i --queries q.tsv");
    fs::write(dir.path().join("q.tsv"), "1\tpear\n").unwrap();
    let strange = "other.qrels: judges no query of q.tsv: do their names differ?";
    refuses(dir.path(), "search i --queries q.tsv --qrels other.qrels", strange);
}

#[test]
fn queries_of_1024_terms_are_answered_and_longer_refused() {
    let dir = tempfile::tempdir().unwrap();
    let words = |count: usize| (0..count).map(|i| format!("w{i}")).collect::<Vec<_>>().join(" ");
    fs::write(dir.path().join("c.jsonl"), format!("{{\"id\":\"a\",\"text\":\"{}\"}}\n", words(1030))).unwrap();
    succeeds(dir.path(), "index build c.jsonl -o i");
    fs::write(dir.path().join("q.tsv"), format!("1\t{}\n", words(1024))).unwrap();
    assert!(!succeeds(dir.path(), "search i --queries q.tsv").contains("dropped"));
    fs::write(dir.path().join("q.tsv"), format!("1\tw1\n2\t{}\n", words(1025))).unwrap();
    refuses(dir.path(), "search i --queries q.tsv", "q.tsv:2: 1025 terms, expected at most 1024");
}
