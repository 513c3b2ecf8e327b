//! Errors, and the end of a connection.

use super::codec::{
    Connack, Disconnect, Malformed, PropertiesWriter, PropertyId, PropertyValue, Reason,
};
use super::handler::{Handler, State};
use super::settings::REASON_BYTES_MAX;
use crate::{Close, Context, Host};

/// Most bytes of CONNACK or DISCONNECT beside a reason string.
const EXPLAINED_BYTES: usize = 12;

impl Handler {
    /// Ends the connection because of bytes that are no packet, or none that may come now.
    pub(super) fn refuse(
        &mut self,
        context: &mut Context<impl Host>,
        malformed: Malformed,
    ) -> Close {
        let Malformed { reason, text } = malformed;
        self.fail(context, reason, text)
    }

    /// Ends the connection, and says why where the version has a word for it: CONNACK refuses a client that
    /// has none yet, DISCONNECT ends it later.
    pub(super) fn fail(
        &mut self,
        context: &mut Context<impl Host>,
        reason: Reason,
        text: &str,
    ) -> Close {
        if self.is_open() {
            self.put_disconnect(context, reason, text);
        } else if self.has_connected {
            self.put_refusal(context, reason, text);
        }
        self.state = State::Over;
        let what = reason.words();
        Close { reason: if text.is_empty() { what.into() } else { format!("{what}: {text}") } }
    }

    /// Refuses a client by CONNACK.
    pub(super) fn put_refusal(&self, context: &mut Context<impl Host>, reason: Reason, text: &str) {
        let mut properties = PropertiesWriter::new();
        self.put_reason(context, &mut properties, reason, text);
        let properties = properties.properties();
        let connack = Connack { session_present: false, reason, properties };
        connack.write(self.version, self.out(context));
    }

    fn put_disconnect(&self, context: &mut Context<impl Host>, reason: Reason, text: &str) {
        // Earlier versions know a DISCONNECT from clients alone.
        if !self.version.has_properties() {
            return;
        }
        let mut properties = PropertiesWriter::new();
        self.put_reason(context, &mut properties, reason, text);
        let properties = properties.properties();
        Disconnect { reason, properties }.write(self.version, self.out(context));
    }

    /// Adds a reason string, if there is something to say beyond the code, and the client wants it and takes
    /// a packet of that size.
    fn put_reason(
        &self,
        context: &mut Context<impl Host>,
        properties: &mut PropertiesWriter,
        reason: Reason,
        text: &str,
    ) {
        let (writer, _) = self.outgoing(context);
        let is_short = text.len() <= REASON_BYTES_MAX
            && text.len() + EXPLAINED_BYTES <= writer.packet_bytes_max;
        let fits = is_short && !text.contains('\0');
        if self.wants_reasons && fits && !text.is_empty() && text != reason.words() {
            properties.put(PropertyId::ReasonString, PropertyValue::Text(text));
        }
    }

    /// Ends the connection at the next opportunity.
    pub(super) fn end_soon(&mut self, context: &mut Context<impl Host>, reason: Reason, why: &str) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some(why.into());
        self.due = context.now;
        if self.is_open() {
            self.put_disconnect(context, reason, why);
        }
        self.state = if self.is_open() { State::Leaving } else { State::Over };
    }

    /// Tells the engine, once, that the connection is gone.
    pub(super) fn leave(&mut self, context: &mut Context<impl Host>) {
        if std::mem::take(&mut self.is_connected) {
            context.engine.disconnect(context.now, self.id, context.host);
        }
        self.state = State::Over;
    }
}
