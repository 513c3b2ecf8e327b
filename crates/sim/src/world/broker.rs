//! The broker as the world reaches it: few calls, which name a connection by its place.
//!
//! What a place is, and of how many parts a broker consists, is known here alone.

use super::disk_work::Flight;
use crate::client::USER;
use crate::disk::Disk;
use crate::history::Sample;
use crate::network::Place;
use angarium_engine::{Request, Time};
use angarium_journal::{Done, Job, State};
use angarium_node::{Node, Options, ReadDone, SpillDone, Verification};
use angarium_protocol::{Authentication, Peer};

/// Why connections end when it is closed.
pub(super) const CLOSED_IN_ORDER: &str = "the node is closed in order";

/// A broker that runs.
pub(super) struct Broker {
    node: Node,
    /// A job of the spill log is under way: they are done one after the other.
    is_spilling: bool,
}

impl Broker {
    /// Starts on what is on the disk.
    pub(super) fn recover(options: Options, disk: &Disk, now: Time) -> Result<Broker, String> {
        Ok(Broker { node: Node::recover(options, disk, now)?, is_spilling: false })
    }

    /// Makes the simulation's user known: the broker has none that it could check passwords of.
    pub(super) fn enter_user(&mut self, now: Time) -> Result<(), String> {
        let any = || ".*".to_owned();
        let requests = [
            Request::PutUser {
                name: USER.to_owned(),
                password_hash: "simulated".to_owned(),
                administrator: false,
            },
            Request::SetPermissions {
                user: USER.to_owned(),
                vhost: "/".to_owned(),
                configure: any(),
                write: any(),
                read: any(),
            },
        ];
        for request in requests {
            self.node.administer(now, "/", request).map_err(|refusal| refusal.text)?;
        }
        Ok(())
    }

    // ---- connections ----

    /// Somebody connected.
    pub(super) fn connected(&mut self, now: Time, peer: Peer) -> Place {
        Place { slot: self.node.connected(now, peer) }
    }

    /// Whether it wants to read.
    pub(super) fn wants_read(&self, place: Place) -> bool {
        self.node.wants_read(place.slot)
    }

    /// Bytes arrived.
    pub(super) fn received(&mut self, now: Time, place: Place, bytes: &[u8]) {
        self.node.received(now, place.slot, bytes);
    }

    /// Bytes to be sent.
    pub(super) fn outgoing(&self, place: Place) -> &[u8] {
        self.node.outgoing(place.slot)
    }

    /// So many of them were sent.
    pub(super) fn sent(&mut self, now: Time, place: Place, bytes: usize) {
        self.node.sent(now, place.slot, bytes);
    }

    /// Why it has ended the connection, where all that it had to say is sent.
    pub(super) fn end_reason(&self, place: Place) -> Option<String> {
        let is_over = self.node.should_close(place.slot);
        is_over.then(|| self.node.end_reason(place.slot).unwrap_or_default().to_owned())
    }

    /// The transport is gone.
    pub(super) fn disconnected(&mut self, now: Time, place: Place) {
        self.node.disconnected(now, place.slot);
    }

    /// Takes the connections that have output, or are to be closed.
    pub(super) fn take_dirty(&mut self) -> Vec<Place> {
        let mut dirty = Vec::new();
        self.node.take_dirty(&mut dirty);
        dirty.into_iter().map(|slot| Place { slot }).collect()
    }

    // ---- turns ----

    /// Ends a turn; says whether the next one is to follow at once.
    pub(super) fn end_turn(&mut self, now: Time) -> bool {
        self.node.end_turn(now);
        self.node.has_work()
    }

    /// When [`Broker::expire`] has something to do.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.node.deadline()
    }

    /// Does what is due.
    pub(super) fn expire(&mut self, now: Time) {
        self.node.expire(now);
    }

    // ---- work for the host ----

    /// Takes all that is to be done for it.
    pub(super) fn take_work(&mut self) -> Vec<Flight> {
        let mut flights = Vec::new();
        while let Some(job) = self.next_job() {
            flights.push(Flight::Job(job));
        }
        while let Some(read) = self.node.next_read() {
            flights.push(Flight::Read(read));
        }
        if !self.is_spilling
            && let Some(job) = self.node.next_spill_job()
        {
            self.is_spilling = true;
            flights.push(Flight::Spill(job));
        }
        while let Some(verification) = self.node.next_verification() {
            flights.push(Flight::Verification(verification));
        }
        flights
    }

    fn next_job(&mut self) -> Option<Job> {
        self.node.next_job()
    }

    /// A disk job ended.
    pub(super) fn job_done(&mut self, now: Time, done: Done) {
        self.node.job_done(now, done);
    }

    /// A read ended.
    pub(super) fn read_done(&mut self, now: Time, done: ReadDone) {
        self.node.read_done(now, done);
    }

    /// A job of the spill log ended.
    pub(super) fn spill_done(&mut self, done: SpillDone) {
        self.is_spilling = false;
        self.node.spill_done(done);
    }

    /// Credentials were checked.
    pub(super) fn verified(&mut self, now: Time, asked: &Verification, answer: Authentication) {
        self.node.verified(now, asked.connection, asked.serial, answer);
    }

    // ---- the end ----

    /// Tells every client to go.
    pub(super) fn shut_down(&mut self, now: Time) {
        self.node.shutdown(now, CLOSED_IN_ORDER);
    }

    /// Writes what an orderly end writes.
    pub(super) fn close(&mut self, now: Time, disk: &Disk) {
        self.node.close(now);
        while let Some(job) = self.next_job() {
            self.job_done(now, job.run(disk));
        }
    }

    // ---- what the host sees of it ----

    /// Of its journal.
    pub(super) fn storage(&self) -> &State {
        self.node.journal().state()
    }

    /// How many records could not be read back.
    pub(super) fn unreadable(&self) -> u64 {
        self.node.engine().counters().unreadable
    }

    /// What it holds in memory, for these connections too.
    pub(super) fn sample(&self, places: impl Iterator<Item = Place>) -> Sample {
        let outlets = places.map(|place| self.outgoing(place).len() as u64);
        Sample {
            resident_bytes: self.node.engine().resident_bytes(),
            outlet_bytes: outlets.max().unwrap_or(0),
            backlog_bytes: self.node.journal().stats().backlog_bytes,
        }
    }
}
