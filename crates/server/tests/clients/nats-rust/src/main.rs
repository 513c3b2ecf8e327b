//! Every case of async-nats against the broker at NATS_URL; exits with 1 if one fails.

mod cases;
mod world;

use std::process::ExitCode;
use tokio::time::timeout;
use world::{Outcome, PATIENCE};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut failed = 0;
    macro_rules! run {
        ($($name:ident),* $(,)?) => {$(
            failed += report(stringify!($name), cases::$name()).await;
        )*};
    }
    run!(
        messages_arrive_in_their_order,
        wildcards_stand_for_tokens,
        one_of_a_group_gets_each_message,
        headers_pass_as_they_are,
        payloads_of_all_sizes,
        a_subscription_ends_after_so_many_messages,
        requests_are_answered,
        nobody_there_is_told_at_once,
        streams_are_declined,
        the_server_says_what_it_is,
        draining_handles_what_has_arrived,
        a_client_that_lost_its_connection_comes_back,
        a_wrong_password_is_refused,
        rights_are_checked,
        an_nkey_signs_the_nonce,
        tls_begins_after_info,
        tls_begins_before_info,
        a_broker_of_another_authority_is_not_trusted,
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn report(name: &str, case: impl Future<Output = Outcome>) -> usize {
    let outcome = match timeout(3 * PATIENCE, case).await {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(_) => Err("did not end in time".to_string()),
    };
    match outcome {
        Ok(true) => println!("pass {name}"),
        Ok(false) => println!("skip {name}: the environment lacks what it needs"),
        Err(why) => {
            println!("FAIL {name}: {why}");
            return 1;
        }
    }
    0
}
