//! Subscriptions: who takes from which queue, and how much may be out.

pub(crate) mod credit;
mod dispatch;
mod settle;
mod subscribe;
mod subscription;
pub(crate) mod unsettled;

pub(crate) use subscription::Subscription;
