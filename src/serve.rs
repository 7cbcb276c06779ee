//! `tandem serve`: an index behind HTTP, in OpenSearch's dialect.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use tandem_drive::lab::HostInfo;
use tandem_engine::index::Index;
use tandem_model::sched::{PolicyKind, PolicyOptions, Shed};
use tandem_model::traffic::Mode;

use super::interrupts;
use crate::failure::Failure;
use crate::options::names::choice;
use crate::options::question::DeadlineArgument;
use tandem_http::{ServeOptions, Served, serve};

/// Serve an index over HTTP with the executors and the scheduler of the lab, until Ctrl-C or `kill`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  tandem serve my-index --port 9200\n  curl 'http://127.0.0.1:9200/_search?q=ocean+tides'"
)]
pub(super) struct Arguments {
    /// Folder of the index
    index: PathBuf,
    /// Address to listen on; others than loopback are open to the network, without any access control
    #[arg(long, value_name = "IP", default_value = "127.0.0.1", help_heading = "Machine")]
    address: IpAddr,
    /// Port, 0 for any free one
    #[arg(long, value_name = "PORT", default_value_t = 9200, help_heading = "Machine")]
    port: u16,
    /// CPU workers [default: all cores but two, one for the thread of the server and one for its clients]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,
    /// Policy
    #[arg(long, value_name = "NAME", value_parser = choice::<PolicyKind>(), default_value = PolicyKind::CpuOnly.name())]
    policy: PolicyKind,
    #[command(flatten)]
    deadline: DeadlineArgument,
    /// Reject queries that would be answered after their deadline
    #[arg(long, help_heading = "Policies")]
    shed: bool,
    /// Queries in the server at which further ones are rejected with status 429
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Policies")]
    most_queries: u32,
    /// How the terms of a query combine if it does not say
    #[arg(long, value_parser = choice::<Mode>(), default_value = Mode::Or.name())]
    mode: Mode,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { policy, deadline, shed, most_queries, mode, .. } = arguments;
    let index = Arc::new(Index::open(&arguments.index)?);
    let workers = arguments.cpus.map_or_else(|| HostInfo::detect().workers(1), usize::from);
    let shed = if *shed { Shed::Late } else { Shed::Nothing };
    let policy = policy.with(PolicyOptions { shed, ..PolicyOptions::default() });
    let name = arguments.index.canonicalize().unwrap_or_else(|_| arguments.index.clone());
    let options = ServeOptions {
        name: name.file_name().map_or(String::from("tandem"), |name| name.to_string_lossy().into_owned()),
        address: SocketAddr::new(arguments.address, arguments.port),
        workers,
        deadline: deadline.checked()?,
        most_queries: *most_queries as usize,
        mode: *mode,
    };
    interrupts::catch();
    let listening = |address| errln!("{workers} workers; listening on http://{address}/_search");
    let Served { answered, rejected, refused } = serve(&index, &policy, &options, listening)?;
    errln!("{answered} queries answered, {rejected} rejected, {refused} requests not understood");
    Ok(())
}
