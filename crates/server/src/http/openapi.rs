//! Describes addresses in an OpenAPI 3.1 document, with the schemas of the types that they take and give.
//!
//! Does not know which addresses there are.

use super::mailboxes::State;
use axum::routing::MethodRouter;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Describes a type.
pub(super) type Describe = fn(&mut SchemaGenerator) -> Schema;

/// One address with one method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// As OpenAPI writes it: `get`, `put`, `delete`.
    pub(super) method: &'static str,
    /// Parts in braces are names.
    pub(super) path: &'static str,
    pub(super) what: &'static str,
    /// What may follow the path: fields of the type of parameters.
    pub(super) parameters: &'static [&'static str],
    pub(super) takes: Option<Describe>,
    pub(super) gives: Describe,
    /// Its handler.
    pub(super) route: fn() -> MethodRouter<State>,
}

/// The document; `parameters` describes the type of those that follow paths, `prefix` precedes each path.
pub(super) fn document(operations: &[Operation], parameters: Describe, prefix: &str) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
    });
    let mut generator = settings.into_generator();
    let parameters = parameters(&mut generator);
    let known = referred(&parameters, &generator);
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations {
        let path = paths.entry(format!("{prefix}{}", operation.path)).or_insert_with(|| json!({}));
        path[operation.method] = described(operation, &known, &mut generator);
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Angarium administration",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Names in paths are percent-encoded: the virtual host / is %2F.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "administrator": { "type": "http", "scheme": "basic" } },
        },
        "security": [{ "administrator": [] }],
    })
}

/// The properties of a schema, or of what it refers to.
fn referred(schema: &Schema, generator: &SchemaGenerator) -> Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let name = reference.and_then(|it| it.rsplit('/').next()).unwrap_or_default();
    let definition = generator.definitions().get(name);
    definition.unwrap_or_else(|| schema.as_value())["properties"].clone()
}

fn described(operation: &Operation, known: &Value, generator: &mut SchemaGenerator) -> Value {
    let names =
        operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = names.map(|name| {
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
    });
    let in_query = operation
        .parameters
        .iter()
        .map(|name| json!({ "name": name, "in": "query", "schema": known[name] }));
    let error = json!({ "schema": { "type": "object", "properties": {
        "error": { "type": "string", "description": "What is wrong, and why." },
    } } });
    let mut described = json!({
        "summary": operation.what,
        "parameters": in_path.chain(in_query).collect::<Vec<Value>>(),
        "responses": {
            "200": {
                "description": "Done.",
                "content": { "application/json": { "schema": (operation.gives)(generator) } },
            },
            "default": {
                "description": "Refused.",
                "content": { "application/json": error },
            },
        },
    });
    if let Some(takes) = operation.takes {
        described["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": takes(generator) } },
        });
    }
    described
}
