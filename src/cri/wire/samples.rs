//! Messages as a well-behaved runtime sends them, for tests to bend.

use std::collections::BTreeMap;

use super::messages as wire;

pub(crate) fn sandbox(id: &str, uid: &str) -> wire::PodSandbox {
    wire::PodSandbox {
        id: id.into(),
        metadata: Some(wire::PodSandboxMetadata {
            name: "web".into(),
            uid: uid.into(),
            namespace: "shop".into(),
            attempt: 1,
        }),
        state: 0,
        created_at: 7,
        labels: BTreeMap::from([("io.kubernetes.pod.uid".into(), uid.into())]),
    }
}

pub(crate) fn sandbox_status(id: &str) -> wire::PodSandboxStatus {
    let listed = sandbox(id, "u1");
    wire::PodSandboxStatus {
        id: listed.id,
        metadata: listed.metadata,
        state: 0,
        created_at: 7,
        network: None,
        linux: None,
        labels: listed.labels,
    }
}

pub(crate) fn container(id: &str, state: i32) -> wire::Container {
    wire::Container {
        id: id.into(),
        pod_sandbox_id: "s1".into(),
        metadata: Some(wire::ContainerMetadata {
            name: "app".into(),
            attempt: 2,
        }),
        image: Some(wire::ImageSpec {
            image: "nginx:1".into(),
        }),
        image_ref: "sha256:1".into(),
        state,
        created_at: 7,
        labels: BTreeMap::from([
            ("io.kubernetes.pod.uid".into(), "u1".into()),
            ("io.kubernetes.pod.name".into(), "web".into()),
            ("io.kubernetes.pod.namespace".into(), "shop".into()),
        ]),
    }
}

pub(crate) fn container_status(id: &str, state: i32) -> wire::ContainerStatus {
    let listed = container(id, state);
    wire::ContainerStatus {
        id: listed.id,
        metadata: listed.metadata,
        state,
        created_at: 7,
        image: listed.image,
        image_ref: listed.image_ref,
        labels: listed.labels,
        ..Default::default()
    }
}
