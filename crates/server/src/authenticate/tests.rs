//! Right, wrong, remembered and guessed passwords.

use super::password::is_right;
use super::*;
use std::sync::mpsc;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn password(user: &str, password: &str) -> Credentials {
    Credentials::Password { user: user.into(), password: password.into() }
}

fn check(user: &str, password: &str, stored: Option<&str>) -> Check {
    Check { user: user.into(), password: password.into(), stored: stored.map(str::to_owned) }
}

/// Has the authenticator take the end of a check.
fn checked(
    authenticator: &mut Authenticator,
    (user, password, stored): (&str, &str, Option<&str>),
) -> Authentication {
    let is_right = is_right(password, stored);
    authenticator.checked(&check(user, password, stored), is_right, "a", seconds(0))
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
    assert!(authenticator.decide(&guess, "a", stored, seconds(0)).is_none());
    checked(&mut authenticator, ("ann", "", stored)).unwrap_err();
    let certificate = Credentials::Certificate { user: "ann".into() };
    let answer = authenticator.decide(&certificate, "a", stored, seconds(0));
    assert!(answer.unwrap().is_ok());
    let answer = authenticator.decide(&certificate, "a", None, seconds(0));
    assert!(answer.unwrap().is_err());
}

#[test]
fn a_right_password_is_remembered_until_the_stored_hash_changes() {
    let mut authenticator = Authenticator::default();
    let guest = password("guest", "guest");
    assert!(authenticator.decide(&guest, "a", Some(GUEST), seconds(0)).is_none());
    let answer = checked(&mut authenticator, ("guest", "guest", Some(GUEST)));
    assert_eq!(answer.unwrap().user, "guest");
    let again = authenticator.decide(&guest, "b", Some(GUEST), seconds(0));
    assert!(again.unwrap().is_ok());
    let wrong = password("guest", "gues");
    assert!(authenticator.decide(&wrong, "a", Some(GUEST), seconds(0)).is_none());
    assert!(authenticator.decide(&guest, "a", Some("$new"), seconds(0)).is_none());
    assert!(authenticator.decide(&guest, "a", None, seconds(0)).is_none());
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
        assert!(checked(&mut authenticator, ("guest", "x", Some(GUEST))).is_err());
    }
    let next = authenticator.decide(&password("guest", "guest"), "a", Some(GUEST), seconds(0));
    assert_eq!(
        next.unwrap().unwrap_err(),
        "too many wrong passwords for user 'guest' from a: refused for 2 s"
    );
}

#[test]
fn a_certificate_logs_in_the_user_it_names() {
    let mut authenticator = Authenticator::default();
    let named = Credentials::Certificate { user: "ada".into() };
    let known = authenticator.decide(&named, "a", Some(GUEST), seconds(0));
    assert_eq!(known.unwrap().unwrap().user, "ada");
    assert!(authenticator.decide(&named, "a", None, seconds(0)).unwrap().is_err());
}

#[test]
fn threads_answer_each_check() {
    let mut threads = Threads::new(2);
    let (sender, receiver) = mpsc::channel();
    for (password, right) in [("guest", true), ("wrong", false), ("guest", true)] {
        let sender = sender.clone();
        let then = move |_, is_right| sender.send((is_right, right)).unwrap();
        threads.check(check("guest", password, Some(GUEST)), then);
    }
    for _ in 0..3 {
        let (is_right, right) = receiver.recv().unwrap();
        assert_eq!(is_right, Some(right));
    }
}
