//! The host's work for the node: disk jobs, reads and checks of credentials, carried out and
//! answered at random times.

use super::World;
use super::broker::HOME;
use super::happening::{Flight, Happening};
use crate::client::{PASSWORD, USER};
use angarium_node::Verification;
use angarium_protocol::{Authentication, Credentials, Identity};

impl World {
    /// Takes and schedules all work that a shard has for the host.
    pub(super) fn take_work(&mut self, shard: usize) {
        let disk_delay = self.plan.faults.disk_delay_max;
        let Some(broker) = self.broker.as_mut() else { return };
        for flight in broker.take_work(shard) {
            let number = self.number();
            let (pause, what) = match &flight {
                Flight::Verification(..) => {
                    (self.random.below(100_000), Happening::Verified(number))
                }
                work => {
                    let besides = self.spill_delay(work);
                    let pause = 1 + self.random.magnitude(disk_delay) + besides;
                    (pause, Happening::Work(number))
                }
            };
            self.flights.insert(number, flight);
            self.schedule(pause, what);
        }
    }

    /// Carries out disk work. Power may fail during it.
    pub(super) fn work(&mut self, number: u64) {
        let done = match self.flights.remove(&number) {
            Some(Flight::Job(job)) => Flight::JobDone(job.run(&self.disk)),
            Some(Flight::Read(read)) => {
                Flight::ReadDone(read.run(&self.disk, &mut self.read_buffer))
            }
            Some(Flight::Spill(shard, job)) => match self.run_spill_job(job) {
                Some(done) => Flight::SpillDone(shard, done),
                None => return,
            },
            // Done already; the result is on its way.
            Some(other) => {
                self.flights.insert(number, other);
                return;
            }
            None => return,
        };
        if self.power_fails_at.is_some_and(|at| self.disk.operations() > at) {
            self.crash();
            return;
        }
        self.flights.insert(number, done);
        let pause = 1 + self.random.below(200);
        self.schedule(pause, Happening::Worked(number));
    }

    /// The result reaches the node.
    pub(super) fn worked(&mut self, number: u64) {
        let flight = self.flights.remove(&number);
        let Some(broker) = self.broker.as_mut() else { return };
        let mut shard = HOME;
        match flight {
            Some(Flight::JobDone(done)) => broker.nodes[HOME].job_done(self.now, done),
            Some(Flight::ReadDone(done)) => broker.nodes[HOME].read_done(self.now, done),
            Some(Flight::SpillDone(of, done)) => {
                shard = of;
                broker.spill_done(of, done);
            }
            _ => return,
        }
        self.want_turn(shard);
    }

    /// The answer to credentials reaches the node.
    pub(super) fn verified(&mut self, number: u64) {
        let Some(Flight::Verification(shard, asked)) = self.flights.remove(&number) else {
            return;
        };
        let Some(broker) = self.broker.as_mut() else { return };
        let node = &mut broker.nodes[shard];
        node.verified(self.now, asked.connection, asked.serial, answer(&asked));
        self.want_turn(shard);
    }
}

fn answer(asked: &Verification) -> Authentication {
    match &asked.credentials {
        Credentials::Password { user, password } if user == USER && password == PASSWORD => {
            Ok(Identity { user: user.clone() })
        }
        other => Err(format!("not the simulation's user: {other:?}")),
    }
}
