//! Inputs from practice, rebuilt from public bug reports of other programs: none is misread or overwritten.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use tandem::corpus::ciff::{CiffHeader, CiffWriter};

fn tandem(dir: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.current_dir(dir).args(arguments.split_whitespace()).output().unwrap()
}

#[track_caller]
fn succeeds(dir: &Path, arguments: &str) -> (String, String) {
    let output = tandem(dir, arguments);
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments}: {}", said(&output.stderr));
    (said(&output.stdout), said(&output.stderr))
}

#[track_caller]
fn refuses(dir: &Path, arguments: &str, expected: &str) {
    let output = tandem(dir, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {errors}");
    assert!(errors.contains("error: ") && errors.contains(expected), "{arguments}: {errors}, expected {expected}");
}

fn write(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
    fs::write(dir.join(name), bytes).unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A folder with an index of a few pages in `ix`.
fn world() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let pages = [
        "harbour pilots strike",
        "lighthouse keeper",
        "ocean tides",
        "the 2019 org report",
        "id query",
        "39 caf\u{e9} dogs",
    ];
    let line = |(number, text): (usize, &&str)| format!("{{\"id\": \"D{number}\", \"text\": \"{text}\"}}\n");
    write(dir.path(), "c.jsonl", pages.iter().enumerate().map(line).collect::<String>());
    succeeds(dir.path(), "index build c.jsonl -o ix");
    dir
}

/// The query and document of each row of results, in order.
fn found(csv: &str) -> Vec<String> {
    let rows = csv.lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|row| row.split(',').step_by(2).take(2).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn queries_are_found_in_logs_of_any_form() {
    let dir = world();
    let aol = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n7001\tharbour pilots\t2019-03-01 07:17:12\t3\thttp://www.example.org\n\
               7002\tlighthouse keeper\t2019-03-01 07:17:12\t\t\n";
    for (log, expected, told) in [
        (aol.as_bytes().to_vec(), &["7001 D0", "7002 D1"][..], "tab-separated, 5 columns, query in column 2"),
        (
            b"qid\tquery\n1048585\tharbour pilots\n".to_vec(),
            &["1048585 D0"],
            "query in column 2 (`query`), header passed over; 1 query, 2.0",
        ),
        (
            b"id,query\n1,harbour pilots\n2,\"lighthouse, keeper\"\n".to_vec(),
            &["1 D0", "2 D1"],
            "comma-separated, 2 columns",
        ),
        (
            b"# topics\n<top>\n<num> Number: 301\n<title> tides\n</top>\n".to_vec(),
            &["301 D2"],
            "TREC topics; 1 query, 1.0 words",
        ),
        (
            b"who keeps the lighthouse\t['keeper']\nwhere do pilots strike\t['harbour']\n".to_vec(),
            &["0 D1", "0 D3", "1 D0"],
            "query in column 1",
        ),
        (
            b"<topics><topic type='n' number=\"7\"><query>the keeper &#51;9</query></topic></topics>".to_vec(),
            &["7 D1", "7 D3", "7 D5"],
            "TREC topics",
        ),
        (b"1:harbour pilots\n2:caf\xe9 tides\n".to_vec(), &["1 D0", "2 D2", "2 D5"], "1 of 2 lines in windows-1252"),
        (gzip(b"7\tocean tides\n"), &["7 D2"], "tab-separated"),
        ([&gzip(b"7\tocean tides\n")[..], &[0; 600]].concat(), &["7 D2"], "tab-separated"),
        ("\u{feff}7\tocean tides\n".encode_utf16().flat_map(u16::to_le_bytes).collect(), &["7 D2"], "UTF-16LE"),
        (b"[{\"_id\": \"7\", \"text\": \"ocean tides\"}]".to_vec(), &["7 D2"], "JSON; 1 query, 2.0 words"),
    ] {
        write(dir.path(), "log.txt", log);
        let (rows, notes) = succeeds(dir.path(), "search ix --queries log.txt --mode or --format csv");
        let mut rows = found(&rows);
        rows.sort();
        assert_eq!(rows, expected, "{told}");
        assert!(notes.contains(told), "{notes}");
    }
    for (log, expected) in [
        ("# tandem: 0.1.0\nquery_id,mode,terms\n0,or,2\n", "log.txt:1: is a file of results of this program"),
        ("1\td1\tocean tides\tthe tides of the ocean\n", "columns 3 and 4 may each be the query (--column N decides)"),
        ("a\tb\nc\nd\n", "--log-format tsv or plain decides"),
        ("12 17\n3 4\n", "holds numbers only"),
    ] {
        write(dir.path(), "log.txt", log);
        refuses(dir.path(), "search ix --queries log.txt --mode or", expected);
    }
    write(dir.path(), "log.txt", "1\td1\tocean tides\tharbour\n");
    let (rows, _) = succeeds(dir.path(), "search ix --queries log.txt --column 4 --mode or --format csv");
    assert_eq!(found(&rows), ["1 D0"]);
}

#[test]
fn collections_are_read_as_they_are_packed() {
    let dir = world();
    let document = |id: &str| format!("<DOC>\n<DOCNO> {id} </DOCNO>\n<TEXT>\nocean tides\n</TEXT>\n</DOC>\n");
    for id in ["1", "2"] {
        write(
            dir.path(),
            &format!("trec/FT911/FT911_{id}"),
            document(&format!("{id}a")) + &document(&format!("{id}b")),
        );
    }
    write(dir.path(), "trec/readme.txt", "what this is");
    write(dir.path(), "c.jsonl.gz", [&gzip(b"{\"id\":1,\"text\":\"tides\"}\n")[..], &[0; 512]].concat());
    write(dir.path(), "lines.txt", zstd::encode_all(&b"{\"id\":1,\"text\":\"tides\"}\n"[..], 1).unwrap());
    write(dir.path(), "texts/a.txt", "ocean");
    write(dir.path(), "texts/b.log", "tides");
    write(dir.path(), "texts/.gitignore", "*.log");
    for (input, documents, told) in [
        ("trec", 4, "trec: 1 other files left out"),
        ("c.jsonl.gz", 1, "c.jsonl.gz: JSON lines"),
        ("lines.txt", 1, "lines.txt: JSON lines"),
        ("texts", 2, "texts: 2 text files; texts: 1 hidden file or folder left out"),
    ] {
        let (said, notes) = succeeds(dir.path(), &format!("index build {input} -o out --force"));
        let counted = said.lines().find_map(|line| line.strip_prefix("documents")).unwrap().trim();
        assert_eq!(counted, documents.to_string(), "{input}");
        assert!(notes.contains(told), "{notes}");
    }
    write(dir.path(), "x", document("A1") + &document("A2") + &document("A1").replace("tides", "moon"));
    let (said, _) = succeeds(dir.path(), "index build x -o last --duplicates last");
    assert!(
        said.contains("repeated                 1 documents")
            && !dir.path().join("last/.tandem-with-repeated").exists()
    );
    let (rows, _) = succeeds(dir.path(), "search last moon --format csv");
    assert_eq!(found(&rows), ["1 A1"]);
    let (rows, _) = succeeds(dir.path(), "search last tides --format csv");
    assert_eq!(found(&rows), ["1 A2"]);
    for (text, expected) in [
        (String::from("[\"a\",\"Title\",\"text\"]\n"), "x:1:1: expected one JSON object a line"),
        (
            document("A1") + &document("A1"),
            "x: byte 60: id \"A1\" is already that of byte 0, expected one document an id",
        ),
        (String::from("BZh91AY&SY"), "is compressed by bzip2, expected gzip, zstd or none"),
    ] {
        write(dir.path(), "x", text);
        refuses(dir.path(), "index build x -o refused", expected);
    }
}

#[test]
fn no_output_replaces_an_input_or_another_index() {
    let dir = world();
    write(dir.path(), "log.tsv", "1\tocean tides\n2\tharbour pilots\n");
    succeeds(dir.path(), "profile ix --queries log.tsv --repeats 1 --on cpu --mode or -o w.csv");
    let inputs = ["c.jsonl", "log.tsv", "w.csv", "ix/index.tandem"];
    let before = inputs.map(|name| fs::read(dir.path().join(name)).unwrap());
    for arguments in [
        "profile ix --queries log.tsv --repeats 1 --on cpu --mode or -o log.tsv",
        "profile ix --queries log.tsv --repeats 1 --on cpu --mode or -o ./ix/../log.tsv",
        "search ix --queries log.tsv --format trec -o log.tsv",
        "index export ix -o ix/index.tandem --format ciff",
        "index reorder ix -o ix --force",
        "index synth --text --docs 10 -o w.csv --bytes 100 --queries-out w.csv",
        "trace --workload w.csv --rate 10 --num-queries 5 -o w.csv",
        "train w.csv -o w.csv",
        "live ix --queries log.tsv --workload w.csv --rate 10 --seconds 0.1 --perfetto log.tsv",
    ] {
        assert_eq!(tandem(dir.path(), arguments).status.code(), Some(2), "{arguments}");
        assert_eq!(inputs.map(|name| fs::read(dir.path().join(name)).unwrap()), before, "{arguments}");
    }
    refuses(dir.path(), "index build c.jsonl -o ix", "ix holds an index already (--force replaces it)");
    succeeds(dir.path(), "index build c.jsonl -o ix --force");
}

#[test]
fn what_one_command_writes_another_reads() {
    let dir = world();
    let long = "x".repeat(1_200_000);
    write(dir.path(), "long.jsonl", format!("{{\"id\":\"{long}\",\"text\":\"{long} tides\"}}\n"));
    succeeds(dir.path(), "index build long.jsonl -o long --tokenizer ascii");
    succeeds(dir.path(), "index export long -o long.ciff.gz");
    succeeds(dir.path(), "index import long.ciff.gz -o back");
    // The trace lasts eleven years.
    succeeds(dir.path(), "trace --ids 20 --rate 0.01 --num-queries 3500000 -o t.csv");
    refuses(dir.path(), "trace --ids 20 --rate 0.000001 --num-queries 100000 -o u.csv", "expected at most 9e9 s");
    assert!(!dir.path().join("u.csv").exists());
    refuses(dir.path(), "simulate --rate 0.000001 --num-queries 30000 -o out", "simulated time ends at 1.845e10 s");
    refuses(dir.path(), "sweep --policy cpu-only --rate 0.000001 --num-queries 30000 -o out", "simulated time ends");
}

/// A CIFF file of these terms, each once in each of the named documents.
fn ciff(terms: &[&str], names: &[&str]) -> Vec<u8> {
    let (num_lists, num_docs) = (terms.len() as u32, names.len() as u32);
    let header = CiffHeader {
        version: 1,
        num_lists,
        num_docs,
        total_lists: num_lists,
        total_docs: num_docs,
        total_tokens: u64::from(num_lists * num_docs),
        average_length: f64::from(num_lists),
        description: String::new(),
    };
    let mut writer = CiffWriter::new(Vec::new(), &header).unwrap();
    let docs: Vec<u32> = (0..num_docs).collect();
    terms.iter().try_for_each(|term| writer.list(term, &docs, &vec![1; docs.len()])).unwrap();
    names.iter().try_for_each(|name| writer.document(name, num_lists)).unwrap();
    writer.into_inner()
}

#[test]
fn destructive_outputs_and_idle_options_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        "v.jsonl",
        "{\"id\": \"A\", \"vector\": {\"moon\": 2}}\n\n{\"id\": \"A\", \"vector\": {\"moon\": 3}}\n",
    );
    refuses(dir.path(), "index import v.jsonl -o ix", "line 3: id \"A\" is already that of line 1");
    succeeds(dir.path(), "index import v.jsonl -o ix --duplicates last");
    write(dir.path(), "qrels", "1 0 A 1\n");
    refuses(dir.path(), "search ix moon --qrels qrels", "--qrels is for --queries FILE");
    refuses(dir.path(), "search ix moon --gpu-memory 1GB", "--gpu-memory: the CPU searches");
    refuses(dir.path(), "index reorder ix --by length -o new --permutation-out new/index.tandem", "name the same file");
    refuses(
        dir.path(),
        "index synth --docs 100 --num-queries 1 -o new --queries-out new/index.tandem",
        "name the same",
    );
    write(dir.path(), "results/summary.csv", "policy,qps\nmct,1\n");
    refuses(dir.path(), "report results -o results/summary.csv", "is in a folder that the page shows");
    assert_eq!(fs::read(dir.path().join("results/summary.csv")).unwrap(), b"policy,qps\nmct,1\n");
    succeeds(dir.path(), "report results");
    succeeds(dir.path(), "report results");
    refuses(&dir.path().join("ix"), "report --docs --check", "no Markdown page");
    let (_, errors) = succeeds(dir.path(), "search ix moon^2 tides");
    assert!(errors.contains("weights are taken as words"), "{errors}");
}

#[test]
fn imports_check_names_and_terms() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "twice.ciff", ciff(&["moon", "tides"], &["A", "B", "A"]));
    refuses(dir.path(), "index import twice.ciff -o ix", "document 2: id \"A\" is already that of document 0");
    let (said, _) = succeeds(dir.path(), "index import twice.ciff -o ix --duplicates last");
    assert!(said.contains("repeated                 1 documents"), "{said}");
    let (rows, _) = succeeds(dir.path(), "search ix moon --format csv");
    assert_eq!(found(&rows), ["1 B", "1 A"]);
    assert_eq!(fs::read_dir(dir.path().join("ix")).unwrap().count(), 1);
    write(dir.path(), "words.ciff", ciff(&["New York", "\u{1}alpha", "tides"], &["A"]));
    let (_, notes) = succeeds(dir.path(), "index import words.ciff -o words");
    assert!(notes.contains("2 of 3 terms cannot be asked for with tokenizer ascii (--tokenizer NAME"), "{notes}");
    // Lists that are not in order are unpacked first.
    write(dir.path(), "order.ciff.gz", gzip(&ciff(&["tides", "moon"], &["A"])));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.current_dir(dir.path()).env("TMPDIR", "/nonexistent").args(["index", "import", "order.ciff.gz", "-o", "o"]);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("the temporary folder /nonexistent") && errors.contains("TMPDIR"), "{errors}");
    assert_eq!(output.status.code(), Some(2), "{errors}");
}

#[cfg(unix)]
#[test]
fn builds_open_few_files_and_pages_show_results_once() {
    let dir = tempfile::tempdir().unwrap();
    succeeds(dir.path(), "index synth --text --docs 3000 -o text.jsonl");
    let command = format!("ulimit -n 24; {} index build text.jsonl -o ix --memory 1MiB", env!("CARGO_BIN_EXE_tandem"));
    let output = Command::new("sh").current_dir(dir.path()).args(["-c", &command]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: String = (0..30).map(|id| format!("{id},or,2,10,20,30,100,,1\n")).collect();
    let head = "# docs: 100000\nquery_id,mode,terms,shortest,second_shortest,postings,cpu_us,gpu_us,results\n";
    write(dir.path(), "w.csv", format!("{head}{rows}"));
    refuses(
        dir.path(),
        "train w.csv --folds 2 -o m.json",
        "1 distinct of 30 measured queries, too few for 2 folds (measure more",
    );
    let run = "simulate --workload w.csv --policy cpu-only --estimates oracle --rate 10 --num-queries 100 --seeds 1 -o out/a/b";
    succeeds(dir.path(), run);
    std::os::unix::fs::symlink("a/b", dir.path().join("out/latest")).unwrap();
    let (said, _) = succeeds(dir.path(), "report out");
    assert!(said.contains("out/report.html") && !said.contains("latest"), "{said}");
    assert_eq!(
        fs::read_to_string(dir.path().join("out/report.html")).unwrap().matches("<h2").count(),
        page_of(&dir, "out/a/b")
    );
}

/// The sections of the page of one folder.
#[cfg(unix)]
fn page_of(dir: &tempfile::TempDir, folder: &str) -> usize {
    succeeds(dir.path(), &format!("report {folder} -o one.html"));
    fs::read_to_string(dir.path().join("one.html")).unwrap().matches("<h2").count()
}

#[test]
fn names_do_no_harm_to_terminals_and_can_be_read_back() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "c.jsonl", "{\"id\":\"x\\u001b[31m\\ny\",\"text\":\"tides\"}\n");
    succeeds(dir.path(), "index build c.jsonl -o ix");
    for format in ["table", "trec", "csv", "json"] {
        let (said, _) = succeeds(dir.path(), &format!("search ix tides --format {format}"));
        assert!(!said.contains('\u{1b}'), "{format}: {said:?}");
        assert!(said.contains(r"x\u{1b}[31m\u{a}y") || format == "json", "{format}: {said}");
    }
}

#[test]
fn a_folder_is_written_by_one_process_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("two");
    fs::create_dir(&out).unwrap();
    let first = fs::File::open(&out).unwrap();
    first.try_lock().unwrap();
    refuses(dir.path(), "simulate -o two", &format!("two: process {} (", std::process::id()));
    assert!(fs::read_dir(&out).unwrap().next().is_none());
    drop(first);
    succeeds(dir.path(), "simulate -o two --policy cpu-only --gpus 0 --num-queries 1000 --what delays --rate 1000");
    // A command that fails leaves no folder.
    refuses(dir.path(), "simulate -o other --workload missing.csv", "missing.csv");
    assert!(!dir.path().join("other").exists());
}
