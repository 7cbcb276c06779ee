//! `bench --what ingest`: queries answered while text is indexed on the same cores.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn tandem(dir: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.current_dir(dir).args(arguments.split(' ')).output().unwrap()
}

#[test]
fn every_split_of_the_cores_answers_and_indexes_by_those_it_has_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for doc in 0..500 {
        let words: Vec<String> = (0..50).map(|word| format!("w{}", doc * word % 97)).collect();
        writeln!(text, "{{\"id\":{doc},\"text\":\"{}\"}}", words.join(" ")).unwrap();
    }
    fs::write(dir.path().join("c.jsonl"), text).unwrap();
    fs::write(dir.path().join("q.tsv"), "1\tw1 w2\n2\tw5\n3\tw90 w7 w8\n").unwrap();
    assert!(tandem(dir.path(), "index build c.jsonl -o index").status.success());

    let bench = "bench index --queries q.tsv --what ingest -o b";
    let refused = tandem(dir.path(), bench);
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && message.contains("--ingest FILE"), "{message}");

    let done = tandem(dir.path(), &format!("{bench} --ingest c.jsonl"));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let written = fs::read_to_string(dir.path().join("b/bench.csv")).unwrap();
    let mut rows = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(written.as_bytes());
    let rows: Vec<(String, String, String, f64)> = rows.deserialize().map(Result::unwrap).collect();
    let threads = |name: &str| -> [usize; 2] {
        let numbers: Vec<usize> = name.split(' ').filter_map(|word| word.parse().ok()).collect();
        numbers.try_into().unwrap()
    };
    let all = threads(&rows[0].1)[1];
    assert_eq!((threads(&rows[0].1), threads(&rows.last().unwrap().1)), ([0, all], [all, 0]), "{written}");
    for (part, name, metric, value) in rows {
        let [index, answer] = threads(&name);
        assert_eq!((part.as_str(), index + answer), ("ingest", all), "{written}");
        let works = if metric == "queries_per_s" { answer } else { index };
        assert_eq!(value > 0.0, works > 0, "{written}");
    }
    assert!(
        fs::read_dir(dir.path().join("b")).unwrap().all(|entry| entry.unwrap().path().is_file()),
        "no index is left"
    );
}
