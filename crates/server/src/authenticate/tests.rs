//! Right, wrong, remembered and guessed passwords.

use super::password::is_right;
use super::*;
use angarium_protocol::scram::Dialogue;
use std::sync::mpsc;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn attempt(user: &str, password: &str, stored: Option<&str>) -> Attempt {
    Attempt {
        credentials: Credentials::Password { user: user.into(), password: password.into() },
        stored: stored.map(str::to_owned),
        address: "a".into(),
        comes_first: false,
    }
}

fn waiter() -> Waiter {
    Waiter { address: "a".into(), then: Box::new(|_| ()) }
}

/// An authenticator whose checks are carried out when a test says so: the hash of user `u` is `hash of u`,
/// and the right password `right`.
#[derive(Default)]
struct Tried {
    authenticator: Authenticator,
    now: Duration,
}

impl Tried {
    fn begin(&mut self, user: &str, password: &str, address: &str) -> Decision {
        self.begin_as(user, password, address, false)
    }

    fn begin_as(
        &mut self,
        user: &str,
        password: &str,
        address: &str,
        comes_first: bool,
    ) -> Decision {
        let stored = (!user.starts_with("no")).then(|| format!("hash of {user}"));
        let attempt = Attempt {
            address: address.into(),
            comes_first,
            ..attempt(user, password, stored.as_deref())
        };
        let decision = self.authenticator.decide(&attempt, self.now);
        if decision == Decision::ToCheck {
            let waiter = Waiter { address: address.into(), ..waiter() };
            self.authenticator.wait(attempt, self.now, waiter);
        }
        decision
    }

    /// Carries out the next check; returns whose it was, and how many waited for it.
    fn check(&mut self) -> Option<(String, usize)> {
        let check = self.authenticator.next_check()?;
        let is_right = check.password == "right";
        let (answer, waiters) = self.authenticator.checked(&check, is_right, Instant::now());
        assert_eq!(answer.is_ok(), is_right);
        Some((check.key.user, waiters.len()))
    }

    fn check_all(&mut self) {
        while self.check().is_some() {}
    }
}

fn is_in(decision: &Decision) -> bool {
    matches!(decision, Decision::Answered(Ok(_)))
}

fn refusal(decision: Decision) -> String {
    match decision {
        Decision::Refused(why, _) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hash_fits_its_password_alone() {
    let stored = hash("correct horse").unwrap();
    assert_eq!(is_right("correct horse", &stored), Some(true));
    assert_eq!(is_right("correct horsf", &stored), Some(false));
    assert_eq!(is_right("", &stored), Some(false));
    assert_eq!(is_right("correct horse", "not a hash"), Some(false));
    assert_ne!(stored, hash("correct horse").unwrap(), "salted");
}

#[test]
fn the_default_user_has_the_password_guest() {
    assert_eq!(is_right("guest", GUEST), Some(true));
    assert_eq!(is_right("guess", GUEST), Some(false));
}

#[test]
fn who_has_no_password_comes_in_by_other_means_alone() {
    for guess in ["", "guest", NO_PASSWORD] {
        assert_eq!(is_right(guess, NO_PASSWORD), Some(false), "{guess}");
    }
    let mut authenticator = Authenticator::default();
    let guess = attempt("ann", "", Some(NO_PASSWORD));
    let refused = refusal(authenticator.decide(&guess, seconds(0)));
    assert_eq!(refused, "wrong user name or password for 'ann' from a");
    let credentials = Credentials::Certificate { user: "ann".into() };
    let certificate = Attempt { credentials, ..guess };
    assert!(is_in(&authenticator.decide(&certificate, seconds(0))));
    let unknown = Attempt { stored: None, ..certificate };
    let answer = authenticator.decide(&unknown, seconds(0));
    assert!(matches!(answer, Decision::Answered(Err(_))), "{answer:?}");
}

#[test]
fn a_right_password_is_remembered_until_the_stored_hash_changes() {
    let mut tried = Tried::default();
    assert_eq!(tried.begin("ann", "right", "a"), Decision::ToCheck);
    assert_eq!(tried.check(), Some(("ann".into(), 1)));
    assert!(is_in(&tried.begin("ann", "right", "b")));
    assert_eq!(tried.begin("ann", "wrong", "b"), Decision::ToCheck);
    let changed = attempt("ann", "right", Some("$new"));
    assert_eq!(tried.authenticator.decide(&changed, seconds(0)), Decision::ToCheck);
    let deleted = attempt("ann", "right", None);
    refusal(tried.authenticator.decide(&deleted, seconds(0)));
}

#[test]
fn guesses_at_once_are_counted_as_they_come() {
    let mut tried = Tried::default();
    let decisions: Vec<Decision> = (0..400)
        .map(|number| tried.begin("ada", if number == 399 { "right" } else { "wrong" }, "a"))
        .collect();
    // Those with the same wrong password wait for one check.
    assert!(decisions[..399].iter().all(|decision| *decision == Decision::ToCheck));
    let mut tried = Tried::default();
    for number in 0..400 {
        let guess = if number == 399 { "right".to_owned() } else { format!("wrong {number}") };
        let decision = tried.begin("ada", &guess, "a");
        match number {
            0..5 => assert_eq!(decision, Decision::ToCheck, "{number}"),
            _ => assert_eq!(
                refusal(decision),
                "too many wrong passwords for user 'ada' from a: refused for 2 s"
            ),
        }
    }
    tried.check_all();
    assert_eq!(tried.begin("ada", "right", "b"), Decision::ToCheck);
}

#[test]
fn many_who_come_at_once_with_a_right_password_cost_one_check() {
    let mut tried = Tried::default();
    for number in 0..500 {
        let decision = tried.begin("ada", "right", &format!("host-{}", number % 7));
        assert_eq!(decision, Decision::ToCheck);
    }
    assert_eq!(tried.check(), Some(("ada".into(), 500)));
    assert_eq!(tried.check(), None);
    assert!(
        (0..7).all(|number| tried.authenticator.backoff.knows(&format!("host-{number}"), "ada"))
    );
}

#[test]
fn a_flood_of_unknown_users_costs_no_check_and_holds_nobody_up() {
    let mut tried = Tried::default();
    assert_eq!(tried.begin("cached", "right", "a"), Decision::ToCheck);
    assert_eq!(tried.begin("seen", "right", "a"), Decision::ToCheck);
    tried.check_all();
    for number in 0..10_000 {
        let refused = refusal(tried.begin(&format!("nobody {number}"), "x", "a"));
        assert!(refused.starts_with("wrong user name or password"), "{refused}");
    }
    assert!(is_in(&tried.begin("cached", "right", "a")));
    for (user, password, comes_first) in
        [("bob", "right", false), ("seen", "other", false), ("admin", "right", true)]
    {
        assert_eq!(tried.begin_as(user, password, "a", comes_first), Decision::ToCheck, "{user}");
    }
    assert_eq!(tried.begin("elsewhere", "right", "b"), Decision::ToCheck);
    let order: Vec<String> = std::iter::from_fn(|| Some(tried.check()?.0)).collect();
    assert_eq!(order, ["seen", "admin", "elsewhere", "bob"]);
    // One try for each user, from there.
    assert_eq!(tried.begin("carl", "wrong", "a"), Decision::ToCheck);
    let refused = refusal(tried.begin("carl", "wrong too", "a"));
    assert!(refused.starts_with("too many wrong passwords for user 'carl' from a"), "{refused}");
}

#[test]
fn who_is_refused_without_a_check_waits_as_long_as_one_takes() {
    let mut tried = Tried::default();
    tried.begin("ann", "wrong", "a");
    let check = tried.authenticator.next_check().unwrap();
    let ended = check.began + Duration::from_millis(1_700);
    assert!(tried.authenticator.checked(&check, false, ended).0.is_err());
    for user in ["nobody", "no such user"] {
        let decision = tried.begin(user, "x", "a");
        assert!(matches!(decision, Decision::Refused(_, took) if took.as_millis() == 1_700));
    }
}

#[test]
fn too_many_who_wait_are_refused() {
    let mut tried = Tried::default();
    for number in 0..4_096 {
        let host = format!("host-{number}");
        assert_eq!(tried.begin(&format!("u{number}"), "right", &host), Decision::ToCheck);
    }
    assert_eq!(
        refusal(tried.begin("one more", "right", "a")),
        "too many password checks wait already"
    );
    assert_eq!(tried.begin_as("admin", "right", "a", true), Decision::ToCheck);
}

#[test]
fn threads_answer_each_check() {
    let logins = Logins::new(2);
    let (sender, receiver) = mpsc::channel();
    for (password, right) in [("guest", true), ("wrong", false)] {
        let sender = sender.clone();
        let attempt = attempt("guest", password, Some(GUEST));
        assert_eq!(logins.decide(&attempt, seconds(0)), Decision::ToCheck);
        let then = move |answer: Authentication| sender.send((answer.is_ok(), right)).unwrap();
        logins.check(attempt, seconds(0), then);
    }
    for _ in 0..2 {
        let (is_in, right) = receiver.recv().unwrap();
        assert_eq!(is_in, right);
    }
    assert!(is_in(&logins.decide(&attempt("guest", "guest", Some(GUEST)), seconds(0))));
}

/// A try to log in by SCRAM as `user` with password `pencil` (RFC 7677's example).
fn prove(authenticator: &mut Authenticator, address: &str, stored: Option<&str>) -> Decision {
    let nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    let example = example("pencil");
    let first = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    let begun = Dialogue::begin(first, nonce, b"", |_| Some(&example));
    let last = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    let proof = begun.unwrap().0.finish(last).unwrap();
    let credentials = Credentials::Scram { user: "user".to_owned(), proof };
    let (stored, address) = (stored.map(str::to_owned), address.into());
    let attempt = Attempt { credentials, stored, address, comes_first: false };
    authenticator.decide(&attempt, Duration::ZERO)
}

/// What is stored of that password, with the salt of the example.
fn example(password: &str) -> String {
    use base64::Engine as _;
    let salt = base64::prelude::BASE64_STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
    format!("hash {}", Verifier::of_password(password, &salt, 4096))
}

#[test]
fn proofs_are_answered_alike_and_slowed_down_as_passwords_are() {
    let mut authenticator = Authenticator::default();
    let (right, wrong) = (example("pencil"), example("pen"));
    assert!(is_in(&prove(&mut authenticator, "a", Some(&right))));
    for stored in [None, Some(""), Some("hash"), Some(wrong.as_str())] {
        let refused = prove(&mut authenticator, "b", stored);
        let why = "wrong user name or password for 'user' from b".to_owned();
        assert_eq!(refused, Decision::Refused(why, Duration::ZERO), "{stored:?}");
    }
    for _ in 0..4 {
        prove(&mut authenticator, "b", Some(&wrong));
    }
    let why = refusal(prove(&mut authenticator, "b", Some(&right)));
    assert_eq!(why, "too many wrong passwords for user 'user' from b: refused for 2 s");
    // Nobody is locked out elsewhere.
    assert!(is_in(&prove(&mut authenticator, "a", Some(&right))));
}

#[test]
fn both_ways_to_log_in_are_stored_of_a_password() {
    for (stored, password) in [(hash("secret").unwrap(), "secret"), (GUEST.to_owned(), "guest")] {
        assert_eq!(is_right(password, &stored), Some(true));
        assert_eq!(is_right("other", &stored), Some(false));
        let verifier = Verifier::find(&stored).unwrap();
        let text = verifier.to_string();
        let (_, rest) = text.split_once('$').unwrap();
        let (iterations, rest) = rest.split_once(':').unwrap();
        let salt = rest.split_once('$').unwrap().0;
        use base64::Engine as _;
        let salt = base64::prelude::BASE64_STANDARD.decode(salt).unwrap();
        let again = Verifier::of_password(password, &salt, iterations.parse().unwrap());
        assert_eq!(verifier, again);
    }
}
