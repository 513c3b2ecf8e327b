//! Rights have changed: those who listen are judged anew.

use super::Direct;
use crate::engine::Engine;
use crate::record::Record;
use crate::{Effects, Listen};

impl Engine {
    /// Judges those anew who listen and whose user's rights a record has changed. Who may not listen any
    /// more is told and hears nothing from now on; who still may hears what is not forbidden inside its
    /// pattern now.
    pub(crate) fn review_listeners<F: Effects>(&mut self, record: &Record<'_>, fx: &mut F) {
        let (user, vhost) = match record {
            Record::PermissionsSet { user, vhost, .. }
            | Record::SubjectPermissionsSet { user, vhost, .. }
            | Record::PermissionsCleared { user, vhost } => (*user, Some(*vhost)),
            Record::UserDeleted { name } => (*name, None),
            _ => return,
        };
        let vhost = match vhost.map(|name| self.vhost_slots.get(name)) {
            // No connection is in a virtual host that has gone.
            Some(None) => return,
            found => found.flatten().copied(),
        };
        for slot in self.forbidden_listeners(user, vhost) {
            self.forbid_listener(slot, fx);
        }
    }

    /// The listeners of a user, in one virtual host or in all, that it may not have any more, in the order
    /// in which they came. What the others may not hear is brought up to date.
    fn forbidden_listeners(&mut self, user: &str, vhost: Option<u32>) -> Vec<u32> {
        let Engine { access, connections, sessions, vhosts, direct, .. } = self;
        let Direct { listeners, .. } = direct;
        let mut forbidden = Vec::new();
        for connection in connections.iter_mut().flatten() {
            let is_elsewhere = vhost.is_some_and(|vhost| vhost != connection.vhost);
            let grant = connection.grant.as_mut().filter(|grant| grant.user() == user);
            let Some(grant) = grant.filter(|_| !is_elsewhere) else { continue };
            let sessions = connection.sessions.iter().filter_map(|(_, slot)| sessions.get(*slot));
            for &slot in sessions.flat_map(|session| session.listeners.slots.iter()) {
                let listener = listeners.get_mut(slot).expect("sessions know their listeners");
                let host = vhosts.get(listener.vhost).expect("sessions end first");
                let (pattern, ..) = host.interest.place(listener.place);
                match grant.check_listen(access, pattern) {
                    Ok(exceptions) => listener.exceptions = exceptions.into(),
                    Err(_) => forbidden.push((listener.tag, slot)),
                }
            }
        }
        forbidden.sort_unstable();
        forbidden.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Ends a listener that its user may not have any more, and tells its session.
    fn forbid_listener<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        let listener = self.direct.listeners.get(slot).expect("it was found just now");
        let host = self.vhosts.get(listener.vhost).expect("sessions end first");
        let (subject, group, _) = host.interest.place(listener.place);
        let listened = Listen { subject, group, name: &listener.name, laggard: listener.laggard };
        fx.forbidden(listener.id, &listened);
        self.end_listener(slot, fx);
    }
}
