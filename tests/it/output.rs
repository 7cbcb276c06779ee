//! Output of commands to a closed pipe, to a full device, to files, and to plain and coloured terminals.
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

fn tandem(dir: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.args(arguments.split_whitespace()).current_dir(dir).stderr(Stdio::piped());
    command
}

/// Commands that print or write to a pipe, with an index in `i`.
const COMMANDS: [&str; 6] = [
    "index info i",
    "search i --queries i/queries.tsv --mode or",
    "trace --ids 200 --num-queries 100 --rate 10 -o t.trace.csv",
    "trace --ids 200 --num-queries 20000 -o /dev/stdout",
    "profile i --queries i/queries.tsv -o p.workload.csv --on cpu --repeats 1",
    "train p.workload.csv -o m.json",
];

#[test]
fn a_closed_pipe_is_no_failure_and_a_full_disk_is() {
    let dir = tempfile::tempdir().unwrap();
    let made =
        tandem(dir.path(), "index synth --docs 2000 --num-queries 200 -o i").stdout(Stdio::null()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for arguments in COMMANDS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let unread = tandem(dir.path(), arguments).stdout(writer).output().unwrap();
        let errors = String::from_utf8_lossy(&unread.stderr).into_owned();
        assert!(!errors.contains("panicked"), "{arguments}: {errors}");
        assert_eq!(unread.status.code(), Some(0), "{arguments}: {errors}");

        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let unwritten = tandem(dir.path(), arguments).stdout(full).output().unwrap();
        let errors = String::from_utf8_lossy(&unwritten.stderr).into_owned();
        assert_eq!(unwritten.status.code(), Some(1), "{arguments}: {errors}");
        let place = if arguments.ends_with("/dev/stdout") { "cannot write /dev/stdout" } else { "standard output" };
        assert!(errors.contains(&format!("error: {place}: No space left on device")), "{arguments}: {errors}");
    }
}

#[test]
fn a_file_beyond_the_shells_limit_keeps_the_index() {
    let dir = tempfile::tempdir().unwrap();
    let documents: String =
        (0..2000).map(|i| format!("{{\"id\":\"{i}\",\"text\":\"word{i} {}\"}}\n", i % 90)).collect();
    std::fs::write(dir.path().join("d.jsonl"), documents).unwrap();
    let build = "index build d.jsonl -o j --force";
    assert!(tandem(dir.path(), build).output().unwrap().status.success());
    let before = std::fs::read(dir.path().join("j/index.tandem")).unwrap();
    let shell = format!("ulimit -f 8; exec {} {build}", env!("CARGO_BIN_EXE_tandem"));
    let output = Command::new("sh").args(["-c", &shell]).current_dir(dir.path()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("j/index.tandem: cannot write: File too large"), "{errors}");
    assert_eq!(std::fs::read(dir.path().join("j/index.tandem")).unwrap(), before);
    assert_eq!(std::fs::read_dir(dir.path().join("j")).unwrap().count(), 1);
}

/// Every command on small data, in an order in which each finds its inputs.
const ALL_COMMANDS: [&str; 25] = [
    "index synth --docs 2000 --num-queries 200 -o i",
    "index build d.jsonl -o j",
    "index info i",
    "index reorder i -o i2",
    "index quantise i -o i3",
    "index export i -o x.ciff",
    "index import x.ciff -o i4",
    "search i --queries i/queries.tsv --mode or",
    "search i --queries i/queries.tsv --mode or -k 100",
    "trace --ids 200 --num-queries 100 --rate 10 -o t.trace.csv",
    "profile i --queries i/queries.tsv -o p.workload.csv --on cpu --repeats 1",
    "train p.workload.csv -o m.json",
    "simulate --workload p.workload.csv --gpu none --policy cpu-only --rate 1000 --num-queries 200 -o s",
    "simulate --what delays --num-queries 200 --seeds 1 --policy gpu-only,cpu-only,best-of,stealing,mct,greedy,window,adaptive,combined \
     --estimates oracle -o s2",
    "sweep --workload p.workload.csv --cpus 1:20 --policy cpu-only,mct --rate 1000,2000 --num-queries 200 --seeds 1:2 -o w",
    "live i --queries i/queries.tsv --workload p.workload.csv --gpu none --policy cpu-only --rate 100:500:20 --seconds 0.02 --log \
     --cpus 1 --set force=true -o l",
    "capacity i --queries i/queries.tsv --deadline-ms 5 --limit 50 --cpus 1 --gpu none --policy cpu-only --set force=true --seeds 1:2 \
     --live-seconds 0.2 -o c",
    "validate i --queries i/queries.tsv --deadline-ms 5 --limit 50 --cpus 1 --gpu none --policy cpu-only --set force=true --seeds 1:2 \
     --live-seconds 0.05 -o v",
    "bench i --queries i/queries.tsv --limit 20 --rounds 1 --num-queries 2000 -o b",
    "report s l -o r.html",
    "reproduce --list",
    "reproduce tatikonda-fig7 --docs 20000 --limit 50 -o r",
    "settings",
    "completions bash",
    "man m",
];

#[test]
fn output_fits_a_screen_and_has_no_colours_and_no_bars() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("d.jsonl"), "{\"id\":\"a\",\"text\":\"red fish\"}\n").unwrap();
    for arguments in ALL_COMMANDS {
        let output = tandem(dir.path(), arguments).env_remove("TANDEM_DATA").output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        // A machine that is busy with other tests may give no answer.
        let has_none = arguments.starts_with("capacity");
        assert!(output.status.success() || has_none, "{arguments}: {errors}");
        for (stream, bytes) in [("output", &output.stdout), ("errors", &output.stderr)] {
            let is_plain = !bytes.contains(&b'\x1b') && !bytes.contains(&b'\r');
            assert!(is_plain, "{arguments}, {stream}: {}", String::from_utf8_lossy(bytes));
        }
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_reference = ["settings", "completions"].iter().any(|name| arguments.starts_with(name));
        assert!(is_reference || shown.lines().count() <= 40, "{arguments}:\n{shown}");
        let is_script = arguments.starts_with("completions");
        assert!(is_script || shown.lines().all(|line| line.chars().count() <= 80), "{arguments}:\n{shown}");
    }
}

fn on_a_terminal(dir: &Path, arguments: &str, no_colour: bool) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
    let mut command = tandem(dir, arguments);
    command.stdin(Stdio::null()).stdout(terminal()).stderr(terminal()).env("TERM", "xterm-256color");
    command.env_remove("NO_COLOR").env_remove("CLICOLOR").env_remove("CLICOLOR_FORCE").env_remove("CI");
    if no_colour {
        command.env("NO_COLOR", "1");
    }
    let mut child = command.spawn().unwrap();
    // Reading ends when the terminal has no open descriptor: neither the child's nor its description's.
    drop(command);
    let (mut master, mut written) = (File::from(master), Vec::new());
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = master.read(&mut buffer) {
        written.extend_from_slice(&buffer[..read]);
    }
    child.wait().unwrap();
    String::from_utf8_lossy(&written).into_owned()
}

/// Whether a text changes colours or weights: ESC [ numbers m.
fn is_coloured(text: &str) -> bool {
    text.split("\x1b[").skip(1).any(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != ';');
        end.is_some_and(|end| rest[end..].starts_with('m'))
    })
}

#[test]
fn a_terminal_gets_colours_unless_it_asks_for_none() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in ["simulat", "simulate --rate", "--help", "index synth --docs 2000 --num-queries 200 -o i"] {
        let plain = on_a_terminal(dir.path(), arguments, true);
        assert!(!plain.is_empty() && !is_coloured(&plain), "{arguments}: {plain:?}");
    }
    assert!(is_coloured(&on_a_terminal(dir.path(), "simulat", false)));
}
