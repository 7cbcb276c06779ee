//! How late the client is at a rate: `lateness [RATE] [SECONDS] [THREADS]`, against a server that answers at once, on
//! another thread of this process.

use std::io::{Read, Write};
use std::thread;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use tandem_core::base::time::Nanos;
use tandem_core::query::ArrivalProcess;
use tandem_core::sim::Arrivals;
use tandem_http::{Client, Dialect, Limits, Outcome, Record, Requests, Target};

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 22\r\n\r\n{\"hits\":{\"hits\":[{}]}}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = |at: usize, default: f64| -> Result<f64, std::num::ParseFloatError> {
        std::env::args().nth(at).map_or(Ok(default), |text| text.parse())
    };
    let (rate_qps, seconds, threads) = (argument(1, 50_000.0)?, argument(2, 5.0)?, argument(3, 1.0)?);
    let mut listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
    let address = listener.local_addr()?;
    let poll = Poll::new()?;
    poll.registry().register(&mut listener, Token(0), Interest::READABLE)?;
    thread::spawn(move || answer_all(&listener, poll));
    let dialect = Dialect::named("opensearch")?;
    let target = Target::new(&format!("http://{address}/"), &dialect, &[], None)?;
    let texts: Vec<String> = (0..1000).map(|i| format!("query {i}")).collect();
    let requests = Requests::new(&dialect, target.path(), 10, 50.0, &texts)?;
    let limits = Limits { threads: threads as usize, ..Limits::for_deadline(Nanos::from_ms(50.0)) };
    let client = Client { target: &target, requests: &requests, limits };
    let arrivals = Arrivals::drawn(&ArrivalProcess::Poisson, 1, (rate_qps * seconds) as usize, texts.len());
    let run = client.drive(&arrivals, rate_qps, 1.0)?;
    let (latency, service) = (run.histogram(Record::latency), run.histogram(Record::service));
    println!(
        "{rate_qps} q/s asked, {:.0} answered per s, {} of {} answered; lateness p99 {} us; latency p50 {} us, p99 {} us; service p50 {} us, p99 {} us",
        run.throughput_qps(),
        run.count(Outcome::Answered),
        run.planned,
        run.lateness_p99().as_us(),
        latency.value_at_percentile(50.0) / 1000,
        latency.value_at_percentile(99.0) / 1000,
        service.value_at_percentile(50.0) / 1000,
        service.value_at_percentile(99.0) / 1000,
    );
    Ok(())
}

/// Answers each read of a connection, which holds one request since the client does not pipeline.
fn answer_all(listener: &TcpListener, mut poll: Poll) {
    let (mut streams, mut events): (Vec<TcpStream>, _) = (Vec::new(), Events::with_capacity(256));
    let mut buffer = [0; 4096];
    loop {
        poll.poll(&mut events, None).expect("the poller works");
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
