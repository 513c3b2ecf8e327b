//! Right, wrong, remembered and guessed passwords.

use super::*;
use std::sync::mpsc;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn password(user: &str, password: &str) -> Credentials {
    Credentials::Password { user: user.into(), password: password.into() }
}

fn checked(user: &str, password: &str, stored: Option<&str>) -> Checked {
    let right = is_right(password, stored);
    let stored = stored.map(str::to_owned);
    Checked { check: Check { user: user.into(), password: password.into(), stored }, right }
}

#[test]
fn a_hash_fits_its_password_alone() {
    let stored = hash("correct horse").unwrap();
    assert!(is_right("correct horse", Some(&stored)));
    assert!(!is_right("correct horsf", Some(&stored)));
    assert!(!is_right("", Some(&stored)));
    assert!(!is_right("correct horse", Some("not a hash")));
    assert!(!is_right("correct horse", None));
    assert_ne!(stored, hash("correct horse").unwrap(), "salted");
}

#[test]
fn the_default_user_has_the_password_guest() {
    assert!(is_right("guest", Some(GUEST)));
    assert!(!is_right("guess", Some(GUEST)));
}

#[test]
fn who_has_no_password_comes_in_by_other_means_alone() {
    let stored = Some(NO_PASSWORD);
    for guess in ["", "guest", NO_PASSWORD] {
        assert!(!is_right(guess, stored), "{guess}");
    }
    let mut authenticator = Authenticator::default();
    let guess = password("ann", "");
    assert!(matches!(authenticator.next(&guess, "a", stored, seconds(0)), Next::Hash));
    authenticator.checked(&checked("ann", "", stored), "a", seconds(0)).unwrap_err();
    let certificate = Credentials::Certificate { user: "ann".into() };
    let answer = authenticator.next(&certificate, "a", stored, seconds(0));
    assert!(matches!(answer, Next::Answer(Ok(_))));
    let answer = authenticator.next(&certificate, "a", None, seconds(0));
    assert!(matches!(answer, Next::Answer(Err(_))));
}

#[test]
fn a_right_password_is_remembered_until_the_stored_hash_changes() {
    let mut authenticator = Authenticator::default();
    let guest = password("guest", "guest");
    assert!(matches!(authenticator.next(&guest, "a", Some(GUEST), seconds(0)), Next::Hash));
    let answer = authenticator.checked(&checked("guest", "guest", Some(GUEST)), "a", seconds(0));
    assert_eq!(answer.unwrap().user, "guest");
    let again = authenticator.next(&guest, "b", Some(GUEST), seconds(0));
    assert!(matches!(again, Next::Answer(Ok(_))));
    let wrong = password("guest", "gues");
    assert!(matches!(authenticator.next(&wrong, "a", Some(GUEST), seconds(0)), Next::Hash));
    assert!(matches!(authenticator.next(&guest, "a", Some("$new"), seconds(0)), Next::Hash));
    assert!(matches!(authenticator.next(&guest, "a", None, seconds(0)), Next::Hash));
}

#[test]
fn guessing_is_slowed_down_for_that_user_and_address_only() {
    let mut backoff = Backoff::default();
    for _ in 0..4 {
        backoff.failed("a", "u", seconds(10));
    }
    assert_eq!(backoff.remaining("a", "u", seconds(10)), None);
    backoff.failed("a", "u", seconds(10));
    assert_eq!(backoff.remaining("a", "u", seconds(10)), Some(seconds(1)));
    assert_eq!(backoff.remaining("a", "u", seconds(11)), None);
    assert_eq!(backoff.remaining("b", "u", seconds(10)), None);
    assert_eq!(backoff.remaining("a", "v", seconds(10)), None);
    for _ in 0..20 {
        backoff.failed("a", "u", seconds(20));
    }
    assert_eq!(backoff.remaining("a", "u", seconds(20)), Some(seconds(60)));
    backoff.succeeded("a", "u");
    assert_eq!(backoff.remaining("a", "u", seconds(20)), None);
}

#[test]
fn failures_are_forgotten_and_bounded() {
    let mut backoff = Backoff::default();
    for _ in 0..5 {
        backoff.failed("a", "u", seconds(0));
    }
    backoff.failed("a", "u", seconds(601));
    assert_eq!(backoff.remaining("a", "u", seconds(601)), None);
    for number in 0..30_000 {
        backoff.failed(&number.to_string(), "u", seconds(1_000));
    }
    assert!(format!("{backoff:?}").len() < 10_001 * 120);
}

#[test]
fn a_guesser_is_refused_without_hashing() {
    let mut authenticator = Authenticator::default();
    for _ in 0..5 {
        let wrong = checked("guest", "x", Some(GUEST));
        assert!(authenticator.checked(&wrong, "a", seconds(0)).is_err());
    }
    let next = authenticator.next(&password("guest", "guest"), "a", Some(GUEST), seconds(0));
    let Next::Answer(Err(why)) = next else { panic!("{next:?}") };
    assert_eq!(why, "too many wrong passwords for user 'guest' from a: refused for 2 s");
}

#[test]
fn a_certificate_logs_in_the_user_it_names() {
    let mut authenticator = Authenticator::default();
    let named = Credentials::Certificate { user: "ada".into() };
    let known = authenticator.next(&named, "a", Some(GUEST), seconds(0));
    assert!(matches!(known, Next::Answer(Ok(identity)) if identity.user == "ada"));
    assert!(matches!(authenticator.next(&named, "a", None, seconds(0)), Next::Answer(Err(_))));
}

#[test]
fn threads_answer_each_check() {
    let mut threads = Threads::new(2);
    let (sender, receiver) = mpsc::channel();
    for (password, right) in [("guest", true), ("wrong", false), ("guest", true)] {
        let sender = sender.clone();
        let stored = Some(GUEST.to_owned());
        let check = Check { user: "guest".into(), password: password.into(), stored };
        assert!(threads.check(check, move |checked| sender.send((checked, right)).unwrap()));
    }
    for _ in 0..3 {
        let (checked, right) = receiver.recv().unwrap();
        assert_eq!(checked.right, right);
    }
}
