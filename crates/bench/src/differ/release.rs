//! Which release of the peer answers, as it says itself, and whether it is as new as the one that the
//! scenarios' reasons were written for.

/// A release of a peer.
#[derive(Debug)]
pub(super) struct Release {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

/// What is said before the scenarios: the version in the peer's greeting, and a warning if it is older than
/// the one `compared` last.
pub(super) fn headline(compared: &Release, greeting: &str) -> String {
    let Release { name, version: last } = compared;
    let Some(version) = version(greeting) else {
        return format!("Angarium beside {name}, which does not tell its version");
    };
    let mut text = format!("Angarium beside {name} {version}");
    if numbers(version) < numbers(last) {
        text += &format!(
            "\nWARNING: {name} {version} is older than {last}, for which the scenarios are written: what \
             differs may be a matter of its age"
        );
    }
    text
}

/// The version in a greeting as it is shown: `version: S 4.3.6`, `:version: "2.44.0"`, `"version":"2.15.3"`.
fn version(greeting: &str) -> Option<&str> {
    let is_part = |it: char| it.is_ascii_digit() || it == '.';
    greeting.split("version").skip(1).find_map(|behind| {
        let value = behind.trim_start_matches(['"', ':', ' ', 'S']);
        let end = value.find(|it| !is_part(it)).unwrap_or(value.len());
        let is_named = value.len() < behind.len();
        (is_named && value.starts_with(|it: char| it.is_ascii_digit())).then(|| &value[..end])
    })
}

fn numbers(version: &str) -> Vec<u64> {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_the_version_and_warns_of_an_old_one() {
        let compared = Release { name: "Peer", version: "4.3.6" };
        let old = "WARNING: Peer 3.10.8 is older than 4.3.6";
        for (greeting, first, warning) in [
            ("start version-major=0 version-minor=9 {version: S 4.3.6}", "Peer 4.3.6", None),
            (
                "start version-major=0 {product: S RabbitMQ version: S 3.10.8}",
                "Peer 3.10.8",
                Some(old),
            ),
            (
                r#"INFO {"server_id":"x","version":"4.10.0","proto":1,"go":"go1.25"}"#,
                "Peer 4.10.0",
                None,
            ),
            (
                "open properties={:product: \"artemis\", :version: \"4.3\"}",
                "Peer 4.3",
                Some("WARNING"),
            ),
            ("open version-minor=9", "Peer, which does not tell its version", None),
        ] {
            let text = headline(&compared, greeting);
            let mut lines = text.lines();
            assert_eq!(lines.next(), Some(&*format!("Angarium beside {first}")));
            let said = lines.next();
            assert_eq!(said.is_some(), warning.is_some(), "{text}");
            assert!(
                said.is_none_or(|said| said.starts_with(warning.unwrap_or_default())),
                "{text}"
            );
        }
    }
}
