//! From what was read to observations: what of a message is refused, and what of it is kept.
//!
//! How a runtime is to be judged is not decided here.

use super::listing::{Item, ItemView};
use super::texts::Texts;
use super::views::{self, ContainerMetadata, Labels, PodMetadata};
use crate::lifecycle::{
    ContainerId, ContainerListing, ContainerStatus, EventKind, PodIdentity, Refusal, ReportedState,
    SandboxId, SandboxListing, SandboxStatus, UnixNanos,
};

/// `NamespaceMode.NODE`.
const NODE: i32 = 2;

pub(super) fn event_kind(number: i32) -> EventKind {
    match number {
        0 => EventKind::Created,
        1 => EventKind::Started,
        2 => EventKind::Stopped,
        3 => EventKind::Deleted,
        other => EventKind::Other(other),
    }
}

fn sandbox_state(number: i32) -> ReportedState {
    match number {
        0 => ReportedState::Running,
        1 => ReportedState::Exited,
        _ => ReportedState::Unknown,
    }
}

fn container_state(number: i32) -> ReportedState {
    match number {
        0 => ReportedState::Created,
        1 => ReportedState::Running,
        2 => ReportedState::Exited,
        _ => ReportedState::Unknown,
    }
}

/// The metadata of a sandbox that says whose it is.
fn sandbox_metadata<'a>(
    id: &str,
    metadata: Option<PodMetadata<'a>>,
) -> Result<PodMetadata<'a>, Refusal> {
    match metadata {
        _ if id.is_empty() => Err(Refusal::EmptyId),
        None => Err(Refusal::NoMetadata),
        Some(metadata) if metadata.name.is_empty() => Err(Refusal::NoMetadata),
        Some(metadata) if metadata.uid.is_empty() => Err(Refusal::NoPodUid),
        Some(metadata) => Ok(metadata),
    }
}

/// The metadata of a container that has a name, if need be from the kubelet's label.
fn container_metadata<'a>(
    id: &str,
    metadata: Option<ContainerMetadata<'a>>,
    labels: &Labels<'a>,
) -> Result<ContainerMetadata<'a>, Refusal> {
    if id.is_empty() {
        return Err(Refusal::EmptyId);
    }
    let mut metadata = metadata.ok_or(Refusal::NoMetadata)?;
    if metadata.name.is_empty() {
        metadata.name = labels.container_name;
    }
    if metadata.name.is_empty() {
        return Err(Refusal::NoMetadata);
    }
    Ok(metadata)
}

fn pod_of_sandbox(metadata: &PodMetadata<'_>, texts: &mut impl Texts) -> PodIdentity {
    PodIdentity {
        uid: texts.share(metadata.uid).into(),
        namespace: texts.share(metadata.namespace),
        name: texts.share(metadata.name),
    }
}

fn pod_of_container(labels: &Labels<'_>, texts: &mut impl Texts) -> Option<PodIdentity> {
    (!labels.pod_uid.is_empty()).then(|| PodIdentity {
        uid: texts.share(labels.pod_uid).into(),
        namespace: texts.share(labels.pod_namespace),
        name: texts.share(labels.pod_name),
    })
}

pub(super) fn sandbox_status(
    status: &views::SandboxStatus<'_>,
    texts: &mut impl Texts,
) -> Result<SandboxStatus, Refusal> {
    let metadata = sandbox_metadata(status.id, status.metadata)?;
    Ok(SandboxStatus {
        id: texts.share(status.id).into(),
        pod: pod_of_sandbox(&metadata, texts),
        attempt: metadata.attempt,
        state: sandbox_state(status.state),
        created_at: UnixNanos::from_cri(status.created_at),
        ips: status.ips().map(|ip| texts.share(ip)).collect(),
        host_network: status.network_mode() == NODE,
        labelled: status.labels.pod_uid == metadata.uid,
    })
}

pub(super) fn container_status(
    status: &views::ContainerStatus<'_>,
    texts: &mut impl Texts,
) -> Result<ContainerStatus, Refusal> {
    let metadata = container_metadata(status.id, status.metadata, &status.labels)?;
    Ok(ContainerStatus {
        id: texts.share(status.id).into(),
        pod: pod_of_container(&status.labels, texts),
        name: texts.share(metadata.name),
        attempt: metadata.attempt,
        state: container_state(status.state),
        created_at: UnixNanos::from_cri(status.created_at),
        started_at: UnixNanos::from_cri(status.started_at),
        finished_at: UnixNanos::from_cri(status.finished_at),
        exit_code: status.exit_code,
        reason: texts.share(status.reason),
        message: texts.share(status.message),
        image: texts.share(status.image()),
        image_ref: texts.share(status.image_ref),
    })
}

impl Item for SandboxListing {
    type Id = SandboxId;
    type View<'a> = views::Sandbox<'a>;

    fn id(&self) -> &SandboxId {
        &self.id
    }

    fn state(&self) -> ReportedState {
        self.state
    }
}

impl<'a> ItemView<'a, SandboxListing> for views::Sandbox<'a> {
    fn id(&self) -> &'a str {
        self.id
    }

    fn is_shown_by(&self, item: &SandboxListing) -> bool {
        let SandboxListing {
            id,
            pod,
            attempt,
            state,
            created_at,
            labelled,
        } = item;
        self.id == id.as_str()
            && self.metadata.is_some_and(|metadata| {
                metadata.uid == pod.uid.as_str()
                    && metadata.namespace == &*pod.namespace
                    && metadata.name == &*pod.name
                    && metadata.attempt == *attempt
                    && (self.labels.pod_uid == metadata.uid) == *labelled
            })
            && sandbox_state(self.state) == *state
            && UnixNanos::from_cri(self.created_at) == *created_at
    }

    fn observe(&self, texts: &mut impl Texts) -> Result<SandboxListing, Refusal> {
        let metadata = sandbox_metadata(self.id, self.metadata)?;
        Ok(SandboxListing {
            id: texts.share(self.id).into(),
            pod: pod_of_sandbox(&metadata, texts),
            attempt: metadata.attempt,
            state: sandbox_state(self.state),
            created_at: UnixNanos::from_cri(self.created_at),
            labelled: self.labels.pod_uid == metadata.uid,
        })
    }
}

impl Item for ContainerListing {
    type Id = ContainerId;
    type View<'a> = views::Container<'a>;

    fn id(&self) -> &ContainerId {
        &self.id
    }

    fn state(&self) -> ReportedState {
        self.state
    }
}

impl<'a> ItemView<'a, ContainerListing> for views::Container<'a> {
    fn id(&self) -> &'a str {
        self.id
    }

    fn is_shown_by(&self, item: &ContainerListing) -> bool {
        let ContainerListing {
            id,
            sandbox,
            pod,
            name,
            attempt,
            state,
            created_at,
            image,
            image_ref,
        } = item;
        let labels = &self.labels;
        let is_of_pod = match pod {
            Some(pod) => {
                labels.pod_uid == pod.uid.as_str()
                    && labels.pod_namespace == &*pod.namespace
                    && labels.pod_name == &*pod.name
            }
            None => labels.pod_uid.is_empty(),
        };
        self.id == id.as_str()
            && self.sandbox == sandbox.as_ref().map_or("", SandboxId::as_str)
            && is_of_pod
            && container_metadata(self.id, self.metadata, labels)
                .is_ok_and(|metadata| metadata.name == &**name && metadata.attempt == *attempt)
            && container_state(self.state) == *state
            && UnixNanos::from_cri(self.created_at) == *created_at
            && self.image() == &**image
            && self.image_ref == &**image_ref
    }

    fn observe(&self, texts: &mut impl Texts) -> Result<ContainerListing, Refusal> {
        let metadata = container_metadata(self.id, self.metadata, &self.labels)?;
        Ok(ContainerListing {
            id: texts.share(self.id).into(),
            sandbox: (!self.sandbox.is_empty()).then(|| texts.share(self.sandbox).into()),
            pod: pod_of_container(&self.labels, texts),
            name: texts.share(metadata.name),
            attempt: metadata.attempt,
            state: container_state(self.state),
            created_at: UnixNanos::from_cri(self.created_at),
            image: texts.share(self.image()),
            image_ref: texts.share(self.image_ref),
        })
    }
}
