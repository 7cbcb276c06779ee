//! `index build` as a process: killed at any time and started again, with any memory limit, from any kind of file.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tandem::index::Index;

fn tandem(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.current_dir(dir).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Documents of pseudo-random words, with id and text.
fn documents(count: usize) -> impl Iterator<Item = (String, String)> {
    let mut state = 7_u64;
    (0..count).map(move |number| {
        let words = (0..200).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("w{} ", (state >> 33) % (1 << ((state >> 60) + 2)))
        });
        (format!("d{number}"), words.collect())
    })
}

fn write_lines(path: &Path, count: usize) {
    let mut out = fs::File::create(path).unwrap();
    for (id, text) in documents(count) {
        writeln!(out, "{{\"id\":\"{id}\",\"text\":\"{text}\"}}").unwrap();
    }
}

fn build(dir: &Path, arguments: &[&str]) -> Vec<u8> {
    let out = tandem(dir, &[&["index", "build", "--force"], arguments].concat()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let at = arguments.iter().position(|argument| *argument == "-o").unwrap() + 1;
    fs::read(dir.join(arguments[at]).join("index.tandem")).unwrap()
}

/// Starts a build again and again, killed after each of these delays, until one ends by itself.
fn kill_later_and_later(dir: &Path, arguments: &[&str], after_ms: impl Iterator<Item = u64>) {
    for after_ms in after_ms {
        let mut child = tandem(dir, arguments).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(after_ms));
        let is_done = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        if is_done {
            break;
        }
    }
}

#[test]
fn a_build_that_is_killed_at_any_time_ends_with_the_same_index() {
    let dir = tempfile::tempdir().unwrap();
    write_lines(&dir.path().join("c.jsonl"), 12_000);
    let whole = build(dir.path(), &["c.jsonl", "-o", "whole"]);
    let arguments = ["index", "build", "c.jsonl", "-o", "out", "--memory", "1MiB", "--cpus", "2"];
    kill_later_and_later(dir.path(), &arguments, (0..50).map(|step| 5 + 17 * step));
    let again = build(dir.path(), &arguments[2..]);
    assert!(again == whole);
    assert_eq!(fs::read_dir(dir.path().join("out")).unwrap().count(), 1, "nothing but the index stays");
    let num_terms = Index::open(&dir.path().join("out")).unwrap().num_terms();
    assert!(num_terms > 1 << 16, "{num_terms} terms: the dictionary has one part");
}

/// A build whose files may have `blocks` blocks of 512 bytes, as on a full disk.
#[cfg(unix)]
fn build_on_a_small_disk(dir: &Path, blocks: &str, arguments: &str) -> (Option<i32>, String) {
    let command = format!("trap '' XFSZ; ulimit -f {blocks}; exec {} {arguments}", env!("CARGO_BIN_EXE_tandem"));
    let out = Command::new("sh").current_dir(dir).args(["-c", &command]).output().unwrap();
    (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
}

#[cfg(unix)]
#[test]
fn a_full_disk_ends_the_build_and_keeps_what_resumes() {
    let dir = tempfile::tempdir().unwrap();
    write_lines(&dir.path().join("c.jsonl"), 12_000);
    let whole = build(dir.path(), &["c.jsonl", "-o", "whole"]);
    let arguments = "index build c.jsonl -o out --memory 1MiB --cpus 2";
    // No temporary run fits: every worker fails.
    let (code, message) = build_on_a_small_disk(dir.path(), "8", arguments);
    assert!(
        code == Some(1) && message.contains("out/.tandem-build/run-") && message.contains("cannot write"),
        "{message}"
    );
    // The temporary runs fit, the index does not.
    assert!(whole.len() > 3 << 20, "{} bytes", whole.len());
    let (code, message) = build_on_a_small_disk(dir.path(), "4096", arguments);
    assert!(code == Some(1) && message.contains("out/index.tandem: cannot write"), "{message}");
    assert!(dir.path().join("out/.tandem-build/run-0").exists() && !dir.path().join("out/index.tandem").exists());
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let out = tandem(dir.path(), &arguments).output().unwrap();
    assert!(String::from_utf8_lossy(&out.stdout).contains("MB done before"));
    assert!(fs::read(dir.path().join("out/index.tandem")).unwrap() == whole);
    assert_eq!(fs::read_dir(dir.path().join("out")).unwrap().count(), 1, "nothing but the index stays");
}

#[test]
fn every_memory_and_number_of_threads_makes_the_same_index() {
    let dir = tempfile::tempdir().unwrap();
    write_lines(&dir.path().join("c.jsonl"), 9_000);
    let whole = build(dir.path(), &["c.jsonl", "-o", "whole", "--cpus", "1"]);
    for memory in ["1", "1MiB", "96MiB", "112MiB", "1GiB"] {
        for threads in ["1", "3"] {
            let arguments = ["c.jsonl", "-o", "out", "--memory", memory, "--cpus", threads];
            assert!(build(dir.path(), &arguments) == whole, "{memory}, {threads} threads");
            assert_eq!(fs::read_dir(dir.path().join("out")).unwrap().count(), 1, "nothing but the index stays");
        }
    }
}

#[test]
fn repeated_ids_are_told_with_both_places() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.jsonl");
    write_lines(&path, 9_000);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("{\"id\":\"d8500\"", "{\"id\":\"d30\"")).unwrap();
    for memory in ["1MiB", "1GiB"] {
        let arguments = ["index", "build", "c.jsonl", "-o", "out", "--memory", memory, "--cpus", "2"];
        let out = tandem(dir.path(), &arguments).output().unwrap();
        let message = String::from_utf8_lossy(&out.stderr).into_owned();
        let expected = "c.jsonl:8501: id \"d30\" is already that of line 31, expected one document an id";
        assert!(message.contains(expected) && out.status.code() == Some(2), "{memory}: {message}");
    }
}

#[test]
fn a_memory_that_is_too_small_is_told_with_what_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    write_lines(&dir.path().join("c.jsonl"), 100);
    for (memory, is_told) in [("20MiB", true), ("200MiB", false)] {
        let arguments = ["index", "build", "c.jsonl", "-o", "out", "--force", "--memory", memory, "--cpus", "2"];
        let out = tandem(dir.path(), &arguments).output().unwrap();
        let message = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success());
        let expected = "note: memory: 89 MiB are needed at least, for the program and what 2 threads read and write";
        assert_eq!(message.contains(expected), is_told, "{message}");
    }
}

/// Builds an index of what `write` writes, and returns the peak memory of the process in MiB, including pages of mapped
/// files.
#[cfg(target_os = "linux")]
fn peak_mib(dir: &Path, arguments: &[&str], write: impl FnOnce(&mut dyn Write) + Send) -> u64 {
    let mut child = tandem(dir, arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let status = format!("/proc/{}/status", child.id());
    std::thread::scope(|scope| {
        scope.spawn(move || write(&mut input));
        let mut peak_mib = 0;
        while child.try_wait().unwrap().is_none() {
            let status = fs::read_to_string(&status).unwrap_or_default();
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
            peak_mib = peak_mib.max(peak.map_or(0, |kib| kib.parse::<u64>().unwrap() / 1024));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(child.wait().unwrap().success());
        peak_mib
    })
}

#[cfg(target_os = "linux")]
#[test]
fn a_build_takes_no_more_memory_than_it_is_given() {
    let dir = tempfile::tempdir().unwrap();
    // The collection has 200,000 documents of 2,000 texts: documents and long lists grow as they would with more text.
    let texts: Vec<String> = documents(2_000).map(|(_, text)| text).collect();
    let write = |out: &mut dyn Write| {
        let mut out = std::io::BufWriter::new(out);
        for number in 0..200_000 {
            let text = &texts[number % texts.len()];
            writeln!(out, "{{\"id\":\"document {number} of a collection\",\"text\":\"{text}\"}}").unwrap();
        }
    };
    let arguments = |memory, out| ["index", "build", "-", "-o", out, "--memory", memory, "--cpus", "2"];
    let small_mib = peak_mib(dir.path(), &arguments("128MiB", "small"), write);
    let large_mib = peak_mib(dir.path(), &arguments("4GiB", "large"), write);
    // Memory is sampled now and then: short peaks may be missed.
    assert!(small_mib <= 128 && large_mib > small_mib + 24, "{small_mib} and {large_mib} MiB");
    let [small, large] = ["small", "large"].map(|out| fs::read(dir.path().join(out).join("index.tandem")).unwrap());
    assert!(small == large);
}

#[test]
fn equal_text_in_any_form_gives_equal_lists() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    write_lines(&path("c.jsonl"), 12_000);
    let whole = build(dir.path(), &["c.jsonl", "-o", "plain"]);
    let text = fs::read(path("c.jsonl")).unwrap();
    assert!(text.len() > 9_000_000);
    let pieces: Vec<&[u8]> = text.chunks(text.len() / 16 + 1).collect();
    let zstd: Vec<u8> = pieces.iter().flat_map(|piece| zstd::stream::encode_all(*piece, 1).unwrap()).collect();
    fs::write(path("c.jsonl.zst"), zstd).unwrap();
    let gzip = pieces.iter().flat_map(|piece| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(piece).unwrap();
        encoder.finish().unwrap()
    });
    fs::write(path("c.jsonl.gz"), gzip.collect::<Vec<u8>>()).unwrap();
    let (mut warc, mut trec) = (String::new(), String::new());
    for (id, text) in documents(12_000) {
        let length = text.len();
        warc += &format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Type: text/plain\r\nWARC-Record-ID: {id}\r\n\
             Content-Length: {length}\r\n\r\n{text}\r\n\r\n"
        );
        trec += &format!("<DOC>\n<DOCNO>{id}</DOCNO>\n<TEXT>\n{text}\n</TEXT>\n</DOC>\n");
    }
    fs::write(path("c.warc"), warc).unwrap();
    fs::write(path("c.trec"), trec).unwrap();
    for name in ["c.jsonl.zst", "c.jsonl.gz", "c.warc", "c.trec"] {
        for threads in ["1", "4"] {
            assert!(build(dir.path(), &[name, "-o", "other", "--cpus", threads]) == whole, "{name}, {threads} threads");
        }
    }
    let mut child = tandem(dir.path(), &["index", "build", "-", "-o", "piped"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    assert!(fs::read(path("piped/index.tandem")).unwrap() == whole);
}

#[test]
fn damaged_archives_are_refused_with_file_and_offset() {
    let dir = tempfile::tempdir().unwrap();
    let record = "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: x\r\nContent-Length: 999\r\n\r\nshort";
    for (name, text, expected) in [
        ("x.warc", record.to_owned(), "error: x.warc: byte 0: the record is cut short"),
        ("y.warc", record.replace("999", "3"), "error: y.warc: byte 76: expected a record that begins with `WARC/`"),
        ("z.trec", "<DOC>\n<DOCNO>1</DOCNO>\n".to_owned(), "error: z.trec: byte 0: the document has no </DOC>"),
    ] {
        fs::write(dir.path().join(name), text).unwrap();
        let out = tandem(dir.path(), &["index", "build", name, "-o", "out"]).output().unwrap();
        let message = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(message.contains(expected) && out.status.code() == Some(2), "{message}");
    }
}

#[test]
fn several_packed_files_make_the_same_index_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let lines: Vec<String> = documents(3_000)
        .map(|(id, text)| format!("{{\"id\":\"{id}\",\"text\":\"Running {text} and 2011 café\"}}\n"))
        .collect();
    fs::write(dir.path().join("c.jsonl"), lines.concat()).unwrap();
    let mut inputs = Vec::new();
    for (number, lines) in lines.chunks(700).enumerate() {
        let name = format!("{number}.jsonl.zst");
        fs::write(dir.path().join(&name), zstd::encode_all(lines.concat().as_bytes(), 1).unwrap()).unwrap();
        inputs.push(name);
    }
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let whole = |inputs: &[&str], out| build(dir.path(), &[inputs, &["--stem", "porter", "-o", out]].concat());
    assert!(whole(&inputs, "packed") == whole(&["c.jsonl"], "plain"));
}
