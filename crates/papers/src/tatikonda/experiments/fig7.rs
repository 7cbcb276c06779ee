//! Tatikonda et al., figure 7: cost of cutting queries into tasks.
//!
//! The paper's producer makes one task per skip block of the rarest list, and records for every other list the skip blocks
//! that the task needs (`published/tasks.rs`). Neighbouring tasks share at most one block of a list, which is then decoded
//! twice. Two numbers describe the cost: the skip blocks per task and list, and the share of these that the previous task
//! needs as well.
//!
//! In the paper the first number is 10.2 at every block size. That holds if the rarest list fills its blocks. A list of 40
//! postings is one task at any size, and such a task needs more blocks of the other lists the smaller the blocks are. The
//! numbers are therefore given for all queries, and for those whose rarest list has a block of the largest size.
//!
//! Skip blocks are cut from decoded lists, so that any size is possible.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tandem_engine::index::Index;
use tandem_engine::query::Query;
use tandem_model::base::ids::TermId;

use super::bench::{DOCS, QUERIES};
use crate::codec::Pfor;
use crate::context::terms_of;
use crate::ding::daat::lists::CodedLists;
use crate::findings::{Chart, Curve};
use crate::tatikonda::published::core::Core;
use crate::tatikonda::published::tasks::{Needed, create_tasks, mean_overlap, mean_skips};
use crate::{Context, Findings, Input, RealLog, Result};

/// Postings per skip block.
const BLOCK_SIZES: [usize; 4] = [512, 256, 128, 64];
/// Runs of cutting, of which the fastest counts.
const REPEATS: usize = 5;
/// Queries of a real log, most of which have short lists.
const REAL_QUERIES: usize = 5000;
/// Skips per list and task in the paper.
const PAPERS_SKIPS: f64 = 10.2;
/// Share of a task's skips that the previous task needs as well, in the paper.
const PAPERS_OVERLAP: f64 = 0.97;

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let input = context.input(DOCS, QUERIES, findings)?;
    let costs = compare(context, "", &input, findings)?;
    findings.chart(chart("tasks", "", &costs));
    if let Some(input) = context.real_input(RealLog::Web, REAL_QUERIES, findings)? {
        let costs = compare(context, "real lists", &input, findings)?;
        findings.chart(chart("tasks-real", ", real lists", &costs));
    }
    findings.note(
        "Skips per task depend on the ratio of the other lists to the rarest, so on the query log. All lists of a query count, \
         the rarest with one. Time is of the paper's own search: lists in pfor-512, one core.",
    );
    Ok(())
}

/// Adds a section with all block sizes on an input.
fn compare(context: &Context<'_>, section: &str, input: &Input, findings: &mut Findings) -> Result<Vec<Cost>> {
    findings.section(section);
    // A query of one term has no intersection to share.
    let queries: Vec<&Query> = input.queries.iter().filter(|query| query.terms.len() > 1).collect();
    let filled: Vec<&Query> =
        queries.iter().copied().filter(|query| query.terms[0].doc_freq as usize >= BLOCK_SIZES[0]).collect();
    let searched = time_searching(input, &queries, context)?;
    let share = 100.0 * filled.len() as f64 / queries.len().max(1) as f64;
    findings.add(format!("queries whose rarest list has {} postings", BLOCK_SIZES[0]), "%", share);
    let mut steps = context.steps("block sizes", BLOCK_SIZES.len());
    let mut costs = Vec::new();
    for size in BLOCK_SIZES {
        let cost = Cost::measure(&input.index, &queries, size);
        let cost_of_filled = Cost::measure(&input.index, &filled, size);
        let name = format!("blocks of {size}");
        findings.compare(format!("{name}: skips a list and task"), "", PAPERS_SKIPS, cost.skips_per_task);
        let filled_name = format!("{name}: the same, rarest list filled");
        findings.compare(filled_name, "", PAPERS_SKIPS, cost_of_filled.skips_per_task);
        findings.compare(format!("{name}: of them in the task before, too"), "", PAPERS_OVERLAP, cost.overlap);
        findings.add(format!("{name}: tasks a query"), "", cost.tasks_per_query);
        let share = 100.0 * cost.creation.as_secs_f64() / searched.as_secs_f64();
        let papers = (size == BLOCK_SIZES[0]).then_some(2.0);
        findings.compare(format!("{name}: making tasks, of one core's time"), "%", papers, share);
        costs.push(cost);
        steps.done();
    }
    Ok(costs)
}

/// Measures how long one core takes to answer the queries by the paper's method.
fn time_searching(input: &Input, queries: &[&Query], context: &Context<'_>) -> Result<Duration> {
    let all_docs = 0..input.index.num_docs();
    let lists = CodedLists::encode(&input.index, &terms_of(&input.queries), Box::new(Pfor::<512>), all_docs)?;
    let mut core = Core::whole(&Arc::new(lists));
    let us: f64 = queries.iter().map(|query| core.time_us(&query.terms, context.k)).sum();
    Ok(Duration::from_secs_f64(us / 1e6))
}

/// Cost of cutting all queries at one block size.
#[derive(Debug)]
struct Cost {
    skips_per_list: f64,
    tasks_per_query: f64,
    skips_per_task: f64,
    overlap: f64,
    creation: Duration,
}

impl Cost {
    fn measure(index: &Index, queries: &[&Query], block_size: usize) -> Self {
        let mut lists = HashMap::new();
        for term in queries.iter().flat_map(|query| &query.terms) {
            lists.entry(term.term).or_insert_with(|| skips(index, term.term, block_size));
        }
        let queries: Vec<Vec<&[u32]>> =
            queries.iter().map(|query| query.terms.iter().map(|term| lists[&term.term].as_slice()).collect()).collect();
        let mut needed = Vec::new();
        let mut creation = Duration::MAX;
        for _ in 0..REPEATS {
            let began = Instant::now();
            for skips in &queries {
                needed.clear();
                create_tasks(skips, &mut needed);
                black_box(&needed);
            }
            creation = creation.min(began.elapsed());
        }
        let (mut tasks, mut neighbours, mut skips_per_task, mut overlap) = (0, 0, 0.0, 0.0);
        for skips in &queries {
            needed.clear();
            create_tasks(skips, &mut needed);
            let tasks_of_query: Vec<&[Needed]> = needed.chunks(skips.len()).collect();
            tasks += tasks_of_query.len();
            neighbours += tasks_of_query.len().saturating_sub(1);
            skips_per_task += tasks_of_query.iter().map(|task| mean_skips(task)).sum::<f64>();
            overlap += tasks_of_query.windows(2).map(|pair| mean_overlap(pair[0], pair[1])).sum::<f64>();
        }
        let num_lists: usize = queries.iter().map(Vec::len).sum();
        let num_skips: usize = queries.iter().flatten().map(|skips| skips.len()).sum();
        Self {
            skips_per_list: num_skips as f64 / num_lists.max(1) as f64,
            tasks_per_query: tasks as f64 / queries.len().max(1) as f64,
            skips_per_task: skips_per_task / tasks.max(1) as f64,
            overlap: overlap / neighbours.max(1) as f64,
            creation,
        }
    }
}

/// Returns the last document of every `block_size` postings of a list.
fn skips(index: &Index, term: TermId, block_size: usize) -> Vec<u32> {
    index.list(term).docs().chunks(block_size).map(|block| block[block.len() - 1]).collect()
}

/// Draws numbers of skips and tasks and the time relative to blocks of 512, and both averages as they are, as the paper does.
fn chart(stem: &str, lists: &str, costs: &[Cost]) -> Chart {
    let relative = |value: fn(&Cost) -> f64| -> Vec<f64> {
        let base = costs.first().map_or(1.0, value);
        costs.iter().map(|cost| value(cost) / base).collect()
    };
    let absolute = |value: fn(&Cost) -> f64| costs.iter().map(value).collect();
    let ours: [(&str, Vec<f64>); 5] = [
        ("skips a list, relative", relative(|cost| cost.skips_per_list)),
        ("tasks a query, relative", relative(|cost| cost.tasks_per_query)),
        ("task creation, relative", relative(|cost| cost.creation.as_secs_f64())),
        ("skips a list and task", absolute(|cost| cost.skips_per_task)),
        ("overlap", absolute(|cost| cost.overlap)),
    ];
    let at_sizes = |values: Vec<f64>| BLOCK_SIZES.iter().map(|&size| size as f64).zip(values).collect();
    let papers = [("skips a list and task", 3, PAPERS_SKIPS), ("overlap", 4, PAPERS_OVERLAP)]
        .map(|(name, colour, value)| Curve::papers(name, colour, at_sizes(vec![value; BLOCK_SIZES.len()])));
    let ours = ours.into_iter().enumerate();
    let ours = ours.map(|(colour, (name, values))| Curve::ours(name, colour, at_sizes(values)));
    let title = format!("Cutting queries into tasks{lists} (Tatikonda et al., figure 7)");
    let labels = ["postings in a skip block", "number, or relative to blocks of 512"];
    Chart::new(stem, title, labels, ours.chain(papers)).log_x()
}
