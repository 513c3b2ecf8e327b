//! docs/operating/configuration.md, written from the definitions.

use super::definitions::{Definition, Reload, definitions};
use std::fmt::Write;

const OPENING: &str = "# Configuration

<!-- Generated from crates/server/src/settings/definitions.rs by `cargo test -p angarium-server`
     with ANGARIUM_WRITE_DOCS=1; a test keeps it fresh. -->

Every setting can be given as a flag (`angarium serve --amqp :5673`), in the environment
(`ANGARIUM_AMQP=:5673`) or in a TOML file (`amqp = \":5673\"`; `--config FILE` or `ANGARIUM_CONFIG`
names it). In the file, words of a name are parted by underscores or hyphens: `connections_max` is
`connections-max`. A flag wins over the environment, the environment over the file. A wrong name or value
keeps the broker from starting and is named, with the nearest right name.

A running broker reads file and environment again on SIGHUP, takes over what is marked \"reload\"
below, and logs which of the changed settings need a restart.
";

/// The page's text.
#[must_use]
pub fn document() -> String {
    let mut page = OPENING.to_owned();
    for definition in definitions() {
        let reload = match definition.reload {
            Reload::Now => "reload",
            Reload::Restart => "restart",
        };
        write!(
            page,
            "\n## {}\n\n`--{} {}` | `{}` | default `{}` | {reload}\n\n{}\n",
            definition.name,
            definition.name,
            definition.form,
            definition.variable(),
            shown_default(definition),
            definition.text.trim(),
        )
        .expect("writing to a String succeeds");
        if let Some(allowed) = (definition.allowed)() {
            writeln!(page, "\nAllowed: {allowed}.").expect("writing to a String succeeds");
        }
    }
    page
}

/// The default as it reads on any machine.
fn shown_default(definition: &Definition) -> String {
    match definition.name {
        "data" => "~/.local/share/angarium".into(),
        _ => (definition.default)(),
    }
}
