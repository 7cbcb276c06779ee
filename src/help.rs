//! The text of `--help` and of manual pages: commands by purpose, and options under headings.

use clap::{Arg, Command};

/// Paths of the commands' modules under the heading of their purpose, as `commands!` lists them.
pub(super) type Purposes = &'static [(&'static str, &'static [&'static str])];

/// Options by heading. Options of one name have one meaning and one heading in all commands; an option of a single command
/// may name its heading itself.
#[rustfmt::skip]
const HEADINGS: [(&str, &[&str]); 9] = [
    ("Question", &[
        "ms", "deadline_ms", "priority", "objective", "mode", "k", "what", "proof", "precision", "at_least", "limit", "repeats", "rounds", "seed", "model",
        "folds", "max_depth", "min_leaf", "by", "file", "max_share",
    ]),
    ("Input", &[
        "queries", "log_format", "column", "workload", "docs", "data", "text", "page_rank", "qrels", "catalogue",
        "index_gb", "results", "recorded", "given_costs",
    ]),
    ("Text", &["tokenizer", "stem", "stop_words", "duplicates", "bytes", "mean_length", "vocabulary", "clustering", "correlation"]),
    ("Ranking", &["k1", "b", "idf", "impacts"]),
    ("Policies", &["policy", "compare", "estimates", "noise", "set"]),
    ("Arrivals", &["rate", "num_queries", "seeds", "arrivals", "replay", "trace", "seconds", "live_seconds", "ids"]),
    ("Machine", &[
        "cpus", "gpus", "streams", "gpu", "gpu_memory", "machine", "multicore", "shards", "replicas", "algorithm", "faults",
        "on", "speed_up", "batch", "memory", "speed_spread", "routing",
    ]),
    ("Parts of the work", &["part", "merge"]),
    ("Output", &[
        "out", "log", "perfetto", "format", "verbose", "force", "list", "tag", "samples", "report", "queries_out",
        "permutation_out", "check", "claims", "record",
    ]),
];

fn heading_of(id: &str) -> Option<&'static str> {
    HEADINGS.iter().find(|(_, ids)| ids.contains(&id)).map(|&(heading, _)| heading)
}

/// Puts the options of a command and of those below it under headings.
pub(super) fn with_headings(command: Command) -> Command {
    let under_heading = |option: Arg| match heading_of(option.get_id().as_str()) {
        Some(heading) if !option.is_positional() && option.get_help_heading().is_none() => option.help_heading(heading),
        _ => option,
    };
    command.mut_args(under_heading).mut_subcommands(with_headings)
}

/// Lists the commands of a program by purpose, in place of one list.
pub(super) fn by_purpose(command: Command, purposes: Purposes) -> Command {
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let mut list = String::new();
    for (purpose, names) in purposes {
        list.push_str(&format!("\n\n{header}{purpose}:{header:#}"));
        for path in *names {
            let name = path.rsplit(':').next().unwrap_or(path).trim();
            // A command may be missing, with the feature that it needs.
            let Some(about) = command.find_subcommand(name).map(Command::get_about) else { continue };
            let about = about.map_or(String::new(), ToString::to_string);
            list.push_str(&format!("\n  {literal}{name:<12}{literal:#} {about}"));
        }
    }
    let options = format!("{header}Options:{header:#}\n{{options}}{{after-help}}");
    command.help_template(format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}{list}\n\n{options}"))
}
