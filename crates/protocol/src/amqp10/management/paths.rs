//! What the target of an HTTP request over AMQP names: `/queues/q`, `/bindings?src=…`, ….

use super::super::address::decoded;
use angarium_engine::BindingTarget;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Path {
    Queue(String),
    Messages(String),
    Exchange(String),
    /// All bindings, or in a query those between two ends.
    Bindings(Option<Ends>),
    /// One binding; `arguments` is what tells it from others with the same ends and key.
    Binding {
        ends: Ends,
        arguments: String,
    },
    Tokens,
}

/// The ends of a binding, and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) source: String,
    pub(super) target: BindingTarget,
    pub(super) key: String,
}

/// Reads a request target.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse(target: &str) -> Result<Path, String> {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let unknown = || format!("nothing is at '{target}'");
    let Some(path) = path.strip_prefix('/') else { return Err(unknown()) };
    let segments: Vec<&str> = path.split('/').collect();
    Ok(match (segments.as_slice(), query) {
        (["queues", queue], None) => Path::Queue(text(queue)?),
        (["queues", queue, "messages"], None) => Path::Messages(text(queue)?),
        (["exchanges", exchange], None) => Path::Exchange(text(exchange)?),
        (["bindings"], None) => Path::Bindings(None),
        (["bindings"], Some(query)) => Path::Bindings(Some(ends(query.split('&'), target)?.0)),
        (["bindings", binding], None) => {
            let (ends, arguments) = ends(binding.split(';'), target)?;
            Path::Binding { ends, arguments }
        }
        (["auth", "tokens"], None) => Path::Tokens,
        _ => return Err(unknown()),
    })
}

fn text(encoded: &str) -> Result<String, String> {
    Ok(decoded(encoded)?.into_owned())
}

/// Reads `src=…`, `dstq=…` or `dste=…`, `key=…` and `args=…`.
fn ends<'a>(parts: impl Iterator<Item = &'a str>, target: &str) -> Result<(Ends, String), String> {
    let (mut source, mut to, mut key, mut arguments) = (None, None, None, String::new());
    for part in parts {
        match part.split_once('=') {
            Some(("src", value)) => source = Some(text(value)?),
            Some(("dstq", value)) => to = Some(BindingTarget::Queue(text(value)?)),
            Some(("dste", value)) => to = Some(BindingTarget::Exchange(text(value)?)),
            Some(("key", value)) => key = Some(text(value)?),
            Some(("args", value)) => arguments = value.to_owned(),
            _ => {
                return Err(format!(
                    "'{part}' in '{target}' is none of src, dstq, dste, key, args"
                ));
            }
        }
    }
    match (source, to, key) {
        (Some(source), Some(to), Some(key)) => Ok((Ends { source, target: to, key }, arguments)),
        _ => Err(format!("'{target}' lacks one of src, dstq or dste, key")),
    }
}
