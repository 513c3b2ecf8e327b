//! Enhanced authentication (5: 4.12): SCRAM-SHA-256 by AUTH, before CONNACK and again on a live connection.
//!
//! | packet | from | authentication data |
//! |---|---|---|
//! | CONNECT, or AUTH to authenticate again | client | the first message |
//! | AUTH | broker | its answer |
//! | AUTH | client | the final message |
//! | CONNACK, or AUTH | broker | its proof |

use super::codec::{Auth, Connect, Malformed, PropertiesWriter, PropertyId, PropertyValue, Reason};
use super::enhanced::{Enhanced, Step};
use super::handler::{Handler, State};
use crate::scram::{self, Dialogue};
use crate::{Authentication, Close, Context, Credentials, Host, login_names, login_refusal};

impl Handler {
    /// Takes the authentication method and data in CONNECT; says whether there is a method.
    pub(super) fn begin_enhanced(
        &mut self,
        context: &mut Context<impl Host>,
        connect: &Connect<'_>,
    ) -> Result<bool, Close> {
        let data = connect.properties.binary(PropertyId::AuthenticationData);
        let Some(method) = connect.properties.text(PropertyId::AuthenticationMethod) else {
            if data.is_some() {
                let text = "there is authentication data without a method";
                return Err(self.fail(context, Reason::ProtocolError, text));
            }
            return Ok(false);
        };
        if method != scram::MECHANISM {
            let text = "the method is not offered: SCRAM-SHA-256 is";
            return Err(self.fail(context, Reason::BadAuthenticationMethod, text));
        }
        self.enhanced = Some(Box::default());
        Ok(true)
    }

    /// Goes on with CONNECT, once the rest of it is in order.
    pub(super) fn take_method(
        &mut self,
        context: &mut Context<impl Host>,
        connect: &Connect<'_>,
    ) -> Result<(), Close> {
        self.state = State::Proving;
        let data = connect.properties.binary(PropertyId::AuthenticationData);
        self.take_first(context, data)
    }

    /// Takes AUTH.
    pub(super) fn auth(
        &mut self,
        context: &mut Context<impl Host>,
        auth: &Auth<'_>,
    ) -> Result<(), Close> {
        let method = auth.properties.text(PropertyId::AuthenticationMethod);
        let data = auth.properties.binary(PropertyId::AuthenticationData);
        let step = self.enhanced.as_ref().map(|enhanced| enhanced.step);
        let broken = |text| Malformed::new(Reason::ProtocolError, text);
        if step.is_none() {
            let text = "AUTH, and no authentication method was agreed on";
            return Err(self.refuse(context, broken(text)));
        }
        if method != Some(scram::MECHANISM) {
            let text = "AUTH has another authentication method than CONNECT";
            return Err(self.refuse(context, broken(text)));
        }
        match (auth.reason, step) {
            (Reason::ContinueAuthentication, Some(Step::First)) => self.take_first(context, data),
            (Reason::ContinueAuthentication, Some(Step::Final)) => self.take_final(context, data),
            (Reason::ReAuthenticate, Some(Step::Done)) if self.is_open() => {
                self.enhanced = Some(Box::default());
                self.take_first(context, data)
            }
            _ => Err(self.refuse(context, broken("AUTH that cannot come now"))),
        }
    }

    /// Takes the client's first message, or asks for it.
    fn take_first(
        &mut self,
        context: &mut Context<impl Host>,
        data: Option<&[u8]>,
    ) -> Result<(), Close> {
        let Some(data) = data else {
            self.put_auth(context, Reason::ContinueAuthentication, None);
            return Ok(());
        };
        let nonce = context.engine.secret(scram::NONCE_LETTERS);
        let engine = &*context.engine;
        let stored = |name: &str| engine.password_hash(login_names::parted(engine, name).1);
        let begun = Dialogue::begin(data, &nonce, &self.settings.scram_secret, stored);
        let Some((dialogue, answer)) = begun else {
            return Err(self.refuse_proof(context, "malformed response"));
        };
        self.enhanced = Some(Box::new(Enhanced { dialogue: Some(dialogue), step: Step::Final }));
        self.put_auth(context, Reason::ContinueAuthentication, Some(answer.as_bytes()));
        Ok(())
    }

    fn take_final(
        &mut self,
        context: &mut Context<impl Host>,
        data: Option<&[u8]>,
    ) -> Result<(), Close> {
        let dialogue = self.enhanced.as_mut().and_then(|enhanced| enhanced.dialogue.as_mut());
        let proof = dialogue.and_then(|dialogue| {
            let proof = dialogue.finish(data?)?;
            Some((dialogue.user().to_owned(), proof))
        });
        let Some((name, proof)) = proof else {
            return Err(self.refuse_proof(context, "malformed response"));
        };
        let (vhost, user) = login_names::parted(context.engine, &name);
        let user = user.to_owned();
        if self.state == State::Proving {
            self.vhost = vhost.unwrap_or_default().to_owned();
            self.state = State::Authenticating;
        }
        if let Some(enhanced) = &mut self.enhanced {
            enhanced.step = Step::Checked;
        }
        context.host.authenticate(self.id, Credentials::Scram { user, proof });
        Ok(())
    }

    /// The proof of a client that is connected already was checked.
    pub(super) fn authenticated_again(
        &mut self,
        context: &mut Context<impl Host>,
        answer: Authentication,
    ) -> Result<(), Close> {
        if !self.is_open() || self.enhanced.as_ref().is_none_or(|it| it.step != Step::Checked) {
            return Ok(());
        }
        match answer {
            Ok(identity) if identity.user == self.user => {}
            Ok(_) => return Err(self.refuse_proof(context, "it is another user now")),
            // The host has logged that.
            Err(why) => return Err(self.refuse_login(context, Reason::NotAuthorized, &why)),
        }
        let proof = self.proof_of_broker();
        self.put_auth(context, Reason::Success, proof.as_deref());
        Ok(())
    }

    /// What proves to the client that the broker knows the verifier; it has proved itself.
    fn proof_of_broker(&mut self) -> Option<Vec<u8>> {
        let enhanced = self.enhanced.as_mut()?;
        enhanced.step = Step::Done;
        Some(enhanced.dialogue.take()?.final_message().into_bytes())
    }

    /// Adds the method and the proof to CONNACK, where there was a method in CONNECT.
    pub(super) fn put_method(&mut self, properties: &mut PropertiesWriter) {
        if let Some(proof) = self.proof_of_broker() {
            properties.put_text(PropertyId::AuthenticationMethod, scram::MECHANISM);
            properties.put(PropertyId::AuthenticationData, PropertyValue::Binary(&proof));
        }
    }

    fn put_auth(&self, context: &mut Context<impl Host>, reason: Reason, data: Option<&[u8]>) {
        let mut properties = PropertiesWriter::new();
        properties.put_text(PropertyId::AuthenticationMethod, scram::MECHANISM);
        if let Some(data) = data {
            properties.put(PropertyId::AuthenticationData, PropertyValue::Binary(data));
        }
        let properties = properties.properties();
        Auth { reason, properties }.write(self.out(context));
    }

    fn refuse_proof(&mut self, context: &mut Context<impl Host>, why: &str) -> Close {
        context.host.login_refused(login_refusal::from(why, &self.peer));
        self.refuse_login(context, Reason::NotAuthorized, why)
    }
}
