//! The same reading by prost: every message is built whole, then looked at. What the decoder is held
//! against.

use std::collections::BTreeMap;
use std::sync::Arc;

use prost::Message;

use crate::cri::wire::decode::{DecodeError, SandboxAnswer};
use crate::cri::wire::messages as wire;
use crate::engine::RuntimeVersion;
use crate::lifecycle::{
    ContainerId, ContainerListing, ContainerStatus, EventKind, Listed, PodIdentity, PodUid,
    Refusal, ReportedState, RuntimeEvent, SandboxId, SandboxListing, SandboxStatus, UnixNanos,
};

const POD_UID_LABEL: &str = "io.kubernetes.pod.uid";
const POD_NAME_LABEL: &str = "io.kubernetes.pod.name";
const POD_NAMESPACE_LABEL: &str = "io.kubernetes.pod.namespace";
const CONTAINER_NAME_LABEL: &str = "io.kubernetes.container.name";

/// One item of a list, read or not.
type ListItem<T> = Result<T, Unreadable>;

fn message<M: Message + Default>(bytes: &[u8]) -> Result<M, DecodeError> {
    M::decode(bytes).map_err(|error| DecodeError::Undecodable(error.to_string()))
}

/// Every field that is required and missing, or nothing.
fn require<const N: usize>(fields: [(&'static str, bool); N]) -> Result<(), DecodeError> {
    let missing: Vec<_> = fields
        .into_iter()
        .filter_map(|(name, present)| (!present).then_some(name))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(DecodeError::Missing(missing))
    }
}

/// Reads `VersionResponse`. As for the reference client, none of the four fields may be empty.
pub(super) fn version(bytes: &[u8]) -> Result<RuntimeVersion, DecodeError> {
    let answer: wire::VersionResponse = message(bytes)?;
    require([
        ("version", !answer.version.is_empty()),
        ("runtime_name", !answer.runtime_name.is_empty()),
        ("runtime_version", !answer.runtime_version.is_empty()),
        (
            "runtime_api_version",
            !answer.runtime_api_version.is_empty(),
        ),
    ])?;
    Ok(RuntimeVersion {
        name: answer.runtime_name.into(),
        version: answer.runtime_version.into(),
        api_version: answer.runtime_api_version.into(),
    })
}

/// Reads `ListPodSandboxResponse`.
pub(super) fn sandboxes(bytes: &[u8]) -> Result<Listed<SandboxListing>, DecodeError> {
    let answer: wire::ListPodSandboxResponse = message(bytes)?;
    Ok(collect(answer.items.into_iter().map(sandbox_listing)))
}

/// Reads `ListContainersResponse`.
pub(super) fn containers(bytes: &[u8]) -> Result<Listed<ContainerListing>, DecodeError> {
    let answer: wire::ListContainersResponse = message(bytes)?;
    let items = answer.containers.into_iter();
    Ok(collect(items.map(container_listing)))
}

/// Reads `PodSandboxStatusResponse`, checked as the reference client does.
pub(super) fn sandbox_answer(bytes: &[u8]) -> Result<SandboxAnswer, DecodeError> {
    let answer: wire::PodSandboxStatusResponse = message(bytes)?;
    let Some(status) = answer.status else {
        return Err(DecodeError::Missing(vec!["status"]));
    };
    let metadata = status.metadata.as_ref();
    require([
        ("status.id", !status.id.is_empty()),
        ("status.metadata", metadata.is_some()),
        (
            "status.metadata.name",
            metadata.is_none_or(|m| !m.name.is_empty()),
        ),
        (
            "status.metadata.namespace",
            metadata.is_none_or(|m| !m.namespace.is_empty()),
        ),
        (
            "status.metadata.uid",
            metadata.is_none_or(|m| !m.uid.is_empty()),
        ),
        ("status.created_at", status.created_at != 0),
    ])?;
    let sandbox = sandbox_status(status).map_err(|_| DecodeError::Missing(vec!["status"]))?;
    // Without the timestamp the list means nothing. One that fails the check is asked for by itself.
    let containers = if answer.timestamp == 0 {
        Vec::new()
    } else {
        let statuses = answer.containers_statuses.into_iter();
        statuses
            .filter_map(|status| checked_container(status).ok())
            .collect()
    };
    Ok(SandboxAnswer {
        sandbox,
        containers,
    })
}

/// Reads `ContainerStatusResponse`, checked as the reference client does.
pub(super) fn container_answer(bytes: &[u8]) -> Result<ContainerStatus, DecodeError> {
    let answer: wire::ContainerStatusResponse = message(bytes)?;
    match answer.status {
        Some(status) => checked_container(status),
        None => Err(DecodeError::Missing(vec!["status"])),
    }
}

/// One message of the event stream.
///
/// # Errors
///
/// [`Refusal::Undecodable`]. Parts that cannot be read are refused inside the event instead.
pub(super) fn event(bytes: &[u8]) -> Result<RuntimeEvent, Refusal> {
    let event = wire::ContainerEventResponse::decode(bytes).map_err(|_| Refusal::Undecodable)?;
    let mut refused = Vec::new();
    if event.container_id.is_empty() {
        refused.push(Refusal::EmptyId);
    }
    let sandbox = match event.pod_sandbox_status.map(sandbox_status) {
        Some(Ok(status)) => Some(status),
        Some(Err(unreadable)) => {
            refused.push(unreadable.refusal);
            None
        }
        None => None,
    };
    let mut containers = Collector::default();
    for status in event.containers_statuses {
        containers.take(container_status(status));
    }
    let containers = containers.finish();
    refused.extend(containers.refused);
    Ok(RuntimeEvent {
        id: event.container_id.into(),
        kind: event_kind(event.container_event_type),
        stamp: event.created_at,
        sandbox,
        containers: containers
            .items
            .into_iter()
            .map(Arc::unwrap_or_clone)
            .collect(),
        refused,
    })
}

fn event_kind(number: i32) -> EventKind {
    match wire::ContainerEventType::try_from(number) {
        Ok(wire::ContainerEventType::ContainerCreatedEvent) => EventKind::Created,
        Ok(wire::ContainerEventType::ContainerStartedEvent) => EventKind::Started,
        Ok(wire::ContainerEventType::ContainerStoppedEvent) => EventKind::Stopped,
        Ok(wire::ContainerEventType::ContainerDeletedEvent) => EventKind::Deleted,
        Err(_) => EventKind::Other(number),
    }
}

fn sandbox_state(number: i32) -> ReportedState {
    match wire::PodSandboxState::try_from(number) {
        Ok(wire::PodSandboxState::SandboxReady) => ReportedState::Running,
        Ok(wire::PodSandboxState::SandboxNotready) => ReportedState::Exited,
        Err(_) => ReportedState::Unknown,
    }
}

fn container_state(number: i32) -> ReportedState {
    match wire::ContainerState::try_from(number) {
        Ok(wire::ContainerState::ContainerCreated) => ReportedState::Created,
        Ok(wire::ContainerState::ContainerRunning) => ReportedState::Running,
        Ok(wire::ContainerState::ContainerExited) => ReportedState::Exited,
        Ok(wire::ContainerState::ContainerUnknown) | Err(_) => ReportedState::Unknown,
    }
}

fn refuse(id: String, refusal: Refusal) -> Unreadable {
    Unreadable {
        id: (!id.is_empty()).then(|| id.into()),
        refusal,
    }
}

/// The pod and the attempt that a sandbox's metadata names.
fn sandbox_owner(
    id: &str,
    metadata: Option<wire::PodSandboxMetadata>,
) -> Result<(PodIdentity, u32), Refusal> {
    if id.is_empty() {
        return Err(Refusal::EmptyId);
    }
    let metadata = metadata.ok_or(Refusal::NoMetadata)?;
    if metadata.name.is_empty() {
        return Err(Refusal::NoMetadata);
    }
    if metadata.uid.is_empty() {
        return Err(Refusal::NoPodUid);
    }
    let pod = PodIdentity {
        uid: metadata.uid.into(),
        namespace: metadata.namespace.into(),
        name: metadata.name.into(),
    };
    Ok((pod, metadata.attempt))
}

type Labels = BTreeMap<String, String>;

fn label<'a>(labels: &'a Labels, name: &str) -> &'a str {
    labels.get(name).map_or("", String::as_str)
}

/// The container's name and attempt.
fn container_name(
    id: &str,
    metadata: Option<wire::ContainerMetadata>,
    labels: &Labels,
) -> Result<(Arc<str>, u32), Refusal> {
    if id.is_empty() {
        return Err(Refusal::EmptyId);
    }
    let metadata = metadata.ok_or(Refusal::NoMetadata)?;
    let name: Arc<str> = if metadata.name.is_empty() {
        label(labels, CONTAINER_NAME_LABEL).into()
    } else {
        metadata.name.into()
    };
    if name.is_empty() {
        return Err(Refusal::NoMetadata);
    }
    Ok((name, metadata.attempt))
}

fn pod_of_container(labels: &Labels) -> Option<PodIdentity> {
    let uid = label(labels, POD_UID_LABEL);
    (!uid.is_empty()).then(|| PodIdentity {
        uid: PodUid::from(uid),
        namespace: label(labels, POD_NAMESPACE_LABEL).into(),
        name: label(labels, POD_NAME_LABEL).into(),
    })
}

fn is_labelled(labels: &Labels, pod: &PodIdentity) -> bool {
    label(labels, POD_UID_LABEL) == pod.uid.as_str()
}

fn sandbox_listing(item: wire::PodSandbox) -> ListItem<SandboxListing> {
    match sandbox_owner(&item.id, item.metadata) {
        Ok((pod, attempt)) => Ok(SandboxListing {
            id: SandboxId::from(item.id),
            labelled: is_labelled(&item.labels, &pod),
            pod,
            attempt,
            state: sandbox_state(item.state),
            created_at: UnixNanos::from_cri(item.created_at),
        }),
        Err(refusal) => Err(refuse(item.id, refusal)),
    }
}

fn container_listing(item: wire::Container) -> ListItem<ContainerListing> {
    match container_name(&item.id, item.metadata, &item.labels) {
        Ok((name, attempt)) => Ok(ContainerListing {
            id: ContainerId::from(item.id),
            sandbox: (!item.pod_sandbox_id.is_empty())
                .then(|| SandboxId::from(item.pod_sandbox_id)),
            pod: pod_of_container(&item.labels),
            name,
            attempt,
            state: container_state(item.state),
            created_at: UnixNanos::from_cri(item.created_at),
            image: item.image.unwrap_or_default().image.into(),
            image_ref: item.image_ref.into(),
        }),
        Err(refusal) => Err(refuse(item.id, refusal)),
    }
}

fn sandbox_status(status: wire::PodSandboxStatus) -> Result<SandboxStatus, Unreadable> {
    let (pod, attempt) = match sandbox_owner(&status.id, status.metadata) {
        Ok(owner) => owner,
        Err(refusal) => return Err(refuse(status.id, refusal)),
    };
    let network = status.network.unwrap_or_default();
    let additional = network.additional_ips.into_iter().map(|ip| ip.ip);
    let node = wire::NamespaceMode::Node as i32;
    Ok(SandboxStatus {
        id: SandboxId::from(status.id),
        labelled: is_labelled(&status.labels, &pod),
        pod,
        attempt,
        state: sandbox_state(status.state),
        created_at: UnixNanos::from_cri(status.created_at),
        ips: std::iter::once(network.ip)
            .chain(additional)
            .filter(|ip| !ip.is_empty())
            .map(Arc::from)
            .collect(),
        host_network: status
            .linux
            .and_then(|linux| linux.namespaces)
            .and_then(|namespaces| namespaces.options)
            .is_some_and(|options| options.network == node),
    })
}

fn container_status(status: wire::ContainerStatus) -> Result<ContainerStatus, Unreadable> {
    match container_name(&status.id, status.metadata, &status.labels) {
        Ok((name, attempt)) => Ok(ContainerStatus {
            id: ContainerId::from(status.id),
            pod: pod_of_container(&status.labels),
            name,
            attempt,
            state: container_state(status.state),
            created_at: UnixNanos::from_cri(status.created_at),
            started_at: UnixNanos::from_cri(status.started_at),
            finished_at: UnixNanos::from_cri(status.finished_at),
            exit_code: status.exit_code,
            reason: status.reason.into(),
            message: status.message.into(),
            image: status.image.unwrap_or_default().image.into(),
            image_ref: status.image_ref.into(),
        }),
        Err(refusal) => Err(refuse(status.id, refusal)),
    }
}

/// A container's status with everything in it that CRI requires.
fn checked_container(status: wire::ContainerStatus) -> Result<ContainerStatus, DecodeError> {
    let metadata = status.metadata.as_ref();
    let image = status.image.as_ref();
    require([
        ("status.id", !status.id.is_empty()),
        ("status.metadata", metadata.is_some()),
        (
            "status.metadata.name",
            metadata.is_none_or(|m| !m.name.is_empty()),
        ),
        ("status.created_at", status.created_at != 0),
        (
            "status.image.image",
            image.is_some_and(|i| !i.image.is_empty()),
        ),
        ("status.image_ref", !status.image_ref.is_empty()),
    ])?;
    container_status(status).map_err(|_| DecodeError::Missing(vec!["status"]))
}

/// An item that could not be read: its id, if it has one, and what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
struct Unreadable {
    id: Option<Arc<str>>,
    refusal: Refusal,
}

/// What the items of a list have in common.
trait Item {
    fn id(&self) -> &str;
    fn state(&self) -> ReportedState;
}

macro_rules! item {
    ($($name:ty),*) => {$(
        impl Item for $name {
            fn id(&self) -> &str {
                self.id.as_str()
            }
            fn state(&self) -> ReportedState {
                self.state
            }
        }
    )*};
}
item!(SandboxListing, ContainerListing, ContainerStatus);

/// Builds a [`Listed`], item by item.
#[derive(Debug)]
struct Collector<T> {
    items: Vec<T>,
    /// Where each readable id stands in `items`.
    places: BTreeMap<Arc<str>, usize>,
    unreadable: Vec<Arc<str>>,
    refused: Vec<Refusal>,
}

impl<T> Default for Collector<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            places: BTreeMap::new(),
            unreadable: Vec::new(),
            refused: Vec::new(),
        }
    }
}

impl<T: Item> Collector<T> {
    /// Takes the next item. Of two with one id the first is kept, unless the second shows a state
    /// further on: a runtime that changes while it lists may show both, and the later is true now.
    fn take(&mut self, item: Result<T, Unreadable>) {
        match item {
            Ok(item) => {
                let id: Arc<str> = item.id().into();
                let Some(kept) = self.places.get(&id).and_then(|at| self.items.get_mut(*at)) else {
                    self.places.insert(id, self.items.len());
                    self.items.push(item);
                    return;
                };
                self.refused.push(Refusal::DuplicateId);
                if item.state() > kept.state() {
                    *kept = item;
                }
            }
            Err(Unreadable { id, refusal }) => {
                self.refused.push(refusal);
                self.unreadable.extend(id);
            }
        }
    }

    /// The list. An id that was readable once is not among the unreadable ones.
    fn finish(self) -> Listed<T> {
        let Self {
            items,
            places,
            mut unreadable,
            mut refused,
        } = self;
        let told = unreadable.len();
        unreadable.sort_unstable();
        unreadable.dedup();
        unreadable.retain(|id| !places.contains_key(id));
        refused.extend((unreadable.len()..told).map(|_| Refusal::DuplicateId));
        Listed {
            items: items.into_iter().map(Arc::new).collect(),
            unreadable,
            refused,
        }
    }
}

fn collect<T: Item>(items: impl Iterator<Item = ListItem<T>>) -> Listed<T> {
    let mut collector = Collector::default();
    items.for_each(|item| collector.take(item));
    collector.finish()
}
