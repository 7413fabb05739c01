//! What sets one runtime apart from another, as data: a preset each for the runtimes that nodes
//! have, every field open to change.
//!
//! Nothing here acts. [`World`](super::World) follows [`EventHabits`], the event queue follows
//! [`EventDelivery`], the server the rest. Numbers are those of the runtimes' sources or of
//! measurements on them, as said at each.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Rpc;
use super::spelling::duration;
use crate::lifecycle::UnixNanos;

/// A runtime's ways.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Character {
    /// `runtime_name` of the `Version` answer.
    pub runtime_name: String,
    /// `runtime_version` of the `Version` answer.
    pub runtime_version: String,
    /// What `GetContainerEvents` does.
    pub events: EventSupport,
    /// Which operations are told, and what a message holds.
    pub habits: EventHabits,
    /// Whether `PodSandboxStatus` also carries the sandbox's container statuses and a timestamp.
    pub status_carries_containers: bool,
    /// For runtimes with streaming lists, the most items in one message. `None`: the streaming forms
    /// are Unimplemented.
    pub streaming_lists: Option<usize>,
    /// How long an answer is under way after its content was read. A method that is not named
    /// answers at once.
    pub latency: BTreeMap<Rpc, Duration>,
}

/// What `GetContainerEvents` does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventSupport {
    /// Serves events.
    Served(EventDelivery),
    /// Answers Unimplemented, which a client sees at its first receive.
    Unimplemented,
    /// Ends at once without an error: CRI-O with its events switched off.
    EndsAtOnce,
}

/// How events reach the streams that are open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventDelivery {
    /// Who gets an event when several streams are open.
    pub sharing: Sharing,
    /// The most events that wait while no stream has room.
    pub queue: usize,
    /// What becomes of an event that finds the queue full.
    pub when_full: WhenFull,
    /// What becomes of events while no stream is open.
    pub without_client: WithoutClient,
    /// The most events on their way to one stream whose client does not read, besides what HTTP/2
    /// itself has in flight.
    pub stream_buffer: usize,
    /// How many events a stream takes with it after its client has gone, before the runtime notices.
    pub swallowed_by_dead_stream: usize,
}

impl EventDelivery {
    /// Serves nobody and keeps nothing.
    pub(super) fn none() -> Self {
        Self {
            sharing: Sharing::EveryStream,
            queue: 0,
            when_full: WhenFull::DropNewest,
            without_client: WithoutClient::QueueUntilFirstClient,
            stream_buffer: 0,
            swallowed_by_dead_stream: 0,
        }
    }
}

/// Who gets an event when several streams are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Sharing {
    /// One of the streams, in turn: they steal from each other.
    Competing,
    /// Every stream.
    EveryStream,
}

/// What becomes of an event that finds the queue full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum WhenFull {
    /// It is dropped; older ones stay.
    DropNewest,
    /// The operation that made it waits until there is room.
    BlockProducer,
}

/// What becomes of events while no stream is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum WithoutClient {
    /// They fill the queue and wait in it, however long.
    Queue,
    /// They are kept for this long each, any number of them.
    KeepFor(#[serde(with = "duration")] Duration),
    /// They fill the queue until the first stream ever; after the last stream has gone they are
    /// thrown away.
    QueueUntilFirstClient,
}

/// Which operations are told, and what a message holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventHabits {
    /// Whose container statuses a message carries.
    pub snapshot: SnapshotScope,
    /// Whether a new sandbox gives CREATED before its STARTED.
    pub sandbox_created: bool,
    /// What `RemovePodSandbox` tells.
    pub sandbox_removal: SandboxRemoval,
    /// What a failed start leaves. It is never told.
    pub failed_start: FailedStart,
    /// Whether removing a container that never ran gives a STOPPED (exit code 2) before its DELETED.
    pub unstarted_removal_stops: bool,
    /// How the moment of a message is written into its `created_at`.
    pub stamps: Stamps,
    /// How long before its message's stamp a change is dated. Runtimes stamp a message when they
    /// have gathered its content; 1 ms is a quiet sandbox's figure, an exit takes some 60 ms.
    pub lag: Duration,
}

/// Whose container statuses a message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum SnapshotScope {
    /// Those of the sandbox that the message is about.
    Sandbox,
    /// Those of every sandbox with the pod's uid.
    Pod,
}

/// What `RemovePodSandbox` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum SandboxRemoval {
    /// Nothing, not even of the containers that go with the sandbox.
    Untold,
    /// DELETED for each container, then for the sandbox, without a sandbox status.
    WithoutStatus,
    /// DELETED for each container, then for the sandbox, with its last status (not ready).
    WithStatus,
}

/// What a failed start leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum FailedStart {
    /// An exited container: 128, `StartError`, never started.
    ExitedContainer,
    /// Nothing: the container is removed without a message.
    Nothing,
}

/// How the moment of a message is written into its `created_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Stamps {
    /// In nanoseconds, as CRI says.
    Nanoseconds,
    /// In seconds, as early CRI-O did.
    Seconds,
    /// In milliseconds.
    Milliseconds,
    /// In microseconds.
    Microseconds,
    /// Not at all.
    Zero,
    /// In nanoseconds, but negative.
    Negative,
    /// In nanoseconds of a clock that is ahead by this much.
    Ahead(#[serde(with = "duration")] Duration),
    /// In nanoseconds of a clock that is behind by this much.
    Behind(#[serde(with = "duration")] Duration),
}

impl Stamps {
    /// The stamp of a message made at `at`.
    #[must_use]
    pub fn stamp(self, at: UnixNanos) -> i64 {
        match self {
            Self::Nanoseconds => at.0,
            Self::Seconds => at.0 / 1_000_000_000,
            Self::Milliseconds => at.0 / 1_000_000,
            Self::Microseconds => at.0 / 1_000,
            Self::Zero => 0,
            Self::Negative => at.0.saturating_abs().saturating_neg(),
            Self::Ahead(ahead) => at.0.saturating_add(nanos(ahead)),
            Self::Behind(behind) => at.0.saturating_sub(nanos(behind)),
        }
    }
}

pub(super) fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Events that fit in the windows of a Go client which stopped reading, as measured on containerd
/// 1.7 (165) and, with its 100 buffered, 2.1 (266).
const IN_FLIGHT: usize = 165;

impl Character {
    /// containerd 1.6: no events; `GetContainerEvents` is Unimplemented.
    #[must_use]
    pub fn containerd_1_6() -> Self {
        Self {
            events: EventSupport::Unimplemented,
            ..Self::containerd("1.6.20", SandboxRemoval::WithoutStatus)
        }
    }

    /// containerd 1.7: one queue of 1000 that all streams share, kept without a client, newest
    /// dropped when full; an abandoned stream swallows one event.
    #[must_use]
    pub fn containerd_1_7() -> Self {
        Self {
            events: EventSupport::Served(EventDelivery {
                sharing: Sharing::Competing,
                queue: 1000,
                when_full: WhenFull::DropNewest,
                without_client: WithoutClient::Queue,
                stream_buffer: IN_FLIGHT,
                swallowed_by_dead_stream: 1,
            }),
            ..Self::containerd("1.7.24", SandboxRemoval::WithoutStatus)
        }
    }

    /// containerd 2.x before 2.4: every stream gets every event, five minutes of them are kept while
    /// nobody listens, and a stream that does not read blocks the whole runtime.
    #[must_use]
    pub fn containerd_2() -> Self {
        Self {
            events: EventSupport::Served(EventDelivery {
                sharing: Sharing::EveryStream,
                queue: 0,
                when_full: WhenFull::BlockProducer,
                without_client: WithoutClient::KeepFor(Duration::from_mins(5)),
                stream_buffer: 100 + IN_FLIGHT,
                swallowed_by_dead_stream: 1,
            }),
            ..Self::containerd("2.1.9", SandboxRemoval::WithStatus)
        }
    }

    /// CRI-O with `enable_pod_events`: messages speak of the whole pod, sandboxes give neither
    /// CREATED nor DELETED, removing a sandbox is not told at all.
    #[must_use]
    pub fn cri_o() -> Self {
        Self {
            runtime_name: "cri-o".into(),
            runtime_version: "1.36.3".into(),
            events: EventSupport::Served(EventDelivery {
                sharing: Sharing::EveryStream,
                queue: 1000,
                when_full: WhenFull::DropNewest,
                without_client: WithoutClient::QueueUntilFirstClient,
                stream_buffer: IN_FLIGHT,
                swallowed_by_dead_stream: 0,
            }),
            habits: EventHabits {
                snapshot: SnapshotScope::Pod,
                sandbox_created: false,
                sandbox_removal: SandboxRemoval::Untold,
                failed_start: FailedStart::Nothing,
                unstarted_removal_stops: true,
                stamps: Stamps::Nanoseconds,
                lag: Duration::from_millis(1),
            },
            status_carries_containers: true,
            streaming_lists: None,
            latency: BTreeMap::new(),
        }
    }

    /// CRI-O as it comes, events off: `GetContainerEvents` ends at once without an error.
    #[must_use]
    pub fn cri_o_events_off() -> Self {
        Self {
            events: EventSupport::EndsAtOnce,
            status_carries_containers: false,
            ..Self::cri_o()
        }
    }

    /// The same runtime, slow: every answer is under way for `latency`.
    #[must_use]
    pub fn with_latency(mut self, latency: Duration) -> Self {
        self.latency = Rpc::ALL.into_iter().map(|rpc| (rpc, latency)).collect();
        self
    }

    /// The same runtime with streaming lists of at most `items` a message (containerd sends 5000).
    #[must_use]
    pub fn with_streaming_lists(mut self, items: usize) -> Self {
        self.streaming_lists = Some(items);
        self
    }

    fn containerd(version: &str, sandbox_removal: SandboxRemoval) -> Self {
        Self {
            runtime_name: "containerd".into(),
            runtime_version: version.into(),
            events: EventSupport::Unimplemented,
            habits: EventHabits {
                snapshot: SnapshotScope::Sandbox,
                sandbox_created: true,
                sandbox_removal,
                failed_start: FailedStart::ExitedContainer,
                unstarted_removal_stops: false,
                stamps: Stamps::Nanoseconds,
                lag: Duration::from_millis(1),
            },
            status_carries_containers: false,
            streaming_lists: None,
            latency: BTreeMap::new(),
        }
    }
}

impl Default for Character {
    /// [`containerd_2`](Self::containerd_2): what most nodes run today.
    fn default() -> Self {
        Self::containerd_2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_can_be_wrong_in_the_ways_that_were_seen() {
        let at = UnixNanos(1_700_000_000_000_000_007);
        assert_eq!(Stamps::Nanoseconds.stamp(at), at.0);
        assert_eq!(Stamps::Seconds.stamp(at), 1_700_000_000);
        assert_eq!(Stamps::Milliseconds.stamp(at), 1_700_000_000_000);
        assert_eq!(Stamps::Microseconds.stamp(at), 1_700_000_000_000_000);
        assert_eq!(Stamps::Zero.stamp(at), 0);
        assert_eq!(Stamps::Negative.stamp(at), -at.0);
        let hour = Duration::from_hours(1);
        assert_eq!(
            Stamps::Ahead(hour).stamp(at),
            at.0 + 3_600_000_000_000,
            "an hour ahead"
        );
    }
}
