//! The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677): clients prove that they know a password, and the
//! broker that it knows its verifier, without either being sent.
//!
//! | message | from | |
//! |---|---|---|
//! | `n,,n=USER,r=NONCE` | client | first |
//! | `r=NONCE…,s=SALT,i=ITERATIONS` | broker | its answer |
//! | `c=biws,r=NONCE…,p=PROOF` | client | final |
//! | `v=SIGNATURE` | broker | its answer, where the proof is right |
//!
//! Mechanisms with channel binding are not offered. Names and passwords are taken as they are: clients
//! prepare those outside of ASCII in different ways.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::{digest, hmac, pbkdf2};
use std::num::NonZeroU32;

/// The mechanism's name.
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// How often a password is hashed for a new verifier: some milliseconds of a client's time at each login.
pub const ITERATIONS: u32 = 20_000;
/// Octets of a salt.
pub const SALT_BYTES: usize = 16;
/// Octets of a client's message: more than names and nonces need.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Letters of the broker's part of a nonce.
pub const NONCE_LETTERS: usize = 24;

/// Octets of a key, a signature or a proof.
const KEY_BYTES: usize = digest::SHA256_OUTPUT_LEN;
type Key = [u8; KEY_BYTES];

/// What is stored of a password: enough to check proofs, and not to make them.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    iterations: u32,
    salt: Vec<u8>,
    stored_key: Key,
    server_key: Key,
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

impl Verifier {
    /// The verifier of a password; takes some milliseconds.
    #[must_use]
    pub fn of_password(password: &str, salt: &[u8], iterations: u32) -> Verifier {
        let mut salted: Key = [0; KEY_BYTES];
        let rounds = NonZeroU32::new(iterations).unwrap_or(NonZeroU32::MIN);
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, salt, password.as_bytes(), &mut salted);
        Verifier {
            iterations: rounds.get(),
            salt: salt.to_vec(),
            stored_key: hash(&keyed(&salted, b"Client Key")),
            server_key: keyed(&salted, b"Server Key"),
        }
    }

    /// The verifier in what is stored of a user: one of the words in it, as RFC 5803 writes it.
    #[must_use]
    pub fn find(stored: &str) -> Option<Verifier> {
        let text = stored.split(' ').find_map(|word| word.strip_prefix(MECHANISM))?;
        let (iterations, rest) = text.strip_prefix('$')?.split_once(':')?;
        let (salt, keys) = rest.split_once('$')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        Some(Verifier {
            iterations: iterations.parse().ok()?,
            salt: BASE64_STANDARD.decode(salt).ok()?,
            stored_key: key(stored_key)?,
            server_key: key(server_key)?,
        })
    }

    /// Something in place of the verifier of a user that there is not, or that has none: the same each time,
    /// so that nobody can tell it from another's.
    fn invented(user: &str, secret: &[u8]) -> Verifier {
        let of = |purpose: &[u8]| keyed(secret, &[purpose, user.as_bytes()].concat());
        Verifier {
            iterations: ITERATIONS,
            salt: of(b"salt ")[..SALT_BYTES].to_vec(),
            stored_key: of(b"stored key "),
            server_key: of(b"server key "),
        }
    }

    /// Whether a proof is right, in the same time where it is not.
    fn proves(&self, conversation: &str, proof: &Key) -> bool {
        let mut client_key = keyed(&self.stored_key, conversation.as_bytes());
        client_key.iter_mut().zip(proof).for_each(|(octet, other)| *octet ^= other);
        let pairs = hash(&client_key).into_iter().zip(self.stored_key);
        let difference = pairs.fold(0, |all, (octet, other)| all | (octet ^ other));
        std::hint::black_box(difference) == 0
    }
}

impl std::fmt::Display for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [salt, stored, server] = [&self.salt[..], &self.stored_key, &self.server_key]
            .map(|octets| BASE64_STANDARD.encode(octets));
        write!(f, "{MECHANISM}${}:{salt}${stored}:{server}", self.iterations)
    }
}

/// What a client has said to prove that it knows a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Proof {
    /// All that was said, as both sides sign it.
    conversation: String,
    proof: Key,
}

impl Proof {
    /// Whether it is right for what is stored of the user.
    #[must_use]
    pub fn is_right(&self, stored: &str) -> bool {
        Verifier::find(stored).is_some_and(|it| it.proves(&self.conversation, &self.proof))
    }
}

/// A dialogue of which the client's first message has come.
#[derive(Debug)]
pub struct Dialogue {
    user: String,
    verifier: Verifier,
    /// What the client's final message has to begin with: its header, encoded, and the nonce.
    expected: String,
    /// Both first messages, as they are signed.
    conversation: String,
    signature: Option<Key>,
}

impl Dialogue {
    /// Begins one by the client's first message; returns the broker's answer too. `stored`: what is stored of
    /// a user, by name. `nonce`: the broker's part, letters and digits. None: the message makes no sense.
    pub fn begin<'s>(
        message: &[u8],
        nonce: &str,
        secret: &[u8],
        stored: impl FnOnce(&str) -> Option<&'s str>,
    ) -> Option<(Dialogue, String)> {
        let message = text(message)?;
        let (flag, rest) = message.split_once(',')?;
        // `y`: the client could bind channels and takes it that we cannot, which is so.
        if !matches!(flag, "n" | "y") {
            return None;
        }
        let (on_behalf_of, bare) = rest.split_once(',')?;
        let header = &message[..message.len() - bare.len()];
        let mut attributes = bare.split(',');
        // An extension that has to be understood would come first.
        let user = name(attributes.next()?.strip_prefix("n=")?)?;
        let client_nonce = attributes.next()?.strip_prefix("r=")?;
        if client_nonce.is_empty() || !client_nonce.bytes().all(|octet| octet.is_ascii_graphic()) {
            return None;
        }
        // Nobody acts for another user.
        if !on_behalf_of.is_empty() && name(on_behalf_of.strip_prefix("a=")?)? != user {
            return None;
        }
        let found = stored(&user).and_then(Verifier::find);
        let verifier = found.unwrap_or_else(|| Verifier::invented(&user, secret));
        let salt = BASE64_STANDARD.encode(&verifier.salt);
        let answer = format!("r={client_nonce}{nonce},s={salt},i={}", verifier.iterations);
        let expected = format!("c={},r={client_nonce}{nonce}", BASE64_STANDARD.encode(header));
        let conversation = format!("{bare},{answer}");
        Some((Dialogue { user, verifier, expected, conversation, signature: None }, answer))
    }

    /// Who the client says it is.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Takes the client's final message: the proof that is to be checked. None: it makes no sense.
    pub fn finish(&mut self, message: &[u8]) -> Option<Proof> {
        let message = text(message)?;
        let (unsigned, proof) = message.rsplit_once(",p=")?;
        let extensions = unsigned.strip_prefix(&self.expected)?;
        if !extensions.is_empty() && !extensions.starts_with(',') {
            return None;
        }
        let conversation = format!("{},{unsigned}", self.conversation);
        self.signature = Some(keyed(&self.verifier.server_key, conversation.as_bytes()));
        Some(Proof { conversation, proof: key(proof)? })
    }

    /// The broker's final message, which proves that it knows the verifier.
    #[must_use]
    pub fn final_message(&self) -> String {
        format!("v={}", BASE64_STANDARD.encode(self.signature.unwrap_or_default()))
    }
}

fn text(message: &[u8]) -> Option<&str> {
    if message.len() > MESSAGE_BYTES_MAX {
        return None;
    }
    str::from_utf8(message).ok()
}

/// A user's name, in which `,` and `=` are written `=2C` and `=3D`.
fn name(encoded: &str) -> Option<String> {
    let mut parts = encoded.split('=');
    let mut name = parts.next()?.to_owned();
    for part in parts {
        let (letter, rest) = match part.split_at_checked(2)? {
            ("2C", rest) => (',', rest),
            ("3D", rest) => ('=', rest),
            _ => return None,
        };
        name.push(letter);
        name.push_str(rest);
    }
    (!name.is_empty()).then_some(name)
}

fn key(encoded: &str) -> Option<Key> {
    BASE64_STANDARD.decode(encoded).ok()?.try_into().ok()
}

fn keyed(key: &[u8], text: &[u8]) -> Key {
    octets(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref())
}

fn hash(octets_of: &[u8]) -> Key {
    octets(digest::digest(&digest::SHA256, octets_of).as_ref())
}

fn octets(of: &[u8]) -> Key {
    of.try_into().expect("SHA-256 has 32 octets")
}

/// A client's side, for tests: its final message for a password, and what the broker's has to be.
#[cfg(test)]
pub(crate) fn answer_of_client(first: &str, challenge: &str, password: &str) -> (String, String) {
    let attribute = |name: &str| {
        let found = challenge.split(',').find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
        found.expect("the broker has said it")
    };
    let salt = BASE64_STANDARD.decode(attribute("s")).expect("it is base64");
    let iterations = attribute("i").parse().expect("it is a number");
    let mut salted: Key = [0; KEY_BYTES];
    let rounds = NonZeroU32::new(iterations).expect("it is not 0");
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, password.as_bytes(), &mut salted);
    let bare_at = first.match_indices(',').nth(1).expect("it has a header").0 + 1;
    let (header, bare) = first.split_at(bare_at);
    let unsigned = format!("c={},r={}", BASE64_STANDARD.encode(header), attribute("r"));
    let conversation = format!("{bare},{challenge},{unsigned}");
    let client_key = keyed(&salted, b"Client Key");
    let mut proof = keyed(&hash(&client_key), conversation.as_bytes());
    proof.iter_mut().zip(client_key).for_each(|(octet, other)| *octet ^= other);
    let signature = keyed(&keyed(&salted, b"Server Key"), conversation.as_bytes());
    (
        format!("{unsigned},p={}", BASE64_STANDARD.encode(proof)),
        format!("v={}", BASE64_STANDARD.encode(signature)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"secret";

    /// What is stored of user `user` with password `pencil`, by RFC 7677.
    fn stored() -> String {
        let salt = BASE64_STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        format!("$argon2id$hash {}", Verifier::of_password("pencil", &salt, 4096))
    }

    #[test]
    fn the_example_of_rfc_7677_is_understood() {
        let stored = stored();
        let (mut dialogue, answer) = Dialogue::begin(
            b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
            "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
            SECRET,
            |_| Some(&stored),
        )
        .unwrap();
        assert_eq!(
            answer,
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let last = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
            p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let proof = dialogue.finish(last).unwrap();
        assert_eq!(dialogue.user(), "user");
        assert!(proof.is_right(&stored));
        assert!(!proof.is_right("$argon2id$hash"));
        assert_eq!(dialogue.final_message(), "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn verifiers_survive_being_stored() {
        let text = stored();
        let verifier = Verifier::find(&text).unwrap();
        assert_eq!(Verifier::find(&format!("{verifier} more")), Some(verifier));
        for broken in ["", "SCRAM-SHA-256$4096:a$b:c", "SCRAM-SHA-256$x:YQ==$YQ==:YQ=="] {
            assert_eq!(Verifier::find(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_wrong_password_or_another_conversation_proves_nothing() {
        let stored = stored();
        let first = "y,a=user,n=user,r=abc";
        for (password, is_right) in [("pencil", true), ("pen", false)] {
            let begun = Dialogue::begin(first.as_bytes(), "def", SECRET, |_| Some(&stored));
            let (mut dialogue, answer) = begun.unwrap();
            let (last, signature) = answer_of_client(first, &answer, password);
            let proof = dialogue.finish(last.as_bytes()).unwrap();
            assert_eq!(proof.is_right(&stored), is_right);
            assert_eq!(dialogue.final_message() == signature, is_right);
            let other = Proof { conversation: proof.conversation.clone() + ",", ..proof };
            assert!(!other.is_right(&stored));
        }
    }

    #[test]
    fn users_that_are_not_there_cannot_be_told_from_others() {
        let begin = |user: &str, secret: &[u8]| {
            let first = format!("n,,n={user},r=a");
            Dialogue::begin(first.as_bytes(), "b", secret, |_| Some("$argon2id$hash")).unwrap().1
        };
        let answer = begin("nobody", SECRET);
        assert_eq!(answer, begin("nobody", SECRET));
        assert!(answer.ends_with(&format!(",i={ITERATIONS}")), "{answer}");
        assert_eq!(answer.len(), "r=ab,s=,i=20000".len() + 24);
        assert_ne!(answer, begin("somebody", SECRET));
        assert_ne!(answer, begin("nobody", b"another"));
    }

    #[test]
    fn messages_that_make_no_sense_are_refused() {
        for first in [
            "",
            "n",
            "n,,",
            "n,,n=u",
            "n,,r=a,n=u",
            "n,,n=u,r=",
            "n,,n=u,r=\u{e9}",
            "n,,n=,r=a",
            "n,,n=a=2,r=a",
            "n,,n=a=2D,r=a",
            "p=tls-unique,,n=u,r=a",
            "n,a=other,n=u,r=a",
            "n,,m=x,n=u,r=a",
            "x,,n=u,r=a",
        ] {
            assert!(Dialogue::begin(first.as_bytes(), "b", SECRET, |_| None).is_none(), "{first}");
        }
        let long = format!("n,,n={},r=a", "u".repeat(MESSAGE_BYTES_MAX));
        assert!(Dialogue::begin(long.as_bytes(), "b", SECRET, |_| None).is_none());
        assert!(Dialogue::begin(b"n,,n=u\xff,r=a", "b", SECRET, |_| None).is_none());
        let begin = || Dialogue::begin(b"n,,n=a=2Cb=3D,r=x", "y", SECRET, |_| None).unwrap().0;
        assert_eq!(begin().user, "a,b=");
        let proof = BASE64_STANDARD.encode([0; KEY_BYTES]);
        for (last, is_taken) in [
            (format!("c=biws,r=xy,p={proof}"), true),
            (format!("c=biws,r=xy,e=more,p={proof}"), true),
            (format!("c=eSws,r=xy,p={proof}"), false),
            (format!("c=biws,r=x,p={proof}"), false),
            (format!("c=biws,r=xyz,p={proof}"), false),
            ("c=biws,r=xy,p=YQ==".to_owned(), false),
            ("c=biws,r=xy".to_owned(), false),
        ] {
            assert_eq!(begin().finish(last.as_bytes()).is_some(), is_taken, "{last}");
        }
    }
}
