//! Settings from every place, right and wrong.

use super::value::BacklogRate;
use super::*;
use std::collections::BTreeMap;
use std::path::Path;

fn flags(pairs: &[(&str, &str)]) -> Sources {
    let flags = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Sources { flags, ..Sources::default() }
}

fn environment(pairs: &[(&str, &str)]) -> Sources {
    let environment = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Sources { environment, ..Sources::default() }
}

#[track_caller]
fn refused(sources: &Sources, expected: &str) {
    let error = sources.read().unwrap_err();
    assert_eq!(error, expected);
}

#[test]
fn defaults_read_back_as_they_are_shown() {
    for definition in DEFINITIONS {
        let mut settings = Settings::default();
        (definition.set)(&mut settings, &definition.default()).unwrap();
        assert_eq!(settings, Settings::default(), "{}", definition.name);
        assert_eq!((definition.show)(&settings), definition.default());
    }
}

#[test]
fn names_are_unique() {
    let names: BTreeMap<_, _> = DEFINITIONS.iter().map(|d| (d.variable(), d.name)).collect();
    assert_eq!(names.len(), DEFINITIONS.len());
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("angarium.toml");
    std::fs::write(&file, "amqp = \":1\"\nhttp = \":1\"\nqueues_max = 1\nloopback_users = []\n")
        .unwrap();
    let mut sources = flags(&[("amqp", ":3")]);
    sources.environment =
        environment(&[("ANGARIUM_AMQP", ":2"), ("ANGARIUM_HTTP", ":2")]).environment;
    sources.file = Some(file);
    let settings = sources.read().unwrap();
    assert_eq!(settings.amqp.show(), "0.0.0.0:3");
    assert_eq!(settings.http.show(), "0.0.0.0:2");
    assert_eq!(settings.queues_max, 1);
    assert!(settings.loopback_users.is_empty());
}

#[test]
fn wrong_ones_are_named_with_the_nearest_right_name() {
    refused(
        &environment(&[("ANGARIUM_AMQ", ":1")]),
        "unknown setting 'ANGARIUM_AMQ'; did you mean 'ANGARIUM_AMQP'?",
    );
    refused(
        &flags(&[("zzzzzzzzzzzzz", "1")]),
        "unknown setting '--zzzzzzzzzzzzz'; `angarium serve --help` lists them",
    );
    refused(
        &flags(&[("nats", "4222")]),
        "--nats: '4222': expected ADDRESS:PORT such as 127.0.0.1:4222, :4222 or off",
    );
    refused(
        &flags(&[("amqp", "here")]),
        "--amqp: 'here': expected ADDRESS:PORT such as 127.0.0.1:5672, :5672 or off",
    );
    for wrong in ["0", "1023KiB", "fast"] {
        refused(
            &flags(&[("backlog-bytes-per-second", wrong)]),
            &format!(
                "--backlog-bytes-per-second: '{wrong}': expected auto or bytes such as 64MiB, 1MiB at least"
            ),
        );
    }
    refused(
        &flags(&[("connections-max", "0")]),
        "--connections-max: '0': must lie between 1 and 4000000",
    );
    refused(
        &flags(&[("handshake-timeout", "10")]),
        "--handshake-timeout: '10': expected a time with its unit such as 500ms, 30s, 10m, 2h, 7d",
    );
    for (name, value, allowed) in [
        ("nats-payload-bytes-max", "65MiB", "must lie between 1 and 64MiB"),
        ("spool-bytes-max", "1MiB", "must be at least 4MiB, or 0"),
        ("delivery-limit", "0", "must lie between 1 and 4294967295, or off"),
    ] {
        refused(&flags(&[(name, value)]), &format!("--{name}: '{value}': {allowed}"));
    }
    for (name, value) in [("spool-bytes-max", "0"), ("delivery-limit", "off"), ("log", "info")] {
        flags(&[(name, value)]).read().unwrap();
    }
    for name in ["user-connections-max", "user-messages-per-second", "connection-bytes-per-second"]
    {
        refused(&flags(&[(name, "0")]), &format!("--{name}: '0': must be at least 1, or off"));
        flags(&[(name, "1")]).read().unwrap();
        flags(&[(name, "off")]).read().unwrap();
    }
    refused(
        &flags(&[("amqp", "off"), ("nats", "off"), ("mqtt", "off"), ("stomp", "off")]),
        "nothing to serve: amqp, amqps, mqtt, mqtts, nats, nats-tls, stomp, stomps, ws, wss, any are off",
    );
}

#[test]
fn a_wrong_file_names_its_path_and_key() {
    let mut settings = Settings::default();
    let error = sources::apply_file(&mut settings, "a.toml", "que_max = 3").unwrap_err();
    assert_eq!(error, "in 'a.toml': unknown setting 'que_max'; did you mean 'queues_max'?");
    let error = sources::apply_file(&mut settings, "a.toml", "amqp = 1.5").unwrap_err();
    assert_eq!(
        error,
        "in 'a.toml': amqp: expected a text, a whole number, false or a list of texts"
    );
    assert!(sources::apply_file(&mut settings, "a.toml", "= 3").is_err());
}

#[test]
fn what_tls_needs_is_named() {
    refused(
        &flags(&[("amqps", ":5671")]),
        "amqps needs tls-certificate and tls-key: two PEM files",
    );
    refused(
        &flags(&[("nats-tls", ":4223")]),
        "nats-tls needs tls-certificate and tls-key: two PEM files",
    );
    for (name, needs) in [
        ("tls-certificate", "tls-key"),
        ("tls-key", "tls-certificate"),
        ("tls-client-authorities", "tls-certificate and tls-key"),
    ] {
        let without = format!("{name} needs {needs}: else there is no TLS");
        refused(&flags(&[(name, "file.pem")]), &without);
    }
    let tls = [("tls-certificate", "chain.pem"), ("tls-key", "key.pem")];
    for (name, value) in [("tls-client-verify", "required"), ("tls-client-revocations", "list.pem")]
    {
        refused(
            &flags(&[&tls[..], &[(name, value)]].concat()),
            &format!("{name} needs tls-client-authorities: who signs clients' certificates"),
        );
    }
}

#[test]
fn names_in_a_file_may_be_written_like_flags() {
    for definition in DEFINITIONS {
        let mut settings = Settings::default();
        let text = format!("{} = '{}'", definition.name, definition.default());
        sources::apply_file(&mut settings, "a.toml", &text).unwrap();
        assert_eq!(settings, Settings::default(), "{text}");
    }
    let mut settings = Settings::default();
    sources::apply_file(&mut settings, "a.toml", "connections-max = 5\nqueues_max = 6").unwrap();
    assert_eq!((settings.connections_max, settings.queues_max), (5, 6));
    let twice = "connections-max = 5\nconnections_max = 6";
    assert_eq!(
        sources::apply_file(&mut settings, "a.toml", twice).unwrap_err(),
        "in 'a.toml': 'connections-max' and 'connections_max' are the same setting"
    );
}

#[test]
fn variables_of_other_commands_are_left_alone() {
    let sources = environment(&[("ANGARIUM_USER", "x"), ("PATH", "y")]);
    assert_eq!(sources.read().unwrap(), Settings::default());
}

#[test]
fn bytes_and_times_have_units() {
    for (text, bytes) in [("0", 0), ("4096", 4096), ("64KiB", 65_536), ("1 gib", 1 << 30)] {
        assert_eq!(ByteCount::parse(text).unwrap().0, bytes, "{text}");
    }
    for text in ["", "KiB", "1x", "-1", "99999999999999TiB"] {
        assert!(ByteCount::parse(text).is_err(), "{text}");
    }
    for text in ["500ms", "30s", "10m", "2h", "7d"] {
        assert_eq!(Span::parse(text).unwrap().show(), text);
    }
    for text in ["", "s", "5", "1w", "99999999999999999999d"] {
        assert!(Span::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_backlog_has_a_rate_that_goes_by_the_processors_or_is_given() {
    for (processors, mib) in [(1, 16), (2, 32), (4, 64), (8, 128), (64, 128)] {
        assert_eq!(BacklogRate::with_processors(processors), mib << 20, "{processors}");
    }
    for text in ["auto", "1MiB", "64MiB"] {
        assert_eq!(BacklogRate::parse(text).unwrap().show(), text);
    }
    assert_eq!(BacklogRate::parse("64MiB").unwrap().bytes(), 64 << 20);
}

#[test]
fn a_reload_says_what_is_taken_over() {
    let mut settings = Settings::default();
    let after = flags(&[("log", "debug"), ("amqp", ":1")]).read().unwrap();
    for taken_over in [vec!["log"], vec![]] {
        let reloaded = settings.reload(&after);
        assert_eq!(reloaded, Reloaded { taken_over, need_a_restart: vec!["amqp"] });
    }
    assert_eq!(settings, flags(&[("log", "debug")]).read().unwrap());
}

#[test]
fn a_reload_that_changes_nothing_is_told_as_that() {
    for (taken_over, need_a_restart, summary) in [
        (vec![], vec![], "settings read again: none has changed"),
        (vec!["log"], vec![], "settings reloaded"),
        (vec!["log"], vec!["amqp"], "settings reloaded in part"),
        (vec![], vec!["amqp"], "settings not reloaded: those that changed need a restart"),
    ] {
        assert_eq!(Reloaded { taken_over, need_a_restart }.summary(), summary);
    }
}

#[test]
fn tls_begins_and_ends_with_a_restart() {
    let with = |chain, more: &[(&str, &str)]| {
        let both = [("tls-certificate", chain), ("tls-key", "key.pem")];
        flags(&[&both, more].concat()).read().unwrap()
    };
    let (without, one) = (Settings::default(), with("one.pem", &[]));
    let two = with("two.pem", &[("tls-client-authorities", "ca.pem")]);
    for (before, after, taken_over, need_a_restart) in [
        (&without, &one, vec![], vec!["tls-certificate", "tls-key"]),
        (&one, &without, vec![], vec!["tls-certificate", "tls-key"]),
        (&one, &two, vec!["tls-certificate", "tls-client-authorities"], vec![]),
    ] {
        let mut settings = before.clone();
        let has_begun = need_a_restart.is_empty();
        assert_eq!(settings.reload(after), Reloaded { taken_over, need_a_restart });
        assert_eq!(settings, *if has_begun { after } else { before });
    }
}

#[test]
fn the_page_in_the_documentation_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating/configuration.md");
    if std::env::var_os("ANGARIUM_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, document()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == document(), "run this test with ANGARIUM_WRITE_DOCS=1");
}
