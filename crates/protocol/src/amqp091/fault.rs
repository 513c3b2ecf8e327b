//! Errors that end a channel or a connection: reply codes, their names, their reach (spec 1.3 of the
//! generated reference, `constants`).

/// A reply code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u16);

/// What an error ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The channel it happened on.
    Channel,
    /// The whole connection.
    Connection,
}

macro_rules! codes {
    ($($constant:ident = $code:literal $reach:ident $meaning:literal;)*) => {
        impl Code {
            $(#[doc = $meaning] pub const $constant: Code = Code($code);)*
            /// All codes: number, name, reach, meaning.
            pub const ALL: &[(u16, &str, Reach, &str)] =
                &[$(($code, stringify!($constant), Reach::$reach, $meaning),)*];
        }
    };
}

codes! {
    CONTENT_TOO_LARGE = 311 Channel "The content is too large now.";
    NO_ROUTE = 312 Channel "No queue takes the message.";
    NO_CONSUMERS = 313 Channel "No consumer takes the message at once.";
    CONNECTION_FORCED = 320 Connection "An operator closed the connection.";
    INVALID_PATH = 402 Connection "No such virtual host.";
    ACCESS_REFUSED = 403 Channel "The user may not do this.";
    NOT_FOUND = 404 Channel "There is nothing of that name.";
    RESOURCE_LOCKED = 405 Channel "Another connection holds it exclusively.";
    PRECONDITION_FAILED = 406 Channel "Something is not as the method assumes.";
    FRAME_ERROR = 501 Connection "Bytes that are no frame.";
    SYNTAX_ERROR = 502 Connection "A frame with fields that are not what its grammar says.";
    COMMAND_INVALID = 503 Connection "A method that makes no sense here.";
    CHANNEL_ERROR = 504 Connection "A channel that is not open, or is already.";
    UNEXPECTED_FRAME = 505 Connection "A frame that cannot follow the one before it.";
    RESOURCE_ERROR = 506 Channel "The broker lacks the means now.";
    NOT_ALLOWED = 530 Connection "Never allowed, whoever asks.";
    NOT_IMPLEMENTED = 540 Connection "Understood and not offered.";
    INTERNAL_ERROR = 541 Connection "The broker broke one of its own rules.";
}

impl Code {
    fn row(self) -> &'static (u16, &'static str, Reach, &'static str) {
        Code::ALL.iter().find(|row| row.0 == self.0).expect("codes are made from the table only")
    }
    /// Its name in the specification, as it begins reply texts.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }
    /// What errors with this code end, unless said otherwise.
    #[must_use]
    pub fn reach(self) -> Reach {
        self.row().2
    }
}

/// An error of the peer, or a refusal that is reported to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) code: Code,
    pub(super) reach: Reach,
    /// What and why, without the code's name.
    pub(super) text: String,
}

impl Fault {
    pub(super) fn new(code: Code, text: impl Into<String>) -> Fault {
        Fault { code, reach: code.reach(), text: text.into() }
    }
    /// `what` came on a channel that is not open.
    pub(super) fn not_open(what: &str, number: u16) -> Fault {
        let text = format!("{what} on channel {number}, which is not open");
        Fault::new(Code::CHANNEL_ERROR, text)
    }
    /// The same error, ending the connection.
    pub(super) fn hard(self) -> Fault {
        Fault { reach: Reach::Connection, ..self }
    }
    /// As close methods carry it: `NOT_FOUND - no queue 'x' in vhost '/'`.
    pub(super) fn reply_text(&self) -> String {
        format!("{} - {}", self.code.name(), self.text)
    }
}
