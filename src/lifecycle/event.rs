//! Lifecycle events: what is told to subscribers.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ContainerId, PodIdentity, Revision, SandboxId, SubjectId, UnixNanos};

/// What a lifecycle event says. Sandboxes give the same events as containers, as in the kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LifecycleKind {
    /// The subject runs (a sandbox: is ready).
    ContainerStarted,
    /// The subject has ended (a sandbox: is not ready).
    ContainerDied,
    /// The subject is gone from the runtime.
    ContainerRemoved,
    /// Something about the pod is worth a look: the answer to a reinspect request, or a subject
    /// that stepped back.
    PodSync,
}

impl fmt::Display for LifecycleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ContainerStarted => "ContainerStarted",
            Self::ContainerDied => "ContainerDied",
            Self::ContainerRemoved => "ContainerRemoved",
            Self::PodSync => "PodSync",
        })
    }
}

/// Which kind of observation told a change first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Source {
    /// A message of the event stream.
    Event,
    /// A list, of the node or of one pod.
    Relist,
    /// A status read.
    Inspect,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Event => "event",
            Self::Relist => "relist",
            Self::Inspect => "inspect",
        })
    }
}

/// The container or sandbox that an event is about, with what people call it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EventSubject {
    /// A sandbox.
    Sandbox {
        /// Its id.
        id: SandboxId,
        /// Which try of the pod it is.
        attempt: u32,
    },
    /// A container.
    Container {
        /// Its id.
        id: ContainerId,
        /// Its name in the pod.
        name: Arc<str>,
        /// Which try of that name it is.
        attempt: u32,
    },
}

impl EventSubject {
    /// The subject's id.
    #[must_use]
    pub fn id(&self) -> SubjectId {
        match self {
            Self::Sandbox { id, .. } => SubjectId::Sandbox(id.clone()),
            Self::Container { id, .. } => SubjectId::Container(id.clone()),
        }
    }
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Exit {
    /// The exit code: 137 for SIGKILL, 128 for a start that failed, 255 if the runtime lost it.
    pub exit_code: i32,
    /// The runtime's reason; empty if it gave none.
    pub reason: Arc<str>,
    /// When it ended, by the runtime's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<UnixNanos>,
}

/// One change of one subject, told once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LifecycleEvent {
    /// What happened.
    #[serde(rename = "type")]
    pub kind: LifecycleKind,
    /// The position to resume after.
    pub revision: Revision,
    /// The pod.
    pub pod: PodIdentity,
    /// The container or sandbox; absent for `PodSync`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub subject: Option<EventSubject>,
    /// For a container's `ContainerDied`, if the runtime told how it ended.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// What told it first.
    pub source: Source,
    /// Whether it describes what a subscriber's snapshot found rather than something that happened
    /// while it watched.
    pub initial: bool,
    /// The runtime's own stamp of the stream message that told it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub runtime_stamp: Option<UnixNanos>,
    /// When this process learned of it, by the wall clock.
    pub seen_at: UnixNanos,
    /// The revision at which the subject was first published: whoever resumed after it has been
    /// shown the subject, or could have been.
    #[serde(skip, default)]
    pub born: Revision,
}
