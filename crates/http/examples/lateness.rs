//! Lateness of the client by rate: `lateness [RATE,RATE...] [SECONDS] [THREADS] [FILE.csv]`, against a server that answers
//! at once, on another thread of this process.

use std::error::Error;
use std::io::{Read, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use tandem_http::{Client, Dialect, Limits, Outcome, Record, Requests, Target};
use tandem_model::base::stats::significant;
use tandem_model::base::time::Nanos;
use tandem_model::files::{Provenance, write_atomically};
use tandem_model::sim::Arrivals;
use tandem_model::traffic::ArrivalProcess;

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 22\r\n\r\n{\"hits\":{\"hits\":[{}]}}";
const COLUMNS: &str = "threads,rate_qps,seconds,answered_qps,failed,lateness_p50_us,lateness_p99_us,lateness_p999_us,latency_p50_us,latency_p99_us";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize, default: &str| arguments.get(at).map_or(default, String::as_str).to_owned();
    let rates: Result<Vec<f64>, _> = argument(0, "10000,20000,30000,50000").split(',').map(str::parse).collect();
    let (seconds, threads): (f64, usize) = (argument(1, "5").parse()?, argument(2, "1").parse()?);
    let mut listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
    let address = listener.local_addr()?;
    let poll = Poll::new()?;
    poll.registry().register(&mut listener, Token(0), Interest::READABLE)?;
    thread::spawn(move || answer_all(&listener, poll));
    let dialect = Dialect::named("opensearch")?;
    let target = Target::new(&format!("http://{address}/"), &dialect, &[], None)?;
    let texts: Vec<String> = (0..1000).map(|i| format!("query {i}")).collect();
    let requests = Requests::new(&dialect, target.path(), 10, 50.0, &texts)?;
    let limits = Limits { threads, ..Limits::for_deadline(Nanos::from_ms(50.0)) };
    let client = Client::of_one(&target, &requests, limits);
    let mut lines = vec![COLUMNS.to_owned()];
    println!("{COLUMNS}");
    for rate_qps in rates? {
        let count = (rate_qps * (1.0 + seconds)) as usize;
        let arrivals = Arrivals::drawn(&ArrivalProcess::Poisson, 1, count, texts.len());
        let run = client.drive(&arrivals, rate_qps, 1.0)?;
        let latency = run.histogram(Record::latency);
        let mut lateness: Vec<u32> = run.records.iter().map(|record| record.lateness).collect();
        lateness.sort_unstable();
        let late = |share: f64| f64::from(lateness[(share * (lateness.len() - 1) as f64) as usize]) / 1e3;
        let percentile = |percentile| latency.value_at_percentile(percentile) as f64 / 1e3;
        let failed = (run.planned - run.count(Outcome::Answered)) as f64;
        let values = [
            threads as f64,
            rate_qps,
            seconds,
            run.throughput_qps(),
            failed,
            late(0.5),
            late(0.99),
            late(0.999),
            percentile(50.0),
            percentile(99.0),
        ];
        lines.push(values.map(|value| significant(value, 4).to_string()).join(","));
        println!("{}", lines[lines.len() - 1]);
    }
    if let Some(path) = arguments.get(3) {
        let command = format!("cargo run --release -p tandem-http --example lateness {}", arguments.join(" "));
        let provenance = Provenance::new().with_command_and_machine().without("command").with("command", command);
        write_atomically(Path::new(path), |out| {
            provenance.write_to(out)?;
            lines.iter().try_for_each(|line| writeln!(out, "{line}"))
        })?;
    }
    Ok(())
}

/// Answers each read of a connection, which holds one request since the client does not pipeline. Like `tandem serve`, it does
/// not sleep if there is a core for it.
fn answer_all(listener: &TcpListener, mut poll: Poll) {
    let owns_core = thread::available_parallelism().is_ok_and(|cores| cores.get() > 2);
    let timeout = owns_core.then_some(Duration::ZERO);
    let (mut streams, mut events): (Vec<TcpStream>, _) = (Vec::new(), Events::with_capacity(256));
    let mut buffer = [0; 4096];
    loop {
        poll.poll(&mut events, timeout).expect("the poller works");
        for event in &events {
            if event.token() == Token(0) {
                while let Ok((mut stream, _)) = listener.accept() {
                    let token = Token(1 + streams.len());
                    poll.registry().register(&mut stream, token, Interest::READABLE).expect("a socket can be polled");
                    streams.push(stream);
                }
                continue;
            }
            let stream = &mut streams[event.token().0 - 1];
            while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
                let _ = stream.write(RESPONSE);
            }
        }
    }
}
