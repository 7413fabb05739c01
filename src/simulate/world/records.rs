//! The records of the world: how they are read, and the few ways in which they change.
//!
//! Every change goes through here, so that the journal misses none and the indexes always fit.

use super::World;
use crate::lifecycle::{ContainerId, PodUid, SandboxId};
use crate::simulate::subject::{Container, Sandbox};

/// What one subject was before a change; `None`: it was not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::simulate) enum Former {
    Sandbox(SandboxId, Option<Sandbox>),
    Container(ContainerId, Option<Container>),
}

impl World {
    /// A sandbox.
    #[must_use]
    pub fn sandbox(&self, id: &str) -> Option<&Sandbox> {
        self.sandboxes.get(id)
    }

    /// A container.
    #[must_use]
    pub fn container(&self, id: &str) -> Option<&Container> {
        self.containers.get(id)
    }

    /// Every sandbox, in the order of ids.
    pub fn sandboxes(&self) -> impl Iterator<Item = &Sandbox> {
        self.sandboxes.values()
    }

    /// Every container, in the order of ids.
    pub fn containers(&self) -> impl Iterator<Item = &Container> {
        self.containers.values()
    }

    /// The containers of one sandbox, in the order of ids.
    pub fn containers_in(&self, sandbox: &SandboxId) -> impl Iterator<Item = &Container> {
        self.containers_of
            .get(sandbox)
            .into_iter()
            .flatten()
            .filter_map(|id| self.containers.get(id))
    }

    /// The containers of every sandbox of one pod.
    pub fn containers_of_pod(&self, uid: &PodUid) -> impl Iterator<Item = &Container> {
        self.sandboxes_of
            .get(uid)
            .into_iter()
            .flatten()
            .flat_map(|sandbox| self.containers_in(sandbox))
    }

    /// The sandboxes of one pod.
    pub fn sandboxes_of_pod(&self, uid: &PodUid) -> impl Iterator<Item = &Sandbox> {
        self.sandboxes_of
            .get(uid)
            .into_iter()
            .flatten()
            .filter_map(|id| self.sandboxes.get(id))
    }

    /// From now on notes what was before each change.
    pub(in crate::simulate) fn keep_journal(&mut self) {
        self.journal = Some(Vec::new());
    }

    /// What was before each change since this was last called.
    pub(in crate::simulate) fn take_journal(&mut self) -> Vec<Former> {
        self.journal
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Makes a subject what it was. Changes are taken back from the last to the first.
    pub(in crate::simulate) fn take_back(&mut self, former: Former) {
        match former {
            Former::Sandbox(_, Some(sandbox)) => self.put_sandbox(sandbox),
            Former::Sandbox(id, None) => self.forget_sandbox(&id),
            Former::Container(_, Some(container)) => self.put_container(container),
            Former::Container(id, None) => self.forget_container(&id),
        }
    }

    pub(super) fn put_sandbox(&mut self, sandbox: Sandbox) {
        let id = sandbox.id.clone();
        self.sandboxes_of
            .entry(sandbox.pod.uid.clone())
            .or_default()
            .insert(id.clone());
        self.containers_of.entry(id.clone()).or_default();
        let former = self.sandboxes.insert(id.clone(), sandbox);
        self.note(|| Former::Sandbox(id, former));
    }

    pub(super) fn change_sandbox(&mut self, id: &SandboxId, change: impl FnOnce(&mut Sandbox)) {
        if let Some(sandbox) = self.sandboxes.get_mut(id) {
            let former = self.journal.is_some().then(|| sandbox.clone());
            change(sandbox);
            self.note(|| Former::Sandbox(id.clone(), former));
        }
    }

    pub(super) fn forget_sandbox(&mut self, id: &SandboxId) {
        let Some(gone) = self.sandboxes.remove(id) else {
            return;
        };
        self.containers_of.remove(id);
        if let Some(siblings) = self.sandboxes_of.get_mut(&gone.pod.uid) {
            siblings.remove(id);
            if siblings.is_empty() {
                self.sandboxes_of.remove(&gone.pod.uid);
            }
        }
        self.note(|| Former::Sandbox(id.clone(), Some(gone)));
    }

    pub(super) fn put_container(&mut self, container: Container) {
        let id = container.id.clone();
        self.containers_of
            .entry(container.sandbox.clone())
            .or_default()
            .insert(id.clone());
        let former = self.containers.insert(id.clone(), container);
        self.note(|| Former::Container(id, former));
    }

    pub(super) fn change_container(
        &mut self,
        id: &ContainerId,
        change: impl FnOnce(&mut Container),
    ) {
        if let Some(container) = self.containers.get_mut(id) {
            let former = self.journal.is_some().then(|| container.clone());
            change(container);
            self.note(|| Former::Container(id.clone(), former));
        }
    }

    pub(super) fn forget_container(&mut self, id: &ContainerId) {
        if let Some(gone) = self.containers.remove(id) {
            if let Some(siblings) = self.containers_of.get_mut(&gone.sandbox) {
                siblings.remove(id);
            }
            self.note(|| Former::Container(id.clone(), Some(gone)));
        }
    }

    fn note(&mut self, former: impl FnOnce() -> Former) {
        if let Some(journal) = &mut self.journal {
            journal.push(former());
        }
    }
}
