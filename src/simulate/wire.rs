//! From the world's values to CRI's messages.

use std::sync::Arc;

use super::subject::{Container, Labels, Sandbox, StreamMessage};
use crate::cri::wire::messages as cri;
use crate::lifecycle::{EventKind, ReportedState, UnixNanos};

pub(super) fn sandbox_item(sandbox: &Sandbox) -> cri::PodSandbox {
    cri::PodSandbox {
        id: sandbox.id.as_str().into(),
        metadata: Some(sandbox_metadata(sandbox)),
        state: sandbox_state(sandbox).into(),
        created_at: sandbox.created_at.0,
        labels: labels(&sandbox.labels()),
    }
}

pub(super) fn sandbox_status(sandbox: &Sandbox) -> cri::PodSandboxStatus {
    let (ip, additional_ips) = match sandbox.ips.split_first() {
        None => (String::new(), Vec::new()),
        Some((first, rest)) => (first.as_ref().into(), rest.iter().map(pod_ip).collect()),
    };
    let network = if sandbox.pod.host_network {
        cri::NamespaceMode::Node
    } else {
        cri::NamespaceMode::Pod
    };
    cri::PodSandboxStatus {
        id: sandbox.id.as_str().into(),
        metadata: Some(sandbox_metadata(sandbox)),
        state: sandbox_state(sandbox).into(),
        created_at: sandbox.created_at.0,
        network: Some(cri::PodSandboxNetworkStatus { ip, additional_ips }),
        linux: Some(cri::LinuxPodSandboxStatus {
            namespaces: Some(cri::Namespace {
                options: Some(cri::NamespaceOption {
                    network: network.into(),
                }),
            }),
        }),
        labels: labels(&sandbox.labels()),
    }
}

pub(super) fn container_item(container: &Container) -> cri::Container {
    cri::Container {
        id: container.id.as_str().into(),
        pod_sandbox_id: container.sandbox.as_str().into(),
        metadata: Some(container_metadata(container)),
        image: Some(image(container)),
        image_ref: container.image_ref.as_ref().into(),
        state: container_state(container).into(),
        created_at: container.created_at.0,
        labels: labels(&container.labels()),
    }
}

pub(super) fn container_status(container: &Container) -> cri::ContainerStatus {
    cri::ContainerStatus {
        id: container.id.as_str().into(),
        metadata: Some(container_metadata(container)),
        state: container_state(container).into(),
        created_at: container.created_at.0,
        started_at: nanos_or_zero(container.started_at),
        finished_at: nanos_or_zero(container.finished_at),
        exit_code: container.exit.code,
        image: Some(image(container)),
        image_ref: container.image_ref.as_ref().into(),
        reason: container.exit.reason.as_ref().into(),
        message: container.exit.message.as_ref().into(),
        labels: labels(&container.labels()),
    }
}

pub(super) fn event(message: &StreamMessage) -> cri::ContainerEventResponse {
    cri::ContainerEventResponse {
        container_id: message.id.as_ref().into(),
        container_event_type: match message.kind {
            EventKind::Created => cri::ContainerEventType::ContainerCreatedEvent.into(),
            EventKind::Started => cri::ContainerEventType::ContainerStartedEvent.into(),
            EventKind::Stopped => cri::ContainerEventType::ContainerStoppedEvent.into(),
            EventKind::Deleted => cri::ContainerEventType::ContainerDeletedEvent.into(),
            EventKind::Other(number) => number,
        },
        created_at: message.stamp,
        pod_sandbox_status: message.sandbox.as_ref().map(sandbox_status),
        containers_statuses: message.containers.iter().map(container_status).collect(),
    }
}

fn sandbox_metadata(sandbox: &Sandbox) -> cri::PodSandboxMetadata {
    cri::PodSandboxMetadata {
        name: sandbox.pod.name.as_ref().into(),
        uid: sandbox.pod.uid.as_str().into(),
        namespace: sandbox.pod.namespace.as_ref().into(),
        attempt: sandbox.attempt,
    }
}

fn container_metadata(container: &Container) -> cri::ContainerMetadata {
    cri::ContainerMetadata {
        name: container.name.as_ref().into(),
        attempt: container.attempt,
    }
}

fn sandbox_state(sandbox: &Sandbox) -> cri::PodSandboxState {
    if sandbox.ready {
        cri::PodSandboxState::SandboxReady
    } else {
        cri::PodSandboxState::SandboxNotready
    }
}

fn container_state(container: &Container) -> cri::ContainerState {
    match container.state {
        ReportedState::Unknown => cri::ContainerState::ContainerUnknown,
        ReportedState::Created => cri::ContainerState::ContainerCreated,
        ReportedState::Running => cri::ContainerState::ContainerRunning,
        ReportedState::Exited => cri::ContainerState::ContainerExited,
    }
}

fn image(container: &Container) -> cri::ImageSpec {
    cri::ImageSpec {
        image: container.image.as_ref().into(),
    }
}

fn pod_ip(ip: &Arc<str>) -> cri::PodIp {
    cri::PodIp {
        ip: ip.as_ref().into(),
    }
}

fn labels(labels: &Labels) -> std::collections::BTreeMap<String, String> {
    labels
        .iter()
        .map(|(key, value)| (key.as_ref().into(), value.as_ref().into()))
        .collect()
}

fn nanos_or_zero(at: Option<UnixNanos>) -> i64 {
    at.map_or(0, |at| at.0)
}
