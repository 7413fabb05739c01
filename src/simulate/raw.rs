//! Event messages of any content: what no operation would tell, and no honest runtime would send.
//!
//! Every field of CRI's message that a client of events reads, each as it goes over the wire: states
//! and types as numbers, absent messages absent. [`RawEvent::from`] a [`StreamMessage`] gives the
//! honest message, to be bent. Bytes that are no message at all need no type: see
//! [`SimulatedRuntime::emit_bytes`](super::SimulatedRuntime::emit_bytes).

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message as _;
use serde::{Deserialize, Serialize};

use super::subject::StreamMessage;
use super::wire;
use crate::cri::wire::messages as cri;
use crate::lifecycle::EventKind;

/// `ContainerEventResponse`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RawEvent {
    /// The container or sandbox.
    pub container_id: String,
    /// The type: 0 created, 1 started, 2 stopped, 3 deleted.
    pub container_event_type: i32,
    /// The stamp; nanoseconds since 1970 if all is well.
    pub created_at: i64,
    /// The sandbox's status.
    pub pod_sandbox_status: Option<RawSandbox>,
    /// The containers' statuses.
    pub containers_statuses: Vec<RawContainer>,
}

/// `PodSandboxStatus`, in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RawSandbox {
    /// Its id.
    pub id: String,
    /// Which pod's it is.
    pub metadata: Option<RawSandboxMetadata>,
    /// 0 ready, 1 not ready.
    pub state: i32,
    /// Nanoseconds since 1970.
    pub created_at: i64,
    /// Its addresses, primary first.
    pub ips: Vec<String>,
    /// Whether the pod is on the node's network.
    pub host_network: bool,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// `PodSandboxMetadata`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RawSandboxMetadata {
    /// The pod's name.
    pub name: String,
    /// The pod's uid.
    pub uid: String,
    /// The pod's namespace.
    pub namespace: String,
    /// Which sandbox of the pod.
    pub attempt: u32,
}

/// `ContainerStatus`, in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RawContainer {
    /// Its id.
    pub id: String,
    /// What it is called.
    pub metadata: Option<RawContainerMetadata>,
    /// 0 created, 1 running, 2 exited, 3 unknown.
    pub state: i32,
    /// Nanoseconds since 1970, as the next two.
    pub created_at: i64,
    /// 0: not yet.
    pub started_at: i64,
    /// 0: not yet.
    pub finished_at: i64,
    /// The exit code.
    pub exit_code: i32,
    /// Why it ended.
    pub reason: String,
    /// More of why.
    pub message: String,
    /// The image as asked for.
    pub image: String,
    /// The image as resolved.
    pub image_ref: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// `ContainerMetadata`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RawContainerMetadata {
    /// Its name.
    pub name: String,
    /// Which container of that name.
    pub attempt: u32,
}

impl RawEvent {
    /// The same message of this type.
    #[must_use]
    pub fn kind(mut self, kind: EventKind) -> Self {
        self.container_event_type = wire::kind_number(kind);
        self
    }

    pub(super) fn encode(&self) -> Bytes {
        cri::ContainerEventResponse::from(self.clone())
            .encode_to_vec()
            .into()
    }
}

/// The message as an honest runtime sends it, without what clients of events do not read.
impl From<&StreamMessage> for RawEvent {
    fn from(message: &StreamMessage) -> Self {
        // Our own bytes: they decode.
        cri::ContainerEventResponse::decode(wire::event(message))
            .unwrap_or_default()
            .into()
    }
}

impl From<RawEvent> for cri::ContainerEventResponse {
    fn from(raw: RawEvent) -> Self {
        Self {
            container_id: raw.container_id,
            container_event_type: raw.container_event_type,
            created_at: raw.created_at,
            pod_sandbox_status: raw.pod_sandbox_status.map(Into::into),
            containers_statuses: raw
                .containers_statuses
                .into_iter()
                .map(Into::into)
                .collect(),
        }
    }
}

impl From<cri::ContainerEventResponse> for RawEvent {
    fn from(sent: cri::ContainerEventResponse) -> Self {
        Self {
            container_id: sent.container_id,
            container_event_type: sent.container_event_type,
            created_at: sent.created_at,
            pod_sandbox_status: sent.pod_sandbox_status.map(Into::into),
            containers_statuses: sent
                .containers_statuses
                .into_iter()
                .map(Into::into)
                .collect(),
        }
    }
}

impl From<RawSandbox> for cri::PodSandboxStatus {
    fn from(raw: RawSandbox) -> Self {
        let network = if raw.host_network {
            cri::NamespaceMode::Node
        } else {
            cri::NamespaceMode::Pod
        };
        let mut ips = raw.ips.into_iter();
        let ip = ips.next().unwrap_or_default();
        Self {
            id: raw.id,
            metadata: raw.metadata.map(|metadata| cri::PodSandboxMetadata {
                name: metadata.name,
                uid: metadata.uid,
                namespace: metadata.namespace,
                attempt: metadata.attempt,
            }),
            state: raw.state,
            created_at: raw.created_at,
            network: Some(cri::PodSandboxNetworkStatus {
                ip,
                additional_ips: ips.map(|ip| cri::PodIp { ip }).collect(),
            }),
            linux: Some(cri::LinuxPodSandboxStatus {
                namespaces: Some(cri::Namespace {
                    options: Some(cri::NamespaceOption {
                        network: network.into(),
                    }),
                }),
            }),
            labels: raw.labels,
        }
    }
}

impl From<cri::PodSandboxStatus> for RawSandbox {
    fn from(sent: cri::PodSandboxStatus) -> Self {
        let network = sent.network.unwrap_or_default();
        let first = Some(network.ip).filter(|ip| !ip.is_empty());
        let rest = network.additional_ips.into_iter().map(|ip| ip.ip);
        let options = sent
            .linux
            .and_then(|linux| linux.namespaces)
            .and_then(|namespaces| namespaces.options)
            .unwrap_or_default();
        Self {
            id: sent.id,
            metadata: sent.metadata.map(|metadata| RawSandboxMetadata {
                name: metadata.name,
                uid: metadata.uid,
                namespace: metadata.namespace,
                attempt: metadata.attempt,
            }),
            state: sent.state,
            created_at: sent.created_at,
            ips: first.into_iter().chain(rest).collect(),
            host_network: options.network() == cri::NamespaceMode::Node,
            labels: sent.labels,
        }
    }
}

impl From<RawContainer> for cri::ContainerStatus {
    fn from(raw: RawContainer) -> Self {
        Self {
            id: raw.id,
            metadata: raw.metadata.map(|metadata| cri::ContainerMetadata {
                name: metadata.name,
                attempt: metadata.attempt,
            }),
            state: raw.state,
            created_at: raw.created_at,
            started_at: raw.started_at,
            finished_at: raw.finished_at,
            exit_code: raw.exit_code,
            image: Some(cri::ImageSpec { image: raw.image }),
            image_ref: raw.image_ref,
            reason: raw.reason,
            message: raw.message,
            labels: raw.labels,
        }
    }
}

impl From<cri::ContainerStatus> for RawContainer {
    fn from(sent: cri::ContainerStatus) -> Self {
        Self {
            id: sent.id,
            metadata: sent.metadata.map(|metadata| RawContainerMetadata {
                name: metadata.name,
                attempt: metadata.attempt,
            }),
            state: sent.state,
            created_at: sent.created_at,
            started_at: sent.started_at,
            finished_at: sent.finished_at,
            exit_code: sent.exit_code,
            reason: sent.reason,
            message: sent.message,
            image: sent.image.unwrap_or_default().image,
            image_ref: sent.image_ref,
            labels: sent.labels,
        }
    }
}
