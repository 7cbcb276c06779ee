//! Workload files are read back as written; errors are reported with their place.

use std::io::Cursor;
use std::path::Path;

use proptest::prelude::*;
use tandem::base::ids::QueryId;
use tandem::base::machine::{Class, Machine, PerClass};
use tandem::base::time::Nanos;
use tandem::cost::BatchCost;
use tandem::cost::batches::{BatchModel, BatchModels};
use tandem::cost::{Measured, ModelKind, SpeedUp, Workload, WorkloadRow};
use tandem::files::Provenance;
use tandem::study::{Estimates, sim_queries};
use tandem::traffic::{Features, IndexFeatures, Mode};

const HEADER: &str = "query_id,mode,terms,shortest,second_shortest,postings,cpu_us,gpu_us,results";

fn parse(text: &str) -> Result<Workload, String> {
    Workload::parse("x.csv", Cursor::new(text.as_bytes())).map_err(|e| e.to_string())
}

fn error(rows: &str) -> String {
    parse(&format!("# docs: 100\n{HEADER}\n{rows}")).expect_err("must be refused")
}

/// A time as rounded in the file.
fn rounded(us: f64) -> f64 {
    format!("{:.3}", us.max(0.001)).parse().unwrap()
}

fn measured() -> impl Strategy<Value = Option<Measured>> {
    proptest::option::of((0.0001_f64..1e7, 0.0_f64..1e6).prop_map(|(median, spread)| Measured {
        median_us: rounded(median),
        spread_us: format!("{spread:.3}").parse().unwrap(),
        device_us: None,
    }))
}

fn rows() -> impl Strategy<Value = Vec<WorkloadRow>> {
    let lengths = proptest::collection::vec(1_u64..1_000_000, 1..6);
    let numbers = proptest::collection::vec(0.0_f64..1e9, IndexFeatures::COUNT);
    let of_index = proptest::option::of(numbers.prop_map(|numbers| {
        IndexFeatures::from_vector(std::array::from_fn(|i| format!("{:.3}", numbers[i]).parse().unwrap()))
    }));
    let costs = (measured(), measured(), proptest::option::of(0.01_f64..1e6));
    let row = (0..3_usize, lengths, of_index, costs, 0_u32..1000).prop_map(
        |(mode, mut lengths, index_features, (cpu, gpu, device), results)| {
            lengths.sort_unstable();
            let mut features = Features::from_lengths(&lengths, 1_000_000);
            features.expected_matches = format!("{:.3}", features.expected_matches).parse().unwrap();
            let gpu = gpu.map(|m| Measured { device_us: device.map(rounded), ..m });
            let mode = Mode::ALL[mode];
            WorkloadRow {
                query_id: QueryId(0),
                log_id: 7,
                mode,
                features,
                index_features,
                predicted_us: None,
                measured: PerClass::two(cpu, gpu),
                results,
            }
        },
    );
    proptest::collection::vec(row, 1..40).prop_map(|mut rows| {
        for (i, row) in rows.iter_mut().enumerate() {
            row.query_id = QueryId(i as u32 * 3);
        }
        rows
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_is_read_back(
        rows in rows(),
        name in prop::sample::select(vec!["w.csv", "w.csv.gz", "w.csv.zst"]),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        let mut batches = BatchModels::default();
        batches.0[Class::GPU] = Some(batch_model());
        let provenance = Provenance::new().with("docs", 1_000_000);
        let workload = Workload { provenance, rows, batches, speed_up: Some(SpeedUp::of_all(vec![1.0, 1.5])) };
        workload.write(&path).unwrap();
        prop_assert_eq!(Workload::read(&path).unwrap(), workload);
    }

    #[test]
    fn damaged_files_are_refused_or_read_but_never_panic(
        at in 0_usize..400, byte in any::<u8>(), cut in 0_usize..400,
    ) {
        let mut text = format!("# docs: 9\n{HEADER}\n0,and,2,5,10,15,1.5,2.5,3\n1,or,1,5,5,5,,2.5,3\n").into_bytes();
        let len = text.len();
        text[at % len] = byte;
        text.truncate(len.min(cut.max(10)));
        let _ = Workload::parse("x.csv", Cursor::new(text));
    }
}

fn batch_model() -> BatchModel {
    BatchModel {
        overhead_us: 9.25,
        added_and: 0.1,
        added_or: 0.3,
        added_and_or: 0.0,
        cost: BatchCost {
            host_fixed_us: 7.5,
            host_each_us: 0.1,
            exposed: None,
            device_fixed_us: 0.0,
            longest: 0.9,
            crowding: vec![(2, 5.0), (4096, 1.0)],
            most_queries: 4096,
        },
        samples: 104,
        mean_relative_error: 0.031,
        p95_relative_error: 0.1,
    }
}

#[test]
fn batch_costs_that_make_no_sense_are_refused() {
    let line = |model: &BatchModel| format!("# batches_gpu: {}\n", serde_json::to_string(model).unwrap());
    let read = |head: String| parse(&format!("# docs: 100\n{head}{HEADER}\n0,and,2,5,10,15,1.5,2.5,3\n"));
    assert_eq!(read(line(&batch_model())).unwrap().batches.0[Class::GPU], Some(batch_model()));
    let mut descending = batch_model();
    descending.cost.crowding.reverse();
    let mut negative = batch_model();
    negative.added_or = -0.1;
    for (head, expected) in [
        (line(&descending), "`batches_gpu`: crowding must have sizes that ascend"),
        (line(&negative), "`batches_gpu`: added_or is -0.1, expected a number from 0"),
        (String::from("# batches_gpu: {}\n"), "`batches_gpu` is no model: missing field"),
    ] {
        let message = read(head).unwrap_err().to_string();
        assert!(message.contains(expected), "{message:?} should contain {expected:?}");
    }
}

#[test]
fn contention_is_refused_in_favour_of_machine_profiles() {
    let message =
        parse(&format!("# docs: 100\n# contention: {{}}\n{HEADER}\n0,and,2,5,10,15,1.5,2.5,3\n")).unwrap_err();
    assert_eq!(
        message.to_string(),
        "x.csv:2: `contention` belongs to machine profiles now (delete this line, and measure the machine with these \
         queries: `tandem profile INDEX --queries FILE --machine`)"
    );
}

#[test]
fn columns_come_in_any_order_and_missing_features_are_derived() {
    let text = "# docs: 1000\r\n\"results\",gpu_us,cpu_us,postings,second_shortest,shortest,terms,mode,query_id\r\n\
                10,,12.5,1500,300,200,3,and-or,4\r\n";
    let workload = parse(text).unwrap();
    let row = &workload.rows[0];
    assert_eq!(row.features, Features::from_lengths(&[200, 300, 1000], 1000));
    assert_eq!((row.query_id, row.log_id, row.mode, row.results), (QueryId(4), 4, Mode::AndOr, 10));
    assert_eq!(row.measured[Class::CPU], Some(Measured { median_us: 12.5, spread_us: 0.0, device_us: None }));
    assert_eq!(row.measured[Class::GPU], None);
    assert_eq!(workload.provenance.get("docs"), Some("1000"));
}

#[test]
fn wrong_values_are_named_with_line_and_column() {
    let good = "0,and,2,5,10,15,1.5,2.5,3\n";
    for (row, expected) in [
        ("1,and,2,5,10,15,12e,2.5,3", "x.csv:4:17: `cpu_us` is \"12e\", expected microseconds above 0"),
        ("1,and,2,5,10,15,NaN,2.5,3", "x.csv:4:17: `cpu_us` is \"NaN\", expected microseconds above 0"),
        ("1,and,2,5,10,15,0,2.5,3", "x.csv:4:17: `cpu_us` is \"0\", expected microseconds above 0"),
        ("1,and,2,5,10,15,1,-2.5,3", "x.csv:4:19: `gpu_us` is \"-2.5\", expected microseconds above 0"),
        ("1,and,2,5,10,15,1,inf,3", "x.csv:4:19: `gpu_us` is \"inf\", expected microseconds above 0"),
        ("1,xor,2,5,10,15,1,2,3", "x.csv:4:3: `mode` is \"xor\", expected and, or, and-or"),
        ("1,and,,5,10,15,1,2,3", "x.csv:4:7: `terms` is \"\", expected a whole number from 1"),
        ("1,and,0,5,10,15,1,2,3", "x.csv:4:7: `terms` is \"0\", expected a whole number from 1"),
        ("1,and,2,5,4,15,1,2,3", "x.csv:4:11: `second_shortest` is \"4\", expected at least `shortest`, 5"),
        ("1,and,2,5,10,14,1,2,3", "x.csv:4:14: `postings` is \"14\", expected the sum of all lists, at least 15"),
        ("0,and,2,5,10,15,1,2,3", "x.csv:4:1: `query_id` 0 was given in line 3 already"),
        ("1,and,2,5", "x.csv:4: 4 values, expected 9 as in the header"),
    ] {
        assert_eq!(error(&format!("{good}{row}\n")), expected);
    }
}

#[test]
fn the_published_columns_are_enough_where_no_model_is_asked() {
    let rows: String = (0..40).map(|i| format!("{i},and,4,5,10,{},{}.5,2.5,3\n", 100 + i, 10 + i)).collect();
    let workload = parse(&format!("{HEADER}\n{rows}")).unwrap();
    assert!(workload.rows.iter().all(|row| !row.features.is_complete()));
    let machine = Machine::new(1, 1);
    let told = sim_queries(&workload, &Estimates::Oracle, &machine).unwrap();
    assert_eq!(told[7].service[Class::CPU].alone, Nanos::from_us(17.5));
    assert_eq!(told[7].estimate, told[7].service);
    let refused = sim_queries(&workload, &Estimates::Fitted(ModelKind::Cart), &machine).unwrap_err().to_string();
    assert!(refused.contains("query 0 (and): `longest`, `blocks`") && refused.contains("oracle"), "{refused}");
    // Unknown values are written as unknown.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.csv");
    workload.write(&path).unwrap();
    let again = Workload::read(&path).unwrap();
    assert!(again.rows.iter().all(|row| !row.features.is_complete() && row.features.longest == 0));
}

#[test]
fn wrong_headers_and_empty_files_are_refused() {
    assert_eq!(parse("").unwrap_err(), "x.csv: holds no queries, expected a header and at least one row");
    assert_eq!(
        parse(&format!("{HEADER}\n")).unwrap_err(),
        "x.csv: holds no queries, expected a header and at least one row"
    );
    assert_eq!(
        parse("query_id,mode,terms,shortest,second_shortest,postings\n").unwrap_err(),
        "x.csv:1:1: the header lacks `cpu_us`, `gpu_us`, `results`"
    );
    let twice = parse(&format!("{HEADER},mode\n")).unwrap_err();
    assert!(twice.ends_with(": column `mode` is given twice"), "{twice}");
    let unknown = parse(&format!("{HEADER},colour\n")).unwrap_err();
    assert!(
        unknown.starts_with("x.csv:1:77: unknown column `colour`, expected some of `query_id`, `mode`"),
        "{unknown}"
    );
    assert!(Workload::read(Path::new("no/such/file.csv")).is_err());
}

#[test]
fn a_spread_without_its_median_is_refused() {
    let text = format!("{HEADER},gpu_spread_us\n0,and,1,5,5,5,1.5,,3,0.5\n");
    let message = parse(&text).unwrap_err();
    assert_eq!(message, "x.csv:2:22: `gpu_spread_us` is given where `gpu_us` is empty");
}

#[test]
fn workloads_of_earlier_versions_lack_later_features() {
    let text = format!("# docs: 100\n{HEADER},score_bound,lookups\n1,or,2,3,4,7,10,,1,2.5,8\n2,or,1,3,3,3,5,,1,,\n");
    let workload = parse(&text).unwrap();
    let of_index = workload.rows[0].index_features.unwrap();
    assert_eq!((of_index.score_bound, of_index.lookups), (2.5, 8.0));
    assert!(of_index.seed_score.is_nan());
    assert_eq!(workload.rows[1].index_features, None);
}
