//! The timers, by name: why the engine wants to be woken.

use serde::{Deserialize, Serialize};

/// What a wake is for. The engine looks at all that is due, whatever woke it; the name is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Timer {
    /// `Version` is to be asked.
    Heartbeat,
    /// The node is to be relisted.
    Relist,
    /// A call has been out for so long that it no longer holds up those that wait.
    HangingCall,
    /// The stream is to be asked for again, or is old enough to count as one.
    Stream,
    /// An audit's grace is over.
    AuditGrace,
    /// The stream's time to tell a change that a read found is over.
    MissGrace,
    /// A pod's read, retry or watch is due.
    Pod,
}
