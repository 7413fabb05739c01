//! Watchers: a snapshot if one is wanted, then whatever follows in the ring; and who they all are.
//!
//! What every transport shares. A watcher holds a cursor and, until it has taken it, its snapshot; it
//! is counted from its making to its drop. Nobody waits for one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use super::position::Position;
use super::ring::{Cursor, ListAgain, Ring, RingEvent};
use super::status::SubscriberReport;
use crate::feed::{FeedSnapshot, ToldAhead};
use crate::lifecycle::{LifecycleEvent, Revision, UnixNanos};

/// Where a watcher begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchStart {
    /// With the present phase of everything, as initial events, then whatever follows.
    Snapshot,
    /// With whatever follows.
    Now,
    /// With whatever came after a position: that of an event, of a list or of a snapshot's end.
    After(Position),
}

/// Why a watcher did not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WatchRefused {
    /// It cannot begin there.
    #[error(transparent)]
    ListAgain(#[from] ListAgain),
    /// There are as many as are allowed.
    #[error("there are {0} watchers already, which is as many as are allowed")]
    TooMany(usize),
}

/// What a watcher is told.
#[derive(Clone, Debug)]
pub enum Told {
    /// Something that is there already: part of the snapshot.
    Initial(Arc<LifecycleEvent>),
    /// The snapshot is complete, if one was asked for; whatever follows comes after this.
    SnapshotEnd(Position),
    /// Something happened.
    Event(Arc<RingEvent>),
}

/// Why a watcher is told no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WatchEnd {
    /// It fell behind.
    #[error(transparent)]
    ListAgain(#[from] ListAgain),
    /// The daemon ends.
    #[error("the daemon is shutting down; watch again from the last position")]
    Closed,
}

/// Who watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// How it is connected.
    pub transport: &'static str,
    /// Who it says it is; cut to 80 characters.
    pub name: String,
}

/// What all watchers did so far, those that left included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatcherTotals {
    /// Watchers that began.
    pub begun: u64,
    /// Watchers that were refused because there were too many.
    pub refused: u64,
    /// Times that one was told to list again because it had fallen behind.
    pub behind: u64,
    /// Times that one was told so because its position was of another epoch.
    pub other_epoch: u64,
    /// Times that one was told so because its position was never handed out.
    pub future: u64,
}

/// All watchers. Clones share them.
#[derive(Clone, Debug)]
pub struct Watchers {
    most: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    next_id: u64,
    present: BTreeMap<u64, Arc<Entry>>,
    totals: WatcherTotals,
}

#[derive(Debug)]
struct Entry {
    client: Client,
    since: UnixNanos,
    has: AtomicU64,
    delivered: AtomicU64,
}

impl Watchers {
    /// None yet, and at most so many at a time.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most,
            state: Arc::default(),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().present.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What all of them did so far.
    #[must_use]
    pub fn totals(&self) -> WatcherTotals {
        self.lock().totals
    }

    /// Each of them, and how far it is behind.
    #[must_use]
    pub fn reports(&self, ring: &Ring) -> Vec<SubscriberReport> {
        let present: Vec<_> = {
            let state = self.lock();
            let entries = state.present.iter();
            entries
                .map(|(id, entry)| (*id, Arc::clone(entry)))
                .collect()
        };
        present
            .into_iter()
            .map(|(id, entry)| SubscriberReport {
                id,
                transport: entry.client.transport.to_owned(),
                client: entry.client.name.clone(),
                since: entry.since,
                delivered: entry.delivered.load(Ordering::Relaxed),
                lag: ring.lag(Revision(entry.has.load(Ordering::Relaxed))),
            })
            .collect()
    }

    /// Lets a watcher begin at a cursor, with a snapshot before it if there is one, be it empty.
    pub(super) fn begin(
        &self,
        client: Client,
        since: UnixNanos,
        cursor: Cursor,
        snapshot: Option<FeedSnapshot>,
    ) -> Result<Watcher, WatchRefused> {
        let entry = Arc::new(Entry {
            client: client.cut(),
            since,
            has: AtomicU64::new(cursor.position().revision.0),
            delivered: AtomicU64::new(0),
        });
        let mut state = self.lock();
        if state.present.len() >= self.most {
            state.totals.refused += 1;
            return Err(WatchRefused::TooMany(self.most));
        }
        let id = state.next_id;
        state.next_id += 1;
        state.totals.begun += 1;
        state.present.insert(id, Arc::clone(&entry));
        drop(state);
        let ends_snapshot = snapshot.is_some();
        let (initial, told_ahead) = snapshot
            .map(|snapshot| (snapshot.events.into(), snapshot.told_ahead))
            .unwrap_or_default();
        Ok(Watcher {
            initial,
            ends_snapshot,
            told_ahead,
            cursor,
            entry,
            place: Place {
                id,
                watchers: self.clone(),
            },
        })
    }

    /// Counts that somebody was told to list again.
    pub(super) fn count(&self, why: ListAgain) {
        let mut state = self.lock();
        match why {
            ListAgain::Behind => state.totals.behind += 1,
            ListAgain::OtherEpoch => state.totals.other_epoch += 1,
            ListAgain::Future => state.totals.future += 1,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    fn cut(mut self) -> Self {
        if let Some((at, _)) = self.name.char_indices().nth(80) {
            self.name.truncate(at);
        }
        self
    }
}

/// One watcher.
#[derive(Debug)]
pub struct Watcher {
    initial: VecDeque<Arc<LifecycleEvent>>,
    ends_snapshot: bool,
    told_ahead: ToldAhead,
    cursor: Cursor,
    entry: Arc<Entry>,
    place: Place,
}

/// A watcher's place among the present ones, until it is dropped.
#[derive(Debug)]
struct Place {
    id: u64,
    watchers: Watchers,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.watchers.lock().present.remove(&self.id);
    }
}

impl Watcher {
    /// Up to where it has everything, once its snapshot is taken.
    #[must_use]
    pub fn position(&self) -> Position {
        self.cursor.position()
    }

    /// Waits for what comes next and takes at most so many, in order; never none.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    ///
    /// Why nothing follows.
    pub async fn next(&mut self, most: usize) -> Result<Vec<Told>, WatchEnd> {
        if !self.initial.is_empty() {
            let taken: Vec<_> = self
                .initial
                .drain(..most.min(self.initial.len()))
                .map(Told::Initial)
                .collect();
            self.delivered(taken.len());
            return Ok(taken);
        }
        if std::mem::take(&mut self.ends_snapshot) {
            return Ok(vec![Told::SnapshotEnd(self.position())]);
        }
        loop {
            let events = match self.cursor.next(most).await {
                Ok(Some(events)) => events,
                Ok(None) => return Err(WatchEnd::Closed),
                Err(why) => {
                    self.place.watchers.count(why);
                    return Err(why.into());
                }
            };
            let has = self.position().revision.0;
            self.entry.has.store(has, Ordering::Relaxed);
            let told: Vec<_> = events
                .into_iter()
                .filter(|held| !self.told_ahead.has_told(&held.event))
                .map(Told::Event)
                .collect();
            if !told.is_empty() {
                self.delivered(told.len());
                return Ok(told);
            }
        }
    }

    fn delivered(&self, events: usize) {
        let events = u64::try_from(events).unwrap_or(u64::MAX);
        self.entry.delivered.fetch_add(events, Ordering::Relaxed);
    }
}
