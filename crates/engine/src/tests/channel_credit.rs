//! A credit that the consumers of a channel share.

use super::check;

/// Plays this behind a consumer `c` of queue `q`, whose channel has a credit of one message.
fn check_with_one(script: &str) {
    let before = "a queue q
         > a queue q 0 0
         a queue r
         > a queue r 0 0
         a credit messages=1
         > a ok
         a consume q c
         > a consuming c";
    check(&format!("{before}\n{script}"));
}

#[test]
fn a_channels_credit_spans_its_consumers() {
    check_with_one(
        "a consume r d
         > a consuming d
         a publish - q one
         > a deliver c #1 one
         a publish - r two
         a publish - q three
         a accept 1
         > a deliver d #2 two
         a credit messages=0
         > a ok
         > a deliver c #3 three",
    );
}

#[test]
fn a_channels_credit_holds_up_its_presettled_consumers() {
    check_with_one(
        "a consume r d presettled
         > a consuming d
         a publish - r 1
         > a deliver d #1 1
         a publish - q 2
         > a deliver c #2 2
         a publish - r 3
         a publish - q 4
         a accept 2
         > a deliver d #3 3
         > a deliver c #4 4",
    );
}

#[test]
fn consumers_of_one_queue_take_turns_within_their_channels_credit() {
    check_with_one(
        "a consume q d
         > a consuming d
         a publish - q 1
         > a deliver c #1 1
         a publish - q 2
         a publish - q 3
         a publish - q 4
         a accept 1
         > a deliver d #2 2
         a accept 2
         > a deliver c #3 3
         a accept 3
         > a deliver d #4 4",
    );
}
