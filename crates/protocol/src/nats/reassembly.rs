//! Reassembly of large payloads that arrive in several pieces, outside of the input buffer, where they would
//! be moved with every read.

use super::codec::{Head, Malformed, Publish};
use super::fault;
use crate::nats::handler::Handler;
use crate::{Close, Context, Host};
use angarium_engine::{Bytes, CachedRoute, GatheredBody};

/// A message whose control line has arrived, and not all of its payload.
#[derive(Debug)]
pub(super) struct Reassembly {
    line: Vec<u8>,
    /// Headers and body as far as they have arrived.
    payload: GatheredBody,
    /// Bytes of them that were dropped: the client may not publish to the subject, which it hears once all
    /// have come.
    dropped: usize,
    is_refused: bool,
    /// Bytes of headers and body.
    payload_bytes: usize,
}

impl Reassembly {
    /// Bytes of it that are kept.
    pub(super) fn held_bytes(&self) -> usize {
        self.line.len() + self.payload.len()
    }
}

impl Handler {
    /// Begins the incomplete message at the start of `input`, if its payload is large. Returns how many bytes
    /// of `input` were used.
    #[cold]
    pub(super) fn begin_reassembly(
        &mut self,
        context: &mut Context<impl Host>,
        input: &[u8],
    ) -> Result<usize, Close> {
        let head = match Head::read(input, &self.limits) {
            Ok(Some(head)) if head.payload_bytes >= context.engine.large_body_bytes() => head,
            _ => return Ok(0),
        };
        let Head { line_bytes, payload_bytes, subject, .. } = head;
        let subject = String::from_utf8_lossy(subject);
        let is_refused = context.engine.check_subject(self.channel(), &subject).is_err();
        let (line, payload) = (input[..line_bytes].to_vec(), GatheredBody::default());
        let reassembly = Reassembly { line, payload, dropped: 0, is_refused, payload_bytes };
        self.reassembly = Some(Box::new(reassembly));
        let (used, _) = self.gather(context, &input[line_bytes..], &mut None)?;
        Ok(line_bytes + used)
    }

    /// Takes more of the payload, and publishes the message once it is complete. Returns how many bytes of
    /// `input` were used, and whether the next operation may be taken.
    #[cold]
    pub(super) fn gather(
        &mut self,
        context: &mut Context<impl Host>,
        input: &[u8],
        cached_route: &mut Option<CachedRoute>,
    ) -> Result<(usize, bool), Close> {
        let Some(gathering) = &mut self.reassembly else { return Ok((0, true)) };
        let all = gathering.payload_bytes;
        let missing = all - gathering.payload.len() - gathering.dropped;
        let (part, rest) = input.split_at(input.len().min(missing));
        if gathering.is_refused {
            gathering.dropped += part.len();
        } else {
            let is_taken = gathering.payload.extend(part, all as u64);
            if !is_taken {
                return Err(self.fail(context, fault::TOO_MUCH_MEMORY));
            }
        }
        let is_settled = context.host.is_known_to_shards(self.id);
        match rest {
            [] | [b'\r'] => Ok((part.len(), false)),
            // Its end is presented again when all shards know the subscriptions before it.
            [b'\r', b'\n', ..] if !is_settled => Ok((part.len(), false)),
            [b'\r', b'\n', ..] => {
                let goes_on = self.publish_reassembled(context, cached_route);
                Ok((part.len() + 2, goes_on && !context.engine.is_step_over()))
            }
            _ if !context.host.are_requests_complete(self.id) => Ok((part.len(), false)),
            _ => {
                self.pong(context);
                Err(self.fail(context, fault::text(Malformed::UnknownOperation)))
            }
        }
    }

    fn publish_reassembled(
        &mut self,
        context: &mut Context<impl Host>,
        cached_route: &mut Option<CachedRoute>,
    ) -> bool {
        let Some(gathering) = self.reassembly.take() else { return true };
        let Reassembly { line, payload, is_refused, .. } = *gathering;
        let head =
            Head::read(&line, &self.limits).ok().flatten().expect("its line was read before");
        if is_refused {
            let subject = String::from_utf8_lossy(head.subject);
            self.complain(context, &fault::publish_violation(&subject));
            return true;
        }
        let payload: Bytes = payload.into_shared();
        let (headers, body) =
            (payload.slice(..head.header_bytes), payload.slice(head.header_bytes..));
        let Head { subject, reply, .. } = head;
        let message = Publish { subject, reply, headers: &headers, body: &body };
        let shared = (body.len() >= context.engine.large_body_bytes()).then_some(&body);
        self.publish(context, &message, shared, cached_route)
    }
}
