//! What a client says about itself and of what it understands.

use super::codec::wire::truncated;
use super::codec::{FieldValue, Table};
use crate::ClientProperties;

/// What a client said it understands, of what changes how we talk to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Capabilities {
    pub(super) consumer_cancel_notify: bool,
    pub(super) connection_blocked: bool,
    pub(super) authentication_failure_close: bool,
}

impl ClientProperties {
    pub(super) fn read(table: Table<'_>) -> ClientProperties {
        let text = |name| table.text(name).map(|text| truncated(text).to_owned());
        ClientProperties {
            connection_name: text("connection_name"),
            product: text("product"),
            version: text("version"),
            platform: text("platform"),
        }
    }
}

impl Capabilities {
    pub(super) fn read(table: Table<'_>) -> Capabilities {
        let Some(FieldValue::Table(capabilities)) = table.get("capabilities") else {
            return Capabilities::default();
        };
        let has = |name| capabilities.get(name) == Some(FieldValue::Bool(true));
        Capabilities {
            consumer_cancel_notify: has("consumer_cancel_notify"),
            connection_blocked: has("connection.blocked"),
            authentication_failure_close: has("authentication_failure_close"),
        }
    }
}
