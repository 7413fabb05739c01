//! The items of list answers, each encoded once until it changes.
//!
//! A list is its items one after another, so an answer of ten thousand containers is as many clones
//! of a handle, and the runtime costs little beside the client that is measured on it.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::subject::{Container, Sandbox};
use super::wire;
use super::world::Former;
use crate::lifecycle::{ContainerId, SandboxId};

#[derive(Debug, Default)]
pub(super) struct Listing {
    sandboxes: BTreeMap<SandboxId, Bytes>,
    containers: BTreeMap<ContainerId, Bytes>,
}

impl Listing {
    pub(super) fn sandbox(&mut self, sandbox: &Sandbox) -> Bytes {
        if let Some(item) = self.sandboxes.get(&sandbox.id) {
            return item.clone();
        }
        let item = wire::sandbox_item(sandbox);
        self.sandboxes.insert(sandbox.id.clone(), item.clone());
        item
    }

    pub(super) fn container(&mut self, container: &Container) -> Bytes {
        if let Some(item) = self.containers.get(&container.id) {
            return item.clone();
        }
        let item = wire::container_item(container);
        self.containers.insert(container.id.clone(), item.clone());
        item
    }

    /// These changed, or are gone.
    pub(super) fn forget(&mut self, changed: &[Former]) {
        for former in changed {
            match former {
                Former::Sandbox(id, _) => {
                    self.sandboxes.remove(id);
                }
                Former::Container(id, _) => {
                    self.containers.remove(id);
                }
            }
        }
    }
}
