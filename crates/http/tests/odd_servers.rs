//! Servers that misbehave: every query is accounted for, and the client neither crashes nor hangs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tandem_drive::lab::{Effort, Question};
use tandem_http::{
    Client, Credentials, Dialect, Ending, Front, Limits, Outcome, ProfilePlan, Requests, Run, RunReport, Target,
    check_rate, measure_server, write_histograms, write_profile, write_requests, write_runs,
};
use tandem_model::base::time::Nanos;
use tandem_model::files::Provenance;
use tandem_model::sim::{Arrivals, Routing};
use tandem_model::study::{Objective, Silent};
use tandem_model::traffic::ArrivalProcess;

const ANSWER: &str = r#"{"took":1,"timed_out":false,"hits":{"hits":[{"_id":"7"}]}}"#;

/// A server with a thread per connection. `respond` gets the number of the request and its head; `None` closes.
struct Server {
    address: SocketAddr,
    is_dead: Arc<AtomicBool>,
}

impl Server {
    fn start(respond: impl Fn(u32, &str, &mut TcpStream) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (respond, count, is_dead) =
            (Arc::new(respond), Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let dead = Arc::clone(&is_dead);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if dead.load(Ordering::Relaxed) {
                    return;
                }
                let (respond, count, dead) = (Arc::clone(&respond), Arc::clone(&count), Arc::clone(&dead));
                thread::spawn(move || serve(stream.unwrap(), &*respond, &count, &dead));
            }
        });
        Self { address, is_dead }
    }
}

/// The answer to a connection's request by its number and text; `None` ends the connection.
type Respond<'a> = dyn Fn(u32, &str, &mut TcpStream) -> Option<Vec<u8>> + 'a;

fn serve(mut stream: TcpStream, respond: &Respond<'_>, count: &AtomicU32, is_dead: &AtomicBool) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 || is_dead.load(Ordering::Relaxed) {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            head += &line;
            if line == "\r\n" {
                break;
            }
        }
        // Large bodies are read slowly.
        let mut body = vec![0; length];
        for piece in body.chunks_mut(1 << 16) {
            if reader.read_exact(piece).is_err() {
                return;
            }
            if length > 1 << 20 {
                thread::sleep(Duration::from_millis(1));
            }
        }
        let number = count.fetch_add(1, Ordering::Relaxed);
        match respond(number, &head, &mut stream) {
            Some(bytes) if stream.write_all(&bytes).is_ok() => {}
            _ => return,
        }
    }
}

fn response(status: u16, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn good() -> Option<Vec<u8>> {
    Some(response(200, ANSWER))
}

/// Drives the server at 500 queries per second for a second; a query has 300 ms.
fn drive(server: &Server) -> Run {
    drive_for(server, 500, Duration::from_millis(300))
}

fn drive_for(server: &Server, queries: usize, timeout: Duration) -> Run {
    let texts: Vec<String> = (0..10).map(|i| format!("query {i}")).collect();
    drive_all(&[server], &texts, queries, timeout, Routing::default())
}

fn drive_all(servers: &[&Server], texts: &[String], queries: usize, timeout: Duration, routing: Routing) -> Run {
    let dialect = Dialect::named("opensearch").unwrap();
    let target = |server: &&Server| Target::new(&format!("http://{}/x", server.address), &dialect, &[], None).unwrap();
    let targets: Vec<Target> = servers.iter().map(target).collect();
    let requests = Requests::new(&dialect, targets[0].path(), 10, 50.0, texts).unwrap();
    let limits = Limits { timeout, body_bytes: 1 << 20, connections: 64, threads: 1, spins: false };
    let client = Client { targets: &targets, routing, requests: &requests, limits };
    let arrivals = Arrivals::drawn(&ArrivalProcess::Poisson, 1, queries, texts.len());
    let run = client.drive(&arrivals, 500.0, 0.0).unwrap();
    let counted: usize = Outcome::ALL.iter().map(|&outcome| run.count(outcome)).sum();
    assert_eq!(counted + run.not_sent(), queries);
    let mut jobs: Vec<u32> = run.records.iter().map(|record| record.job).collect();
    jobs.dedup();
    assert_eq!(jobs.len(), run.records.len());
    run
}

#[test]
fn a_good_server_answers_all_and_connections_are_reused() {
    let run = drive(&Server::start(|_, _, _| good()));
    assert_eq!((run.count(Outcome::Answered), run.ending), (500, Ending::Complete));
    assert!(run.records.iter().all(|record| record.hits == 1 && record.server_ms == 1.0));
    assert!(run.throughput_qps() > 250.0, "{}", run.throughput_qps());
}

/// What the probe says of a server.
fn probed(
    respond: impl Fn(u32, &str, &mut TcpStream) -> Option<Vec<u8>> + Send + Sync + 'static,
) -> Result<String, String> {
    probed_as("http", respond)
}

fn probed_as(
    scheme: &str,
    respond: impl Fn(u32, &str, &mut TcpStream) -> Option<Vec<u8>> + Send + Sync + 'static,
) -> Result<String, String> {
    let server = Server::start(respond);
    let dialect = Dialect::named("opensearch").unwrap();
    let url = format!("{scheme}://{}/x", server.address);
    let target = Target::new(&url, &dialect, &[], None).map_err(|e| e.to_string())?;
    let texts: Vec<String> = (0..30).map(|i| format!("query {i}")).collect();
    let requests = Requests::new(&dialect, target.path(), 10, 50.0, &texts).unwrap();
    let limits = Limits { timeout: Duration::from_millis(300), ..Limits::for_deadline(Nanos::from_ms(50.0)) };
    let told = Client::of_one(&target, &requests, limits).probe();
    told.map(|lines| lines.join("\n")).map_err(|e| e.to_string())
}

#[test]
fn a_probe_says_what_came_back() {
    let told = probed(|_, _, _| good()).unwrap();
    assert!(
        told.contains("/x: status 200, 1 hits in ") && told.ends_with("(the server says 1 ms), not compressed"),
        "{told}"
    );
    // A failure or an empty answer at first is named, and the probe goes on.
    let told = probed(|number, _, _| if number == 0 { Some(response(503, "starting")) } else { good() }).unwrap();
    assert!(told.contains("1 of the first 2 failed: server-error: status 503: starting"), "{told}");
    let empty = r#"{"hits":{"hits":[]}}"#;
    let told = probed(move |number, _, _| if number < 9 { Some(response(200, empty)) } else { good() }).unwrap();
    assert!(told.contains("9 of the first 10 found nothing"), "{told}");
}

#[test]
fn a_probe_says_why_a_server_cannot_be_used() {
    let head = |text: &str, body: &str| {
        Some(format!("HTTP/1.1 {text}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes())
    };
    let cases = [
        (
            head("200 X", r#"{"took":0,"timed_out":false,"hits":{"hits":[]}}"#),
            &["all of the first 20 answers are empty", r#""match":{"text":"query 19"}"#][..],
        ),
        (
            head("401 X", "missing credentials"),
            &["3 of the first 3 requests failed", "status 401", "missing credentials"],
        ),
        (head("301 X\r\nLocation: https://elsewhere/x", ""), &["status 301", "redirects to https://elsewhere/x"]),
        (head("200 X\r\nContent-Encoding: gzip", "\u{1f}x"), &["malformed", "compressed (gzip)"]),
        (head("200 X\r\nContent-Type: text/html", "<html>"), &["not the expected JSON", "text/html", "<html>"]),
        (
            head("200 X", r#"{"hits":{"hits":[{}]},"_shards":{"total":2,"successful":1,"failed":0}}"#),
            &["partial: /_shards/successful is 1"],
        ),
        (head("200 X", r#"{"error":"no such index","hits":{"hits":[{}]}}"#), &["partial: /error is \"no such index\""]),
        (head("200 X", r#"{"results":[{}]}"#), &["malformed: no array of hits at /hits/hits"]),
        (head("200 X\r\ntransfer-encoding: chunked", ""), &["both content-length and transfer-encoding"]),
        (Some(b"\x15\x03\x01\x00\x02\x02\x0a".to_vec()), &["not HTTP but TLS (https://)"]),
        (Some(b"SSH-2.0-OpenSSH\r\n".to_vec()), &["malformed: not HTTP"]),
        (Some("HTTP/1.1 100 Continue\r\n\r\n".repeat(9).into_bytes()), &["more than 8 interim heads"]),
        (None, &["reset: connection closed", "does this port expect https://?"]),
    ];
    for (bytes, expected) in cases {
        let told = probed(move |_, _, _| bytes.clone()).unwrap_err();
        assert!(expected.iter().all(|words| told.contains(words)), "{expected:?}: {told}");
    }
    // A plain server waits for the end of a line that TLS does not send.
    let told = probed_as("https", |_, _, _| good());
    let told = told.unwrap_err();
    assert!(told.contains("http:// and not TLS") || told.contains("no certificates"), "{told}");
}

#[test]
fn all_connections_share_one_budget_of_memory() {
    let body = Arc::new(vec![b'x'; 7 << 20]);
    let server = Server::start(move |_, _, stream| {
        stream.write_all(b"HTTP/1.1 200 X\r\ncontent-length: 8000000\r\n\r\n").ok()?;
        stream.write_all(&body).ok()?;
        thread::sleep(Duration::from_secs(2));
        None
    });
    let dialect = Dialect::named("opensearch").unwrap();
    let target = Target::new(&format!("http://{}/x", server.address), &dialect, &[], None).unwrap();
    let requests = Requests::new(&dialect, target.path(), 10, 50.0, &[String::from("a")]).unwrap();
    let limits = Limits { timeout: Duration::from_secs(2), ..Limits::for_deadline(Nanos::from_ms(50.0)) };
    let arrivals = Arrivals::drawn(&ArrivalProcess::Poisson, 1, 100, 1);
    let run = Client::of_one(&target, &requests, limits).drive(&arrivals, 1000.0, 0.0).unwrap();
    let outcomes = [Outcome::TooLarge, Outcome::Timeout, Outcome::Reset].map(|outcome| run.count(outcome));
    assert!(outcomes[0] > 30 && outcomes.iter().sum::<usize>() == 100, "{outcomes:?}");
    #[cfg(target_os = "linux")]
    {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak_kb: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(peak_kb < 500_000, "{peak_kb} kB");
    }
}

#[test]
fn a_gate_holds_below_and_misses_above_what_a_server_can_do() {
    let server = in_turn();
    let dialect = Dialect::named("opensearch").unwrap();
    let target = Target::new(&format!("http://{}/x", server.address), &dialect, &[], None).unwrap();
    let requests = Requests::new(&dialect, target.path(), 10, 50.0, &[String::from("a")]).unwrap();
    let deadline = Nanos::from_ms(200.0);
    let client = Client::of_one(&target, &requests, Limits::for_deadline(deadline));
    let question = Question {
        deadline,
        objective: Objective::default(),
        process: ArrivalProcess::Poisson,
        seeds: vec![1],
        effort: Effort::quick(),
        log_queries: 1,
        loads: Vec::new(),
    };
    let held = check_rate(&client, &question, 20.0, &Silent).unwrap();
    assert_eq!((held.holds, held.side.held, held.runs.len()), (Some(true), 2, 2));
    let missed = check_rate(&client, &question, 300.0, &Silent).unwrap();
    assert_eq!((missed.holds, missed.side.missed), (Some(false), 2));
}

#[test]
fn statuses_are_misses_of_their_own_kind_and_redirects_are_not_followed() {
    let run = drive(&Server::start(|number, _, _| match number % 5 {
        0 => Some(response(429, "busy")),
        1 => Some(response(503, "down")),
        2 => Some(b"HTTP/1.1 302 X\r\nlocation: http://192.0.2.1/\r\ncontent-length: 0\r\n\r\n".to_vec()),
        3 => Some(response(200, "{\"timed_out\":true,\"hits\":{\"hits\":[]}}")),
        _ => good(),
    }));
    let kinds = [Outcome::Rejected, Outcome::ServerError, Outcome::OtherStatus, Outcome::Partial, Outcome::Answered];
    assert_eq!(kinds.map(|kind| run.count(kind)), [100; 5]);
}

#[test]
fn garbage_of_every_shape_is_malformed_or_reset() {
    let run = drive(&Server::start(|number, _, stream| match number % 8 {
        0 => Some(b"\x16\x03\x01 not http at all\r\n\r\n".to_vec()),
        1 => Some(response(200, "no json")),
        2 => Some(response(200, &"[".repeat(200_000))),
        3 => Some(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_vec()),
        4 => Some(b"HTTP/1.1 200 X\r\ncontent-length: 99999999999999999999\r\n\r\n".to_vec()),
        5 => {
            // Headers without an end.
            for _ in 0..200 {
                stream.write_all(&[b'a'; 4096]).ok()?;
            }
            None
        }
        6 => Some(b"HTTP/1.1 200 X\r\ncontent-length: 500\r\n\r\nshort".to_vec()).filter(|bytes| {
            stream.write_all(bytes).unwrap();
            false
        }),
        _ => good(),
    }));
    let failed = run.count(Outcome::Malformed) + run.count(Outcome::Reset) + run.count(Outcome::Timeout);
    assert_eq!(failed + run.count(Outcome::Answered), 500);
    assert!(run.count(Outcome::Malformed) >= 200, "{}", run.count(Outcome::Malformed));
    assert!(run.count(Outcome::Answered) >= 50, "{}", run.count(Outcome::Answered));
}

#[test]
fn a_response_without_end_is_given_up_at_the_limit() {
    let run = drive_for(
        &Server::start(|number, _, stream| {
            if number % 10 > 0 {
                return good();
            }
            stream.write_all(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n").ok()?;
            let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
            while stream.write_all(chunk.as_bytes()).is_ok() {}
            None
        }),
        100,
        Duration::from_secs(5),
    );
    assert_eq!((run.count(Outcome::TooLarge), run.count(Outcome::Answered)), (10, 90));
}

#[test]
fn a_tenth_of_all_connections_is_reset() {
    let run = drive(&Server::start(|number, _, _| if number % 10 == 0 { None } else { good() }));
    assert_eq!((run.count(Outcome::Reset), run.count(Outcome::Answered)), (50, 450));
}

#[test]
fn a_hanging_server_times_out_and_a_long_hang_ends_the_run() {
    let run = drive(&Server::start(|number, _, _| {
        if number % 10 == 0 {
            thread::sleep(Duration::from_millis(600));
        }
        good()
    }));
    assert_eq!((run.count(Outcome::Timeout), run.count(Outcome::Answered)), (50, 450));
    let began = Instant::now();
    let run = drive_for(
        &Server::start(|number, _, _| {
            if number > 100 {
                thread::sleep(Duration::from_secs(60));
            }
            good()
        }),
        10_000,
        Duration::from_millis(300),
    );
    assert_eq!(run.ending, Ending::ServerGone);
    assert!(run.not_sent() > 0 && began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn a_server_that_writes_byte_by_byte_is_slow_but_answers() {
    let run = drive_for(
        &Server::start(|number, _, stream| {
            if number % 20 > 0 {
                return good();
            }
            for byte in response(200, ANSWER) {
                stream.write_all(&[byte]).ok()?;
                thread::sleep(Duration::from_micros(200));
            }
            Some(Vec::new())
        }),
        200,
        Duration::from_secs(5),
    );
    assert_eq!(run.count(Outcome::Answered), 200);
}

#[test]
fn a_server_that_reads_slowly_is_slow_but_answers() {
    // More than the system keeps for a socket.
    let texts = ["word ".repeat(3 << 20)];
    let run = drive_all(&[&Server::start(|_, _, _| good())], &texts, 3, Duration::from_secs(20), Routing::default());
    assert_eq!(run.count(Outcome::Answered), 3);
    assert!(run.answered().all(|record| record.service() > Nanos::from_ms(100.0)));
}

#[test]
fn two_servers_share_the_queries_by_the_labs_routing() {
    let texts = ["a", "b", "c"].map(String::from);
    for (routing, most_of_slow) in
        [(Routing::RoundRobin, 250), (Routing::Random, 300), (Routing::LeastOutstanding, 150)]
    {
        let slow_count = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&slow_count);
        let slow = Server::start(move |_, _, _| {
            count.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(60));
            good()
        });
        let fast = Server::start(|_, _, _| good());
        let run = drive_all(&[&slow, &fast], &texts, 500, Duration::from_secs(5), routing);
        let of_slow = slow_count.load(Ordering::Relaxed);
        assert_eq!(run.count(Outcome::Answered), 500);
        assert!(of_slow <= most_of_slow && of_slow > 0, "{routing:?}: {of_slow}");
        assert!(routing != Routing::RoundRobin || of_slow == 250, "{of_slow}");
    }
}

/// A server that answers one query at a time, in about 10 ms.
fn in_turn() -> Server {
    let turn = std::sync::Mutex::new(());
    Server::start(move |_, _, _| {
        let _turn = turn.lock().unwrap();
        thread::sleep(Duration::from_millis(10));
        good()
    })
}

#[test]
fn two_servers_are_simulated_as_they_answer() {
    let (servers, texts) = ([in_turn(), in_turn()], ["a", "b", "c"].map(String::from));
    let dialect = Dialect::named("opensearch").unwrap();
    let target = |server: &Server| Target::new(&format!("http://{}/x", server.address), &dialect, &[], None).unwrap();
    let targets = servers.each_ref().map(target);
    let requests = Requests::new(&dialect, targets[0].path(), 10, 50.0, &texts).unwrap();
    let limits = Limits::for_deadline(Nanos::from_ms(500.0));
    let plan =
        ProfilePlan { service: Duration::from_secs(1), rung: Duration::from_secs(1), clients: 2, queries: 3, seed: 1 };
    let profile = measure_server(&Client::of_one(&targets[0], &requests, limits), &plan, &Silent).unwrap();
    // A second client hides how late a busy machine wakes the first.
    assert!(profile.servers() <= 2, "{:?}", profile.ladder);
    let process = ArrivalProcess::Poisson;
    let question = Question {
        deadline: Nanos::from_ms(500.0),
        objective: Objective::default(),
        process: process.clone(),
        seeds: vec![1],
        effort: Effort::quick(),
        log_queries: 3,
        loads: Vec::new(),
    };
    let waits = [Routing::LeastOutstanding, Routing::Random].map(|routing| {
        let simulated = profile.simulated(Front::Fcfs).replicated(&[1.0, 1.0], routing);
        let forecast = simulated.run(&question, (120.0, 480), (7, 0.0)).unwrap().unwrap();
        let client = Client { targets: &targets, routing, requests: &requests, limits };
        let run = client.drive(&Arrivals::drawn(&process, 7, 480, texts.len()), 120.0, 0.0).unwrap();
        assert_eq!(run.count(Outcome::Answered), 480);
        let live_ms = run.records.iter().map(|record| record.latency().as_ms()).sum::<f64>() / 480.0;
        (forecast.summary.mean_ms, live_ms)
    });
    let [(least, least_live), (random, random_live)] = waits;
    assert!(random > 1.2 * least && random_live > 1.1 * least_live, "{waits:?}");
    assert!((0.6..1.6).contains(&(least_live / least)) && (0.5..2.0).contains(&(random_live / random)), "{waits:?}");
}

#[test]
fn a_server_that_dies_in_mid_run_ends_the_run_by_its_rule() {
    let server = Server::start(|_, _, _| good());
    let (address, is_dead) = (server.address, Arc::clone(&server.is_dead));
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        is_dead.store(true, Ordering::Relaxed);
        // The listener notices with its next connection.
        TcpStream::connect(address).ok();
    });
    let run = drive_for(&server, 20_000, Duration::from_millis(300));
    killer.join().unwrap();
    assert_eq!(run.ending, Ending::ServerGone);
    assert!(run.count(Outcome::Answered) > 100 && run.count(Outcome::Reset) > 100 && run.not_sent() > 0);
    let verdict = run.verdict(&tandem_model::study::Objective::default().within(Nanos::from_ms(50.0)));
    assert!(!verdict.holds());
}

#[test]
fn connections_closed_after_each_answer_cost_no_query() {
    let run = drive(&Server::start(|_, _, stream| {
        let body = format!("HTTP/1.1 200 X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{ANSWER}", ANSWER.len());
        stream.write_all(body.as_bytes()).ok();
        None
    }));
    assert_eq!(run.count(Outcome::Answered), 500);
}

/// A server that answers one query at a time, in 30 ms, and rejects a query if three others are there.
fn single() -> Server {
    let (turn, present) = (std::sync::Mutex::new(()), AtomicU32::new(0));
    Server::start(move |_, head, _| {
        assert!(head.contains("authorization: Basic c2VjcmV0"), "{head}");
        let reply = if present.fetch_add(1, Ordering::SeqCst) < 3 {
            let _turn = turn.lock().unwrap();
            thread::sleep(Duration::from_millis(30));
            good()
        } else {
            Some(response(429, "{}"))
        };
        present.fetch_sub(1, Ordering::SeqCst);
        reply
    })
}

#[test]
fn a_profile_finds_servers_and_queue_limit_and_no_file_has_the_credentials() {
    let server = single();
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "Basic c2VjcmV0").unwrap();
    let credentials = Credentials::load(Some(&secret)).unwrap();
    let dialect = Dialect::named("opensearch").unwrap();
    let target = Target::new(&format!("http://{}/x", server.address), &dialect, &[], credentials).unwrap();
    let texts: Vec<String> = (0..20).map(|i| format!("query {i}")).collect();
    let requests = Requests::new(&dialect, target.path(), 10, 50.0, &texts).unwrap();
    let limits = Limits::for_deadline(Nanos::from_ms(50.0));
    let client = Client::of_one(&target, &requests, limits);
    let (service, rung) = (Duration::from_millis(3000), Duration::from_millis(700));
    let plan = ProfilePlan { service, rung, clients: 8, queries: 20, seed: 1 };
    let profile = measure_server(&client, &plan, &Silent).unwrap();
    assert_eq!((profile.servers(), profile.queries.len(), profile.ladder.len()), (1, 20, 4));
    assert_eq!(profile.queue_limit(), Some(3));
    assert!(profile.queries.iter().all(|query| (29_900.0..45_000.0).contains(&query.median_us) && query.hits == 1));
    let arrivals = Arrivals::drawn(&ArrivalProcess::Poisson, 1, 100, texts.len());
    let run = client.drive(&arrivals, 200.0, 0.1).unwrap();
    assert!(!run.warm_up.is_empty() && run.planned + run.warm_up.len() == 100);
    let criterion = tandem_model::study::Objective::default().within(Nanos::from_ms(50.0));
    let (report, provenance) =
        (RunReport::of(&run, &criterion), Provenance::new().with("dialect", dialect.provenance()));
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    write_profile(&out, &provenance, &profile).unwrap();
    write_runs(&out.join("runs.csv"), &provenance, std::slice::from_ref(&report)).unwrap();
    write_histograms(&out.join("runs.hlog"), &provenance, &[report]).unwrap();
    write_requests(&out.join("requests.csv"), &provenance, &run).unwrap();
    let files: Vec<String> =
        std::fs::read_dir(&out).unwrap().map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    assert_eq!(files.len(), 6);
    assert!(files.iter().all(|text| !text.contains("c2VjcmV0") && !text.contains("authorization")));
}
