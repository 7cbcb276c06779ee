//! `tandem search` from the user's view: output, and errors with their place.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tandem::index::{Bm25, IndexBuilder};

/// Three documents: `0` "apple pear", `1` "apple apple", `doc 2` "plum".
fn build(dir: &Path) {
    let ids = ["0", "1", "doc 2"].map(String::from).to_vec();
    let mut builder = IndexBuilder::new(vec![2, 2, 1], ids, Bm25::default());
    builder.add("apple", &[(0, 1), (1, 2)]).unwrap();
    builder.add("pear", &[(0, 1)]).unwrap();
    builder.add("plum", &[(2, 1)]).unwrap();
    builder.write(&dir.join("index")).unwrap();
}

/// A folder with the index of [`build`] and a query log.
fn world() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    build(dir.path());
    fs::write(dir.path().join("log.tsv"), "query_id\tquery\na b\tapple pear\nx\tkiwi\nc\tplum kiwi\n").unwrap();
    dir
}

/// Runs `tandem search` with these arguments, separated by white space, inside `dir`.
fn search(dir: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.current_dir(dir).arg("search").args(arguments.split_whitespace()).output().unwrap()
}

#[track_caller]
fn refuses(dir: &Path, arguments: &str, expected: &str) {
    let output = search(dir, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {errors}");
    // Notes may come before the error, which comes last.
    let error = errors.find("error: ").map_or("", |start| &errors[start..]);
    assert!(error.contains(expected), "{arguments}: {errors}");
    assert!(output.stdout.is_empty(), "{arguments}");
}

#[track_caller]
fn answers(dir: &Path, arguments: &str) -> (String, String) {
    let output = search(dir, arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments}: {errors}");
    (String::from_utf8(output.stdout).unwrap(), errors)
}

#[test]
fn trec_runs_have_six_columns_and_scores_that_read_back() {
    let dir = world();
    let (run, errors) = answers(dir.path(), "index --queries log.tsv --mode or --format trec --tag t1");
    let rows: Vec<Vec<&str>> = run.lines().map(|line| line.split(' ').collect()).collect();
    let places: Vec<String> = rows.iter().map(|row| [row[0], row[1], row[2], row[3], row[5]].join(" ")).collect();
    assert_eq!(places, [r"a\sb Q0 0 1 t1", r"a\sb Q0 1 2 t1", r"c Q0 doc\s2 1 t1"]);
    assert!(rows.iter().all(|row| row[4].parse::<f32>().unwrap() > 0.0));
    assert!(errors.contains("2 queries"), "{errors}");
}

#[test]
fn csv_names_its_columns_below_its_provenance() {
    let dir = world();
    answers(dir.path(), "index --queries log.tsv --mode and --format csv -o out/run.csv");
    let text = fs::read_to_string(dir.path().join("out/run.csv")).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(text.starts_with("# tandem: "), "{text}");
    assert_eq!(rows[0], "query_id,rank,doc_id,score");
    assert!(rows[1].starts_with("a b,1,0,") && rows[2].starts_with("c,1,doc 2,") && rows.len() == 3, "{text}");
}

#[test]
fn words_on_the_command_line_give_a_table() {
    let dir = world();
    let (table, errors) = answers(dir.path(), "index apple");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines[0].starts_with("rank") && lines[1].ends_with("  1") && lines[2].ends_with("  0"), "{table}");
    assert!(errors.contains("1 query, 2 results, on cpu"), "{errors}");
}

#[test]
fn threads_change_nothing_but_the_time() {
    let dir = world();
    let alone = answers(dir.path(), "index --queries log.tsv --format trec").0;
    assert_eq!(answers(dir.path(), "index --queries log.tsv --format trec --cpus 4").0, alone);
}

#[test]
fn judgements_are_averaged_over_judged_queries() {
    let dir = world();
    fs::write(dir.path().join("q.qrels"), "c 0 doc\u{a0}2 1\nx 0 1 1\n").unwrap();
    refuses(dir.path(), "index --queries log.tsv --qrels q.qrels", "q.qrels:1: 5 fields");
    fs::write(dir.path().join("q.qrels"), "a 0 0 1\nx 0 1 1\n").unwrap();
    fs::write(dir.path().join("log.tsv"), "query_id\tquery\na\tpear\n").unwrap();
    let (_, errors) = answers(dir.path(), "index --queries log.tsv --qrels q.qrels");
    assert!(
        errors.contains("1 judged query is not in log.tsv and left out of the means")
            && errors.contains("1 judged query: MAP 1.0000, nDCG@10 1.0000, reciprocal rank 1.0000, recall 1.0000"),
        "{errors}"
    );
}

#[test]
fn senseless_options_are_refused() {
    let dir = world();
    refuses(dir.path(), "index apple -k 0", "k is 0, expected 1 to 10000");
    refuses(dir.path(), "index apple -k 10001", "k is 10001, expected 1 to 10000");
    refuses(dir.path(), "index apple -k 99999999999999999999", "99999999999999999999");
    refuses(dir.path(), "index apple -k -1", "-1");
    refuses(dir.path(), "index apple --k1 NaN", "--k1 is NaN, expected 0 to 1000");
    refuses(dir.path(), "index apple --k1 -0.1", "--k1 is -0.1, expected 0 to 1000");
    refuses(dir.path(), "index apple --b 1.5", "--b is 1.5, expected 0 to 1");
    refuses(dir.path(), "index apple --b inf", "--b is inf, expected 0 to 1");
    refuses(dir.path(), "index apple --cpus 0", "--cpus is 0, expected 1 to 1024");
    refuses(dir.path(), "index apple --on gpu --cpus 2", "--cpus is for --on cpu");
    refuses(dir.path(), "index apple --batch 16", "--batch is for --on gpu");
    refuses(dir.path(), "index apple --on gpu --batch 0", "--batch is 0, expected 1 to 1048576");
    refuses(dir.path(), "index", "nothing to search for: give words or --queries FILE");
    refuses(dir.path(), "index ...", "the query is empty");
    refuses(dir.path(), "index kiwi", "no document holds any of these words: kiwi");
}

#[test]
fn a_missing_or_damaged_index_is_refused() {
    let dir = world();
    refuses(dir.path(), "nowhere apple", "nowhere");
    for entry in fs::read_dir(dir.path().join("index")).unwrap() {
        let path = entry.unwrap().path();
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        refuses(dir.path(), "index apple", "index");
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 4;
        fs::write(&path, &flipped).unwrap();
        refuses(dir.path(), "index apple", "index");
        fs::write(&path, &whole).unwrap();
    }
    answers(dir.path(), "index apple");
}

#[test]
fn a_log_without_a_query_to_run_is_refused() {
    let dir = world();
    refuses(dir.path(), "index --queries none.tsv", "none.tsv");
    fs::write(dir.path().join("empty.tsv"), "").unwrap();
    refuses(dir.path(), "index --queries empty.tsv", "empty.tsv");
    fs::write(dir.path().join("kiwi.tsv"), "1\tkiwi\n").unwrap();
    refuses(dir.path(), "index --queries kiwi.tsv", "kiwi.tsv");
}

#[test]
fn results_that_cannot_be_written_are_an_error() {
    let dir = world();
    refuses(dir.path(), "index apple -o log.tsv/run.txt", "log.tsv");
}

#[test]
fn the_gpu_gives_the_same_run_or_says_why_not() {
    let dir = world();
    let output = search(dir.path(), "index --queries log.tsv --format trec --on gpu");
    if output.status.success() {
        let cpu = answers(dir.path(), "index --queries log.tsv --format trec").0;
        assert_eq!(String::from_utf8(output.stdout).unwrap(), cpu);
    } else {
        refuses(dir.path(), "index --queries log.tsv --format trec --on gpu", "no GPU to use: ");
    }
}

/// Runs `tandem search` with standard output on `output`; returns the exit code and errors.
#[cfg(unix)]
fn search_into(dir: &Path, output: impl Into<std::process::Stdio>) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    let child = command.current_dir(dir).args(["search", "index", "apple"]).stdout(output);
    let output = child.stderr(std::process::Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let dir = world();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let (code, errors) = search_into(dir.path(), writer);
    assert_eq!(code, Some(0), "{errors}");
    assert!(!errors.contains("error"), "{errors}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_takes_nothing_is_named() {
    let dir = world();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (code, errors) = search_into(dir.path(), full);
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("error: standard output: "), "{errors}");
}

#[test]
fn words_need_no_quotes() {
    let dir = world();
    let (apart, _) = answers(dir.path(), "index apple pear --mode and --format csv");
    let quoted = Command::new(env!("CARGO_BIN_EXE_tandem"))
        .current_dir(dir.path())
        .args(["search", "index", "apple pear", "--mode", "and", "--format", "csv"])
        .output()
        .unwrap();
    let rows = |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rows(&apart), rows(&String::from_utf8(quoted.stdout).unwrap()));
    assert_eq!(rows(&apart).len(), 2, "{apart}");
    refuses(dir.path(), "index apple --queries log.tsv", "cannot be used with");
}

#[test]
fn unknown_words_and_foreign_judgements_are_named() {
    let dir = world();
    let (_, errors) = answers(dir.path(), "index --mode and apple kiwi quince");
    let left_out = "they are left out, and documents that hold all of the others are found";
    assert!(errors.contains(&format!("2 of 3 words are in no document (kiwi, quince): {left_out}")), "{errors}");
    let (_, errors) = answers(dir.path(), "index --mode or apple kiwi");
    assert!(errors.contains("1 of 2 words are in no document (kiwi): they are left out\n"), "{errors}");
    let (_, errors) = answers(dir.path(), "index --mode and --queries log.tsv");
    assert!(
        errors.contains(&format!("mode and: 1 query asks for words that no document holds: {left_out}")),
        "{errors}"
    );
    let (_, errors) = answers(dir.path(), "index --mode or --queries log.tsv");
    assert!(!errors.contains("left out"), "{errors}");
    // No relevant document is found in either case; in the second none could be.
    for (judged, is_here) in [("1", true), ("elsewhere", false)] {
        fs::write(dir.path().join("qrels"), format!("c 0 {judged} 1\n")).unwrap();
        let (_, errors) = answers(dir.path(), "index --mode or --queries log.tsv --qrels qrels");
        assert!(errors.contains("MAP 0.0000"), "{errors}");
        let warning =
            "warning: qrels: none of the 1 document that it judges is in this index: is it of another collection?";
        assert_eq!(errors.contains(warning), !is_here, "{errors}");
    }
}
