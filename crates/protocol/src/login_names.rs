//! User names of the form `vhost:user`, by which clients of protocols without a place for it name a virtual
//! host.

use angarium_engine::Engine;

/// The virtual host and the user that a name stands for. Both may have colons in them: it is parted where
/// there is such a user.
pub(crate) fn parted<'n>(engine: &Engine, name: &'n str) -> (Option<&'n str>, &'n str) {
    let is_known = |user: &str| engine.password_hash(user).is_some();
    if is_known(name) {
        return (None, name);
    }
    let mut parts = name.match_indices(':').map(|(at, _)| (&name[..at], &name[at + 1..]));
    let found = parts.find(|(_, user)| is_known(user)).or_else(|| name.rsplit_once(':'));
    found.map_or((None, name), |(vhost, user)| (Some(vhost), user))
}
