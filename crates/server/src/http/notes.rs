//! What an answer says besides that something is done: what is still missing, what holds now.

use super::subjects::described;
use crate::reactor::Shard;

/// A user without rights can do nothing, not even connect.
pub(super) fn user(shard: &mut Shard, name: &str) -> Option<String> {
    let mut permissions = shard.node().engine().list_permissions();
    let has_rights = permissions.any(|permission| permission.user == name);
    (!has_rights).then(|| {
        format!(
            "user '{name}' has no rights yet and cannot connect; all rights in a virtual host: \
             angarium permission set {name} --vhost / (--configure, --write and --read give fewer)"
        )
    })
}

/// Which subjects a user may use now: each call sets all four lists.
pub(super) fn subjects(shard: &mut Shard, user: &str, vhost: &str) -> Option<String> {
    let mut permissions = shard.node().engine().list_permissions();
    let now = permissions.find(|it| it.user == user && it.vhost == vhost)?.subjects;
    let lists = described(now);
    Some(format!("for user '{user}' in virtual host '{vhost}' this holds now:\n{lists}"))
}
