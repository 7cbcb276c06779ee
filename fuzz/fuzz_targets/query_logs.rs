//! The recogniser of query logs: any bytes are read as queries in one form, or refused with a reason, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem::query::{LogFormat, LogOptions, parse_log};

/// Beginnings of all forms, because the mutator would have to guess them.
const STARTS: [&[u8]; 12] = [
    b"",
    b"<top>\n<num> Number: 301\n<title> ",
    b"<?xml version=\"1.0\"?><topics><topic number=\"1\"><query><![CDATA[",
    b"<DOC>\n<DOCNO> 1 </DOCNO>\n",
    b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n142\tocean\t2006-03-01 07:17:12\t1\thttp://a.org\n",
    b"id,query\r\n1,\"keeper,\nlighthouse\"\r\n",
    b"20001:1:ocean tides\n",
    b"{\"_id\": \"7\", \"text\": \"ocean\"}\n",
    b"{\"query\": {\"bool\": {\"must\": [{\"match\": {\"t\": \"",
    b"[2026-01-02T03:04:05,6][WARN ][index.search.slowlog.query] took[5ms], source[{\"query\":",
    b"\xff\xfe1\x00\t\x00",
    b"\x1f\x8b\x08",
];

fuzz_target!(|bytes: &[u8]| {
    let [start, choice, bytes @ ..] = bytes else { return };
    let bytes = [STARTS[usize::from(*start) % STARTS.len()], bytes].concat();
    let format = LogFormat::ALL.get(usize::from(choice % 16)).copied();
    let column = Some(usize::from(choice / 16)).filter(|&column| column > 0);
    let Ok(log) = parse_log("fuzz", &bytes, &LogOptions { format, column, limit: None }) else { return };
    assert!(!log.entries.is_empty() && !log.found.is_empty());
    let lines = bytes.len() as u64 + 1;
    for entry in &log.entries {
        assert!((1..=lines).contains(&entry.line) && !entry.label.is_empty(), "{entry:?}");
        assert!(format == Some(LogFormat::Plain) || !entry.text.trim().is_empty(), "{entry:?}");
    }
});
