//! What frames of type SASL carry (part 5, 5.3.3).

use super::composite::composites;
use super::field::{Field, choices};
use super::malformed::{Malformed, Place};
use super::symbols::Symbols;
use super::union::one_of;
use super::value::Symbol;
use crate::amqp10::frame;

choices! {
    /// How a dialogue ended.
    SaslCode is u8 {
        /// The peer is who it says.
        Ok = 0u8,
        /// Wrong credentials.
        #[default]
        Auth = 1u8,
        /// The system failed.
        Sys = 2u8,
        /// The system failed until somebody mends it.
        SysPerm = 3u8,
        /// The system failed and may work later.
        SysTemp = 4u8,
    }
}

const SASL_FRAME: Place = Place::whole("SASL frame");

composites! {
    /// The broker tells its mechanisms.
    0x40 "amqp:sasl-mechanisms:list" "sasl-mechanisms" SaslMechanisms<'a> {
        "sasl-server-mechanisms" mechanisms: Symbols<'a>, required;
    }
    /// The client chooses one.
    0x41 "amqp:sasl-init:list" "sasl-init" SaslInit<'a> {
        "mechanism" mechanism: Symbol<'a>, required;
        "initial-response" initial_response: &'a [u8], optional;
        "hostname" hostname: &'a str, optional;
    }
    /// The broker asks.
    0x42 "amqp:sasl-challenge:list" "sasl-challenge" SaslChallenge<'a> {
        "challenge" challenge: &'a [u8], required;
    }
    /// The client answers.
    0x43 "amqp:sasl-response:list" "sasl-response" SaslResponse<'a> {
        "response" response: &'a [u8], required;
    }
    /// The broker ends the dialogue.
    0x44 "amqp:sasl-outcome:list" "sasl-outcome" SaslOutcome<'a> {
        "code" code: SaslCode, required;
        "additional-data" additional_data: &'a [u8], optional;
    }
}

one_of! {
    /// A step of a SASL dialogue.
    "SASL frame" SaslPerformative<'a> {
        SaslMechanisms(SaslMechanisms<'a>),
        SaslInit(SaslInit<'a>),
        SaslChallenge(SaslChallenge<'a>),
        SaslResponse(SaslResponse<'a>),
        SaslOutcome(SaslOutcome<'a>),
    }
}

impl<'a> SaslPerformative<'a> {
    /// Decodes the body of a frame; nothing may follow.
    pub fn decode_body(body: &'a [u8]) -> Result<SaslPerformative<'a>, Malformed> {
        SaslPerformative::decode(body).map_err(|malformed| malformed.within(&SASL_FRAME))
    }
    /// Appends a whole frame.
    pub fn write_frame(&self, out: &mut Vec<u8>) {
        let at = frame::begin(out, frame::SASL, 0);
        self.write(out);
        frame::end(out, at);
    }
}
