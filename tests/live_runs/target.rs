//! `tandem capacity --target` as a whole program, against a server whose capacity is known.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::tiny_lab::tandem;

/// Each query takes this long, one after the other: 200 queries per second at most.
const SERVICE: Duration = Duration::from_millis(5);
const SECRET: &str = "Basic c2VjcmV0OnNlY3JldA==";
const REFUSED: &str = "Basic b3RoZXI6b3RoZXI=";

/// A server that sleeps until a query would be answered, so that other processes delay its answers but not its schedule.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let free_at = Arc::new(Mutex::new(Instant::now()));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let free_at = Arc::clone(&free_at);
            thread::spawn(move || answer(stream.unwrap(), &free_at));
        }
    });
    address
}

fn answer(mut stream: TcpStream, free_at: &Mutex<Instant>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut length, mut credentials, mut line) = (0, String::new(), String::new());
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some((name, value)) = line.split_once(": ") {
                match (name, value.trim()) {
                    ("content-length", value) => length = value.parse().unwrap(),
                    ("authorization", value) => value.clone_into(&mut credentials),
                    _ => {}
                }
            }
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
        let done_at = {
            let mut free_at = free_at.lock().unwrap();
            *free_at = (*free_at).max(Instant::now()) + SERVICE;
            *free_at
        };
        thread::sleep(done_at.saturating_duration_since(Instant::now()));
        let (status, body) = match &*credentials {
            SECRET => (200, String::from(r#"{"took":5,"timed_out":false,"hits":{"hits":[{"_id":"1"}]}}"#)),
            other => (401, format!("not allowed: {other}, {}", other.trim_start_matches("Basic "))),
        };
        let response = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        if stream.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn the_capacity_of_a_foreign_server_is_predicted_and_driven() {
    let _alone = crate::alone();
    let lab = tempfile::tempdir().unwrap();
    let queries: String = (0..40).map(|query| format!("some words {query}\n")).collect();
    std::fs::write(lab.path().join("queries.txt"), queries).unwrap();
    std::fs::write(lab.path().join("secret"), SECRET).unwrap();
    let target = format!("--target http://{}/any --dialect opensearch --queries queries.txt", server());
    // The client may be late by a hundredth of the deadline, which is long since other processes delay it.
    let short = "--cores 1 --profile-seconds 2 --live-seconds 1 --deadline-ms 5000 --objective p50=100";
    let capacity = format!("capacity {target} {short} --format json -o results");
    // With other credentials every query is refused, and the server's reason is shown without them.
    std::fs::write(lab.path().join("refused"), REFUSED).unwrap();
    let (_, err) = tandem(lab.path(), &format!("{capacity} --credentials refused"), 2);
    assert!(err.contains("status 401: not allowed") && !err.contains(&REFUSED[6..]), "{err}");
    assert!(!lab.path().join("results/capacity.csv").exists());
    let (out, err) = tandem(lab.path(), &format!("{capacity} --credentials secret"), 0);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    let found = &document["results"];
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or_else(|| panic!("{out}\n{err}"));
    let answer = &found["answer"];
    let (rate, low, high) = (number(&answer["rate"]), number(&answer["interval"][0]), number(&answer["interval"][1]));
    assert!((120.0..300.0).contains(&rate) && low <= rate && rate <= high, "{answer}");
    assert!(number(&answer["missed_at"]) > rate && answer["how"] == "live", "{answer}");
    let predicted = number(&answer["predicted"]["rate"]["value"]);
    assert!((80.0..240.0).contains(&predicted), "{answer}");
    // Its profile is a machine that answers as many queries at once as the server does.
    let profile = "--workload results/service_times.csv --machine results/machine.json --gpus 0 --deadline-ms 5000";
    let simulate = format!("simulate {profile} --objective p50=100 --what capacity --format json -o simulated");
    let (simulated, _) = tandem(lab.path(), &simulate, 0);
    let simulated: serde_json::Value = serde_json::from_str(&simulated).unwrap();
    let simulated = number(&simulated["results"]["capacity"][0]["max_rate_qps"]);
    assert!((0.9..1.1).contains(&(simulated / predicted)), "{simulated} and {predicted}");
    // A gate says by its exit code whether a rate holds.
    for (qps, code, word) in [(50, 0, "held"), (600, 1, "missed")] {
        let gate = format!("capacity {target} {short} --at-least {qps} -o gate --credentials secret");
        let (out, err) = tandem(lab.path(), &gate, code);
        assert!(out.contains(&format!("{qps} q/s: {word}")) && err.contains("warm after"), "{out}{err}");
    }
    let read = |file: &str| std::fs::read_to_string(lab.path().join("results").join(file)).unwrap();
    let count = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count() - 1;
    assert_eq!(count(&read("capacity.csv")), 1);
    assert!(count(&read("service_times.csv")) >= 20 && count(&read("ladder.csv")) >= 2);
    let runs = read("runs.csv");
    // Two agree on each side.
    assert!(count(&runs) >= 4 && runs.contains("# dialect: opensearch"), "{runs}");
    assert_eq!(found["runs"].as_array().unwrap().len(), count(&runs));
    for file in std::fs::read_dir(lab.path().join("results")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()));
    }
    assert!(!out.contains(SECRET) && !err.contains(SECRET));
}

#[test]
fn only_loopback_is_driven_unless_a_host_is_named() {
    let lab = tempfile::tempdir().unwrap();
    std::fs::write(lab.path().join("queries.txt"), "a\nb\n").unwrap();
    let target = "capacity --target http://192.0.2.1:9200/any --dialect opensearch --queries queries.txt";
    let (_, err) = tandem(lab.path(), target, 2);
    assert!(err.contains("192.0.2.1") && err.contains("--allow-host"), "{err}");
}
