//! Automation: `cargo xtask test | tidy | sim | compare | differ`. Depends on no other crate of the
//! workspace.

mod compare;
mod layout;
mod network;
mod process;
mod run_guard;
mod simulate;
mod test;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  test              set up what the tests need and run them all
    --only STEP       one step (see --list); may be given several times
    --list            the steps and what they need
    --long            long crash tests: 200 rounds instead of 10 or 20
  tidy              check the rules of the source tree that the compiler does not
    --write-allow     lower the lists of known offenders to what is there
    --show RULE       every place that counts for a rule of these lists
  sim               run the simulator, seed after seed, until one fails
    SEED              one seed again; more flags: angarium-sim
  compare amqp091   Angarium beside RabbitMQ under the same loads, against the targets
  compare amqp10    Angarium beside Artemis by AMQP 1.0, in the same way
  compare nats      Angarium beside nats-server, in the same way
    --quick           one short round; more flags: angarium bench compare --help
  differ amqp091    The same frames to Angarium and RabbitMQ: what they answer differently
  differ amqp10     The same to Angarium and ActiveMQ Artemis
  differ nats       The same lines to Angarium and nats-server
  help              this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((command, [mark])) if command == run_guard::REAP => done(run_guard::reap(mark)),
        // These start brokers and clients.
        Some((command, _)) if STARTS.contains(&command.as_str()) && !run_guard::is_run() => {
            run_guard::supervise(&arguments)
        }
        Some((command, rest)) => done(run(command, rest)),
        None => Err(HELP.to_string()),
    };
    match result {
        Ok(code) => code,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Commands that start other programs, which end with them.
const STARTS: [&str; 4] = ["test", "sim", "compare", "differ"];

fn done(result: Result<(), String>) -> Result<ExitCode, String> {
    result.map(|()| ExitCode::SUCCESS)
}

fn run(command: &str, arguments: &[String]) -> Result<(), String> {
    let root = layout::root();
    match command {
        "test" => test::run(&root, arguments),
        "tidy" => tidy::run(&root, arguments),
        "sim" => simulate::run(&root, arguments),
        "compare" | "differ" => compare::run(&root, command, arguments),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("unknown command '{other}'\n\n{HELP}")),
    }
}
