//! What an engine that serves these protocols is made with: names, and readers of encoded properties.

use crate::names::NAMES;
use crate::properties::FURTHER_KEYS_HEADER;
use crate::read_headers;
use crate::selection::read_property;
use angarium_engine::limits::NAME_BYTES_MAX;
use angarium_engine::{Content, Conventions, Value};

/// What an engine that serves these protocols is made with.
pub static CONVENTIONS: Conventions =
    Conventions { names: NAMES, read_headers, read_property, read_further_keys };

/// The routing keys in the header for further ones.
fn read_further_keys(content: &Content<'_>) -> Vec<String> {
    let mut keys = Vec::new();
    read_headers(content.format, content.properties, &mut |name, value| {
        if let (FURTHER_KEYS_HEADER, Value::List(further)) = (name, value) {
            keys.extend(further.iter().filter_map(routing_key));
        }
    });
    keys
}

fn routing_key(key: &Value) -> Option<String> {
    match key {
        Value::Text(key) if key.len() <= NAME_BYTES_MAX => Some(key.clone()),
        _ => None,
    }
}
