//! The details of what is done on the node.

use serde::{Deserialize, Serialize};

#[cfg(doc)]
use super::Action;
use crate::scenario::values::{ContainerName, PodName, SandboxName, Time, is_default};

/// See [`Action::Run`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Run {
    /// The pod.
    pub pod: PodName,
    /// Its containers, all running.
    #[serde(default, skip_serializing_if = "is_default")]
    pub containers: Vec<String>,
    /// Its uid; made up if absent. Two pods may share one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub uid: Option<String>,
    /// Its namespace; `default` if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub namespace: Option<String>,
    /// Whether it uses the node's network.
    #[serde(default, skip_serializing_if = "is_default")]
    pub host_network: bool,
    /// Whether it was made with crictl, and so has no kubelet labels.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by_crictl: bool,
}

/// See [`Action::RunMany`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunMany {
    /// How the names begin.
    pub named: PodName,
    /// How many pods.
    pub pods: usize,
    /// The containers of each, all running.
    #[serde(default, skip_serializing_if = "is_default")]
    pub containers: Vec<String>,
    /// How many exited containers each has besides, named `old-0` and so on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exited: usize,
}

/// See [`Action::Exit`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Exit {
    /// The container.
    pub container: ContainerName,
    /// The exit code; 0 if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub code: i32,
    /// The runtime's reason; `Completed` or `Error` if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reason: Option<String>,
}

/// See [`Action::ExitMany`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExitMany {
    /// The pods: those whose names begin so.
    pub pods: PodName,
    /// The exit code; 0 if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub code: i32,
}

/// See [`Action::AmendReason`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AmendReason {
    /// The container.
    pub container: ContainerName,
    /// The new reason.
    pub reason: String,
}

/// See [`Action::SetIps`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SetIps {
    /// The sandbox.
    pub sandbox: SandboxName,
    /// Its addresses, primary first.
    pub ips: Vec<String>,
}

/// See [`Action::Churn`]. It runs beside the steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Churn {
    /// The pods: those whose names begin so.
    pub pods: PodName,
    /// The time between two exits.
    pub every: Time,
    /// How many exits; each is followed by the removal of the container and the start of its successor.
    pub times: u64,
}
