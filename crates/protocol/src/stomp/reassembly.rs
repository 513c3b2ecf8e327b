//! Reassembly of large messages that arrive in several pieces, outside of the input buffer, where they would
//! be moved, or searched for their end, with every read.

use super::asked::Taken;
use super::codec::Headers;
use super::frame::{Head, Malformed};
use super::handler::Handler;
use crate::{Close, Context, Host};
impl Handler {
    /// Takes more of the body, and publishes the message once its NUL is there. Returns how many bytes of
    /// `input` were used.
    #[cold]
    pub(super) fn gather(
        &mut self,
        context: &mut Context<impl Host>,
        input: &[u8],
    ) -> Result<usize, Close> {
        let most = self.settings.body_bytes_max;
        let Some(it) = &mut self.reassembly else { return Ok(0) };
        let part = it.part(input);
        if part > 0 {
            let bytes = (it.body.len() + part) as u64;
            if bytes > most {
                let head = std::mem::take(&mut it.head);
                let fault = Malformed::BodyTooLong(most).into();
                return Err(self.fail_message(context, &head, &fault));
            }
            if !it.body.extend(&input[..part], it.length.unwrap_or(bytes)) {
                let text = format!("the system refuses the memory for a message of {bytes} bytes");
                let fault = super::fault::Fault::new("resource_error", text);
                let head = std::mem::take(&mut it.head);
                return Err(self.fail_message(context, &head, &fault));
            }
            return Ok(part);
        }
        if input.first() != Some(&0) {
            let head = std::mem::take(&mut it.head);
            return Err(self.fail_message(context, &head, &Malformed::NoNul.into()));
        }
        let body = it.whole.take().unwrap_or_else(|| std::mem::take(&mut it.body).into_shared());
        let head = std::mem::take(&mut it.head);
        let limits = self.settings.limits();
        let lines = Head::read(&head, &limits).ok().flatten().map_or(&[][..], |head| head.lines);
        let headers = Headers::new(lines, self.version);
        let shared = (body.len() >= context.engine.large_body_bytes()).then_some(&body);
        match self.send(context, &headers, &body, shared) {
            Ok(Taken::Done) => {
                self.reassembly = None;
                Ok(1)
            }
            Ok(Taken::Again) => {
                if let Some(it) = &mut self.reassembly {
                    (it.head, it.whole) = (head, Some(body));
                }
                Ok(0)
            }
            Err(fault) => {
                let receipt = headers.get("receipt").ok().flatten();
                Err(self.fail(context, &fault, receipt.as_deref()))
            }
        }
    }
}
