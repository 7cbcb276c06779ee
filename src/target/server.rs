//! The server under test, the queries, and the effort for its profile.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tandem_engine::query::read_log;
use tandem_model::base::time::Nanos;
use tandem_model::files::{Provenance, check_writable};
use tandem_model::sim::Routing;
use tandem_model::study::Progress;

use crate::failure::Failure;
use crate::options::input::LogForm;
use crate::options::names::choice;
use crate::options::question::{DeadlineArgument, check_k};
use tandem_http::{Client, Credentials, Dialect, Limits, ProfilePlan, Requests, ServerProfile, Target, measure_server};

/// The server and the queries.
#[derive(Debug, clap::Args)]
pub(super) struct Server {
    /// URL of the server, with the path of the index if the dialect needs one. Only this machine is driven unless
    /// --allow-host names the host. Several servers with equal answers share the queries
    #[arg(long = "target", value_name = "URL", required_unless_present = "url", help_heading = "Server")]
    target: Vec<String>,
    /// Choice among several servers
    #[arg(long, value_name = "HOW", value_parser = choice::<Routing>(), default_value = Routing::default().name(), help_heading = "Server")]
    pub(super) routing: Routing,
    /// URL of the server, in place of --target
    #[arg(value_name = "URL", conflicts_with = "target")]
    url: Option<String>,
    /// Dialect of the server: opensearch, elasticsearch, msearch, anserini, seekstorm, tantivy, tandem, or a JSON file. It
    /// may be followed by variables, such as opensearch,field=body
    #[arg(long, value_name = "NAME|FILE", help_heading = "Server")]
    dialect: String,
    /// Query log in any usual form
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    #[command(flatten)]
    form: LogForm,
    /// Hits per query
    #[arg(short, value_name = "K", default_value_t = 10)]
    k: usize,
    /// Host that may be driven although it is not this machine
    #[arg(long, value_name = "HOST", help_heading = "Server")]
    allow_host: Vec<String>,
    /// File with the value of the dialect's credentials header [default: the variable TANDEM_CREDENTIALS, if it is set]
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    credentials: Option<PathBuf>,
    /// Most connections
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Server")]
    connections: u16,
    /// Threads of the client
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64), help_heading = "Server")]
    threads: u8,
    /// Its threads never sleep, for which each needs a core that the server does not use [default: on machines with at least
    /// eight cores for each]
    #[arg(long, help_heading = "Server")]
    spin: bool,
    /// Time limit of a query in milliseconds [default: ten deadlines, at least 1000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Server")]
    timeout_ms: Option<u32>,
    #[command(flatten)]
    pub(super) deadline: DeadlineArgument,
}

#[derive(Debug, clap::Args)]
pub(super) struct ProfileArguments {
    /// Seconds for the profile: half for service times with one client, half for the ladder of clients
    #[arg(long, value_name = "S", default_value_t = 60.0, help_heading = "Server")]
    profile_seconds: f64,
    /// Cores of the server; the ladder goes up to twice as many clients, and on while the throughput grows [default: those of
    /// this machine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Server")]
    cores: Option<u16>,
    /// Queries to measure at most, a random sample of the log
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(20..))]
    limit: u32,
}

/// A server with the prepared requests of a log.
pub(super) struct Opened {
    pub(super) targets: Vec<Target>,
    pub(super) routing: Routing,
    pub(super) requests: Requests,
    pub(super) queries: Vec<String>,
    pub(super) limits: Limits,
    pub(super) deadline: Nanos,
    pub(super) provenance: Provenance,
}

impl Server {
    pub(super) fn open(&self, out: &Path) -> Result<Opened, Failure> {
        check_k(self.k)?;
        let deadline = self.deadline.checked()?;
        let dialect = Dialect::named(&self.dialect)?;
        let credentials = Credentials::load(self.credentials.as_deref())?;
        let urls = self.target.iter().chain(&self.url);
        let target = |url: &String| Target::new(url, &dialect, &self.allow_host, credentials.clone());
        let mut targets: Vec<Target> = urls.map(target).collect::<Result<_, _>>()?;
        let path = targets[0].path().to_owned();
        if let Some(other) = targets.iter().find(|target| target.path() != path) {
            return Err(Failure::input(format!("--target {}: expected the path {path:?} of the first", other.url)));
        }
        let log = read_log(&self.queries, &self.form.options())?;
        errln!("{}: {}", self.queries.display(), log.found);
        let queries: Vec<String> = log.entries.into_iter().map(|entry| entry.text).collect();
        let requests = Requests::new(&dialect, &path, self.k, deadline.as_ms(), &queries)?;
        check_writable(&out.join("runs.csv"))?;
        let limits = Limits::for_deadline(deadline);
        let timeout = self.timeout_ms.map_or(limits.timeout, |ms| Duration::from_millis(ms.into()));
        let (connections, threads) = (self.connections.into(), self.threads.into());
        let limits = Limits { connections, threads, timeout, spins: self.spin, ..limits };
        targets.iter_mut().try_for_each(|target| target.reach(timeout))?;
        let mut known: Vec<Target> = Vec::new();
        for target in targets {
            match known.iter().find(|known| known.address() == target.address()) {
                Some(same) => errln!("warning: {} and {} are the same server, which counts once", same.url, target.url),
                None => known.push(target),
            }
        }
        let targets = known;
        let provenance = Provenance::new()
            .with_command_and_machine()
            .with("target", urls_of(&targets))
            .with("dialect", dialect.provenance())
            .with("queries", queries.len())
            .with("time limit", format!("{} s", timeout.as_secs_f64()));
        let provenance = if targets.len() > 1 { provenance.with("routing", self.routing.name()) } else { provenance };
        Ok(Opened { targets, routing: self.routing, requests, queries, limits, deadline, provenance })
    }
}

fn urls_of(targets: &[Target]) -> String {
    targets.iter().map(|target| target.url.as_str()).collect::<Vec<_>>().join(" ")
}

impl Opened {
    pub(super) fn name(&self) -> &str {
        self.requests.dialect_name()
    }

    pub(super) fn client(&self) -> Client<'_> {
        let Self { targets, routing, requests, limits, .. } = self;
        Client { targets, routing: *routing, requests, limits: *limits }
    }

    /// The URLs of the servers.
    pub(super) fn urls(&self) -> String {
        urls_of(&self.targets)
    }

    /// Asks the first queries, and says what came back.
    pub(super) fn probe(&self) -> Result<(), Failure> {
        self.client().probe()?.iter().for_each(|line| errln!("{line}"));
        Ok(())
    }

    /// Measures each server, and all of them together, which shows what they share. Returns the profile of the slowest one, and
    /// by server its times over those of the slowest, by their highest throughputs.
    pub(super) fn measure(
        &self,
        plan: &ProfilePlan,
        progress: &dyn Progress,
    ) -> Result<(ServerProfile, Vec<f64>), Failure> {
        let one = |target| measure_server(&Client::of_one(target, &self.requests, self.limits), plan, progress);
        let mut profiles: Vec<ServerProfile> = self.targets.iter().map(one).collect::<Result<_, _>>()?;
        let most: Vec<f64> = profiles.iter().map(ServerProfile::most_qps).collect();
        let slowest = (0..most.len()).min_by(|&a, &b| most[a].total_cmp(&most[b])).unwrap_or_default();
        let ceiling = tandem_http::ceiling(&self.client(), most.iter().sum(), plan, progress)?;
        profiles[slowest].ceiling = ceiling;
        let paces = most.iter().map(|qps| most[slowest] / qps).collect();
        Ok((profiles.swap_remove(slowest), paces))
    }
}

impl ProfileArguments {
    pub(super) fn cores(&self) -> usize {
        self.cores.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
    }

    pub(super) fn plan(&self) -> Result<ProfilePlan, Failure> {
        if !(1.0..=86_400.0).contains(&self.profile_seconds) {
            return Err(Failure::input(format!("--profile-seconds is {}, expected 1 to 86400", self.profile_seconds)));
        }
        let plan = ProfilePlan::usual(self.cores());
        let rungs = f64::from((plan.clients as u32).ilog2() + 1);
        let half = Duration::from_secs_f64(self.profile_seconds / 2.0);
        Ok(ProfilePlan { service: half, rung: half.div_f64(rungs), queries: self.limit as usize, ..plan })
    }
}
