//! The feed: lifecycle events, fanned out to any number of subscribers.
//!
//! [`Feed`] is the one writer and is not `Clone`; the driver owns it. Publishing never waits: each
//! subscriber has a bounded queue of `Arc`s that folds past its bound (see `fold`), so a slow one
//! costs neither the driver nor the others anything, and loses no state. [`FeedHandle`] subscribes
//! people. Nothing here decides what is told; that is the engine's.

mod fold;
mod queue;
mod snapshot;
mod subscription;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

pub use queue::SubscriberCounters;
pub use subscription::Subscription;

use crate::cache::{Cache, Listing};
use crate::lifecycle::{
    EventSubject, LifecycleEvent, LifecycleKind, PodStatus, PodUid, Revision, SubjectId, UnixNanos,
};
#[cfg(test)]
pub(crate) use queue::Queue;
#[cfg(not(test))]
use queue::Queue;
pub use snapshot::ToldAhead;
use snapshot::{Delivered, Snapshot};
use subscription::Slot;

/// How many events a subscriber's queue holds before it folds, and how many past events can be
/// resumed from: the kubelet's `plegChannelCapacity`.
pub const DEFAULT_CAPACITY: usize = 1_000;

/// Where a subscription begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchFrom {
    /// With the present phase of everything, as events marked `initial`, then whatever follows.
    Snapshot,
    /// With whatever follows.
    Now,
    /// With whatever came after a revision: that of an event, or of the cache. A snapshot shows subjects
    /// whose `ContainerStarted` still waits for its inspection; resumed from there, that comes once more.
    After(Revision),
}

/// Why a subscription cannot begin where it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The feed no longer holds everything since.
    #[error(
        "revision {asked} is too old: the feed holds only what came after {oldest}; \
         list again, or watch from a snapshot"
    )]
    TooOld {
        /// The revision asked for.
        asked: Revision,
        /// The oldest that can be resumed from.
        oldest: Revision,
    },
    /// No such revision has been published: it is another process's, or from before a restart.
    #[error(
        "revision {asked} is from the future: the newest is {newest}; \
         if it comes from before a restart, list again, or watch from a snapshot"
    )]
    FromTheFuture {
        /// The revision asked for.
        asked: Revision,
        /// The newest there is.
        newest: Revision,
    },
    /// The driver has ended; nothing follows.
    #[error("the driver has stopped; no events follow")]
    Stopped,
}

/// The one writer.
#[doc(hidden)]
#[derive(Debug)]
pub struct Feed {
    hub: Arc<Hub>,
}

/// Subscribes people. Clones lead to the same feed. Embedders have [`Pleg::watch`](crate::Pleg::watch).
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct FeedHandle {
    hub: Arc<Hub>,
}

/// What the feed has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedStats {
    /// Events published, each once, however many subscribers there were.
    pub published: u64,
    /// All subscribers' counters together, of those that left too.
    pub totals: SubscriberCounters,
    /// The present subscribers, in the order in which they came.
    pub subscribers: Vec<SubscriberStats>,
}

/// How one subscriber does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriberStats {
    /// Its number, never used twice.
    pub id: u64,
    /// Events that wait for it.
    pub lag: usize,
    /// What it was told and was not.
    pub counters: SubscriberCounters,
}

/// The present phase of everything, for whoever follows the feed by other means than a subscription.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FeedSnapshot {
    /// One initial event for each subject that runs or has ended, by revision.
    pub events: Vec<Arc<LifecycleEvent>>,
    /// What followed after this revision is not among them, but for what `told_ahead` knows.
    pub after: Revision,
    /// What they tell that the feed has still to tell.
    pub told_ahead: ToldAhead,
}

/// What the writer, the handle and the subscriptions share.
#[derive(Debug)]
struct Hub {
    cache: Cache,
    capacity: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    published: u64,
    newest: Revision,
    delivered: Delivered,
    /// The last `capacity` events.
    past: VecDeque<Arc<LifecycleEvent>>,
    /// The revision of the newest event that is no longer among them.
    forgotten: Revision,
    next_id: u64,
    subscribers: BTreeMap<u64, Arc<Slot>>,
    left: SubscriberCounters,
}

/// Makes a feed whose subscribers' queues hold `capacity` events each. `cache` is the one that is
/// written before each publication. The builder does; it is public for this repository's own benchmarks.
#[doc(hidden)]
#[must_use]
pub fn feed(capacity: usize, cache: Cache) -> (Feed, FeedHandle) {
    let hub = Arc::new(Hub {
        cache,
        capacity: capacity.max(1),
        state: Mutex::default(),
    });
    let handle = FeedHandle {
        hub: Arc::clone(&hub),
    };
    (Feed { hub }, handle)
}

impl Feed {
    /// Tells every subscriber a batch of events, in order, and wakes each at most once. Revisions
    /// never go back from one event to the next. Never waits.
    pub fn publish(&mut self, batch: &[Arc<LifecycleEvent>]) {
        if batch.is_empty() {
            return;
        }
        let is_present = |uid: &_| self.hub.cache.contains(uid);
        let is_shown = |uid: &PodUid, subject: &SubjectId| {
            let cached = self.hub.cache.get(uid);
            cached.is_some_and(|pod| shows(&pod.status, subject))
        };
        let mut wakers = Vec::new();
        let mut state = self.hub.lock();
        for event in batch {
            state.remember(event, self.hub.capacity, &self.hub.cache);
        }
        for slot in state.subscribers.values() {
            wakers.extend(slot.offer(batch, &is_present, &is_shown));
        }
        drop(state);
        // Woken without a lock held: a waker may run anything.
        for waker in wakers {
            waker.wake();
        }
    }

    /// Ends the feed: subscribers take what waits for them, then see the end. Dropping it does the
    /// same.
    pub fn close(&mut self) {
        let mut state = self.hub.lock();
        state.closed = true;
        let wakers: Vec<_> = state
            .subscribers
            .values()
            .filter_map(|slot| slot.close())
            .collect();
        drop(state);
        for waker in wakers {
            waker.wake();
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.close();
    }
}

impl FeedHandle {
    /// Subscribes. `seen_at` is the present moment, for events that only the snapshot tells.
    ///
    /// # Errors
    ///
    /// If the feed cannot begin there, or has ended.
    pub fn watch(&self, from: WatchFrom, seen_at: UnixNanos) -> Result<Subscription, WatchError> {
        let mut state = self.hub.lock();
        if state.closed {
            return Err(WatchError::Stopped);
        }
        // The cache is read while the feed stands still; it may be ahead of the feed, never behind.
        let queue = match from {
            WatchFrom::Snapshot => {
                let pods = self.hub.cache.list();
                let snapshot = Snapshot::take(&state.delivered, &pods, seen_at);
                self.queue(&state).begin_with(snapshot)
            }
            WatchFrom::Now => self.queue(&state),
            WatchFrom::After(revision) => {
                let past = state.after(revision, self.newest(&state))?;
                self.queue(&state).resume_with(past)
            }
        };
        let slot = Arc::new(Slot::new(queue));
        let id = state.next_id;
        state.next_id += 1;
        state.subscribers.insert(id, Arc::clone(&slot));
        drop(state);
        Ok(Subscription::new(id, slot, Arc::clone(&self.hub)))
    }

    /// The present phase of everything, and after which revision to follow: what
    /// [`WatchFrom::Snapshot`] begins with.
    #[must_use]
    pub fn snapshot(&self, seen_at: UnixNanos) -> FeedSnapshot {
        let state = self.hub.lock();
        let pods = self.hub.cache.list();
        let Snapshot { events, told_ahead } = Snapshot::take(&state.delivered, &pods, seen_at);
        FeedSnapshot {
            events,
            after: state.newest,
            told_ahead,
        }
    }

    /// Every pod, with the revision to watch after. What the feed has told by then is in the list, so
    /// it is further on than [`Cache::listing`](crate::cache::Cache::listing)'s.
    #[must_use]
    pub fn listing(&self) -> Listing {
        let state = self.hub.lock();
        let mut listing = self.hub.cache.listing();
        listing.revision = listing.revision.max(state.newest);
        listing
    }

    /// The revision of the newest event that was told.
    #[must_use]
    pub fn told_up_to(&self) -> Revision {
        self.hub.lock().newest
    }

    /// The newest revision that anybody can have been told, by the feed or by the cache.
    #[must_use]
    pub fn newest_revision(&self) -> Revision {
        let state = self.hub.lock();
        self.newest(&state)
    }

    /// What the feed has done so far.
    #[must_use]
    pub fn stats(&self) -> FeedStats {
        let state = self.hub.lock();
        let subscribers: Vec<_> = state
            .subscribers
            .iter()
            .map(|(id, slot)| slot.stats(*id))
            .collect();
        let mut totals = state.left;
        for subscriber in &subscribers {
            totals.add(&subscriber.counters);
        }
        FeedStats {
            published: state.published,
            totals,
            subscribers,
        }
    }

    fn queue(&self, state: &State) -> Queue {
        Queue::new(self.hub.capacity, self.newest(state))
    }

    fn newest(&self, state: &State) -> Revision {
        state.newest.max(self.hub.cache.revision())
    }
}

/// The subject whose change an event tells; none for a `PodSync`.
fn subject_of(event: &LifecycleEvent) -> Option<SubjectId> {
    match event.kind {
        LifecycleKind::PodSync => None,
        _ => event.subject.as_ref().map(EventSubject::id),
    }
}

/// Whether a status shows a subject.
fn shows(status: &PodStatus, subject: &SubjectId) -> bool {
    match subject {
        SubjectId::Sandbox(id) => status.sandboxes.iter().any(|sandbox| sandbox.id == *id),
        SubjectId::Container(id) => status
            .containers
            .iter()
            .any(|container| container.id == *id),
    }
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a subscriber go.
    fn leave(&self, id: u64) {
        let mut state = self.lock();
        if let Some(slot) = state.subscribers.remove(&id) {
            state.left.add(&slot.stats(id).counters);
        }
    }
}

impl State {
    fn remember(&mut self, event: &Arc<LifecycleEvent>, capacity: usize, cache: &Cache) {
        debug_assert!(event.revision >= self.newest, "revisions go back");
        self.published += 1;
        self.newest = self.newest.max(event.revision);
        match subject_of(event) {
            None => self.forget_gone(&event.pod.uid, cache),
            Some(subject) if event.kind == LifecycleKind::ContainerRemoved => {
                self.delivered.remove(&subject);
            }
            Some(subject) => {
                self.delivered.insert(subject, Arc::clone(event));
            }
        }
        if self.past.len() >= capacity
            && let Some(oldest) = self.past.pop_front()
        {
            self.forgotten = oldest.revision;
        }
        self.past.push_back(Arc::clone(event));
    }

    /// Forgets a pod's subjects that the cache no longer shows: of one that ever stepped back, even
    /// the removal is told by `PodSync`.
    fn forget_gone(&mut self, uid: &PodUid, cache: &Cache) {
        let cached = cache.get(uid);
        self.delivered.retain(|subject, last| {
            let shown = || {
                cached
                    .as_ref()
                    .is_some_and(|pod| shows(&pod.status, subject))
            };
            last.pod.uid != *uid || shown()
        });
    }

    fn after(
        &self,
        asked: Revision,
        newest: Revision,
    ) -> Result<impl Iterator<Item = Arc<LifecycleEvent>>, WatchError> {
        if asked > newest {
            return Err(WatchError::FromTheFuture { asked, newest });
        }
        if asked < self.forgotten {
            return Err(WatchError::TooOld {
                asked,
                oldest: self.forgotten,
            });
        }
        let first = self.past.partition_point(|event| event.revision <= asked);
        Ok(self.past.range(first..).cloned())
    }
}
