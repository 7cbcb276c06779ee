//! Service times and arrivals that other programs wrote, as their users have them.

use std::path::Path;
use std::process::{Command, Output};

use tandem::base::machine::Class;
use tandem::cost::Workload;
use tandem::traffic::{ArrivalProcess, Mode, Recording, Replay, Stretch, UnitTimes};

fn tandem(dir: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.args(arguments.split_whitespace()).current_dir(dir).output().unwrap()
}

fn said(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

fn parse(text: &str) -> Result<Workload, String> {
    Workload::parse("x.csv", text.as_bytes()).map_err(|e| e.to_string())
}

/// Ids and CPU times of all rows, and what was found.
fn read(text: &str) -> (Vec<(u32, f64)>, String) {
    let workload = parse(text).unwrap();
    assert!(!workload.has_features());
    let row = |row: &tandem::cost::WorkloadRow| (row.query_id.0, row.measured[Class::CPU].unwrap().median_us);
    (workload.rows.iter().map(row).collect(), workload.found().unwrap_or_default().to_owned())
}

fn recorded(text: &str, replay: Replay) -> Result<Recording, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.csv");
    std::fs::write(&path, text).unwrap();
    Recording::read(&path, replay).map_err(|e| e.to_string().rsplit_once("a.csv").unwrap().1.to_owned())
}

#[test]
fn service_times_are_known_by_usual_names_and_units() {
    for (text, us, found) in [
        ("query_id,cpu_us\n0,812.5\n", 812.5, ""),
        ("cpu_us\n812.5\n", 812.5, ""),
        ("took\n12\n", 12e3, "`took` in milliseconds, as its name has no unit"),
        ("TOOK\n12\n", 12e3, "`TOOK` in milliseconds, as its name has no unit"),
        ("latency_ms\n1.5\n", 1.5e3, "`latency_ms` in milliseconds"),
        ("Duration\n12\n", 12e3, "`Duration` in milliseconds, as its name has no unit"),
        ("duration_ms\n12\n", 12e3, "`duration_ms` in milliseconds"),
        ("elapsed\n12\n", 12e3, "`elapsed` in milliseconds, as its name has no unit"),
        ("Elapsed (s)\n0.5\n", 0.5e6, "`Elapsed (s)` in seconds"),
        ("cpu_ms\n12\n", 12e3, "`cpu_ms` in milliseconds"),
        ("cpuNanos\n1500\n", 1.5, "`cpuNanos` in nanoseconds"),
        ("service_time\n12\n", 12e3, "`service_time` in milliseconds, as its name has no unit"),
        ("SERVICE_TIME_US\n12\n", 12.0, "`SERVICE_TIME_US` in microseconds"),
        (
            "host;took\na1;12\n",
            12e3,
            "semicolon-separated, ignored: `host`; `took` in milliseconds, as its name has no unit",
        ),
        ("host\ttook_s\n\t0.5\n", 0.5e6, "tab-separated, ignored: `host`; `took_s` in seconds"),
        (
            "latency_ms,took_ms,a,b\n9,12,x,\"y,z\"\n",
            12e3,
            "comma-separated, ignored: `latency_ms`, `a`, `b`; `took_ms` in milliseconds",
        ),
    ] {
        let (rows, columns) = read(text);
        assert_eq!((rows.len(), rows[0].0, &*columns), (1, 0, found), "{text}");
        assert!((rows[0].1 / us - 1.0).abs() < 1e-9, "{text}: {} us", rows[0].1);
    }
    let both = parse("gpu_us,mode,query_id,cpu_us\n5,and,1,\n5,and-or,2,3\n").unwrap();
    assert_eq!((both.rows[1].mode, both.mode(), both.found()), (Mode::AndOr, Mode::And, None));
    assert!(both.rows[0].measured[Class::CPU].is_none() && both.rows[0].measured[Class::GPU].is_some());
}

#[test]
fn ids_are_kept_if_they_number_the_rows() {
    assert_eq!(read("query_id,cpu_us\n7,1\n9,2\n").0, [(7, 1.0), (9, 2.0)]);
    let (rows, found) = read("QUERY_ID,cpu_us\nq7,1\nq9,2\n");
    assert_eq!((&rows[..], &*found), (&[(0, 1.0), (1, 2.0)][..], "rows are numbered in place of `QUERY_ID`"));
    assert_eq!(read("id,cpu_us\n7,1\n7,2\n").0, [(0, 1.0), (1, 2.0)]);
}

#[test]
fn counts_repeat_rows_and_zeros_are_half_of_the_least() {
    let (rows, found) = read("took_ms,count\n0,1\n4,2\n6,0\n");
    assert_eq!(rows, [(0, 2e3), (1, 4e3), (2, 4e3)]);
    let expected = "`took_ms` in milliseconds; 1 times of 0 count as 2000 us, half of the least other; \
                    `count` is the number of such queries";
    assert_eq!(found, expected);
    // A day's histogram becomes 200,000 rows, and its rarest time stays.
    let (rows, found) = read("took_ms,count\n1,200000000\n2,56000000\n900,3\n");
    let of = |us: f64| rows.iter().filter(|row| row.1 == us).count();
    assert_eq!((of(1e3), of(2e3), of(9e5)), (156_250, 43_750, 1), "{found}");
    assert!(found.ends_with(", in proportion for 200001 rows"), "{found}");
}

#[test]
fn refusals_say_in_one_line_what_is_needed() {
    for (text, expected) in [
        (
            "host,status\na,200\n",
            "x.csv:1:1: no service times in `host`, `status`: a file of your own needs one column of them, such as cpu_us, took \
             or latency_ms",
        ),
        ("query_id,cpu_us\n1,5\n1,6\n", "x.csv:3:1: `query_id` 1 was given in line 2 already"),
        ("query_id,cpu_us\n1,fast\n", "x.csv:2:3: `cpu_us` is \"fast\", expected microseconds above 0"),
        ("query_id,cpu_us\n1,0\n", "x.csv:2:3: `cpu_us` is \"0\", expected microseconds above 0"),
        ("query_id,cpu_us\n1,4e9\n", "x.csv:2:3: `cpu_us` is \"4e9\", expected microseconds, at most an hour"),
        ("a;took\n1;-3\n", "x.csv:2:3: `took` is \"-3\", expected milliseconds above 0"),
        ("took\n4000000\n", "x.csv:2:1: `took` is \"4000000\", expected milliseconds, at most an hour"),
        ("took;count\n4;x\n", "x.csv:2:3: `count` is \"x\", expected a whole number from 0"),
        ("query_id,cpu_us\n1,\n", "x.csv:2:3: query 1 has no service time"),
        ("query_id,cpu_us\n", "x.csv: holds no queries, expected a header and at least one row"),
        ("", "x.csv: holds no queries, expected a header and at least one row"),
        // A file of the program's own form stays strict.
        (
            "query_id,mode,terms,shortest,second_shortest,postings,cpu_uss,gpu_us,results\n",
            "x.csv:1:55: unknown column `cpu_uss`, perhaps `cpu_us`",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn simulate_takes_files_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let simulate = |options: &str| {
        tandem(
            dir.path(),
            &format!(
                "simulate --gpus 0 --policy cpu-only --what delays --rate 9 --num-queries 200 --seeds 1 {options}"
            ),
        )
    };
    write("took.csv", "Host;Took\na1;12\na2;8\n");
    let output = simulate("--workload took.csv");
    assert!(output.status.success(), "{}", said(&output.stderr));
    let found =
        "took.csv: semicolon-separated, ignored: `Host`; `Took` in milliseconds, as its name has no unit; 2 queries\n";
    assert_eq!(said(&output.stderr), found);
    // The only mode of a file is taken, and another one is refused.
    write("and.csv", "query_id,mode,cpu_us\n0,and,500\n1,and,700\n");
    let output = simulate("--workload and.csv");
    assert!(output.status.success() && said(&output.stdout).starts_with("and.csv, mode and: 2 queries"), "{output:?}");
    assert_eq!(
        said(&simulate("--workload and.csv --mode or").stderr),
        "error: and.csv: no queries in mode or (it has and)\n"
    );
    // Seconds in a column of microseconds are doubted on the terminal, in files and in JSON.
    write("seconds.csv", "query_id,cpu_us\n0,0.0061\n1,0.0061\n");
    let doubt = "the mean service time is 0.0061 us: is the unit of its column right?";
    let output = simulate("--workload seconds.csv --format json");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["results"]["warnings"], serde_json::json!([doubt]), "{document}");
    assert!(said(&simulate("--workload seconds.csv").stdout).contains(&format!("\nwarning: {doubt}\n")));
    let summary = std::fs::read_to_string(dir.path().join("out/summary.csv")).unwrap();
    assert!(summary.contains(&format!("\n# warning: {doubt}\n")), "{summary}");
}

#[test]
fn policies_see_the_predictions_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let rows = |long: u32| (0..40).map(move |i| if i % 4 == 0 { (i, 40_000, long) } else { (i, 1000, 1000) });
    let file = |name: &str, long: u32, with: bool| {
        let lines = rows(long).map(|(id, us, predicted)| match with {
            true => format!("{id},{us},{predicted}\n"),
            false => format!("{id},{us}\n"),
        });
        let head = if with { "query_id,cpu_us,predicted_us\n" } else { "query_id,cpu_us\n" };
        std::fs::write(dir.path().join(name), head.to_owned() + &lines.collect::<String>()).unwrap();
    };
    file("exact.csv", 40_000, true);
    file("blind.csv", 1000, true);
    file("measured.csv", 0, false);
    let delays = |name: &str, options: &str| {
        let command = "simulate --gpus 0 --cpus 2 --policy stealing-adaptive --what delays --rate 150 --num-queries 3000 --seeds 1";
        let output = tandem(dir.path(), &format!("{command} --workload {name} {options}"));
        assert!(output.status.success(), "{}", said(&output.stderr));
        let text = std::fs::read_to_string(dir.path().join("out/summary.csv")).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
    };
    let (exact, blind, measured) = (delays("exact.csv", ""), delays("blind.csv", ""), delays("measured.csv", ""));
    assert_eq!(exact, measured);
    assert_ne!(blind, measured);
    assert_eq!(delays("blind.csv", "--estimates oracle"), measured);
    std::fs::write(dir.path().join("hole.csv"), "cpu_us,predicted_us\n5,4\n5,\n").unwrap();
    let output = tandem(dir.path(), "simulate --gpus 0 --workload hole.csv");
    let expected = "error: query 1: predicted_us has no cpu time (measured times: --estimates oracle)\n";
    assert_eq!((output.status.code(), &*said(&output.stderr)), (Some(2), expected));
}

#[test]
fn times_of_arrivals_have_many_notations() {
    let own = recorded("arrival_s\n0\n0.5\n2\n", Replay::Compress).unwrap();
    for (text, found) in [
        ("x,arrival_us\na,0\nb,500000\nc,2000000\n", "comma-separated, ignored: `x`"),
        ("arrival_ms\n10\n510\n2010\n", ""),
        ("timestamp\n1796200800\n1796200800.5\n1796200802\n", "`timestamp` holds seconds"),
        ("Timestamp\n1796200800000\n1796200800500\n1796200802000\n", "`Timestamp` holds milliseconds"),
        ("time\n1796200800000000\n1796200800500000\n1796200802000000\n", "`time` holds microseconds"),
        ("ts\n1796200800000000000\n1796200800500000000\n1796200802000000000\n", "`ts` holds nanoseconds"),
        (
            "@timestamp;url\n2026-11-28T09:00:00Z;/\n2026-11-28T09:00:00.5Z;/\n2026-11-28T10:00:02+01:00;/\n",
            "semicolon-separated, ignored: `url`; `@timestamp` holds dates and times",
        ),
        ("time\n2024-02-29 23:59:59.5\n2024-03-01 00:00:00\n2024-03-01 00:00:01.5\n", "`time` holds dates and times"),
    ] {
        let read = recorded(text, Replay::Compress).unwrap_or_else(|why| panic!("{text}: {why}"));
        assert_eq!((read.len(), read.rate_qps(), read.seconds()), (3, own.rate_qps(), own.seconds()), "{text}");
        assert_eq!(read.found().unwrap_or_default(), found, "{text}");
    }
    for (text, expected) in [
        (
            "when,what\n1,2\n",
            ":1:1: no times in `when`, `what`: recorded arrivals need a column of them, such as arrival_s or timestamp, and counts \
             per interval one more, such as qps or count",
        ),
        ("time\n2026-13-01\n", ":2:1: `time` is \"2026-13-01\", expected a date and time such as 2026-11-28T09:00:00Z"),
        ("arrival_s\nx\n", ":2:1: `arrival_s` is \"x\", expected a number from 0 to 9e9 (s)"),
        (
            "time\n2026-11-28T09:00:01Z\n2026-11-28T09:00:00Z\n",
            ":3:1: arrivals go backwards: 2026-11-28T09:00:00Z after 2026-11-28T09:00:01Z (sort by time)",
        ),
        (
            "time,count\n0,5\n60,7\n180,3\n",
            ":4: begins 120 s after the interval before it, expected 60 s as in the first lines (a missing interval needs a line, perhaps with 0)",
        ),
        ("time,count\n0,x\n60,1\n", ":2:3: `count` is \"x\", expected a number"),
        ("time,qps\n0,-1\n60,1\n", ":2:3: `qps` is \"-1\", expected a number from 0 to 1e12"),
        ("time,count\n0,5\n", ":2: holds one interval, expected at least two: no length"),
        ("time,count\n0,0\n60,0\n", ": holds fewer than two arrivals: no gap, no rate"),
    ] {
        assert_eq!(recorded(text, Replay::Repeat).unwrap_err(), expected, "{text}");
    }
    assert!(recorded("time,qps\n0,1\n60,1\n", Replay::Windows).unwrap_err().contains("no gaps"));
}

#[test]
fn counts_become_poisson_arrivals_of_their_interval() {
    let head = "2026-11-28T09:0";
    let recording = format!("time,count\n{head}0Z,6000\n{head}1Z,0\n{head}2Z,18000\n{head}3Z,0\n");
    let recording = recorded(&recording, Replay::Repeat).unwrap();
    assert_eq!((recording.len(), recording.rate_qps(), recording.seconds()), (24_000, 100.0, 240.0));
    assert_eq!(recording.found(), Some("`time` holds dates and times; `count` holds counts in intervals of 60 s"));
    // An interval without arrivals has a rate of nearly 0.
    assert_eq!(recording.rates_qps(60.0).into_iter().map(f64::round).collect::<Vec<_>>(), [100.0, 0.0, 300.0, 0.0]);
    assert_eq!(recording.rates_qps(120.0), [50.0, 150.0]);
    let process = ArrivalProcess::Recorded(recording);
    let (mut counts, mut early) = ([0.0; 4], 0.0);
    for seed in 1..=20 {
        let mut stretch = Stretch::of(&process, seed, 100.0);
        let times = UnitTimes::of(&process, seed).map(|unit| stretch.time(unit).as_secs());
        for at in times.take_while(|&at| at < 240.0) {
            counts[(at / 60.0) as usize] += 0.05;
            early += if at % 60.0 < 30.0 { 0.05 } else { 0.0 };
        }
    }
    // Five standard errors of the mean of 20 Poisson counts.
    let is_near = |mean: f64, expected: f64| (mean - expected).abs() <= 5.0 * (expected / 20.0).sqrt();
    assert!(
        is_near(counts[0], 6000.0) && is_near(counts[2], 18_000.0) && is_near(early, 12_000.0),
        "{counts:?} {early}"
    );
    assert_eq!((counts[1], counts[3]), (0.0, 0.0));
    let rate = recorded("time,requests/s\n0,50\n30,150\n", Replay::Intensify).unwrap();
    assert_eq!((rate.len(), rate.rate_qps()), (6000, 100.0));
}
