//! `--gpu-memory`, `--gpu-memory-log`, `--gpu-memory-epoch`: an index of which a part alone lies in the GPU's memory, driven or
//! simulated.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cache::OnlineOptions;
use crate::cli::index::bytes;
use crate::cli::{Failure, defaults};
use crate::cost::{IndexPages, MemoryBudget, Workload};
use crate::exec::gpu::GpuMemory;
use crate::index::Index;
use crate::lab::{FollowingOptions, all_near};
use crate::query::Query;

/// How much of an index may lie in the GPU's memory.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct GpuMemoryArguments {
    /// GPU memory for the index, such as 2GiB: what queries need most lies there, all else in the host's memory, where the
    /// GPU reads it [default: all of the index]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    gpu_memory: Option<u64>,
    /// Query log that tells what queries need most [default: the queries themselves]
    #[arg(long, value_name = "FILE", requires = "gpu_memory")]
    gpu_memory_log: Option<PathBuf>,
    /// Queries after which it is decided again what lies in the GPU's memory, by those that came; the host's memory then holds all
    /// of the lists [default: it stays as it is at first]
    #[arg(long, value_name = "QUERIES", requires = "gpu_memory", value_parser = clap::value_parser!(u32).range(1..))]
    gpu_memory_epoch: Option<u32>,
}

/// A budget for a simulation, where the workload knows what the whole index takes.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(in crate::cli) struct MemoryBudgetArgument {
    /// GPU memory for the index, such as 2GiB, or a share of what all of it takes, such as 40%: for workloads that `profile
    /// --tiered` has written [default: all of the index]
    #[arg(long, value_name = "BYTES", value_parser = budget)]
    gpu_memory: Option<MemoryBudget>,
    /// Queries after which it is decided again what lies in the GPU's memory, by those that were started: costs follow [default: it
    /// stays as it is at first]
    #[arg(long, value_name = "QUERIES", requires = "gpu_memory", value_parser = clap::value_parser!(u32).range(1..))]
    gpu_memory_epoch: Option<u32>,
}

/// What is known of pages that follow the queries, where no GPU is driven.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct PagesArguments {
    /// The pages that the workload's queries read, as `profile --pages` wrote them, for --gpu-memory-epoch [default: the file beside
    /// NAME.workload.csv that is called NAME.pages.csv, also .gz and .zst]
    #[arg(long, value_name = "FILE", requires = "gpu_memory_epoch")]
    gpu_memory_pages: Option<PathBuf>,
    #[command(flatten)]
    copy_rate: CopyRateArgument,
}

/// How quickly pages come.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(in crate::cli) struct CopyRateArgument {
    /// GB a second at which pages come where nobody else reads, for --gpu-memory-epoch: what an H200 was measured at, where nobody says
    /// otherwise
    #[arg(long, value_name = "GB", default_value_t = 55.3)]
    gpu_memory_copy_rate: f64,
}

impl CopyRateArgument {
    /// Bytes a second.
    pub(in crate::cli) fn bytes(self) -> Result<f64, Failure> {
        let gb = self.gpu_memory_copy_rate;
        // NaN fails the comparison.
        if gb > 0.0 && gb.is_finite() {
            return Ok(gb * 1e9);
        }
        Err(Failure::input(format!("--gpu-memory-copy-rate is {gb}, expected a number above 0")))
    }
}

impl MemoryBudgetArgument {
    /// The workload under the budget; with all of the index near where pages follow the queries.
    pub(in crate::cli) fn apply(&self, workload: Workload) -> Result<Workload, Failure> {
        match (self.gpu_memory, self.gpu_memory_epoch) {
            (Some(_), Some(_)) => near(workload),
            (Some(budget), None) => under(workload, budget),
            (None, _) => Ok(workload),
        }
    }

    /// How pages follow the queries, if they do.
    pub(in crate::cli) fn following(
        &self,
        pages: &PagesArguments,
        workload: Option<&str>,
    ) -> Result<Option<(IndexPages, FollowingOptions)>, Failure> {
        let (Some(budget), Some(epoch_queries)) = (self.gpu_memory, self.gpu_memory_epoch) else { return Ok(None) };
        let options = FollowingOptions { budget, epoch_queries, copy_rate: pages.copy_rate()? };
        Ok(Some((pages.read(workload)?, options)))
    }
}

impl PagesArguments {
    /// Bytes a second.
    pub(in crate::cli) fn copy_rate(&self) -> Result<f64, Failure> {
        self.copy_rate.bytes()
    }

    /// The file that was named, or the one beside the workload.
    pub(in crate::cli) fn read(&self, workload: Option<&str>) -> Result<IndexPages, Failure> {
        if let Some(path) = &self.gpu_memory_pages {
            return Ok(IndexPages::read(path)?);
        }
        let names = workload.and_then(|name| Some(name.split_once(".workload.csv")?.0)).map(|name| {
            ["zst", "gz", ""].map(|packed| format!("{name}.pages.csv.{packed}").trim_end_matches('.').to_owned())
        });
        let found = names.iter().flatten().find(|name| Path::new(name).exists());
        if let Some(name) = found {
            return Ok(IndexPages::read(Path::new(name))?);
        }
        let sought = names.map_or(String::new(), |names| format!(" (there is no {})", names.join(", ")));
        Err(Failure::input(format!(
            "--gpu-memory-epoch: nobody knows which pages these queries read{sought}: `tandem profile INDEX --queries LOG --pages FILE` \
             writes that, and --gpu-memory-pages names it"
        )))
    }
}

/// A workload with all of the index near.
fn near(workload: Workload) -> Result<Workload, Failure> {
    all_near(workload).map_err(|e| Failure::input(format!("--gpu-memory-epoch: {e}")))
}

/// A workload under a budget.
fn under(workload: Workload, budget: MemoryBudget) -> Result<Workload, Failure> {
    workload.under(budget).map_err(|e| Failure::input(format!("--gpu-memory: {e}")))
}

/// `2GiB` or `40%`.
pub(in crate::cli) fn budget(text: &str) -> Result<MemoryBudget, String> {
    let Some(percent) = text.trim().strip_suffix('%') else { return Ok(MemoryBudget::Bytes(bytes(text.trim())?)) };
    let share = percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0);
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share
        .map(MemoryBudget::Share)
        .ok_or_else(|| String::from("expected a share from 0% to 100%, or bytes, such as 2GiB"))
}

impl GpuMemoryArguments {
    /// A workload that was measured before, under the budget; with all of the index near where pages follow the queries, if that
    /// `is_played`. One that knows no budgets is taken as measured under this one, which only a GPU that is driven can have been.
    pub(in crate::cli) fn apply(
        &self,
        workload: Workload,
        (has_gpu, is_played): (bool, bool),
    ) -> Result<Workload, Failure> {
        match self.gpu_memory {
            Some(_) if self.gpu_memory_epoch.is_some() && is_played && workload.tiers.is_some() => near(workload),
            Some(bytes) if workload.tiers.is_some() => under(workload, MemoryBudget::Bytes(bytes)),
            _ => self.needs_gpu(has_gpu).map(|()| workload),
        }
    }

    /// Refuses a budget where recorded times would stand in a GPU's place: they are of an index that lies whole in its memory.
    pub(in crate::cli) fn needs_gpu(&self, has_gpu: bool) -> Result<(), Failure> {
        if self.gpu_memory.is_none() || has_gpu {
            return Ok(());
        }
        Err(Failure::input(
            "--gpu-memory: no GPU is driven, and recorded times are of an index that lies whole in its memory (`tandem simulate \
             --gpu-memory` plays budgets, of workloads that `tandem profile --tiered` has written)",
        ))
    }

    /// As files name the budget; `None` without one.
    pub(in crate::cli) fn named(&self) -> Option<String> {
        let bytes = self.gpu_memory?;
        let log = self.gpu_memory_log.as_ref().map_or(String::new(), |log| format!(", learned from {}", log.display()));
        let epoch = self.gpu_memory_epoch.map_or(String::new(), |queries| format!(", epochs of {queries} queries"));
        Some(format!("{bytes} bytes{log}{epoch}"))
    }

    /// How pages follow the queries of a workload where that can be simulated: if they are to, and it is known what queries cost with
    /// all lists far. The pages themselves are those of the index, by what these queries read.
    pub(in crate::cli) fn played(
        &self,
        index: &Arc<Index>,
        queries: &[Query],
        workload: &Workload,
        copy_rate: CopyRateArgument,
    ) -> Result<Option<(IndexPages, FollowingOptions)>, Failure> {
        let Some(options) = self.following(copy_rate.bytes()?).filter(|_| workload.tiers.is_some()) else {
            return Ok(None);
        };
        let learned = self.gpu_memory_log.as_ref().map(|log| defaults::read_queries(log, index)).transpose()?;
        let learned = learned.as_deref().unwrap_or(queries);
        Ok(Some((IndexPages::of(index, queries, learned, OnlineOptions::PAGE_ROWS), options)))
    }

    /// What to know where pages follow the queries and simulations can't play that: a warning. `costs` is where they are from.
    pub(in crate::cli) fn unplayed(&self, workload: &Workload, costs: &str) -> Option<String> {
        let queries = self.gpu_memory_epoch.filter(|_| workload.tiers.is_none())?;
        Some(format!(
            "--gpu-memory-epoch {queries}: nobody measured these queries with all lists in the host's memory, so that simulations do \
             not play pages that follow them: they reckon with what each query took in {costs}, wherever its pages lay then \
             (`tandem profile INDEX --queries LOG --tiered -o FILE` measures it, and --workload FILE lets it be played)"
        ))
    }

    /// How pages follow the queries, if they do.
    pub(in crate::cli) fn following(&self, copy_rate: f64) -> Option<FollowingOptions> {
        let (bytes, epoch_queries) = (self.gpu_memory?, self.gpu_memory_epoch?);
        Some(FollowingOptions { budget: MemoryBudget::Bytes(bytes), epoch_queries, copy_rate })
    }

    /// The budget, with what the log says; `None` if all of the index is to lie there.
    pub(in crate::cli) fn open(&self, index: &Arc<Index>, queries: &[Query]) -> Result<Option<GpuMemory>, Failure> {
        let Some(bytes) = self.gpu_memory else { return Ok(None) };
        let memory = match &self.gpu_memory_log {
            Some(log) => GpuMemory::new(bytes, index, &defaults::read_queries(log, index)?),
            None => GpuMemory::new(bytes, index, queries),
        };
        Ok(Some(match self.gpu_memory_epoch {
            Some(epoch_queries) => memory.online(OnlineOptions::of_epochs(epoch_queries)),
            None => memory,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_bytes_or_shares() {
        assert_eq!(budget("2GiB"), Ok(MemoryBudget::Bytes(2 << 30)));
        assert_eq!(budget(" 12.5 % "), Ok(MemoryBudget::Share(0.125)));
        for text in ["", "%", "101%", "-1%", "nan%", "5 parsecs"] {
            assert!(budget(text).is_err(), "{text}");
        }
    }
}
