//! The plan of a client that speaks MQTT.

/// A client: one connection at a time, and what it does on it.
#[derive(Clone, Debug)]
pub enum Client {
    /// It has a session that outlives its connections.
    Kept(Kept),
    /// It subscribes with a new session on each connection, and looks at what is retained.
    Watcher(Watcher),
}

/// A client with a session that outlives its connections.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its number among them, by which it is named.
    pub number: u32,
    /// What it publishes.
    pub publish: Option<Publishing>,
    /// What it subscribes to.
    pub subscribe: Option<Subscribing>,
    /// A will is published whenever its connection is lost.
    pub has_will: bool,
    /// Longest time after which it cuts its connection; `None`: it stays.
    pub life_max: Option<u64>,
}

/// A source of messages, all to the topic `t/` and the client's number.
#[derive(Clone, Debug)]
pub struct Publishing {
    /// 1 or 2.
    pub qos: u8,
    /// Percentage of messages that are retained.
    pub retain_percent: u64,
    /// How many there are.
    pub messages: u32,
    /// Most of them on their way at once.
    pub window: usize,
    /// Longest body.
    pub body_max: u64,
    /// Longest pause between two wake-ups, in microseconds.
    pub pause_max: u64,
}

/// A subscription to all topics below `t`.
#[derive(Clone, Debug)]
pub struct Subscribing {
    /// 1 or 2.
    pub qos: u8,
    /// It is shared with all other such clients.
    pub is_shared: bool,
    /// Receive maximum.
    pub window: u16,
    /// Percentage of acknowledgements that are held back for a while.
    pub late_percent: u64,
}

/// A client that subscribes anew each time.
#[derive(Clone, Debug)]
pub struct Watcher {
    /// Its number among them, by which it is named.
    pub number: u32,
    /// 0 to 2.
    pub qos: u8,
    /// Longest time after which it subscribes anew.
    pub life_max: u64,
}
