//! What a job costs the dispatcher, and how many it carries, by policy.

use super::{Arguments, Measurement};
use crate::cli::Failure;
use crate::machine::Class;
use crate::measure::{DispatcherTime, ThreadedRate, dispatcher_machine, time_dispatcher};
use crate::report::table::Table;
use crate::sched::{PolicyFactory, PolicyKind, PolicyOptions};

pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    let model = dispatcher_machine(usize::from(arguments.lanes));
    let all = PolicyKind::ALL.map(|kind| kind.with(PolicyOptions::default()));
    let policies: Vec<&dyn PolicyFactory> = all.iter().map(|policy| policy as &dyn PolicyFactory).collect();
    let times = time_dispatcher(&model, &policies, arguments.rounds as usize, true);
    let times = times.map_err(|e| Failure::failed(e.to_string()))?;
    let headings = [
        "policy",
        "alone ns",
        "alone M/s",
        "threads M/s",
        "event ns",
        "lag p50 us",
        "lag p99 us",
        "at 1.6 M/s",
        "hand-over us",
    ];
    let mut table = Table::new(headings);
    let mut rows = Vec::new();
    for DispatcherTime { policy, alone_ns, threads } in &times {
        let mut metrics = vec![("ns_a_job_alone", *alone_ns)];
        let mut cells = vec![policy.clone(), format!("{alone_ns:.0}"), format!("{:.2}", 1e3 / alone_ns)];
        if let Some(ThreadedRate { rate_qps, decision, lag, lag_at_target, handoff }) = threads {
            // Of the class that worked, the CPUs if both did.
            let handoff = [Class::CPU, Class::GPU].map(|class| handoff[class].p50.as_us());
            let handoff_us = if handoff[0] > 0.0 { handoff[0] } else { handoff[1] };
            metrics.extend([
                ("jobs_per_s", *rate_qps),
                ("event_mean_ns", decision.mean.0 as f64),
                ("event_p50_ns", decision.p50.0 as f64),
                ("event_p99_ns", decision.p99.0 as f64),
                ("lag_p50_us", lag.p50.as_us()),
                ("lag_p99_us", lag.p99.as_us()),
                ("lag_p99_us_at_1600000_per_s", lag_at_target.p99.as_us()),
                ("handoff_p50_us", handoff_us),
            ]);
            cells.push(format!("{:.2}", rate_qps / 1e6));
            cells.push(decision.mean.0.to_string());
            let times_us = [lag.p50.as_us(), lag.p99.as_us(), lag_at_target.p99.as_us(), handoff_us];
            cells.extend(times_us.map(|us| format!("{us:.1}")));
        }
        table.row(cells);
        let measurement = |(metric, value)| Measurement { part: "dispatcher", name: policy.clone(), metric, value };
        rows.extend(metrics.into_iter().map(measurement));
    }
    let note = format!(
        "dispatcher: {} CPU lanes and a GPU, executors that answer at once; alone: one thread, recorded lanes; events \
         and lag at four fifths of the rate with threads, and lag p99 at 1.6 M/s\n\n{table}\n",
        arguments.lanes
    );
    Ok((note, rows))
}
