//! AMQP 0-9-1 with RabbitMQ's extensions.

#![allow(clippy::todo, unused_variables)]

use crate::Outlet;
use angarium_engine::{Confirm, Delivery, Returned, SessionId};

pub(crate) fn write_delivery(outlet: &mut Outlet, delivery: &Delivery<'_>) {
    todo!()
}
pub(crate) fn write_returned(outlet: &mut Outlet, session: SessionId, returned: &Returned<'_>) {
    todo!()
}
pub(crate) fn write_confirm(outlet: &mut Outlet, session: SessionId, confirm: Confirm) {
    todo!()
}
pub(crate) fn write_cancelled(outlet: &mut Outlet, session: SessionId, subscription: &str) {
    todo!()
}
