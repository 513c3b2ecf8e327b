//! Where links end (part 3, 3.5; part 4, 4.5.1): sources, targets and coordinators.

use super::composite::composites;
use super::delivery_state::Outcome;
use super::field::choices;
use super::symbols::Symbols;
use super::union::one_of;
use super::value::{Map, Symbol};

choices! {
    /// What of a terminus survives its container.
    TerminusDurability is u32 {
        /// Nothing.
        #[default]
        None = 0u32,
        /// That it exists and how it is configured.
        Configuration = 1u32,
        /// Also which deliveries are unsettled.
        UnsettledState = 2u32,
    }
    /// When the timer starts after which a terminus is forgotten.
    TerminusExpiryPolicy is Symbol<'a> {
        /// When the link is detached.
        LinkDetach = Symbol("link-detach"),
        /// When the session ends.
        #[default]
        SessionEnd = Symbol("session-end"),
        /// When the connection is closed.
        ConnectionClose = Symbol("connection-close"),
        /// Never.
        Never = Symbol("never"),
    }
    /// Whether a message that goes to one link can go to others too.
    DistributionMode is Symbol<'a> {
        /// It cannot: links compete.
        #[default]
        Move = Symbol("move"),
        /// It can: each link has its own.
        Copy = Symbol("copy"),
    }
}

composites! {
    /// Where messages of a link come from.
    0x28 "amqp:source:list" "source" Source<'a> {
        "address" address: &'a str, optional;
        "durable" durable: TerminusDurability, default TerminusDurability::None;
        "expiry-policy" expiry_policy: TerminusExpiryPolicy, default TerminusExpiryPolicy::SessionEnd;
        "timeout" timeout: u32, default 0;
        "dynamic" dynamic: bool, default false;
        "dynamic-node-properties" dynamic_node_properties: Map<'a>, optional;
        "distribution-mode" distribution_mode: DistributionMode, optional;
        "filter" filter: Map<'a>, optional;
        "default-outcome" default_outcome: Outcome<'a>, optional;
        "outcomes" outcomes: Symbols<'a>, default Symbols::NONE;
        "capabilities" capabilities: Symbols<'a>, default Symbols::NONE;
    }
    /// Where messages of a link go.
    0x29 "amqp:target:list" "target" Target<'a> {
        "address" address: &'a str, optional;
        "durable" durable: TerminusDurability, default TerminusDurability::None;
        "expiry-policy" expiry_policy: TerminusExpiryPolicy, default TerminusExpiryPolicy::SessionEnd;
        "timeout" timeout: u32, default 0;
        "dynamic" dynamic: bool, default false;
        "dynamic-node-properties" dynamic_node_properties: Map<'a>, optional;
        "capabilities" capabilities: Symbols<'a>, default Symbols::NONE;
    }
    /// The target of requests about transactions.
    0x30 "amqp:coordinator:list" "coordinator" Coordinator<'a> {
        "capabilities" capabilities: Symbols<'a>, default Symbols::NONE;
    }
    /// The node is deleted when the link that made it is closed.
    0x2b "amqp:delete-on-close:list" "delete-on-close" DeleteOnClose {}
    /// The node is deleted when no link has it as its source or target.
    0x2c "amqp:delete-on-no-links:list" "delete-on-no-links" DeleteOnNoLinks {}
    /// The node is deleted when it has no messages.
    0x2d "amqp:delete-on-no-messages:list" "delete-on-no-messages" DeleteOnNoMessages {}
    /// The node is deleted when it has neither links nor messages.
    0x2e "amqp:delete-on-no-links-or-messages:list" "delete-on-no-links-or-messages"
    DeleteOnNoLinksOrMessages {}
}

one_of! {
    /// What an attach can have as its target.
    "target" AnyTarget<'a> {
        Target(Target<'a>),
        Coordinator(Coordinator<'a>),
    }
    /// When a dynamic node is deleted: the value of `lifetime-policy` in its properties.
    "lifetime-policy" LifetimePolicy {
        DeleteOnClose(DeleteOnClose),
        DeleteOnNoLinks(DeleteOnNoLinks),
        DeleteOnNoMessages(DeleteOnNoMessages),
        DeleteOnNoLinksOrMessages(DeleteOnNoLinksOrMessages),
    }
}
