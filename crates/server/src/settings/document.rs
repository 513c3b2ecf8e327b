//! docs/operating/configuration.md, written from the definitions.

use super::definitions::{DEFINITIONS, Definition, Reload};

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
pub fn document() -> String {
    let mut page = OPENING.to_owned();
    for definition in DEFINITIONS {
        let Definition { name, form, text, .. } = definition;
        let reload = if definition.reload == Reload::Now { "reload" } else { "restart" };
        // As it reads on any machine.
        let home = (*name == "data").then(|| "~/.local/share/angarium".into());
        let default = home.unwrap_or_else(|| definition.default());
        page += &format!(
            "\n## {name}\n\n`--{name} {}` | `{}` | default `{default}` | {reload}\n\n{}\n",
            form(),
            definition.variable(),
            text.trim(),
        );
        if let Some(allowed) = (definition.allowed)() {
            page += &format!("\nAllowed: {allowed}.\n");
        }
    }
    page
}
