//! From the world's values to CRI's messages, as bytes.
//!
//! Field numbers are CRI's. Besides what this crate reads, pods of the kubelet carry what it gives
//! them: annotations, mounts, log paths. A client under load should skip as much as on a real node.

use bytes::Bytes;

use super::encode::Writer;
use super::subject::{Container, Pod, Sandbox, StreamMessage};
use crate::cri::wire::messages as cri;
use crate::lifecycle::{EventKind, ReportedState, UnixNanos};

/// One element of a list of sandboxes, key and length included: lists are these, one after another.
pub(super) fn sandbox_item(sandbox: &Sandbox) -> Bytes {
    Writer::message(|list| {
        list.nested(1, |item| {
            item.text(1, sandbox.id.as_str());
            item.nested(2, |metadata| sandbox_metadata(metadata, sandbox));
            item.number(3, sandbox_state(sandbox));
            item.number(4, sandbox.created_at.0);
            pod_labels(item, 5, &sandbox.pod);
            sandbox_annotations(item, 6, sandbox);
        });
    })
}

/// One element of a list of containers, key and length included.
pub(super) fn container_item(container: &Container) -> Bytes {
    Writer::message(|list| {
        list.nested(1, |item| {
            item.text(1, container.id.as_str());
            item.text(2, container.sandbox.as_str());
            item.nested(3, |metadata| container_metadata(metadata, container));
            item.nested(4, |image| image_spec(image, container));
            item.text(5, &container.image_ref);
            item.number(6, container_state(container));
            item.number(7, container.created_at.0);
            container_labels(item, 8, container);
            container_annotations(item, 9, container);
            item.text(10, &container.image_ref);
        });
    })
}

/// The answer to `PodSandboxStatus`, with `containers` and the moment for runtimes that give them.
pub(super) fn sandbox_answer<'a>(
    sandbox: &Sandbox,
    containers: impl Iterator<Item = &'a Container>,
    timestamp: i64,
) -> Bytes {
    Writer::message(|answer| {
        answer.nested(1, |status| sandbox_status(status, sandbox));
        for container in containers {
            answer.nested(3, |status| container_status(status, container));
        }
        answer.number(4, timestamp);
    })
}

/// The answer to `ContainerStatus`.
pub(super) fn container_answer(container: &Container) -> Bytes {
    Writer::message(|answer| answer.nested(1, |status| container_status(status, container)))
}

/// A message of the event stream.
pub(super) fn event(message: &StreamMessage) -> Bytes {
    Writer::message(|event| {
        event.text(1, &message.id);
        event.number(2, kind_number(message.kind));
        event.number(3, message.stamp);
        if let Some(sandbox) = &message.sandbox {
            event.nested(4, |status| sandbox_status(status, sandbox));
        }
        for container in &message.containers {
            event.nested(5, |status| container_status(status, container));
        }
    })
}

/// The answer to `Version`.
pub(super) fn version(api: &str, name: &str, version: &str) -> Bytes {
    Writer::message(|answer| {
        answer.text(1, api);
        answer.text(2, name);
        answer.text(3, version);
        answer.text(4, "v1");
    })
}

/// The answer to `Status`, with these conditions met.
pub(super) fn status(conditions: [&str; 2]) -> Bytes {
    Writer::message(|answer| {
        answer.nested(1, |status| {
            for name in conditions {
                status.nested(1, |condition| {
                    condition.text(1, name);
                    condition.number(2, i32::from(true));
                });
            }
        });
    })
}

/// The number of an event type.
pub(super) fn kind_number(kind: EventKind) -> i32 {
    match kind {
        EventKind::Created => cri::ContainerEventType::ContainerCreatedEvent.into(),
        EventKind::Started => cri::ContainerEventType::ContainerStartedEvent.into(),
        EventKind::Stopped => cri::ContainerEventType::ContainerStoppedEvent.into(),
        EventKind::Deleted => cri::ContainerEventType::ContainerDeletedEvent.into(),
        EventKind::Other(number) => number,
    }
}

fn sandbox_status(status: &mut Writer, sandbox: &Sandbox) {
    status.text(1, sandbox.id.as_str());
    status.nested(2, |metadata| sandbox_metadata(metadata, sandbox));
    status.number(3, sandbox_state(sandbox));
    status.number(4, sandbox.created_at.0);
    status.nested(5, |network| {
        if let Some((first, rest)) = sandbox.ips.split_first() {
            network.text(1, first);
            for ip in rest {
                network.nested(2, |pod_ip| pod_ip.text(1, ip));
            }
        }
    });
    let network = if sandbox.pod.host_network {
        cri::NamespaceMode::Node
    } else {
        cri::NamespaceMode::Pod
    };
    status.nested(6, |linux| {
        linux.nested(1, |namespaces| {
            namespaces.nested(2, |options| {
                options.number(1, i32::from(network));
                // A process namespace for each container.
                options.number(2, i32::from(cri::NamespaceMode::Container));
            });
        });
    });
    pod_labels(status, 7, &sandbox.pod);
    sandbox_annotations(status, 8, sandbox);
}

fn container_status(status: &mut Writer, container: &Container) {
    status.text(1, container.id.as_str());
    status.nested(2, |metadata| container_metadata(metadata, container));
    status.number(3, container_state(container));
    status.number(4, container.created_at.0);
    status.number(5, nanos_or_zero(container.started_at));
    status.number(6, nanos_or_zero(container.finished_at));
    status.number(7, container.exit.code);
    status.nested(8, |image| image_spec(image, container));
    status.text(9, &container.image_ref);
    status.text(10, &container.exit.reason);
    status.text(11, &container.exit.message);
    container_labels(status, 12, container);
    container_annotations(status, 13, container);
    if container.pod.by_kubelet {
        mounts(status, 14, container);
        let pod = &container.pod;
        status.text(
            15,
            &format!(
                "/var/log/pods/{}_{}_{}/{}/{}.log",
                pod.namespace, pod.name, pod.uid, container.name, container.attempt
            ),
        );
        resources(status, 16);
    }
    status.text(17, &container.image_ref);
}

fn sandbox_metadata(metadata: &mut Writer, sandbox: &Sandbox) {
    metadata.text(1, &sandbox.pod.name);
    metadata.text(2, sandbox.pod.uid.as_str());
    metadata.text(3, &sandbox.pod.namespace);
    metadata.number(4, sandbox.attempt);
}

fn container_metadata(metadata: &mut Writer, container: &Container) {
    metadata.text(1, &container.name);
    metadata.number(2, container.attempt);
}

fn image_spec(image: &mut Writer, container: &Container) {
    image.text(1, &container.image);
}

fn sandbox_state(sandbox: &Sandbox) -> i32 {
    if sandbox.ready {
        cri::PodSandboxState::SandboxReady.into()
    } else {
        cri::PodSandboxState::SandboxNotready.into()
    }
}

fn container_state(container: &Container) -> i32 {
    match container.state {
        ReportedState::Unknown => cri::ContainerState::ContainerUnknown.into(),
        ReportedState::Created => cri::ContainerState::ContainerCreated.into(),
        ReportedState::Running => cri::ContainerState::ContainerRunning.into(),
        ReportedState::Exited => cri::ContainerState::ContainerExited.into(),
    }
}

fn pod_labels(subject: &mut Writer, field: u32, pod: &Pod) {
    pod.each_label(|key, value| subject.entry(field, key, value));
}

fn container_labels(subject: &mut Writer, field: u32, container: &Container) {
    container.each_label(|key, value| subject.entry(field, key, value));
}

fn sandbox_annotations(subject: &mut Writer, field: u32, sandbox: &Sandbox) {
    if sandbox.pod.by_kubelet {
        let seen = sandbox.created_at.to_string();
        subject.entry(field, "kubernetes.io/config.seen", &seen);
        subject.entry(field, "kubernetes.io/config.source", "api");
    }
}

/// What the kubelet writes of two ports.
const PORTS: &str = r#"[{"name":"http","containerPort":8080,"protocol":"TCP"},{"name":"metrics","containerPort":9102,"protocol":"TCP"}]"#;

fn container_annotations(subject: &mut Writer, field: u32, container: &Container) {
    if !container.pod.by_kubelet {
        return;
    }
    let hash = container.image_ref.get(7..15).unwrap_or("0");
    let restarts = container.attempt.to_string();
    for (key, value) in [
        ("io.kubernetes.container.hash", hash),
        ("io.kubernetes.container.ports", PORTS),
        ("io.kubernetes.container.restartCount", &restarts),
        (
            "io.kubernetes.container.terminationMessagePath",
            "/dev/termination-log",
        ),
        ("io.kubernetes.container.terminationMessagePolicy", "File"),
        ("io.kubernetes.pod.terminationGracePeriod", "30"),
    ] {
        subject.entry(field, key, value);
    }
}

/// A tenth of a processor asked for, a quarter allowed, 256 MiB.
fn resources(status: &mut Writer, field: u32) {
    status.nested(field, |resources| {
        resources.nested(1, |linux| {
            linux.number(1, 100_000);
            linux.number(2, 25_000);
            linux.number(3, 102);
            linux.number(4, 256 << 20);
            linux.number(5, 1000);
        });
    });
}

/// The three mounts that each container of the kubelet has.
fn mounts(status: &mut Writer, field: u32, container: &Container) {
    let home = format!("/var/lib/kubelet/pods/{}", container.pod.uid);
    let id = container.id.as_str();
    let short = id.get(..8).unwrap_or(id);
    for (inside, outside, is_read_only) in [
        (
            "/var/run/secrets/kubernetes.io/serviceaccount",
            format!("{home}/volumes/kubernetes.io~projected/kube-api-access"),
            true,
        ),
        ("/etc/hosts", format!("{home}/etc-hosts"), false),
        (
            "/dev/termination-log",
            format!("{home}/containers/{}/{short}", container.name),
            false,
        ),
    ] {
        status.nested(field, |mount| {
            mount.text(1, inside);
            mount.text(2, &outside);
            mount.number(3, i32::from(is_read_only));
        });
    }
}

fn nanos_or_zero(at: Option<UnixNanos>) -> i64 {
    at.map_or(0, |at| at.0)
}
