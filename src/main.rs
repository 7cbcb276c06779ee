//! The `tandem` program; everything is in the library.

fn main() -> std::process::ExitCode {
    tandem::cli::run()
}
