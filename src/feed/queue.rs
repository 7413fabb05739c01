//! One subscriber's queue: bounded, and past the bound folded. A plain value without locks or wakers.

use std::collections::VecDeque;
use std::sync::Arc;

use super::fold::Fold;
use super::snapshot::{Snapshot, ToldAhead};
use crate::lifecycle::{LifecycleEvent, PodUid, Revision, SubjectId};

/// What one subscriber was told and was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriberCounters {
    /// Events that the subscriber has taken.
    pub delivered: u64,
    /// Events that it will never see, because it fell behind and later ones say more.
    pub folded: u64,
    /// Subjects that came and went while it was behind: no event of theirs is told.
    pub folded_whole: u64,
    /// Events that its snapshot had told already.
    pub already_told: u64,
}

impl SubscriberCounters {
    /// Adds another subscriber's.
    pub(super) fn add(&mut self, other: &Self) {
        self.delivered += other.delivered;
        self.folded += other.folded;
        self.folded_whole += other.folded_whole;
        self.already_told += other.already_told;
    }
}

/// The events that one subscriber has still to take.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    capacity: usize,
    /// What the subscription began with; it does not count against the capacity.
    backlog: VecDeque<Arc<LifecycleEvent>>,
    recent: VecDeque<Arc<LifecycleEvent>>,
    fold: Fold,
    /// Of what the snapshot told more than the feed had.
    told_ahead: ToldAhead,
    /// The last revision that was offered.
    offered: Revision,
    pub(crate) counters: SubscriberCounters,
}

impl Queue {
    /// A queue for `capacity` events. Everything up to revision `since` the subscriber has been told
    /// or could have been, as far as it wanted.
    pub(crate) fn new(capacity: usize, since: Revision) -> Self {
        Self {
            capacity: capacity.max(1),
            backlog: VecDeque::new(),
            recent: VecDeque::new(),
            fold: Fold::default(),
            told_ahead: ToldAhead::default(),
            offered: since,
            counters: SubscriberCounters::default(),
        }
    }

    /// Lets the subscription begin with a snapshot.
    pub(super) fn begin_with(mut self, snapshot: Snapshot) -> Self {
        self.backlog = snapshot.events.into();
        self.told_ahead = snapshot.told_ahead;
        self
    }

    /// Lets the subscription begin with past events.
    pub(super) fn resume_with(
        mut self,
        events: impl IntoIterator<Item = Arc<LifecycleEvent>>,
    ) -> Self {
        self.backlog = events.into_iter().collect();
        self
    }

    /// Takes an event in. `is_present` says whether a pod is in the cache.
    pub(crate) fn offer(
        &mut self,
        event: &Arc<LifecycleEvent>,
        is_present: &dyn Fn(&PodUid) -> bool,
    ) {
        if self.told_ahead.has_told(event) {
            self.counters.already_told += 1;
        } else if self.fold.is_empty() && self.recent.len() < self.capacity {
            self.recent.push_back(Arc::clone(event));
        } else {
            if self.fold.is_empty() {
                self.fold.begin(self.offered, self.capacity);
            }
            let absorbed = self.fold.absorb(event, is_present);
            self.counters.folded += absorbed.events;
            self.counters.folded_whole += absorbed.whole;
        }
        self.offered = self.offered.max(event.revision);
    }

    /// After a batch was offered: lets go of what is gone and will not be told. `is_shown` says whether the
    /// cache shows a subject.
    pub(super) fn forget_gone(&mut self, is_shown: &dyn Fn(&PodUid, &SubjectId) -> bool) {
        self.counters.folded += self.fold.forget_gone(is_shown);
    }

    /// Hands out the next event.
    pub(crate) fn pop(&mut self) -> Option<Arc<LifecycleEvent>> {
        let event = self
            .backlog
            .pop_front()
            .or_else(|| self.recent.pop_front())
            .or_else(|| self.fold.pop())?;
        self.counters.delivered += 1;
        Some(event)
    }

    /// How many events wait to be taken.
    pub(super) fn len(&self) -> usize {
        self.backlog.len() + self.recent.len() + self.fold.len()
    }

    /// How many subjects and pods the fold keeps track of.
    #[cfg(test)]
    pub(super) fn fold_entries(&self) -> (usize, usize) {
        self.fold.entries()
    }
}
