//! Lists in a recording: whole, the same as before, or what changed.
//!
//! While polling, a node of 500 pods is listed each second and hardly ever differs from the second
//! before; written whole, an hour of it would be a gigabyte.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::lifecycle::{ContainerListing, Listed, NodeList, SandboxListing};

/// Items that a list may have after changes were applied to it, however the file got there.
const MOST_ITEMS: usize = 1_000_000;

/// What a list says, in the shortest form that says it all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum ListContent {
    /// All of it.
    Full {
        /// This list's number, which grows along the file.
        number: u64,
        /// The list.
        list: NodeList,
    },
    /// What the list of this number says.
    Same(u64),
    /// What the list of one number says, but for these changes.
    Changed {
        /// This list's number.
        number: u64,
        /// The number of the list that it differs from.
        since: u64,
        /// The sandboxes that changed.
        #[serde(default = "Changes::none", skip_serializing_if = "Changes::is_none")]
        sandboxes: Changes<Arc<SandboxListing>>,
        /// The containers that changed.
        #[serde(default = "Changes::none", skip_serializing_if = "Changes::is_none")]
        containers: Changes<Arc<ContainerListing>>,
    },
}

/// How items differ from those of another list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Changes<T> {
    /// New items, and new content of known ones, by id.
    pub(super) put: Vec<T>,
    /// The ids of items that are gone, in order.
    pub(super) gone: Vec<String>,
}

impl<T> Changes<T> {
    fn none() -> Self {
        Self {
            put: Vec::new(),
            gone: Vec::new(),
        }
    }

    fn is_none(&self) -> bool {
        self.put.is_empty() && self.gone.is_empty()
    }

    fn count(&self) -> usize {
        self.put.len() + self.gone.len()
    }
}

/// Something with an id.
pub(super) trait Item: Clone + PartialEq {
    fn id(&self) -> &str;
}

impl Item for Arc<SandboxListing> {
    fn id(&self) -> &str {
        self.id.as_str()
    }
}

impl Item for Arc<ContainerListing> {
    fn id(&self) -> &str {
        self.id.as_str()
    }
}

/// Why a list cannot be made out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListProblem {
    /// It refers to a list that is not the last one.
    #[error("this list refers to list {since}, but the last one is {last:?}")]
    OtherBasis {
        /// The number that it gives.
        since: u64,
        /// The number of the last list.
        last: Option<u64>,
    },
    /// It has grown past what any node has.
    #[error("this list has more than {MOST_ITEMS} items")]
    TooLong,
}

/// The last list, which the next one is likely to resemble.
#[derive(Clone, Debug, Default)]
pub(super) struct LastList {
    numbered: u64,
    last: Option<(u64, NodeList)>,
}

impl LastList {
    /// Forgets it: the next list is written whole.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// Puts a list into the shortest form.
    pub(super) fn shorten(&mut self, list: &NodeList) -> ListContent {
        let present = sorted(list.clone());
        let content = match &self.last {
            Some((number, known)) if *known == present => return ListContent::Same(*number),
            Some((since, known)) if is_plain(&present) && is_plain(known) => {
                let sandboxes = changes(&known.sandboxes.items, &present.sandboxes.items);
                let containers = changes(&known.containers.items, &present.containers.items);
                let all = present.sandboxes.items.len() + present.containers.items.len();
                (sandboxes.count() + containers.count() < all.div_ceil(2)).then(|| {
                    ListContent::Changed {
                        number: self.numbered + 1,
                        since: *since,
                        sandboxes,
                        containers,
                    }
                })
            }
            _ => None,
        };
        self.numbered += 1;
        self.last = Some((self.numbered, present.clone()));
        content.unwrap_or(ListContent::Full {
            number: self.numbered,
            list: present,
        })
    }

    /// Makes the list out again.
    pub(super) fn restore(&mut self, content: ListContent) -> Result<NodeList, ListProblem> {
        let (number, list) = match content {
            ListContent::Full { number, list } => (number, sorted(list)),
            ListContent::Same(since) => (since, self.basis(since)?),
            ListContent::Changed {
                number,
                since,
                sandboxes,
                containers,
            } => {
                let mut list = self.basis(since)?;
                apply(&mut list.sandboxes.items, sandboxes);
                apply(&mut list.containers.items, containers);
                (number, list)
            }
        };
        if list.sandboxes.items.len() + list.containers.items.len() > MOST_ITEMS {
            return Err(ListProblem::TooLong);
        }
        self.last = Some((number, list.clone()));
        Ok(list)
    }

    fn basis(&self, since: u64) -> Result<NodeList, ListProblem> {
        match &self.last {
            Some((number, list)) if *number == since => Ok(list.clone()),
            other => Err(ListProblem::OtherBasis {
                since,
                last: other.as_ref().map(|(number, _)| *number),
            }),
        }
    }
}

/// The same list, by id.
fn sorted(mut list: NodeList) -> NodeList {
    list.sandboxes.items.sort_by(|a, b| a.id.cmp(&b.id));
    list.containers.items.sort_by(|a, b| a.id.cmp(&b.id));
    list
}

/// Whether every item could be read.
fn is_plain(list: &NodeList) -> bool {
    fn all_read<T>(listed: &Listed<T>) -> bool {
        listed.unreadable.is_empty() && listed.refused.is_empty()
    }
    all_read(&list.sandboxes) && all_read(&list.containers)
}

/// How `new` differs from `old`; both sorted by id.
fn changes<T: Item>(old: &[T], new: &[T]) -> Changes<T> {
    let mut changes = Changes::none();
    let mut old = old.iter().peekable();
    for item in new {
        while let Some(gone) = old.next_if(|known| known.id() < item.id()) {
            changes.gone.push(gone.id().to_owned());
        }
        let known = old.next_if(|known| known.id() == item.id());
        if known != Some(item) {
            changes.put.push(item.clone());
        }
    }
    changes.gone.extend(old.map(|gone| gone.id().to_owned()));
    changes
}

/// Applies changes to items; both sorted by id.
fn apply<T: Item>(items: &mut Vec<T>, mut changes: Changes<T>) {
    if changes.is_none() {
        return;
    }
    // They are, unless somebody wrote the file by hand.
    changes.put.sort_by(|a, b| a.id().cmp(b.id()));
    changes.gone.sort();
    let is_gone = |id: &str| {
        changes
            .gone
            .binary_search_by(|gone| gone.as_str().cmp(id))
            .is_ok()
    };
    items.retain(|item| !is_gone(item.id()));
    for item in changes.put {
        match items.binary_search_by(|known| known.id().cmp(item.id())) {
            Ok(index) => {
                if let Some(known) = items.get_mut(index) {
                    *known = item;
                }
            }
            Err(index) => items.insert(index, item),
        }
    }
}
