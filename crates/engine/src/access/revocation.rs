//! What administrators take away from open connections: connections that rest on it end.

/// What is taken away, with the names that it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revocation<Name> {
    /// A user is deleted.
    User(Name),
    /// A virtual host is deleted.
    Vhost(Name),
    /// A user gets another password, or none: connections that logged in by the old one end.
    Password(Name),
    /// A user's permissions in a virtual host.
    Permissions {
        /// Whose.
        user: Name,
        /// Where.
        vhost: Name,
    },
}

impl Revocation<&str> {
    /// With names of its own.
    #[must_use]
    pub fn to_owned(self) -> Revocation<String> {
        match self {
            Revocation::User(name) => Revocation::User(name.to_owned()),
            Revocation::Vhost(name) => Revocation::Vhost(name.to_owned()),
            Revocation::Password(name) => Revocation::Password(name.to_owned()),
            Revocation::Permissions { user, vhost } => {
                Revocation::Permissions { user: user.to_owned(), vhost: vhost.to_owned() }
            }
        }
    }

    /// Whether a connection of that user to that virtual host rests on it; `by_password`: it logged in by a
    /// password.
    #[must_use]
    pub fn includes(self, user: &str, vhost: &str, by_password: bool) -> bool {
        match self {
            Revocation::User(name) => name == user,
            Revocation::Vhost(name) => name == vhost,
            Revocation::Password(name) => name == user && by_password,
            Revocation::Permissions { user: name, vhost: place } => name == user && place == vhost,
        }
    }

    /// Why such a connection ends.
    #[must_use]
    pub fn reason(self) -> String {
        match self {
            Revocation::User(name) => format!("user '{name}' was deleted"),
            Revocation::Vhost(name) => format!("virtual host '{name}' was deleted"),
            Revocation::Password(name) => format!("the password of user '{name}' was changed"),
            Revocation::Permissions { user, vhost } => {
                format!("the permissions of user '{user}' in vhost '{vhost}' were taken away")
            }
        }
    }
}

impl Revocation<String> {
    /// With the names borrowed.
    #[must_use]
    pub fn borrowed(&self) -> Revocation<&str> {
        match self {
            Revocation::User(name) => Revocation::User(name),
            Revocation::Vhost(name) => Revocation::Vhost(name),
            Revocation::Password(name) => Revocation::Password(name),
            Revocation::Permissions { user, vhost } => Revocation::Permissions { user, vhost },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_includes_who_rests_on_it() {
        let permissions = Revocation::Permissions { user: "ann", vhost: "/" };
        for (revocation, user, vhost, by_password, expected) in [
            (Revocation::User("ann"), "ann", "v", false, true),
            (Revocation::User("ann"), "bob", "v", true, false),
            (Revocation::Vhost("v"), "ann", "v", false, true),
            (Revocation::Vhost("v"), "ann", "/", true, false),
            (Revocation::Password("ann"), "ann", "v", true, true),
            (Revocation::Password("ann"), "ann", "v", false, false),
            (Revocation::Password("ann"), "bob", "v", true, false),
            (permissions, "ann", "/", false, true),
            (permissions, "ann", "v", true, false),
            (permissions, "bob", "/", true, false),
        ] {
            let found = revocation.includes(user, vhost, by_password);
            assert_eq!(found, expected, "{revocation:?} {user} {vhost} {by_password}");
            assert_eq!(revocation.to_owned().borrowed(), revocation);
        }
    }
}
