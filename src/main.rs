//! The `tandem` program; everything is in the library.

fn main() -> std::process::ExitCode {
    if let Some(commit) = option_env!("TANDEM_COMMIT") {
        tandem::files::set_commit(commit);
    }
    tandem::cli::run()
}
