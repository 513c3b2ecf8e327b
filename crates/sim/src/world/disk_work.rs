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
            let is_verification = matches!(flight, Flight::Verification(..));
            let besides = self.spill_delay(&flight);
            self.flights.insert(number, flight);
            if is_verification {
                let pause = self.random.below(100_000);
                self.schedule(pause, Happening::Verified(number));
            } else {
                let pause = 1 + self.random.magnitude(disk_delay) + besides;
                self.schedule(pause, Happening::Work(number));
            }
        }
    }

    /// Carries out disk work. Power may fail during it.
    pub(super) fn work(&mut self, number: u64) -> Result<(), String> {
        let done = match self.flights.remove(&number) {
            Some(Flight::Job(job)) => Flight::JobDone(job.run(&self.disk)),
            Some(Flight::Read(read)) => {
                Flight::ReadDone(read.run(&self.disk, &mut self.read_buffer))
            }
            Some(Flight::Spill(shard, job)) => match self.run_spill_job(job) {
                Some(done) => Flight::SpillDone(shard, done),
                None => return Ok(()),
            },
            // Done already; the result is on its way.
            Some(other) => {
                self.flights.insert(number, other);
                return Ok(());
            }
            None => return Ok(()),
        };
        if self.is_power_failing() {
            self.crash();
            return Ok(());
        }
        self.flights.insert(number, done);
        let pause = 1 + self.random.below(200);
        self.schedule(pause, Happening::Worked(number));
        Ok(())
    }

    /// The result reaches the node.
    pub(super) fn worked(&mut self, number: u64) {
        let flight = self.flights.remove(&number);
        let Some(broker) = self.broker.as_mut() else { return };
        let shard = match flight {
            Some(Flight::JobDone(done)) => {
                broker.job_done(self.now, done);
                HOME
            }
            Some(Flight::ReadDone(done)) => {
                broker.read_done(self.now, done);
                HOME
            }
            Some(Flight::SpillDone(shard, done)) => {
                broker.spill_done(shard, done);
                shard
            }
            _ => return,
        };
        self.want_turn(shard);
    }

    /// The answer to credentials reaches the node.
    pub(super) fn verified(&mut self, number: u64) {
        let Some(Flight::Verification(shard, asked)) = self.flights.remove(&number) else {
            return;
        };
        let Some(broker) = self.broker.as_mut() else { return };
        broker.verified(self.now, shard, &asked, answer(&asked));
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
