//! What the runtime says: listings, statuses and stream events, decoded and checked, not yet judged.
//!
//! Built by `cri::wire` from bytes (or by tests by hand). Nothing here has an opinion about what is
//! true; that is `merge`'s and the engine's.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ContainerId, PodIdentity, ReportedState, SandboxId, UnixNanos};

/// One sandbox of a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxListing {
    /// The sandbox; never empty.
    pub id: SandboxId,
    /// The pod, from the sandbox's metadata; its uid is never empty.
    pub pod: PodIdentity,
    /// Which try of the pod this sandbox is, from 0.
    pub attempt: u32,
    /// Ready is `Running`, not ready is `Exited`.
    pub state: ReportedState,
    /// When it was made, by the runtime's clock.
    pub created_at: Option<UnixNanos>,
    /// Whether its labels carry the pod's uid, so that a list filtered by that label shows it.
    pub labelled: bool,
}

/// One container of a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerListing {
    /// The container; never empty.
    pub id: ContainerId,
    /// The sandbox that it runs in, if the runtime named one.
    pub sandbox: Option<SandboxId>,
    /// The pod, if the kubelet's labels name it.
    pub pod: Option<PodIdentity>,
    /// The container's name in the pod.
    pub name: Arc<str>,
    /// Which try of that name this container is, from 0; the kubelet's restart count.
    pub attempt: u32,
    /// What the list says of it.
    pub state: ReportedState,
    /// When it was made, by the runtime's clock.
    pub created_at: Option<UnixNanos>,
    /// The image as asked for; empty if not told.
    pub image: Arc<str>,
    /// The image as resolved; empty if not told.
    pub image_ref: Arc<str>,
}

/// A sandbox's status, from `PodSandboxStatus` or out of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxStatus {
    /// The sandbox; never empty.
    pub id: SandboxId,
    /// The pod, from the sandbox's metadata; its uid is never empty.
    pub pod: PodIdentity,
    /// Which try of the pod this sandbox is, from 0.
    pub attempt: u32,
    /// Ready is `Running`, not ready is `Exited`.
    pub state: ReportedState,
    /// When it was made, by the runtime's clock.
    pub created_at: Option<UnixNanos>,
    /// The pod's addresses, primary first; empty on the host network and before or after the network.
    pub ips: Vec<Arc<str>>,
    /// Whether the pod uses the node's network, and so never has an address of its own.
    pub host_network: bool,
    /// Whether its labels carry the pod's uid, so that a list filtered by that label shows it.
    pub labelled: bool,
}

/// A container's status, from `ContainerStatus` or out of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerStatus {
    /// The container; never empty.
    pub id: ContainerId,
    /// The pod, if the kubelet's labels name it. CRI gives no sandbox id here.
    pub pod: Option<PodIdentity>,
    /// The container's name in the pod.
    pub name: Arc<str>,
    /// Which try of that name this container is, from 0; the kubelet's restart count.
    pub attempt: u32,
    /// What the status says of it.
    pub state: ReportedState,
    /// When it was made, by the runtime's clock.
    pub created_at: Option<UnixNanos>,
    /// When it began to run; absent for a start that failed.
    pub started_at: Option<UnixNanos>,
    /// When it ended; may lie before `started_at` by milliseconds.
    pub finished_at: Option<UnixNanos>,
    /// The exit code; means something only when exited.
    pub exit_code: i32,
    /// Why it ended (`Completed`, `Error`, `OOMKilled`, `StartError` …); empty if not told.
    pub reason: Arc<str>,
    /// More of why; empty if not told.
    pub message: Arc<str>,
    /// The image as asked for; empty if not told.
    pub image: Arc<str>,
    /// The image as resolved; empty if not told.
    pub image_ref: Arc<str>,
}

/// What a stream message says happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EventKind {
    /// `CONTAINER_CREATED_EVENT`.
    Created,
    /// `CONTAINER_STARTED_EVENT`.
    Started,
    /// `CONTAINER_STOPPED_EVENT`.
    Stopped,
    /// `CONTAINER_DELETED_EVENT`.
    Deleted,
    /// A number that CRI v1 does not have yet: "look at this pod".
    Other(i32),
}

/// One message of `GetContainerEvents`: a hint with a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeEvent {
    /// The container or sandbox that it is about; may be empty if the runtime is broken.
    pub id: Arc<str>,
    /// What happened.
    pub kind: EventKind,
    /// `created_at` as it stood in the message, in nanoseconds; may be absurd.
    pub stamp: i64,
    /// The sandbox's status when the message was made, if it came and could be read.
    pub sandbox: Option<SandboxStatus>,
    /// Statuses of the pod's containers when the message was made: all, some or none of them.
    pub containers: Vec<ContainerStatus>,
    /// Parts of the message that could not be what they claim to be and were left out.
    pub refused: Vec<Refusal>,
}

/// Why a part of a runtime's answer or message was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Refusal {
    /// A message whose bytes are no message of CRI.
    Undecodable,
    /// An item or event without an id.
    EmptyId,
    /// A sandbox or container without metadata, or metadata without a name.
    NoMetadata,
    /// A sandbox without a pod uid.
    NoPodUid,
    /// The same id twice in one answer.
    DuplicateId,
    /// A container that names neither a known sandbox nor a pod.
    NoPod,
    /// A known sandbox or container that claims another pod.
    PodChanged,
    /// An event's stamp that is zero, negative, in the future or of a wrong unit.
    AbsurdStamp,
    /// A message with more than 1,000 subjects that nobody knows.
    TooManySubjects,
}

/// One list, complete: every item that could be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed<T> {
    /// The items, each id once, in the runtime's order. One that is as it was in the list before may be
    /// the same in memory.
    pub items: Vec<Arc<T>>,
    /// Ids that were listed but whose item could not be read: present, and no more is known.
    pub unreadable: Vec<Arc<str>>,
    /// What was left out, one entry each time.
    pub refused: Vec<Refusal>,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            unreadable: Vec::new(),
            refused: Vec::new(),
        }
    }
}

impl<T> From<Vec<T>> for Listed<T> {
    fn from(items: Vec<T>) -> Self {
        Self {
            items: items.into_iter().map(Arc::new).collect(),
            ..Self::default()
        }
    }
}

/// `ListPodSandbox` and `ListContainers` (or their streaming forms), asked one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeList {
    /// The sandboxes, asked for first.
    pub sandboxes: Listed<SandboxListing>,
    /// The containers, asked for when the sandboxes had been answered.
    pub containers: Listed<ContainerListing>,
}
