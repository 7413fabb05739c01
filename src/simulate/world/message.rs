//! What a message about a change holds: the snapshot of the moment it is made.

use super::World;
use crate::lifecycle::{ContainerId, EventKind, SandboxId, UnixNanos};
use crate::simulate::{SnapshotScope, StreamMessage};

impl World {
    /// The message that the runtime would make now about this sandbox or container.
    #[must_use]
    pub fn message_about(&self, at: UnixNanos, kind: EventKind, id: &str) -> Option<StreamMessage> {
        let sandbox = match self.container(id) {
            Some(container) => &container.sandbox,
            None => &self.sandbox(id)?.id,
        };
        Some(self.message(at, kind, id, sandbox))
    }

    pub(super) fn sandbox_message(
        &self,
        at: UnixNanos,
        kind: EventKind,
        id: &SandboxId,
    ) -> StreamMessage {
        self.message(at, kind, id.as_str(), id)
    }

    pub(super) fn container_message(
        &self,
        at: UnixNanos,
        kind: EventKind,
        id: &ContainerId,
        sandbox: &SandboxId,
    ) -> StreamMessage {
        self.message(at, kind, id.as_str(), sandbox)
    }

    fn message(
        &self,
        at: UnixNanos,
        kind: EventKind,
        id: &str,
        sandbox: &SandboxId,
    ) -> StreamMessage {
        let sandbox = self.sandboxes.get(sandbox);
        let containers = sandbox.map_or_else(Vec::new, |sandbox| match self.habits.snapshot {
            SnapshotScope::Sandbox => self.containers_in(&sandbox.id).cloned().collect(),
            // CRI-O finds a pod's containers by the kubelet's label.
            SnapshotScope::Pod if !sandbox.pod.by_kubelet => Vec::new(),
            SnapshotScope::Pod => self.containers_of_pod(&sandbox.pod.uid).cloned().collect(),
        });
        StreamMessage {
            id: id.into(),
            kind,
            stamp: self.habits.stamps.stamp(at),
            pod: sandbox.map(|sandbox| sandbox.pod.uid.clone()),
            sandbox: sandbox.cloned(),
            containers,
        }
    }
}
