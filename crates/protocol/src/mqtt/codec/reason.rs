//! Reason codes (5: 2.4), and what earlier versions say in their place.

/// Declares the reason codes.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal $words:literal,)+) => {
        /// Why, or whether, something was done.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[$doc])* #[doc = $words] $name = $code,)+
        }

        impl Reason {
            /// All of them.
            pub const ALL: &[Reason] = &[$(Reason::$name,)+];

            /// The one of that code.
            #[must_use]
            pub fn of(code: u8) -> Option<Reason> {
                match code {
                    $($code => Some(Reason::$name),)+
                    _ => None,
                }
            }

            /// The specification's words for it.
            #[must_use]
            pub fn words(self) -> &'static str {
                match self {
                    $(Reason::$name => $words,)+
                }
            }
        }
    };
}

reasons! {
    Success = 0x00 "success",
    GrantedQos1 = 0x01 "granted QoS 1",
    GrantedQos2 = 0x02 "granted QoS 2",
    DisconnectWithWill = 0x04 "disconnect with will message",
    NoMatchingSubscribers = 0x10 "no matching subscribers",
    NoSubscriptionExisted = 0x11 "no subscription existed",
    ContinueAuthentication = 0x18 "continue authentication",
    ReAuthenticate = 0x19 "re-authenticate",
    UnspecifiedError = 0x80 "unspecified error",
    MalformedPacket = 0x81 "malformed packet",
    ProtocolError = 0x82 "protocol error",
    ImplementationSpecificError = 0x83 "implementation specific error",
    UnsupportedProtocolVersion = 0x84 "unsupported protocol version",
    ClientIdentifierNotValid = 0x85 "client identifier not valid",
    BadUserNameOrPassword = 0x86 "bad user name or password",
    NotAuthorized = 0x87 "not authorized",
    ServerUnavailable = 0x88 "server unavailable",
    ServerBusy = 0x89 "server busy",
    Banned = 0x8A "banned",
    ServerShuttingDown = 0x8B "server shutting down",
    BadAuthenticationMethod = 0x8C "bad authentication method",
    KeepAliveTimeout = 0x8D "keep alive timeout",
    SessionTakenOver = 0x8E "session taken over",
    TopicFilterInvalid = 0x8F "topic filter invalid",
    TopicNameInvalid = 0x90 "topic name invalid",
    PacketIdentifierInUse = 0x91 "packet identifier in use",
    PacketIdentifierNotFound = 0x92 "packet identifier not found",
    ReceiveMaximumExceeded = 0x93 "receive maximum exceeded",
    TopicAliasInvalid = 0x94 "topic alias invalid",
    PacketTooLarge = 0x95 "packet too large",
    MessageRateTooHigh = 0x96 "message rate too high",
    QuotaExceeded = 0x97 "quota exceeded",
    AdministrativeAction = 0x98 "administrative action",
    PayloadFormatInvalid = 0x99 "payload format invalid",
    RetainNotSupported = 0x9A "retain not supported",
    QosNotSupported = 0x9B "QoS not supported",
    UseAnotherServer = 0x9C "use another server",
    ServerMoved = 0x9D "server moved",
    SharedSubscriptionsNotSupported = 0x9E "shared subscriptions not supported",
    ConnectionRateExceeded = 0x9F "connection rate exceeded",
    MaximumConnectTime = 0xA0 "maximum connect time",
    SubscriptionIdentifiersNotSupported = 0xA1 "subscription identifiers not supported",
    WildcardSubscriptionsNotSupported = 0xA2 "wildcard subscriptions not supported",
}

impl Reason {
    /// Whether it says that something was not done.
    #[must_use]
    pub fn is_error(self) -> bool {
        self as u8 >= 0x80
    }

    /// The return code in a CONNACK of the versions before 5 (3.1.1: 3.2.2.3); `None`: the connection is
    /// closed without one.
    #[must_use]
    pub fn connack_return_code(self) -> Option<u8> {
        Some(match self {
            Reason::Success => 0,
            Reason::UnsupportedProtocolVersion => 1,
            Reason::ClientIdentifierNotValid => 2,
            Reason::ServerUnavailable
            | Reason::ServerBusy
            | Reason::ServerShuttingDown
            | Reason::ConnectionRateExceeded
            | Reason::QuotaExceeded => 3,
            Reason::BadUserNameOrPassword => 4,
            Reason::NotAuthorized | Reason::Banned | Reason::BadAuthenticationMethod => 5,
            _ => return None,
        })
    }
}
