//! Collects the items of one answer: each id once, and every refusal counted.
//!
//! One collector takes a whole unary answer or all chunks of a streamed one, so that a duplicate is
//! found wherever it stands.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lifecycle::{
    ContainerListing, ContainerStatus, Listed, Refusal, ReportedState, SandboxListing,
};

/// An item that could not be read: its id, if it has one, and what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) id: Option<Arc<str>>,
    pub(crate) refusal: Refusal,
}

/// What the items of a list have in common.
pub(crate) trait Item {
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
pub(crate) struct Collector<T> {
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
    /// Takes a whole answer, or the next piece of one.
    pub(crate) fn take_all(&mut self, items: Vec<Result<T, Unreadable>>) {
        for item in items {
            self.take(item);
        }
    }

    /// Takes the next item. Of two with one id the first is kept, unless the second shows a state
    /// further on: a runtime that changes while it lists may show both, and the later is true now.
    pub(crate) fn take(&mut self, item: Result<T, Unreadable>) {
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
    pub(crate) fn finish(self) -> Listed<T> {
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
            items,
            unreadable,
            refused,
        }
    }
}
