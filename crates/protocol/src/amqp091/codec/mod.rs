//! Bytes to and from methods, content headers and tables, in both directions: brokers and clients
//! use the same. Names no engine type.

pub mod content;
pub mod method;
pub mod properties;
pub mod table;
pub mod wire;

pub use content::{ContentHeader, Deliver, PublishMethod};
pub use method::{METHODS, Method, MethodInfo};
pub use properties::Properties;
pub use table::{Array, FieldValue, Table, put_table};
pub use wire::Malformed;

#[cfg(test)]
mod tests;
