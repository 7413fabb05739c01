//! A full relist told as what changed since the one before: traces of big nodes stay small.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::lifecycle::{ContainerId, ContainerListing, NodeList, SandboxId, SandboxListing};

/// What a full relist showed that the one before had not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListingChange {
    /// How many sandboxes it showed.
    pub sandboxes: usize,
    /// How many containers it showed.
    pub containers: usize,
    /// What is new or has changed, and what could not be read.
    pub changed: NodeList,
    /// Sandboxes that it no longer showed.
    pub gone_sandboxes: Vec<SandboxId>,
    /// Containers that it no longer showed.
    pub gone_containers: Vec<ContainerId>,
}

impl ListingChange {
    /// Whether it showed what the one before had shown.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.changed == NodeList::default()
            && self.gone_sandboxes.is_empty()
            && self.gone_containers.is_empty()
    }
}

/// The last full relist.
#[derive(Debug, Default)]
pub(super) struct LastListing {
    sandboxes: BTreeMap<SandboxId, Arc<SandboxListing>>,
    containers: BTreeMap<ContainerId, Arc<ContainerListing>>,
}

impl LastListing {
    /// Takes a full relist and tells how it differs.
    pub(super) fn change_to(&mut self, list: &NodeList) -> ListingChange {
        let mut change = ListingChange {
            sandboxes: list.sandboxes.items.len(),
            containers: list.containers.items.len(),
            ..ListingChange::default()
        };
        change.changed.sandboxes.items = renew(
            &mut self.sandboxes,
            &list.sandboxes.items,
            |item| item.id.clone(),
            &mut change.gone_sandboxes,
        );
        change.changed.containers.items = renew(
            &mut self.containers,
            &list.containers.items,
            |item| item.id.clone(),
            &mut change.gone_containers,
        );
        let (from, to) = (&list.sandboxes, &mut change.changed.sandboxes);
        to.unreadable.clone_from(&from.unreadable);
        to.refused.clone_from(&from.refused);
        let (from, to) = (&list.containers, &mut change.changed.containers);
        to.unreadable.clone_from(&from.unreadable);
        to.refused.clone_from(&from.refused);
        change
    }
}

/// Brings `known` to `items`; gives what is new or changed, in the order of the list.
fn renew<K: Ord + Clone, T: Clone + PartialEq>(
    known: &mut BTreeMap<K, T>,
    items: &[T],
    id: impl Fn(&T) -> K,
    gone: &mut Vec<K>,
) -> Vec<T> {
    let mut before = std::mem::take(known);
    let mut changed = Vec::new();
    for item in items {
        let id = id(item);
        if before.remove(&id).as_ref() != Some(item) {
            changed.push(item.clone());
        }
        known.insert(id, item.clone());
    }
    gone.extend(before.into_keys());
    changed
}
