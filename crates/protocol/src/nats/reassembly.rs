//! Messages with a large payload that does not arrive in one piece: it is gathered as it comes. With all
//! other input that is kept it would be moved again and again, and copied when it is whole.

use super::codec::client::Head;
use super::codec::{Malformed, Publish};
use super::fault;
use crate::nats::handler::Handler;
use crate::{Close, Context, Host};
use angarium_engine::{Bytes, GatheredBody, Streak};

/// A message of which the line has come, and not all of the payload.
#[derive(Debug)]
pub(super) struct Gathering {
    line: Vec<u8>,
    /// What has come of headers and body.
    payload: GatheredBody,
    /// How much there will be.
    payload_bytes: usize,
}

impl Handler {
    /// Begins with the message that `input` begins with, of which not all has come, if its payload is large.
    /// Says how much of `input` was used.
    #[cold]
    pub(super) fn begin_gathering<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        input: &[u8],
    ) -> Result<usize, Close> {
        let head = match Head::read(input, &self.limits) {
            Ok(Some(head)) if head.payload_bytes >= context.engine.large_body_bytes() => head,
            _ => return Ok(0),
        };
        let Head { line_bytes, payload_bytes, .. } = head;
        let (line, payload) = (input[..line_bytes].to_vec(), GatheredBody::default());
        self.gathering = Some(Box::new(Gathering { line, payload, payload_bytes }));
        let (used, _) = self.gather(context, &input[line_bytes..], &mut None)?;
        Ok(line_bytes + used)
    }

    /// Takes more of it, and publishes it once it is whole. Says how much of `input` was used, and whether
    /// the next operation may be taken.
    #[cold]
    pub(super) fn gather<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        input: &[u8],
        streak: &mut Option<Streak>,
    ) -> Result<(usize, bool), Close> {
        let Some(gathering) = &mut self.gathering else { return Ok((0, true)) };
        let all = gathering.payload_bytes;
        let missing = all - gathering.payload.len();
        let (part, rest) = input.split_at(input.len().min(missing));
        gathering.payload.extend(part, all as u64);
        let is_settled = context.host.is_settled(self.id);
        match rest {
            [] | [b'\r'] => Ok((part.len(), false)),
            // Its end comes again when all shards know what came before.
            [b'\r', b'\n', ..] if !is_settled => Ok((part.len(), false)),
            [b'\r', b'\n', ..] => {
                let goes_on = self.publish_gathered(context, streak);
                Ok((part.len() + 2, goes_on && !context.engine.is_step_over()))
            }
            _ if !context.host.is_done(self.id) => Ok((part.len(), false)),
            _ => {
                self.pong(context);
                Err(self.fail(context, fault::text(Malformed::UnknownOperation)))
            }
        }
    }

    fn publish_gathered<W: Host>(
        &mut self,
        context: &mut Context<'_, W>,
        streak: &mut Option<Streak>,
    ) -> bool {
        let Some(gathering) = self.gathering.take() else { return true };
        let Gathering { line, payload, .. } = *gathering;
        let head =
            Head::read(&line, &self.limits).ok().flatten().expect("its line was read before");
        let payload: Bytes = payload.into_shared();
        let (headers, body) =
            (payload.slice(..head.header_bytes), payload.slice(head.header_bytes..));
        let Head { subject, reply, .. } = head;
        let message = Publish { subject, reply, headers: &headers, body: &body };
        let shared = (body.len() >= context.engine.large_body_bytes()).then_some(&body);
        self.publish(context, &message, shared, streak)
    }
}
