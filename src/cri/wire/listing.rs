//! Reads lists: each id once, every refusal counted, and nothing made anew that the last list had.
//!
//! A node is listed again and again, and hardly ever differs from the time before. So the items of the
//! last list are kept, by id; an item that shows what is kept is given again as the same `Arc`. What is
//! compared is every field that an item has, never the bytes: a runtime may write the same in another
//! order. Nothing follows from what is kept but that.
//!
//! One reader takes a whole unary answer or all chunks of a streamed one, so that a duplicate is found
//! wherever it stands.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use super::fields::{Fields, Malformed};
use super::texts::{KnownTexts, Texts};
use super::views::View;
use crate::lifecycle::{ContainerListing, Listed, Refusal, ReportedState, SandboxListing};

/// Items with an id that one message may hold. A container takes over a hundred bytes even where the
/// runtime says the least, so no message of 16 MiB has as many; it bounds what hostile bytes can make
/// of little.
pub(super) const MOST_ITEMS: usize = 1 << 17;

/// The field of the items: the same in `ListPodSandboxResponse`, `ListContainersResponse` and the
/// responses of the streamed forms.
const ITEMS: u32 = 1;

/// An item of a list.
pub(crate) trait Item: Debug + Sized {
    type Id: Clone + Debug + Eq + Hash + Borrow<str>;
    type View<'a>: ItemView<'a, Self>;

    fn id(&self) -> &Self::Id;
    fn state(&self) -> ReportedState;
}

/// An item as it stands in the bytes.
pub(crate) trait ItemView<'a, T>: View<'a> {
    fn id(&self) -> &'a str;

    /// Whether observing it would give this item again.
    fn is_shown_by(&self, item: &T) -> bool;

    fn observe(&self, texts: &mut impl Texts) -> Result<T, Refusal>;
}

/// What the last lists of a runtime had. Forgetting it costs time and nothing else.
#[derive(Debug, Default)]
pub(crate) struct KnownLists {
    pub(crate) sandboxes: KnownItems<SandboxListing>,
    pub(crate) containers: KnownItems<ContainerListing>,
    pub(crate) texts: KnownTexts,
}

/// The items of the last list, by id. Nothing iterates over them but to forget.
#[derive(Debug)]
pub(crate) struct KnownItems<T: Item> {
    items: HashMap<T::Id, KnownItem<T>>,
    /// Counts lists.
    list: u64,
}

#[derive(Debug)]
struct KnownItem<T> {
    item: Arc<T>,
    /// The newest list that shows it, and where.
    list: u64,
    place: usize,
}

impl<T: Item> Default for KnownItems<T> {
    fn default() -> Self {
        Self {
            items: HashMap::new(),
            list: 0,
        }
    }
}

/// Builds a [`Listed`] from the messages of one list.
#[derive(Debug)]
pub(crate) struct ListReader<'k, T: Item> {
    known: &'k mut KnownItems<T>,
    texts: &'k mut KnownTexts,
    items: Vec<Arc<T>>,
    unreadable: Vec<Arc<str>>,
    refused: Vec<Refusal>,
}

impl<'k, T: Item> ListReader<'k, T> {
    pub(crate) fn begin(known: &'k mut KnownItems<T>, texts: &'k mut KnownTexts) -> Self {
        known.list += 1;
        Self {
            items: Vec::with_capacity(known.items.len()),
            known,
            texts,
            unreadable: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Takes a whole answer, or the next piece of one.
    pub(crate) fn take(&mut self, message: &[u8]) -> Result<(), Malformed> {
        let before = self.named();
        for field in Fields::of(message) {
            let field = field?;
            if field.number == ITEMS {
                self.take_item(&T::View::read(field.message()?)?);
                if self.named() - before > MOST_ITEMS {
                    return Err(Malformed::TooManyItems { most: MOST_ITEMS });
                }
            }
        }
        Ok(())
    }

    /// How many items with an id were kept.
    fn named(&self) -> usize {
        self.items.len() + self.unreadable.len()
    }

    /// Takes the next item. Of two with one id the first is kept, unless the second shows a state
    /// further on: a runtime that changes while it lists may show both, and the later is true now.
    fn take_item(&mut self, view: &T::View<'_>) {
        let list = self.known.list;
        let known = self.known.items.get_mut(view.id());
        if let Some(known) = known
            && known.list != list
            && view.is_shown_by(&known.item)
        {
            known.list = list;
            known.place = self.items.len();
            self.items.push(known.item.clone());
            return;
        }
        match view.observe(self.texts) {
            Ok(item) => self.keep(Arc::new(item)),
            Err(refusal) => {
                self.refused.push(refusal);
                if !view.id().is_empty() {
                    self.unreadable.push(view.id().into());
                }
            }
        }
    }

    fn keep(&mut self, item: Arc<T>) {
        let list = self.known.list;
        let id: &str = item.id().borrow();
        let known = self.known.items.get_mut(id);
        if let Some(known) = known
            && known.list == list
        {
            self.refused.push(Refusal::DuplicateId);
            if item.state() > known.item.state()
                && let Some(kept) = self.items.get_mut(known.place)
            {
                kept.clone_from(&item);
                known.item = item;
            }
            return;
        }
        let place = self.items.len();
        self.items.push(item.clone());
        let id = item.id().clone();
        self.known.items.insert(id, KnownItem { item, list, place });
    }

    /// The list. An id that was readable once is not among the unreadable ones.
    pub(crate) fn finish(self) -> Listed<T> {
        let Self {
            known,
            texts,
            items,
            mut unreadable,
            mut refused,
        } = self;
        let KnownItems { items: kept, list } = known;
        let told = unreadable.len();
        unreadable.sort_unstable();
        unreadable.dedup();
        unreadable.retain(|id| kept.get(&**id).is_none_or(|known| known.list != *list));
        refused.extend((unreadable.len()..told).map(|_| Refusal::DuplicateId));
        if kept.len() > items.len() {
            kept.retain(|_, known| known.list == *list);
            if kept.capacity() > 4 * kept.len() {
                kept.shrink_to_fit();
            }
            texts.forget_unused();
        }
        texts.tidy();
        Listed {
            items,
            unreadable,
            refused,
        }
    }
}
