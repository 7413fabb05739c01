//! The details of what goes wrong with the event stream and with answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[cfg(doc)]
use super::Action;
use crate::scenario::values::{ContainerName, PodName, SubjectName, Time, is_default};

/// See [`Action::Lose`] and [`Action::Reorder`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Messages {
    /// How many; all from now on if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub next: Option<u32>,
    /// Only one in so many of those that fit, the first at once.
    #[serde(default, skip_serializing_if = "is_default")]
    pub one_in: Option<u32>,
    /// Only those about this container or sandbox.
    #[serde(default, skip_serializing_if = "is_default")]
    pub about: Option<SubjectName>,
    /// Only those of this pod.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pod: Option<PodName>,
    /// Only those of this type.
    #[serde(default, skip_serializing_if = "is_default", rename = "type")]
    pub kind: Option<MessageType>,
}

/// See [`Action::Delay`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Delayed {
    /// Which messages.
    #[serde(default, skip_serializing_if = "is_default")]
    pub messages: Messages,
    /// How much later they come.
    pub by: Time,
}

/// See [`Action::Duplicate`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Duplicated {
    /// Which messages.
    #[serde(default, skip_serializing_if = "is_default")]
    pub messages: Messages,
    /// How often each comes besides.
    pub times: u32,
}

/// The type of a stream message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum MessageType {
    /// `CONTAINER_CREATED_EVENT`.
    Created,
    /// `CONTAINER_STARTED_EVENT`.
    Started,
    /// `CONTAINER_STOPPED_EVENT`.
    Stopped,
    /// `CONTAINER_DELETED_EVENT`.
    Deleted,
}

/// See [`Action::Emit`]. What is left out is as an honest runtime would have it now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Emit {
    /// The type.
    #[serde(default, skip_serializing_if = "is_default", rename = "type")]
    pub kind: Option<MessageType>,
    /// The type as a number, for those that CRI does not have yet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub type_number: Option<i32>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "is_default")]
    pub about: Option<SubjectName>,
    /// The id that it is about, as it goes over the wire, for those that nobody has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub id: Option<String>,
    /// Its stamp: a moment of the scenario, by the wall clock.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stamp: Option<Time>,
    /// Its stamp as a number.
    #[serde(default, skip_serializing_if = "is_default")]
    pub raw_stamp: Option<i64>,
    /// Whether it carries the sandbox's status.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sandbox: Option<SandboxShown>,
    /// The containers that it shows, and how; all as they are if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub containers: Option<BTreeMap<ContainerName, ShownState>>,
    /// The pod's uid in it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub uid: Option<String>,
}

/// How a message shows its sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum SandboxShown {
    /// Ready.
    Ready,
    /// Not ready, without addresses.
    NotReady,
    /// Not at all.
    Missing,
    /// Without metadata.
    WithoutMetadata,
}

/// How a message shows a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum ShownState {
    /// Created.
    Created,
    /// Running.
    Running,
    /// Exited with this code.
    Exited(i32),
    /// Unknown.
    Unknown,
    /// As it is.
    AsItIs,
    /// As it is, and once more.
    Twice,
}

/// A gRPC status code, by its name in Go and Rust.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "gRPC's own names")]
pub enum Code {
    Cancelled,
    #[default]
    Unavailable,
    Unknown,
    NotFound,
    DeadlineExceeded,
    Unimplemented,
    Internal,
    ResourceExhausted,
    PermissionDenied,
    FailedPrecondition,
}

/// A method of CRI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "CRI's own names")]
pub enum Method {
    Version,
    ListPodSandbox,
    StreamPodSandboxes,
    PodSandboxStatus,
    ListContainers,
    StreamContainers,
    ContainerStatus,
    GetContainerEvents,
}

/// Which calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Calls {
    /// The method; all if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub call: Option<Method>,
    /// Only calls that ask for this container or sandbox.
    #[serde(default, skip_serializing_if = "is_default")]
    pub of: Option<SubjectName>,
    /// How often; until `heal` if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub times: Option<u32>,
}

/// See [`Action::Fail`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Failing {
    /// The method; all if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub call: Option<Method>,
    /// Only calls that ask for this container or sandbox.
    #[serde(default, skip_serializing_if = "is_default")]
    pub of: Option<SubjectName>,
    /// How often; until `heal` if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub times: Option<u32>,
    /// With this code; `Unavailable` if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub code: Code,
    /// After this time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub after: Time,
}

/// See [`Action::Slow`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Slow {
    /// The method; all if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub call: Option<Method>,
    /// Only calls that ask for this container or sandbox.
    #[serde(default, skip_serializing_if = "is_default")]
    pub of: Option<SubjectName>,
    /// How often; until `heal` if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub times: Option<u32>,
    /// How long the answer is under way.
    pub by: Time,
    /// Whether the answer shows what is so when it arrives, instead of when it was asked for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_late: bool,
}

/// See [`Action::Cut`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CutList {
    /// `StreamPodSandboxes` or `StreamContainers`.
    pub call: Method,
    /// After so many items.
    pub after: usize,
    /// How often; until `heal` if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub times: Option<u32>,
}

/// See [`Action::AnswerFrom`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnswerFrom {
    /// What was remembered.
    pub remembered: String,
    /// Which calls.
    #[serde(default, skip_serializing_if = "is_default")]
    pub calls: Calls,
}
