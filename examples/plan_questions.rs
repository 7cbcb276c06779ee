//! Twelve questions to `tandem plan`, each compared with all plans of the catalogue in simulations with other seeds.
//!
//! `cargo run --release --example plan_questions -- results/plan/questions.csv` writes a row per question. Simulated machines
//! run as fast as their types, so that the plans are made without variation of speed (`--speed-spread 0`). No machine is
//! driven live.

use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use tandem::base::time::Nanos;
use tandem::files::{Provenance, set_commit};
use tandem::sim::Routing;
use tandem::study::plan::{Candidate, Demand, Question, plan, plan_by, shipped_catalogue};
use tandem::study::{Estimates, Objective, RunLength, named_workload_in};
use tandem::traffic::Mode;

const WIKIPEDIA: &str = "enwiki-tb05-h200";
const GOV2: &str = "synthetic-gov2-h200";
const MILLION: &str = "synthetic-1m-h200";
/// The seeds of the comparison; plans use 1 to 10.
const SEEDS: [u64; 3] = [101, 102, 103];
/// Workload, rate in queries per second, deadline in milliseconds, whether machines may have GPUs, spare groups, and the size
/// of the index in gigabytes.
type Asked = (&'static str, f64, f64, bool, usize, Option<f64>);

const QUESTIONS: [Asked; 12] = [
    (WIKIPEDIA, 2_000.0, 50.0, false, 0, None),
    (WIKIPEDIA, 1_000_000.0, 50.0, false, 0, None),
    (WIKIPEDIA, 5_000_000.0, 20.0, true, 0, None),
    (WIKIPEDIA, 20_000_000.0, 100.0, true, 1, None),
    (GOV2, 1_000.0, 100.0, false, 0, None),
    (GOV2, 12_000.0, 50.0, false, 0, None),
    (GOV2, 20_000.0, 200.0, true, 0, None),
    (GOV2, 300_000.0, 50.0, true, 0, None),
    (GOV2, 8_000.0, 100.0, false, 0, Some(100.0)),
    (GOV2, 60_000.0, 100.0, true, 1, None),
    (MILLION, 100_000.0, 10.0, false, 0, None),
    (MILLION, 2_000_000.0, 50.0, true, 1, None),
];

const HEADER: &str = "question,workload,rate_qps,deadline_ms,with_gpus,spare,index_gb,machine,policy,machines,price_per_hour,\
                      holds,cheapest_machine,cheapest_machines,cheapest_price_per_hour,cost_ratio,plan_s";

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| String::from("questions.csv"));
    let mut text = String::new();
    if let Some(commit) = option_env!("TANDEM_COMMIT") {
        set_commit(commit);
    }
    for (key, value) in Provenance::new().with_command_and_machine().lines() {
        let value = value.replacen("tandem ", "cargo run --release --example plan_questions -- ", 1);
        writeln!(text, "# {key}: {value}")?;
    }
    writeln!(text, "{HEADER}")?;
    for (number, asked) in (1..).zip(QUESTIONS) {
        let row = answered(number, asked)?;
        println!("{row}");
        writeln!(text, "{row}")?;
    }
    Ok(std::fs::write(path, text)?)
}

/// The row of a question.
fn answered(number: usize, asked: Asked) -> Result<String, Box<dyn Error>> {
    let (name, rate_qps, deadline_ms, has_gpus, spare, index_gb) = asked;
    let workload = Arc::new(named_workload_in(Some(name), Mode::Or)?.1);
    let types = shipped_catalogue()?.into_iter().filter(|of| has_gpus || of.gpus == 0);
    let of = |machine| Candidate { machine, workload: Arc::clone(&workload), profile: None };
    let candidates: Vec<Candidate> = types.map(of).collect();
    let question = Question {
        demand: Demand::Rate(rate_qps),
        growth: 1.0,
        deadline: Nanos::from_ms(deadline_ms),
        objective: Objective::default(),
        spare,
        index_gb,
        policies: Vec::new(),
        routing: Routing::default(),
        estimates: Estimates::default(),
        speed_spread: 0.0,
        shortage: 10.0,
        seed: 1,
    };
    let began = Instant::now();
    let plans = plan(&question, &candidates, &|| ())?;
    let plan_s = began.elapsed().as_secs_f64();
    let best = plans.ranking.first().ok_or("no plan")?;
    let others = plan_by(&question, &candidates, (&SEEDS, RunLength::default()), &|| ())?.ranking;
    let cheapest = others.first().ok_or("no plan of the catalogue holds")?;
    let (machine, machines, price) = (&cheapest.machine.name, cheapest.machines(), cheapest.row.price_per_hour);
    // The plan holds with other seeds if they need no more machines of its type.
    let holds = others.iter().any(|of| of.machine.name == best.machine.name && of.machines() <= best.machines());
    let yes_or_no = |is_so: bool| if is_so { "yes" } else { "no" };
    let ratio = best.row.price_per_hour / price;
    let index_gb = index_gb.map_or(String::new(), |gb| gb.to_string());
    Ok(format!(
        "{number},{name},{rate_qps},{deadline_ms},{},{spare},{index_gb},{},{},{},{:.3},{},{machine},{machines},{price:.3},{ratio:.3},{plan_s:.1}",
        yes_or_no(has_gpus),
        best.machine.name,
        best.policy,
        best.machines(),
        best.row.price_per_hour,
        yes_or_no(holds),
    ))
}
