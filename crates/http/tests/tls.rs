//! A server behind TLS with a certificate of its own, and credentials from the environment.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tandem_http::{
    Client, Credentials, Dialect, Limits, Outcome, Requests, RunReport, Target, write_histograms, write_requests,
    write_runs,
};
use tandem_model::base::time::Nanos;
use tandem_model::files::Provenance;
use tandem_model::sim::Arrivals;
use tandem_model::study::Objective;
use tandem_model::traffic::ArrivalProcess;

const SECRET: &str = "Basic dGxzLXNlY3JldA==";

/// Answers each request that has the secret, in records of a few bytes; others get status 401.
fn answer(connection: ServerConnection, stream: std::net::TcpStream) {
    let mut stream = StreamOwned::new(connection, stream);
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        text.extend_from_slice(&buffer[..count]);
        if !text.ends_with(b"}") {
            continue;
        }
        let is_allowed = String::from_utf8_lossy(&text).contains(&format!("authorization: {SECRET}\r\n"));
        let status = if is_allowed { "200 OK" } else { "401 Unauthorized" };
        let response = format!("HTTP/1.1 {status}\r\ncontent-length: 22\r\n\r\n{{\"hits\":{{\"hits\":[{{}}]}}}}");
        text.clear();
        for record in response.as_bytes().chunks(20) {
            if stream.write_all(record).is_err() || stream.flush().is_err() {
                return;
            }
        }
    }
}

#[test]
fn tls_with_a_named_certificate_works_and_credentials_of_the_environment_are_written_nowhere() {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([String::from("localhost")]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![cert.der().clone()], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/x", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            thread::spawn(move || answer(connection, stream.unwrap()));
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let authorities = folder.path().join("authorities.pem");
    std::fs::write(&authorities, cert.pem()).unwrap();
    // SAFETY: this program has one test, and its other threads do not use the environment.
    unsafe {
        std::env::set_var("SSL_CERT_FILE", &authorities);
        std::env::set_var("TANDEM_CREDENTIALS", SECRET);
    }
    let credentials = Credentials::load(None).unwrap();
    let dialect = Dialect::named("opensearch").unwrap();
    let texts: Vec<String> = (0..10).map(|i| format!("query {i}")).collect();
    let run = |url: &str, credentials| {
        let target = Target::new(url, &dialect, &[], credentials).unwrap();
        let requests = Requests::new(&dialect, target.path(), 10, 50.0, &texts).unwrap();
        let limits = Limits { connections: 8, ..Limits::for_deadline(Nanos::from_ms(50.0)) };
        let client = Client::of_one(&target, &requests, limits);
        client.drive(&Arrivals::drawn(&ArrivalProcess::Poisson, 1, 200, texts.len()), 400.0, 0.0).unwrap()
    };
    let answered = run(&url, credentials);
    assert_eq!(answered.count(Outcome::Answered), 200);
    // The name is not in the certificate, and the credentials are missing.
    assert_eq!(run(&url.replace("localhost", "127.0.0.1"), None).count(Outcome::Reset), 200);
    assert_eq!(run(&url, None).count(Outcome::OtherStatus), 200);
    let report = RunReport::of(&answered, &Objective::default().within(Nanos::from_ms(50.0)));
    let (out, provenance) =
        (folder.path().join("out"), Provenance::new().with_command_and_machine().with("dialect", dialect.provenance()));
    std::fs::create_dir(&out).unwrap();
    write_runs(&out.join("runs.csv"), &provenance, std::slice::from_ref(&report)).unwrap();
    write_histograms(&out.join("runs.hlog"), &provenance, &[report]).unwrap();
    write_requests(&out.join("requests.csv"), &provenance, &answered).unwrap();
    let files: Vec<String> =
        std::fs::read_dir(&out).unwrap().map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    assert_eq!(files.len(), 3);
    assert!(files.iter().all(|text| !text.contains("dGxzLXNlY3JldA") && !text.contains("authorization")));
}
