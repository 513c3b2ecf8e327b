//! Every case of lapin against the broker at AMQP_URL; exits with 1 if one fails.

mod basic;
mod errors;
mod world;

use std::process::ExitCode;
use tokio::time::timeout;
use world::{Outcome, PATIENCE, World};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut failed = 0;
    macro_rules! run {
        ($($module:ident::$name:ident),* $(,)?) => {$(
            let name = concat!(stringify!($module), "::", stringify!($name));
            failed += report(name, async {
                let mut world = World::default();
                let outcome = $module::$name(&mut world).await;
                let cleaned = world.close().await;
                outcome.and(cleaned)
            }).await;
        )*};
    }
    run!(
        basic::what_is_published_is_got,
        basic::persistent_messages_are_confirmed,
        basic::messages_are_consumed_in_order_and_acked,
        basic::nack_requeues_and_reject_discards,
        basic::prefetch_bounds_what_is_unsettled,
        basic::an_unroutable_mandatory_message_is_returned,
        basic::a_transaction_commits,
        basic::a_body_of_a_megabyte_passes,
        errors::a_missing_queue_is_404_and_ends_only_its_channel,
        errors::another_declaration_of_the_same_name_is_406,
        errors::a_wrong_password_is_refused,
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn report(name: &str, case: impl Future<Output = Outcome>) -> usize {
    let outcome = match timeout(3 * PATIENCE, case).await {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(_) => Err("did not end in time".to_string()),
    };
    match outcome {
        Ok(()) => {
            println!("pass {name}");
            0
        }
        Err(why) => {
            println!("FAIL {name}: {why}");
            1
        }
    }
}
