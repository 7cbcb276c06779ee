//! Slurm: a sweep as an array of jobs, and a job that joins their parts.
//!
//! Two scripts are written to the folder of the results. They can be read, changed and submitted again:
//!
//! ```text
//!   sweep.sbatch   tandem sweep ... --part $((SLURM_ARRAY_TASK_ID + 1))/N      --array=0-(N - 1)
//!   merge.sbatch   tandem sweep ... --merge                                    --dependency=afterok:(the array)
//! ```
//!
//! A job that was killed can be submitted again: its completed points are not simulated twice.

use std::path::{Path, PathBuf};
use std::process::Command;

use tandem_model::files::write_atomically;

use crate::Failure;
use crate::output::say;

/// The largest array of jobs that Slurm accepts by default.
const MAX_JOBS: usize = 1000;

/// A sweep for Slurm.
pub(super) struct Job {
    jobs: usize,
    sweep: PathBuf,
    merge: PathBuf,
    command: String,
    folder: PathBuf,
}

impl Job {
    /// A sweep of `jobs` jobs with its results in `out`.
    pub(super) fn new(jobs: usize, out: &Path) -> Result<Self, Failure> {
        if !(1..=MAX_JOBS).contains(&jobs) {
            return Err(Failure::input(format!("--slurm is {jobs}, expected 1 to {MAX_JOBS}")));
        }
        std::fs::create_dir_all(out)?;
        let folder = out.canonicalize()?;
        Ok(Self {
            jobs,
            sweep: folder.join("sweep.sbatch"),
            merge: folder.join("merge.sbatch"),
            command: command()?,
            folder,
        })
    }

    /// Writes the scripts, and submits them unless this is a dry run.
    pub(super) fn submit(&self, is_dry_run: bool) -> Result<(), Failure> {
        let last = self.jobs - 1;
        let part = format!("--part \"$((SLURM_ARRAY_TASK_ID + 1))/{}\"", self.jobs);
        self.write(&self.sweep, &format!("#SBATCH --array=0-{last}\n"), "part-%a", &part)?;
        self.write(&self.merge, "", "merge", "--merge")?;
        let scripts = format!("{}, {}", self.sweep.display(), self.merge.display());
        if is_dry_run {
            return say(&format!("written, not submitted: {scripts}\n"));
        }
        let array = sbatch(&[self.sweep.as_path()], &[])?;
        let merge = sbatch(
            &[self.merge.as_path()],
            &[format!("--dependency=afterok:{array}"), String::from("--kill-on-invalid-dep=yes")],
        )?;
        say(&format!(
            "submitted: job {array}, an array of {}; job {merge} merges after it\nwritten: {scripts}\n",
            self.jobs
        ))
    }

    fn write(&self, path: &Path, head: &str, log: &str, ending: &str) -> Result<(), Failure> {
        let folder = std::env::current_dir()?;
        let script = format!(
            "#!/bin/sh\n#SBATCH --job-name=tandem-sweep\n{head}#SBATCH --output={}/{log}.log\ncd {} || exit\nexec {} {ending}\n",
            self.folder.display(),
            quoted(&folder.to_string_lossy()),
            self.command,
        );
        write_atomically(path, |out| std::io::Write::write_all(out, script.as_bytes()))?;
        Ok(())
    }
}

/// This command without what hands it to Slurm.
fn command() -> Result<String, Failure> {
    let program = std::env::current_exe()?;
    let mut words = vec![quoted(&program.to_string_lossy())];
    let mut arguments = std::env::args_os().skip(1);
    while let Some(word) = arguments.next() {
        let word = word.to_string_lossy();
        if word == "--slurm" {
            arguments.next();
        } else if word != "--dry-run" && !word.starts_with("--slurm=") {
            words.push(quoted(&word));
        }
    }
    Ok(words.join(" "))
}

/// Submits scripts, and gives the job's number.
fn sbatch(scripts: &[&Path], options: &[String]) -> Result<String, Failure> {
    let output = Command::new("sbatch").arg("--parsable").args(options).args(scripts).output();
    let output = output.map_err(|e| {
        Failure::input(format!(
            "sbatch: {e}: is this a machine that Slurm runs on? (--dry-run writes the scripts only)"
        ))
    })?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::failed(format!("sbatch: {}", why.trim())));
    }
    // "17" or "17;cluster".
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.trim().split(';').next().unwrap_or_default().to_owned())
}

/// An argument as a shell takes it.
fn quoted(argument: &str) -> String {
    format!("'{}'", argument.replace('\'', r"'\''"))
}
