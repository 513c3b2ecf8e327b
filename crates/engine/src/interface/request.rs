//! Every input: publish and settle (the hot path, borrowed), and the control requests (owned).

use crate::interface::retained::{Replay, Retain};
use crate::interface::rights::{ExchangeRules, SubjectPermissions};
use crate::interface::session::{
    ChangeSession, ClaimSession, ClaimedSession, JoinShared, SessionExpiry, Will,
};
use crate::selector::Filter;
use crate::{
    Binding, BindingTarget, Content, CreateTemporary, ExchangeOptions, OpenSubscription, Policy,
    PolicyKind, QueueOptions, Quota, SlowConsumerPolicy, SubscriptionInfo, Time, TransactionId,
};
use std::time::Duration;

/// A message on its way in.
#[derive(Clone, Copy, Debug)]
pub struct Publish<'a> {
    /// The exchange; empty for the default exchange (the routing key names the queue).
    pub exchange: &'a str,
    /// The routing key.
    pub routing_key: &'a str,
    /// Further routing keys (CC and BCC).
    pub also_to: &'a [&'a str],
    /// Give it back if no queue takes it.
    pub mandatory: bool,
    /// Whether it stays behind as the retained message of its subject, which is the routing key, where it is
    /// published to the exchange of subjects. Not in a transaction.
    pub retain: Retain,
    /// Hold it back until then, but no longer than
    /// [`delay_max`](crate::interface::limits::Limits::delay_max).
    pub not_before: Option<Time>,
    /// The transaction that it is part of; `None`: the channel's own, where it has one.
    pub transaction: Option<TransactionId>,
    /// The message.
    pub content: Content<'a>,
}

impl<'a> Publish<'a> {
    /// The routing key and all further ones.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a str> {
        std::iter::once(self.routing_key).chain(self.also_to.iter().copied())
    }
}

/// A direct message: delivered at most once, to the subscribers of its subject at this moment.
///
/// Its subject is a routing key of [`crate::Names::subject_exchange`], so queues bound there catch
/// it too; a durable queue keeps it if its content says persistent.
#[derive(Clone, Copy, Debug)]
pub struct Emit<'a> {
    /// Words parted by dots, none of them a wildcard; at most
    /// [`SUBJECT_BYTES_MAX`](crate::interface::limits::SUBJECT_BYTES_MAX) bytes. Queues are not
    /// looked for where it is longer than a routing key may be.
    pub subject: &'a str,
    /// Subscribers of the publisher's own connection hear it too.
    pub echo: bool,
    /// It answers a message that the publisher was sent: it goes there whether or not its user may publish to
    /// that subject otherwise.
    pub is_response: bool,
    /// The publisher asks for a notice if there is no receiver on any shard.
    pub asks: bool,
    /// The message.
    pub content: Content<'a>,
}

/// Who got a direct message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Subscribers it was handed to, or would have been if they kept up.
    pub subscribers: u32,
    /// Queues, and inboxes.
    pub queues: u32,
    /// Every subscriber that got it is above its high-water mark: the publisher is faster than
    /// all of them.
    pub crowded: bool,
}

impl Reached {
    /// Nobody got it.
    #[must_use]
    pub fn is_nobody(&self) -> bool {
        self.subscribers == 0 && self.queues == 0
    }
}

/// A subscription to subjects as listings show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionListing<'a> {
    /// The pattern.
    pub subject: &'a str,
    /// Its group, if it is in one.
    pub group: Option<&'a str>,
    /// What the client calls it.
    pub name: &'a str,
    /// Messages that it was handed.
    pub delivered: u64,
    /// After how many it ends, if after a number of them.
    pub until: Option<u64>,
}

/// A subscription of a channel to the direct messages of a subject.
#[derive(Clone, Copy, Debug)]
pub struct Subscribe<'a> {
    /// Words parted by dots; `*` stands for one word and, as the last one, `>` for one or more.
    pub subject: &'a str,
    /// The group, each message of which goes to one member.
    pub group: Option<&'a str>,
    /// Its name, unique in its channel; deliveries carry it as their consumer.
    pub name: &'a str,
    /// The policy for messages that its connection is too slow for; `None`: that of the
    /// connection.
    pub slow_consumer_policy: Option<SlowConsumerPolicy>,
}

/// What becomes of the unsettled deliveries of a channel within a range of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settle {
    /// The lowest tag.
    pub first: u64,
    /// The highest tag.
    pub last: u64,
    /// Refused where nothing in the range is unsettled, or `last` was not delivered yet. Otherwise what is
    /// not unsettled is passed over.
    pub must_exist: bool,
    /// What becomes of them.
    pub outcome: Outcome,
    /// The transaction that this is part of; `None`: the channel's own, where it has one. Until that ends the
    /// deliveries are the transaction's: they cannot be settled again, and outlive their channel. They go
    /// back to their places if it is rolled back.
    pub transaction: Option<TransactionId>,
}

impl Settle {
    /// One delivery, which must be unsettled.
    #[must_use]
    pub fn one(tag: u64, outcome: Outcome) -> Settle {
        Settle { first: tag, last: tag, must_exist: true, outcome, transaction: None }
    }

    /// All unsettled deliveries up to a tag, which must have been delivered; 0: all there are.
    #[must_use]
    pub fn up_to(tag: u64, outcome: Outcome) -> Settle {
        let last = if tag == 0 { u64::MAX } else { tag };
        Settle { first: 0, last, must_exist: tag != 0, outcome, transaction: None }
    }

    /// Those within a range that are unsettled, if any.
    #[must_use]
    pub fn range(first: u64, last: u64, outcome: Outcome) -> Settle {
        Settle { first, last, must_exist: false, outcome, transaction: None }
    }

    /// The same as a part of a transaction, or of the channel's own.
    #[must_use]
    pub fn within(self, transaction: Option<TransactionId>) -> Settle {
        Settle { transaction, ..self }
    }

    /// The tag that [`Settle::one`] or [`Settle::up_to`] was made with.
    #[must_use]
    pub fn tag(&self) -> u64 {
        if self.last == u64::MAX { 0 } else { self.last }
    }
}

/// How a delivery is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done: the queue forgets it.
    Accept,
    /// Back to its original place in the queue.
    Return(Return),
    /// Not wanted: dead-lettered where the queue says so, else dropped.
    Discard,
}

impl Outcome {
    /// Back, counted as a delivery that failed.
    pub const REQUEUE: Outcome = Outcome::Return(Return { failed: true, elsewhere: false });
    /// Back, as if it had not been delivered.
    pub const RELEASE: Outcome = Outcome::Return(Return { failed: false, elsewhere: false });
}

impl Default for Outcome {
    fn default() -> Outcome {
        Outcome::REQUEUE
    }
}

/// How a message goes back to its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Return {
    /// It counts as a delivery that failed, towards the queue's delivery limit.
    pub failed: bool,
    /// It is never delivered to this consumer again. Where no other consumer of the queue could take it, it
    /// is dead-lettered if the queue says where; else it waits for another consumer.
    pub elsewhere: bool,
}

/// How far a consumer may be delivered to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Deliveries since the consumer began; fewer than before is allowed.
    pub up_to: u64,
    /// Whether [`crate::Effects::drained`] is to say when there is nothing more to deliver, which ends the
    /// grant.
    pub drain: bool,
}

/// How many unsettled deliveries may be out; zero means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credit {
    /// In messages.
    pub messages: u32,
    /// In payload bytes; one message always passes.
    pub bytes: u64,
}

/// A queue as clients of its virtual host may see it.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueDescription {
    /// Its name.
    pub name: String,
    /// What it was declared with.
    pub options: QueueOptions,
    /// Messages that wait for a consumer.
    pub ready: u64,
    /// Messages that are out and not settled.
    pub unsettled: u64,
    /// Its consumers.
    pub consumers: u32,
}

/// What a consumer begins with.
#[derive(Clone, Debug, Default)]
pub struct Consume {
    /// The queue.
    pub queue: String,
    /// The consumer's name, unique in its channel; empty: the engine makes one up.
    pub name: String,
    /// It is shown the messages that wait, in their order, and takes none: nothing changes by it, and its
    /// deliveries cannot be settled.
    pub browses: bool,
    /// Deliveries count as accepted once sent.
    pub presettled: bool,
    /// No other consumer beside it.
    pub exclusive: bool,
    /// Those of higher priority with credit are served first.
    pub priority: i32,
    /// Credit of this consumer.
    pub credit: Credit,
    /// It gets deliveries, presettled ones too, only as far as [`crate::Engine::grant`] allows; they may stay
    /// unsettled for any time.
    pub is_granted: bool,
    /// What becomes of its unsettled deliveries when it, or its channel, ends in good order.
    pub on_close: Outcome,
    /// The same when its connection is lost.
    pub on_loss: Outcome,
    /// How long its deliveries may stay unsettled; `None`: as the queue says.
    pub settle_timeout: Option<Duration>,
    /// It gets, or is shown, only messages that this selects.
    pub filter: Option<Filter>,
}

/// Why the broker has ended a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// Its queue was deleted.
    QueueDeleted,
    /// Its queue has stopped at a message that cannot be read back.
    QueueFailed,
    /// Its user may not read from the queue any more.
    Forbidden,
    /// Its client has taken its place anew, on another connection ([`Request::TakePlace`]).
    TakenOver,
}

/// Control requests: everything that is not publish or settle. Each gets exactly one
/// [`crate::Effects::reply`], in their order per channel: a request need not wait for the answer to the one
/// before. Only a get, and a consumer that needs no grants, are asked for when all before is answered: their
/// deliveries would come before that.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // Each variant's sentence speaks of its fields.
pub enum Request {
    /// Declares an exchange; without options only asks whether it exists. Reply: `Done`.
    DeclareExchange { name: String, options: Option<ExchangeOptions> },
    /// Deletes an exchange. Reply: `Done`, also where none was.
    DeleteExchange { name: String, if_unused: bool },
    /// Declares a queue, under a name that the engine makes up where it is empty; without options only
    /// asks whether it exists. Reply: `Queue`.
    DeclareQueue { name: String, options: Option<QueueOptions> },
    /// Deletes a queue. Reply: `Messages`, also where none was.
    DeleteQueue { name: String, if_unused: bool, if_empty: bool },
    /// Drops all ready messages of a queue. Reply: `Messages`.
    PurgeQueue { name: String },
    /// Binds. Reply: `Done`.
    Bind(Binding),
    /// Unbinds. Reply: `Done`, also where no such binding was.
    Unbind(Binding),
    /// Asks what a queue is made of. Reply: `QueueDescriptions`, with one.
    DescribeQueue { name: String },
    /// Asks for queues on which the user has a right, from a place on: 0, or the `next` of the last answer.
    /// Reply: `QueueDescriptions`.
    DescribeQueues { from: u64, most: u32 },
    /// Asks for the bindings between two ends with a key. Reply: `Bindings`.
    DescribeBindings { source: String, target: BindingTarget, key: String },
    /// Begins to consume from a queue. Reply: `Consuming`; deliveries follow it.
    Consume(Consume),
    /// Ends a consumer; its unsettled deliveries stay with the channel, or go back as its `on_close` says
    /// where it `returns` them. Reply: `Done`.
    CancelConsumer { name: String, returns: bool },
    /// Takes one message. Reply: `Got` or `Empty`.
    Get { queue: String, presettled: bool },
    /// Opens this channel's inbox: an address that only lives as long as the channel. Deliveries are
    /// presettled and carry `name` as consumer. Reply: `Inbox`.
    OpenInbox { name: String },
    /// Gives the connection a name to itself among those of its virtual host. Reply: `Done`. Refused: a
    /// connection of another user has it (`AccessRefused`), or one of the same user (`ResourceLocked`), which
    /// is doubted ([`crate::Effects::client_doubted`]) and may be gone soon.
    ClaimClientName { name: String },
    /// Takes a place that the connection's client has once over all of its connections, for a holder, whose
    /// name is unique in its channel. Holders of the same place on other connections lose it, with what
    /// they hold and the consumers of their names, whose unsettled deliveries go back as `on_loss` says; each
    /// hears so by [`crate::Effects::consumer_cancelled`]. A client is known by virtual host, user and
    /// [`crate::Engine::name_client`]; for one without a name nothing happens. Reply: `Done`.
    TakePlace { place: String, holder: String },
    /// Opens a named subscription: creates it, or joins the one that is there. One with another source or
    /// keys takes its place where it has no consumers. Consuming from its queue begins its use. Reply:
    /// `Queue`. Refused: it is in use (`ResourceLocked`), or shared and the one asked for is not, or the
    /// other way round (`PreconditionFailed`).
    OpenSubscription(Box<OpenSubscription>),
    /// Deletes a durable named subscription that nobody consumes from. Reply: `Done`.
    DeleteSubscription { owner: Option<String>, name: String },
    /// Asks for a durable named subscription. Reply: `Subscription`.
    FindSubscription { owner: Option<String>, name: String },
    /// Creates a temporary queue or topic. Reply: `Created`.
    CreateTemporary(Box<CreateTemporary>),
    /// Holds a queue or exchange, which has to be there: a temporary one stays for its holders. The holder's
    /// name is unique in its channel, with which it ends. Reply: `Done`.
    Hold { node: BindingTarget, holder: String },
    /// Ends a holder, if there is one, also of a place. Reply: `Done`.
    Release { holder: String },
    /// Sets the channel's credit over all its consumers. Reply: `Done`.
    SetChannelCredit(Credit),
    /// Stops (false) or resumes (true) deliveries to the channel. Reply: `Done`.
    SetFlow(bool),
    /// Requeues every unsettled delivery of the channel. Reply: `Done`.
    Recover,
    /// From now on the channel's publishes are confirmed, counted from 1. `explained`: each publish is, also
    /// one that is refused and would otherwise be an error, and one that no queue takes although it is
    /// mandatory; [`crate::Confirm::refused`] says why. Reply: `Done`.
    SelectConfirms { explained: bool },
    /// Begins a transaction, which the channels of the connection name in publishes and settles. It ends with
    /// this channel. Reply: `Transaction`.
    BeginTransaction,
    /// Ends a transaction of the connection. To commit it carries out what waited, atomically; replies `Done`
    /// once it is flushed where it has to be. Refused: it was rolled back instead. A rollback brings
    /// deliveries back to their places before anything later is handed out.
    EndTransaction { id: TransactionId, commits: bool },
    /// From now on publishes and settles of the channel that name no transaction wait for
    /// [`Request::Commit`]: the channel has a transaction of its own. Reply: `Done`.
    SelectTransactions,
    /// Commits the channel's own transaction, as [`Request::EndTransaction`] does, and begins the next.
    Commit,
    /// Forgets what waited in the channel's own transaction; what it settled is unsettled again. Reply:
    /// `Done`.
    Rollback,
    /// Makes the channel the holder of a session, new or resumed; before, another channel that holds it gets
    /// [`crate::Effects::session_lost`]. A holder may claim again, to change what it has asked for.
    /// Reply: `Session`, once the claim is flushed if it is recorded.
    ClaimSession(ClaimSession),
    /// Gives a session up that the channel holds; its expiry counts from now, the new one where there is one.
    /// Reply: `Done`.
    DetachSession { name: String, expiry: Option<SessionExpiry> },
    /// Ends a session of the channel's user, whichever channel holds it. Reply: `Done`.
    EndSession { name: String },
    /// Changes a session that the channel holds. Reply: `Done`.
    ChangeSession(Box<ChangeSession>),
    /// Keeps a message with the session that the channel holds, to be published once that is detached for the
    /// will's delay, or ends; or at once where it is taken over and the will has no delay. In place of an
    /// earlier one. Reply: `Done`.
    SetWill(Box<Will>),
    /// Takes the will of the session that the channel holds away. Reply: `Done`.
    ClearWill,
    /// Forgets the number of a [`crate::Engine::publish_once`]: another message may have it. Reply: `Done`.
    ForgetPublished { number: u64 },
    /// Settles a delivery of the queue of the session that the channel holds as accepted; its place stays in
    /// use, and claims say so ([`ClaimedSession::released`]). Reply: `Done`.
    ReleaseDelivery { tag: u64 },
    /// Makes the session that the channel holds, and that has a queue, a member of a shared queue, which is
    /// created if it is not there. The queue hands its messages over to members that are held and take more,
    /// each to one: they move into the members' own queues, and [`crate::Delivery::group`] says so. Those of
    /// a session that ends go to another member, except where the client may have them and they are to be
    /// delivered exactly once. The queue goes with its last member. Reply: `Done`.
    JoinShared(Box<JoinShared>),
    /// The session that the channel holds is a member no longer. Reply: `Done`.
    LeaveShared { group: String },
    /// A place that was released is in use no longer. Reply: `Done`, which waits for no flush.
    ForgetReleased { place: u64 },
    /// Begins to show what is retained. Reply: `Done`; the messages follow it.
    Replay(Box<Replay>),
    /// Ends a replay of the channel, if it has one of that name. Reply: `Done`.
    EndReplay { name: String },
    /// Creates a virtual host with the exchanges every one has. Administrators. Reply: `Done`.
    CreateVhost { name: String },
    /// Deletes a virtual host and all in it. Administrators. Reply: `Done`.
    DeleteVhost { name: String },
    /// Creates a user; the hash is opaque to the engine. Refused where there is one of that name.
    /// Administrators. Reply: `Done`.
    CreateUser { name: String, password_hash: String, administrator: bool },
    /// Changes what is given of a user, and nothing else. Administrators. Reply: `Done`.
    ChangeUser { name: String, password_hash: Option<String>, administrator: Option<bool> },
    /// Deletes a user and its permissions. Administrators. Reply: `Done`.
    DeleteUser { name: String },
    /// Sets what a user may do in a virtual host: regular expressions over names.
    /// Administrators. Reply: `Done`.
    SetPermissions { user: String, vhost: String, configure: String, write: String, read: String },
    /// Narrows what a user who has permissions in a virtual host may do with subjects there, for
    /// direct messages and for the exchange that subjects are routing keys of. Administrators. Reply:
    /// `Done`.
    SetSubjectPermissions { user: String, vhost: String, subjects: SubjectPermissions },
    /// Does so for the routing keys of another exchange, which need not be there yet. Administrators.
    /// Reply: `Done`.
    SetExchangeRules { user: String, vhost: String, exchange: String, rules: ExchangeRules },
    /// Sets what a user may use. Administrators. Reply: `Done`.
    SetQuota { user: String, quota: Quota },
    /// Sets what all in a virtual host may use together: bounds of [`Bound::OF_VHOSTS`].
    /// Administrators. Reply: `Done`.
    SetVhostQuota { vhost: String, quota: Quota },
    /// Takes a user's permissions in a virtual host away. Administrators. Reply: `Done`.
    ClearPermissions { user: String, vhost: String },
    /// Sets a policy, new or in place of one of that name; what is there follows it within the next turns.
    /// Administrators. Reply: `Done`.
    SetPolicy { vhost: String, kind: PolicyKind, name: String, policy: Box<Policy> },
    /// Takes a policy away. Administrators. Reply: `Done`. Refused: there is none of that name.
    ClearPolicy { vhost: String, kind: PolicyKind, name: String },
}

impl Request {
    /// Whether it is about a session.
    pub(crate) fn is_about_session(&self) -> bool {
        matches!(
            self,
            Request::ClaimSession(_)
                | Request::DetachSession { .. }
                | Request::EndSession { .. }
                | Request::ChangeSession(_)
                | Request::SetWill(_)
                | Request::ClearWill
                | Request::ForgetPublished { .. }
                | Request::ReleaseDelivery { .. }
                | Request::ForgetReleased { .. }
                | Request::JoinShared(_)
                | Request::LeaveShared { .. }
        )
    }
}

/// What a [`Request`] that was granted answers.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // Each variant's sentence speaks of its fields.
pub enum Reply {
    /// Done.
    Done,
    /// The queue, with ready messages and consumers.
    Queue { name: String, messages: u64, consumers: u32 },
    /// Queues, and the place to go on at if there may be more.
    QueueDescriptions { queues: Vec<QueueDescription>, next: Option<u64> },
    /// Bindings.
    Bindings(Vec<Binding>),
    /// The name of what was created.
    Created { name: String },
    /// The named subscription.
    Subscription(Box<SubscriptionInfo>),
    /// How many messages that concerned.
    Messages(u64),
    /// The transaction has begun.
    Transaction { id: TransactionId },
    /// The consumer's name.
    Consuming { name: String },
    /// The inbox's address: a routing key for the default exchange.
    Inbox { address: String },
    /// A message was taken; it was handed out by [`crate::Effects::deliver`] with an empty
    /// consumer name just before this reply, and `messages` stay ready in the queue.
    Got { messages: u64 },
    /// The queue is empty.
    Empty,
    /// The channel holds the session.
    Session(Box<ClaimedSession>),
}
