//! Where settings come from: defaults, then the file, then the environment, then flags.

use super::definitions::{DEFINITIONS, Definition, Reload, Settings};
use super::listener_kinds::{LISTENERS, ListenerKind, Transport};
use super::value::Encryption;
use crate::hints;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The sources of settings; kept, so that a reload reads them again.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file to read, if any.
    pub file: Option<PathBuf>,
    /// Variables of the environment; those that begin with `ANGARIUM_` count.
    pub environment: BTreeMap<String, String>,
    /// Flags by name.
    pub flags: BTreeMap<String, String>,
}

/// Variables that begin with `ANGARIUM_` and are not settings: they belong to other commands.
const OTHER_VARIABLES: [&str; 7] = [
    "ANGARIUM_ADMIN",
    "ANGARIUM_AUTHORITIES",
    "ANGARIUM_CONFIG",
    "ANGARIUM_PASSWORD",
    "ANGARIUM_PASSWORD_FILE",
    "ANGARIUM_URI",
    "ANGARIUM_USER",
];

impl Sources {
    /// Reads everything. Errors name the place, the setting and what is wrong with it.
    pub fn read(&self) -> Result<Settings, String> {
        let mut settings = Settings::default();
        if let Some(path) = &self.file {
            let text = std::fs::read_to_string(path)
                .map_err(|error| hints::unreadable("--config", path, &error))?;
            apply_file(&mut settings, &path.display().to_string(), &text)?;
        }
        for (variable, value) in &self.environment {
            if variable.starts_with("ANGARIUM_") && !OTHER_VARIABLES.contains(&variable.as_str()) {
                let definition = named("", variable, Definition::variable)?;
                set(&mut settings, definition, variable, value)?;
            }
        }
        for (name, value) in &self.flags {
            let definition = named("--", name, |definition| definition.name.to_owned())?;
            set(&mut settings, definition, &format!("--{name}"), value)?;
        }
        check_together(&settings)?;
        Ok(settings)
    }
}

/// Applies a settings file: TOML with one key a setting, which may be written like the flag.
pub(super) fn apply_file(settings: &mut Settings, path: &str, text: &str) -> Result<(), String> {
    let table: toml::Table =
        text.parse().map_err(|error| format!("'{path}' is not TOML: {error}"))?;
    for (key, value) in &table {
        let plain = key.replace('-', "_");
        // Nothing tells which of the two is meant.
        if plain != *key && table.contains_key(&plain) {
            return Err(format!("in '{path}': '{key}' and '{plain}' are the same setting"));
        }
        let spell = |definition: &Definition| Some(definition.key()).filter(|it| *it != plain);
        let definition = named("", key, |definition| spell(definition).unwrap_or(key.clone()))
            .map_err(|error| format!("in '{path}': {error}"))?;
        let place = format!("in '{path}': {key}");
        set(settings, definition, &place, &scalar(value).map_err(|e| format!("{place}: {e}"))?)?;
    }
    Ok(())
}

fn scalar(value: &toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Boolean(false) => Ok("off".into()),
        toml::Value::Array(items) if items.is_empty() => Ok("off".into()),
        toml::Value::Array(items) => {
            let texts: Result<Vec<String>, String> = items.iter().map(scalar).collect();
            Ok(texts?.join(","))
        }
        _ => Err("expected a text, a whole number, false or a list of texts".into()),
    }
}

fn set(settings: &mut Settings, what: &Definition, place: &str, text: &str) -> Result<(), String> {
    (what.set)(settings, text)
        .map_err(|error| format!("{place}: '{}': {error}", text.escape_debug()))
}

/// Rules that concern more than one setting.
fn check_together(settings: &Settings) -> Result<(), String> {
    let is_on = |kind: &ListenerKind| !(kind.places)(settings).0.is_empty();
    let needs_tls = |kind: &&ListenerKind| kind.transport == Transport::Tls && is_on(kind);
    if let (Some(kind), false) = (LISTENERS.iter().find(needs_tls), settings.has_certificate()) {
        return Err(format!("{} needs tls-certificate and tls-key: two PEM files", kind.name));
    }
    if settings.nats_encryption == Encryption::Required && !settings.has_certificate() {
        return Err("nats-encryption needs tls-certificate and tls-key: two PEM files".into());
    }
    // One of them alone would silently leave clients without TLS.
    for (name, needs, file) in [
        ("tls-certificate", "tls-key", &settings.tls_certificate),
        ("tls-key", "tls-certificate", &settings.tls_key),
        ("tls-client-authorities", "tls-certificate and tls-key", &settings.tls_client_authorities),
    ] {
        if file.is_some() && !settings.has_certificate() {
            return Err(format!("{name} needs {needs}: else there is no TLS"));
        }
    }
    for (name, is_set) in [
        ("tls-client-verify", settings.tls_client_verify == Encryption::Required),
        ("tls-client-revocations", settings.tls_client_revocations.is_some()),
    ] {
        if is_set && settings.tls_client_authorities.is_none() {
            return Err(format!(
                "{name} needs tls-client-authorities: who signs clients' certificates"
            ));
        }
    }
    if !LISTENERS.iter().any(is_on) {
        let names: Vec<&str> = LISTENERS.iter().map(|kind| kind.name).collect();
        return Err(format!("nothing to serve: {} are off", names.join(", ")));
    }
    Ok(())
}

/// The setting whose name is spelled so. The error names the one that is probably meant.
fn named(
    prefix: &str,
    name: &str,
    spell: impl Fn(&Definition) -> String,
) -> Result<&'static Definition, String> {
    let known = DEFINITIONS.iter().map(|definition| (spell(definition), definition));
    let by_distance = known.map(|(known, it)| (strsim::levenshtein(name, &known), known, it));
    let nearest = by_distance.min_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    let hint = match nearest {
        Some((0, _, definition)) => return Ok(definition),
        Some((edits, known, _)) if edits <= 1 + known.len() / 3 => {
            format!("; did you mean '{prefix}{known}'?")
        }
        _ => "; `angarium serve --help` lists them".to_owned(),
    };
    Err(format!("unknown setting '{prefix}{}'{hint}", name.escape_debug()))
}

/// The names of settings that a running broker has taken over, and of those that need a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// They have their new values.
    pub taken_over: Vec<&'static str>,
    /// They are as they were, and so are named again at the next reload.
    pub need_a_restart: Vec<&'static str>,
}

impl Reloaded {
    /// What has been done, for the log.
    pub fn summary(&self) -> &'static str {
        match (self.taken_over.is_empty(), self.need_a_restart.is_empty()) {
            (true, true) => "settings read again: none has changed",
            (false, true) => "settings reloaded",
            (false, false) => "settings reloaded in part",
            (true, false) => "settings not reloaded: those that changed need a restart",
        }
    }
}

impl Settings {
    /// Takes over of `after` what a running broker can take over.
    pub fn reload(&mut self, after: &Settings) -> Reloaded {
        let mut reloaded = Reloaded::default();
        // Listeners are opened with TLS or without, and clients learn which.
        let begins_or_ends_tls = self.has_certificate() != after.has_certificate();
        for definition in DEFINITIONS {
            let value = (definition.show)(after);
            if value == (definition.show)(self) {
                continue;
            }
            let is_of_tls = definition.name.starts_with("tls-");
            if definition.reload == Reload::Restart || is_of_tls && begins_or_ends_tls {
                reloaded.need_a_restart.push(definition.name);
            } else {
                (definition.set)(self, &value).expect("a shown value reads back");
                reloaded.taken_over.push(definition.name);
            }
        }
        reloaded
    }
}
