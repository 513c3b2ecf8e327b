//! Ends open connections whose clients' certificates are not trusted any more: the files that say so have
//! changed.

use super::certificates::CertificateReview;
use super::shard::Shard;
use super::tls::Trust;
use angarium_engine::Time;
use std::time::Instant;

/// Certificates that are verified in one turn: some 0.2 ms each.
const VERIFIED_AT_ONCE: usize = 4;
/// Places of clients that are looked at in one turn.
const LOOKS_PER_TURN: usize = 2_048;

impl Shard {
    /// When the files that say whom to trust are looked at again, at home.
    pub(super) fn certificates_due(&self) -> Option<Time> {
        let interval = self.certificates.as_ref()?.next_look()?;
        Some(self.looked_for_certificates.plus(interval))
    }

    /// Looks at those files if it is time to.
    pub(super) fn look_for_certificates(&mut self) {
        if self.certificates_due().is_some_and(|due| due <= self.now) {
            self.looked_for_certificates = self.now;
            if let Some(certificates) = &mut self.certificates {
                certificates.look(Instant::now());
            }
        }
    }

    /// Goes on to judge clients' certificates; begins on all shards if what they are judged by has changed.
    pub(super) fn review_certificates(&mut self) {
        let changed = self.certificates.as_mut().and_then(|it| it.take_changed_trust());
        if let Some(trust) = changed {
            let same = trust.clone();
            self.directory.tell_others(move |shard| shard.begin_certificate_review(same));
            self.begin_certificate_review(trust);
        }
        let CertificateReview { trust: Some(trust), next: Some(next) } = &self.certificate_review
        else {
            return;
        };
        let (trust, next, end) = (trust.clone(), *next, self.clients.places());
        let until = end.min(next + LOOKS_PER_TURN);
        let (mut at, mut left) = (next, VERIFIED_AT_ONCE);
        while at < until && left > 0 {
            left -= usize::from(self.judge_certificate(at, &trust));
            at += 1;
        }
        self.certificate_review.next = Some(at).filter(|at| *at < end);
    }

    fn begin_certificate_review(&mut self, trust: Trust) {
        self.certificate_review = CertificateReview { trust: Some(trust), next: Some(0) };
    }

    /// Judges a client whose handshake has ended: it may have begun before what is trusted changed.
    pub(super) fn judge_new_certificate(&mut self, index: usize) {
        if let Some(trust) = self.certificate_review.trust.clone() {
            self.judge_certificate(index, &trust);
        }
    }

    /// Ends a client whose certificate is not trusted; says whether it was verified.
    fn judge_certificate(&mut self, index: usize, trust: &Trust) -> bool {
        let Some(client) = self.clients.get(index) else { return false };
        let Some(tls) = client.tls.as_ref().filter(|tls| tls.is_to_be_judged(trust)) else {
            return false;
        };
        if let (Some(why), Some(id)) = (tls.distrusted(trust), client.id()) {
            let why = format!("the client's certificate is not trusted any more: {why}");
            if let Some(connection) = self.node.connection(self.now, id) {
                let (peer, user) = (&connection.info.peer.address, connection.info.user);
                let connection = connection.figures.number;
                tracing::warn!(peer, user, connection, why, "connection ends");
            }
            self.node.close_connection(self.now, id, &why);
        }
        true
    }
}
