//! What users may do and use, as records and snapshots have it.

use crate::storage::codec::{Malformed, Reader, Writer};
use crate::{Bound, Quota, SlowConsumerPolicy, SubjectPermissions, SubjectRules};

/// Appends which subjects are allowed and denied.
pub(crate) fn write_subjects(writer: &mut Writer<'_>, subjects: &SubjectPermissions) {
    let SubjectPermissions { publish, subscribe } = subjects;
    for list in [&publish.allow, &publish.deny, &subscribe.allow, &subscribe.deny] {
        writer.varint(list.len() as u64);
        for pattern in list {
            writer.text(pattern);
        }
    }
}

/// What [`write_subjects`] wrote.
pub(crate) fn read_subjects(reader: &mut Reader<'_>) -> Result<SubjectPermissions, Malformed> {
    let mut list = || {
        let mut patterns = Vec::new();
        for _ in 0..reader.count()? {
            patterns.push(reader.text()?.to_owned());
        }
        Ok::<_, Malformed>(patterns)
    };
    let publish = SubjectRules { allow: list()?, deny: list()? };
    Ok(SubjectPermissions { publish, subscribe: SubjectRules { allow: list()?, deny: list()? } })
}

/// Bounds that are there in every quota; those that came later only up to the last that says something.
const BOUNDS_ALWAYS: usize = 7;

/// Appends what a user may use.
pub(crate) fn write_quota(writer: &mut Writer<'_>, quota: &Quota) {
    let slow_consumer_policy = SlowConsumerPolicy::NAMES
        .iter()
        .position(|(policy, _)| Some(*policy) == quota.slow_consumer_policy);
    writer.u8(slow_consumer_policy.map_or(0, |at| at as u8 + 1));
    let last = Bound::NAMES.iter().rposition(|(bound, _)| quota.get(*bound).is_some());
    let count = last.map_or(0, |at| at + 1).max(BOUNDS_ALWAYS);
    writer.varint(count as u64);
    for (bound, _) in Bound::NAMES.into_iter().take(count) {
        writer.option(quota.get(bound), Writer::u64);
    }
}

/// What [`write_quota`] wrote.
pub(crate) fn read_quota(reader: &mut Reader<'_>) -> Result<Quota, Malformed> {
    let mut quota = Quota::default();
    quota.slow_consumer_policy = match reader.u8()? {
        0 => None,
        at => match SlowConsumerPolicy::NAMES.get(usize::from(at) - 1) {
            Some((policy, _)) => Some(*policy),
            None => return Err(format!("{at} says nothing about slow clients")),
        },
    };
    for at in 0..reader.count()? {
        let value = reader.option(Reader::u64)?;
        let Some((bound, _)) = Bound::NAMES.get(at) else {
            return Err(format!("a quota has no bound {at}"));
        };
        quota.set(*bound, value);
    }
    Ok(quota)
}
