//! In what the declaration of a queue differs from the queue that exists.

use crate::interface::mismatch::DifferentOption;
use crate::{QUEUE_OPTIONS, QueueOptions, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The first option in which a declaration differs.
pub(crate) fn difference(
    current: &QueueOptions,
    received: &QueueOptions,
) -> Option<DifferentOption> {
    let flags = [
        ("durable", current.durable, received.durable),
        ("auto_delete", current.auto_delete, received.auto_delete),
        ("exclusive", current.exclusive, received.exclusive),
    ];
    let flag = flags.into_iter().find_map(|(name, current, received)| {
        DifferentOption::find(name, Some(Value::Bool(received)), Some(Value::Bool(current)))
    });
    let mut table = QUEUE_OPTIONS.iter();
    flag.or_else(|| {
        table.find_map(|it| DifferentOption::find(it.name, it.get(received), it.get(current)))
    })
    .or_else(|| other_difference(current, received))
}

fn other_difference(current: &QueueOptions, received: &QueueOptions) -> Option<DifferentOption> {
    let (now, then) = (&current.other, &received.other);
    let names: BTreeSet<&String> = now.keys().chain(then.keys()).collect();
    let name = names.into_iter().find(|name| now.get(*name) != then.get(*name))?;
    let (received, current) = (then.get(name).cloned(), now.get(name).cloned());
    Some(DifferentOption { name: Cow::Owned(name.clone()), is_own: true, received, current })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_found() {
        let plain = QueueOptions::default;
        assert_eq!(difference(&plain(), &plain()), None);
        let declared = QueueOptions { length_max: Some(6), single_active: true, ..plain() };
        let found = difference(&plain(), &declared).unwrap();
        let expected = DifferentOption {
            name: "max-length".into(),
            is_own: false,
            received: Some(Value::Int(6)),
            current: None,
        };
        assert_eq!(found, expected);
        let other = [("x-own".to_owned(), Value::List(Vec::new()))].into();
        let found = difference(&QueueOptions { other, ..plain() }, &plain()).unwrap();
        assert_eq!((found.name.as_ref(), found.is_own), ("x-own", true));
    }
}
