//! Error conditions: the symbols by which peers tell each other what went wrong (part 2, 2.8.15 to 2.8.18,
//! part 4, 4.5.8).

macro_rules! conditions {
    ($($variant:ident = $symbol:literal $meaning:literal;)*) => {
        /// An error condition.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Condition {
            $(#[doc = $meaning] $variant,)*
        }

        impl Condition {
            /// All of them.
            pub const ALL: &[Condition] = &[$(Condition::$variant,)*];
            /// Its symbol.
            #[must_use]
            pub const fn symbol(self) -> &'static str {
                match self { $(Condition::$variant => $symbol,)* }
            }
            /// The condition that has this symbol; `None`: none of the specification's.
            #[must_use]
            pub fn of_symbol(symbol: &str) -> Option<Condition> {
                Some(match symbol { $($symbol => Condition::$variant,)* _ => return None })
            }
        }
    };
}

conditions! {
    InternalError = "amqp:internal-error" "The peer broke one of its own rules.";
    NotFound = "amqp:not-found" "There is nothing of that name.";
    UnauthorizedAccess = "amqp:unauthorized-access" "The user may not do this.";
    DecodeError = "amqp:decode-error" "Bytes that cannot be decoded.";
    ResourceLimitExceeded = "amqp:resource-limit-exceeded" "More than the peer has or gives.";
    NotAllowed = "amqp:not-allowed" "The peer does not allow this.";
    InvalidField = "amqp:invalid-field" "A field with a value that makes no sense.";
    NotImplemented = "amqp:not-implemented" "Understood and not offered.";
    ResourceLocked = "amqp:resource-locked" "Somebody else holds it exclusively.";
    PreconditionFailed = "amqp:precondition-failed" "Something is not as the request assumes.";
    ResourceDeleted = "amqp:resource-deleted" "What the peer was using was deleted.";
    IllegalState = "amqp:illegal-state" "A frame that makes no sense here.";
    FrameSizeTooSmall = "amqp:frame-size-too-small" "Something does not fit in the agreed frames.";
    ConnectionForced = "amqp:connection:forced" "An operator closed the connection.";
    FramingError = "amqp:connection:framing-error" "Bytes that are no frame.";
    ConnectionRedirect = "amqp:connection:redirect" "Another container has what is asked for.";
    WindowViolation = "amqp:session:window-violation" "More transfers than the window allows.";
    ErrantLink = "amqp:session:errant-link" "Input for a link that was detached with an error.";
    HandleInUse = "amqp:session:handle-in-use" "An attach with a handle that another link has.";
    UnattachedHandle = "amqp:session:unattached-handle" "A frame for a handle that no link has.";
    DetachForced = "amqp:link:detach-forced" "An operator detached the link.";
    TransferLimitExceeded = "amqp:link:transfer-limit-exceeded" "More transfers than link credit.";
    MessageSizeExceeded = "amqp:link:message-size-exceeded" "A message above the agreed size.";
    LinkRedirect = "amqp:link:redirect" "The address is somewhere else.";
    LinkStolen = "amqp:link:stolen" "The link was attached anew from elsewhere.";
    TransactionUnknownId = "amqp:transaction:unknown-id" "There is no transaction of that id.";
    TransactionRollback = "amqp:transaction:rollback" "The transaction was rolled back.";
    TransactionTimeout = "amqp:transaction:timeout" "The transaction was not discharged in time.";
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.symbol())
    }
}
