//! The supervisor's modes, as readers see them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lifecycle::UnixNanos;

/// How the engine follows the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all_fields = "camelCase")]
pub enum Mode {
    /// The first stream is asked for and has neither failed nor proved itself; relists run at the
    /// fast period.
    Connecting,
    /// The event stream drives the cache; relists audit it.
    Evented {
        /// The time between the beginnings of two relists, as trust stands now.
        audit_period: Duration,
    },
    /// Relists at the fast period drive the cache.
    Polling {
        /// Why.
        reason: PollingReason,
    },
}

impl Mode {
    /// The mode's name, without what goes with it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Connecting => "Connecting",
            Self::Evented { .. } => "Evented",
            Self::Polling { .. } => "Polling",
        }
    }
}

/// Why the engine polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum PollingReason {
    /// The runtime has no event stream, or ends it at once without a message.
    Unsupported,
    /// The stream broke and no new one stands yet.
    StreamBroken,
    /// The heartbeat fails. The stream is kept until it errors.
    Unresponsive,
    /// The stream loses events. It stays open and its events still merge.
    Untrusted,
    /// The gate is off.
    Disabled,
}

impl PollingReason {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Unsupported,
        Self::StreamBroken,
        Self::Unresponsive,
        Self::Untrusted,
        Self::Disabled,
    ];
}

impl fmt::Display for PollingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unsupported => "Unsupported",
            Self::StreamBroken => "StreamBroken",
            Self::Unresponsive => "Unresponsive",
            Self::Untrusted => "Untrusted",
            Self::Disabled => "Disabled",
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => f.write_str("Connecting"),
            Self::Evented { .. } => f.write_str("Evented"),
            Self::Polling { reason } => write!(f, "Polling({reason})"),
        }
    }
}

/// A change of mode. A change of the audit period alone is none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModeChange {
    /// The mode before.
    pub from: Mode,
    /// The mode now.
    pub to: Mode,
    /// What brought it about, in words for people.
    pub cause: std::sync::Arc<str>,
    /// When, by the wall clock.
    pub at: UnixNanos,
}
