//! Notes and warnings in answers of the administration API: what is missing, what holds now, what is odd.

use super::request_types::QuotaBody;
use super::subjects::{described, described_keys};
use crate::authenticate;
use crate::reactor::Shard;
use angarium_engine::ExchangeKind;

/// What an answer says.
#[derive(Debug)]
pub(super) enum Note {
    /// As it should be.
    Tells(String),
    /// Something was done that is hardly meant.
    Warns(String),
}

/// A user without rights can do nothing, not even connect; a mistyped nkey has no seed.
pub(super) fn user(shard: &mut Shard, name: &str) -> Option<Note> {
    if authenticate::is_mistyped_nkey(name) {
        return Some(Note::Warns(format!(
            "'{name}' looks like an nkey and is none, its check sum is wrong: no client can log in \
             by it; `angarium user delete` takes it away"
        )));
    }
    let mut permissions = shard.node.engine().list_permissions();
    let has_rights = permissions.any(|permission| permission.user == name);
    (!has_rights).then(|| {
        Note::Tells(format!(
            "user '{name}' has no rights yet and cannot connect; all rights in a virtual host: \
             angarium permission set {name} --vhost / (--configure, --write and --read give fewer)"
        ))
    })
}

/// What a user may use now: each call sets all of it, and resets what it does not name.
pub(super) fn quota(shard: &mut Shard, name: &str) -> Option<Note> {
    let mut users = shard.node.engine().list_users();
    let now = QuotaBody::of(&users.find(|user| user.name == name)?.quota).described();
    let now = if now.is_empty() { "all is as for everybody".to_owned() } else { now };
    Some(Note::Tells(format!("for user '{name}' this holds now: {now}")))
}

/// What all in a virtual host may use together now.
pub(super) fn vhost_quota(shard: &mut Shard, name: &str) -> Option<Note> {
    let now = QuotaBody::of(&shard.node.engine().vhost_quota(name)).described();
    let now = if now.is_empty() { "nothing is bounded".to_owned() } else { now };
    Some(Note::Tells(format!("for virtual host '{name}' this holds now: {now}")))
}

/// Which subjects a user may use now: each call sets all four lists.
pub(super) fn subjects(shard: &mut Shard, user: &str, vhost: &str) -> Option<Note> {
    let engine = shard.node.engine();
    engine.list_permissions().find(|it| it.user == user && it.vhost == vhost)?;
    let lists = described(engine.permitted_subjects(user, vhost));
    let text = format!("for user '{user}' in virtual host '{vhost}' this holds now:\n{lists}");
    Some(Note::Tells(text))
}

/// Which routing keys of an exchange a user may use now.
pub(super) fn exchange_keys(
    shard: &mut Shard,
    user: &str,
    vhost: &str,
    exchange: &str,
) -> Option<Note> {
    let mut rules = shard.node.engine().exchange_rules(user, vhost);
    let lists = described_keys(rules.find(|(name, _)| *name == exchange).map(|(_, rules)| rules));
    Some(Note::Tells(format!(
        "for user '{user}' and routing keys of exchange '{exchange}' in virtual host '{vhost}' this \
         holds now:\n{lists}"
    )))
}

/// NATS's wildcard is a word like all others to a topic exchange.
pub(super) fn binding(shard: &mut Shard, vhost: &str, source: &str, key: &str) -> Option<Note> {
    if !key.split('.').any(|word| word == ">") {
        return None;
    }
    let mut exchanges = shard.node.engine().list_exchanges();
    let exchange = exchanges.find(|it| it.vhost == vhost && it.name == source)?;
    (exchange.options.kind == ExchangeKind::Topic).then(|| {
        let words: Vec<&str> =
            key.split('.').map(|word| if word == ">" { "#" } else { word }).collect();
        Note::Warns(format!(
            "'>' is no wildcard in bindings, so that the key '{key}' matches nothing but itself: \
             '#' stands for all words that follow, as in '{}'; `angarium binding delete` takes this \
             one away",
            words.join(".")
        ))
    })
}
