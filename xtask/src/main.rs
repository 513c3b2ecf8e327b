//! Automation: `cargo xtask test | tidy | compare`. Knows the workspace's layout, and none of its crates.

mod compare;
mod process;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  test              set up what the tests need and run them all
    --only STEP       one step (see --list); may be given several times
    --list            the steps and what they need
    --long            the long crash test: 200 rounds instead of 10
  tidy              check the rules of the source tree that the compiler does not
  compare amqp091   Angarium beside RabbitMQ under the same loads, against the targets
    --quick           one short round; more flags: angarium bench compare --help
  help              this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((command, rest)) => run(command, rest),
        None => Err(HELP.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &str, arguments: &[String]) -> Result<(), String> {
    let root = root();
    match command {
        "test" => test::run(&root, arguments),
        "tidy" => tidy::run(&root),
        "compare" => compare::run(&root, arguments),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("unknown command '{other}'\n\n{HELP}")),
    }
}

/// The root of the repository: one above this crate.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies one below the root").to_path_buf()
}
