//! Every case of fe2o3-amqp against the broker at AMQP_URL; exits with 1 if one fails.

mod cases;
mod transactions;
mod world;

use std::process::ExitCode;
use tokio::time::timeout;
use world::{Outcome, PATIENCE};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut failed = 0;
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    macro_rules! run {
        ($($module:ident: $($name:ident),* $(,)?;)*) => {$($(
            let name = concat!(stringify!($module), ".", stringify!($name));
            if chosen.is_empty() || chosen.iter().any(|part| name.contains(part.as_str())) {
                failed += report(name, $module::$name()).await;
            }
        )*)*};
    }
    run!(
        cases:
            a_message_arrives_as_it_was_sent,
            outcomes,
            credit_and_draining,
            settlement_in_two_steps,
            a_large_message,
            a_sender_is_resumed,
            a_receiver_is_resumed,
            an_unknown_exchange_is_refused;
        transactions:
            sends_show_at_the_commit,
            takes_come_back_after_a_rollback,
            a_transaction_over_two_sessions,
            two_transactions_at_a_time,
            plain_work_beside,
            a_lost_controller_undoes;
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn report(name: &str, case: impl Future<Output = Outcome>) -> usize {
    let outcome = match timeout(3 * PATIENCE, case).await {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(_) => Err("did not end in time".to_string()),
    };
    match outcome {
        Ok(()) => println!("pass {name}"),
        Err(why) => {
            println!("FAIL {name}: {why}");
            return 1;
        }
    }
    0
}
