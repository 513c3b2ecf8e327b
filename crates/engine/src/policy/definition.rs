//! What a policy says: checked, bounded by the operator's, and put beside what was declared.

use crate::interface::limits::check_arguments;
use crate::interface::options::QUEUE_OPTIONS;
use crate::interface::refusal::refuse;
use crate::{Arguments, Policy, PolicyKind, PolicyOption, QueueOptions, Refusal};

/// Refuses options that policies of that kind cannot set, and values they cannot have.
pub(super) fn check(kind: PolicyKind, policy: &Policy) -> Result<(), Refusal> {
    if policy.definition.is_empty() {
        refuse!(PreconditionFailed, "a policy that sets nothing");
    }
    check_arguments(&policy.definition)?;
    for (name, value) in &policy.definition {
        let Some(option) = PolicyOption::named(name) else {
            refuse!(PreconditionFailed, "'{name}' is no option that a policy can set");
        };
        if kind == PolicyKind::Operator && !option.by_operators {
            refuse!(PreconditionFailed, "'{name}' is no option that an operator policy can set");
        }
        let checked = option.described().map_or(Ok(()), |(_, kind)| kind.check(value));
        if let Err(why) = checked {
            refuse!(PreconditionFailed, "option '{name}' of a policy: {why}");
        }
    }
    Ok(())
}

/// The values of a policy's options, bounded by those of an operator's.
pub(super) fn bounded(mut policy: Arguments, operator: Option<Arguments>) -> Arguments {
    for (name, bound) in operator.into_iter().flatten() {
        let Some(option) = PolicyOption::named(&name) else { continue };
        let value =
            policy.get(&name).map_or_else(|| bound.clone(), |it| option.bounded(it, &bound));
        policy.insert(name, value);
    }
    policy
}

/// Puts what policies say beside what a queue was declared with.
pub(super) fn set_queue_options(options: &mut QueueOptions, definition: &Arguments) {
    for (name, value) in definition {
        let option = QUEUE_OPTIONS.iter().find(|it| it.name == *name);
        let (Some(option), Some(rule)) = (option, PolicyOption::named(name)) else { continue };
        let value = rule.with_declared(option.get(options), value);
        let set = option.set(options, &value);
        debug_assert_eq!(set, Ok(()), "it was checked: {name}");
    }
}
