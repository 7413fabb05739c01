//! The ring: the last events, for any number of watchers that may stall, leave and come back.
//!
//! One writer, the feeder; a watcher holds nothing but a [`Cursor`], so one that sleeps for an hour
//! costs no memory, and finds on waking either exactly what followed or [`ListAgain`]. What an event
//! looks like on a wire is made once at most, whoever asks first. The ring reads no clock, knows no
//! transport, and never waits; only [`Cursor::next`] does, for the writer.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use serde::Serialize;
use thiserror::Error;
use tokio::sync::watch;

use super::position::{Epoch, Position};
use crate::lifecycle::{EventSubject, LifecycleEvent, Revision};

/// How many events are kept by default.
pub const DEFAULT_EVENTS: usize = 10_000;

/// How many bytes they may take by default, their encoded forms included.
pub const DEFAULT_BYTES: usize = 32 << 20;

/// What an event weighs besides its text, at least: the value, its entry and two encodings' frames.
const WEIGHT_OF_AN_EVENT: usize = 1_024;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingLimits {
    /// Events; at least 1.
    pub events: usize,
    /// About how many bytes of memory. The newest event is kept even if it alone is larger.
    pub bytes: usize,
}

impl Default for RingLimits {
    fn default() -> Self {
        Self {
            events: DEFAULT_EVENTS,
            bytes: DEFAULT_BYTES,
        }
    }
}

/// A watcher cannot go on from where it was: it must list, or begin with a snapshot. What lies between
/// is not known to it, and is never passed over in silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
#[non_exhaustive]
pub enum ListAgain {
    /// The position is of another life of the daemon.
    #[error("list again: the position is of another life of the daemon, which has restarted since")]
    OtherEpoch,
    /// The ring no longer holds everything since.
    #[error("list again: the watcher has fallen behind what is kept")]
    Behind,
    /// Nothing has come so far in this epoch.
    #[error("list again: the position lies in the future, so it was never handed out")]
    Future,
}

impl ListAgain {
    /// A label for metrics and wire formats.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::OtherEpoch => "OtherEpoch",
            Self::Behind => "Behind",
            Self::Future => "Future",
        }
    }
}

/// An event in the ring, with what it looks like on each wire.
#[derive(Debug)]
pub struct RingEvent {
    /// Where it is: what to resume after once one has it.
    pub position: Position,
    /// The event.
    pub event: Arc<LifecycleEvent>,
    json: OnceLock<Bytes>,
    protobuf: OnceLock<Bytes>,
}

/// An event as JSON: the library's own shape, and the epoch that its revision counts in.
#[derive(Serialize)]
struct InEpoch<'a> {
    epoch: Epoch,
    #[serde(flatten)]
    event: &'a LifecycleEvent,
}

/// One event as a line of JSON without its end: its fields and the epoch.
#[must_use]
pub fn event_json(epoch: Epoch, event: &LifecycleEvent) -> Bytes {
    // Nothing in these types can fail to serialise; if it ever did, an empty object is valid JSON.
    serde_json::to_vec(&InEpoch { epoch, event }).map_or(Bytes::from_static(b"{}"), Bytes::from)
}

impl RingEvent {
    fn new(epoch: Epoch, event: Arc<LifecycleEvent>) -> Self {
        Self {
            position: Position {
                epoch,
                revision: event.revision,
            },
            event,
            json: OnceLock::new(),
            protobuf: OnceLock::new(),
        }
    }

    /// The event as one line of JSON without its end, made once however many watchers there are.
    #[must_use]
    pub fn json(&self) -> Bytes {
        let made = || event_json(self.position.epoch, &self.event);
        self.json.get_or_init(made).clone()
    }

    /// The event's protobuf bytes, made by `encode` if nobody has before.
    #[must_use]
    pub fn protobuf(&self, encode: impl FnOnce(&Self) -> Bytes) -> Bytes {
        self.protobuf.get_or_init(|| encode(self)).clone()
    }

    /// About how much memory it takes, encoded forms included.
    fn weight(&self) -> usize {
        let event = &self.event;
        let subject = match &event.subject {
            Some(EventSubject::Sandbox { id, .. }) => id.as_str().len(),
            Some(EventSubject::Container { id, name, .. }) => id.as_str().len() + name.len(),
            None => 0,
        };
        let text = event.pod.uid.as_str().len()
            + event.pod.namespace.len()
            + event.pod.name.len()
            + event.exit.as_ref().map_or(0, |exit| exit.reason.len())
            + subject;
        // The text itself, in JSON (where a hostile character may take six bytes) and in protobuf.
        WEIGHT_OF_AN_EVENT + text * 8
    }
}

/// What the ring has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingStats {
    /// Events kept at present.
    pub events: usize,
    /// About how many bytes they take.
    pub bytes: usize,
    /// Events published since the beginning.
    pub published: u64,
    /// Events that had to go for newer ones.
    pub dropped: u64,
    /// Times that the feed had folded for the feeder, so that every watcher had to list again.
    pub gaps: u64,
}

/// The one writer.
#[derive(Debug)]
pub struct RingWriter {
    ring: Ring,
    newest: watch::Sender<Told>,
}

/// A reader of the ring. Clones read the same one.
#[derive(Clone, Debug)]
pub struct Ring {
    epoch: Epoch,
    state: Arc<Mutex<State>>,
    newest: watch::Receiver<Told>,
}

/// What wakes those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    newest: Revision,
    gaps: u64,
}

#[derive(Debug)]
struct State {
    limits: RingLimits,
    events: VecDeque<Arc<RingEvent>>,
    bytes: usize,
    /// Events up to here are, or may be, no longer held.
    forgotten: Revision,
    newest: Revision,
    published: u64,
    dropped: u64,
    gaps: u64,
}

/// Makes a ring that follows after `begin`: whatever came up to that revision it does not hold.
#[must_use]
pub fn ring(epoch: Epoch, limits: RingLimits, begin: Revision) -> (RingWriter, Ring) {
    let (newest, seen) = watch::channel(Told {
        newest: begin,
        gaps: 0,
    });
    let state = State {
        limits,
        events: VecDeque::new(),
        bytes: 0,
        forgotten: begin,
        newest: begin,
        published: 0,
        dropped: 0,
        gaps: 0,
    };
    let ring = Ring {
        epoch,
        state: Arc::new(Mutex::new(state)),
        newest: seen,
    };
    let writer = RingWriter {
        ring: ring.clone(),
        newest,
    };
    (writer, ring)
}

impl RingWriter {
    /// Adds events, in the order of their revisions, and wakes whoever waits, once.
    pub fn publish(&mut self, batch: impl IntoIterator<Item = Arc<LifecycleEvent>>) {
        let told = {
            let mut state = self.ring.lock();
            for event in batch {
                state.push(self.ring.epoch, event);
            }
            state.told()
        };
        self.tell(told);
    }

    /// Something between the last event and the next is not known: everything held is forgotten, and
    /// every watcher that stands before `upto` must list again.
    pub fn gap(&mut self, upto: Revision) {
        let told = {
            let mut state = self.ring.lock();
            state.newest = state.newest.max(upto);
            state.forgotten = state.newest;
            state.events.clear();
            state.bytes = 0;
            state.gaps += 1;
            state.told()
        };
        self.tell(told);
    }

    fn tell(&self, told: Told) {
        self.newest.send_if_modified(|shown| {
            let changed = *shown != told;
            *shown = told;
            changed
        });
    }
}

impl Ring {
    /// The life of the daemon that this ring is of.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The newest revision in the ring. The feed and the cache may be ahead of it.
    #[must_use]
    pub fn newest(&self) -> Revision {
        self.lock().newest
    }

    /// A cursor to what follows after a position. `known` is the newest revision that has been handed
    /// out anywhere: a list's may be ahead of the ring.
    ///
    /// # Errors
    ///
    /// If the ring does not hold everything since.
    pub fn after(&self, position: Position, known: Revision) -> Result<Cursor, ListAgain> {
        if position.epoch != self.epoch {
            return Err(ListAgain::OtherEpoch);
        }
        let (forgotten, newest) = {
            let state = self.lock();
            (state.forgotten, state.newest)
        };
        if position.revision < forgotten {
            return Err(ListAgain::Behind);
        }
        if position.revision > newest.max(known) {
            return Err(ListAgain::Future);
        }
        Ok(Cursor {
            ring: self.clone(),
            has: position.revision,
        })
    }

    /// How many events in the ring lie after a revision; `None` if some that did are gone.
    #[must_use]
    pub fn lag(&self, revision: Revision) -> Option<usize> {
        let state = self.lock();
        let behind = revision < state.forgotten;
        (!behind).then(|| state.events.len() - state.first_after(revision))
    }

    /// What the ring has done so far.
    #[must_use]
    pub fn stats(&self) -> RingStats {
        let state = self.lock();
        RingStats {
            events: state.events.len(),
            bytes: state.bytes,
            published: state.published,
            dropped: state.dropped,
            gaps: state.gaps,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, epoch: Epoch, event: Arc<LifecycleEvent>) {
        if event.revision <= self.newest {
            // From before this ring began, or told before a gap: nobody stands before it.
            return;
        }
        self.newest = event.revision;
        self.published += 1;
        let event = Arc::new(RingEvent::new(epoch, event));
        self.bytes += event.weight();
        self.events.push_back(event);
        while self.events.len() > 1
            && (self.events.len() > self.limits.events || self.bytes > self.limits.bytes)
            && let Some(oldest) = self.events.pop_front()
        {
            self.bytes -= oldest.weight();
            self.forgotten = oldest.event.revision;
            self.dropped += 1;
        }
    }

    fn first_after(&self, revision: Revision) -> usize {
        self.events
            .partition_point(|held| held.event.revision <= revision)
    }

    fn told(&self) -> Told {
        Told {
            newest: self.newest,
            gaps: self.gaps,
        }
    }
}

/// Where one watcher is. It holds no event.
#[derive(Clone, Debug)]
pub struct Cursor {
    ring: Ring,
    has: Revision,
}

impl Cursor {
    /// Up to where the watcher has everything.
    #[must_use]
    pub fn position(&self) -> Position {
        Position {
            epoch: self.ring.epoch,
            revision: self.has,
        }
    }

    /// The next events, at most so many; none if there are none yet.
    ///
    /// # Errors
    ///
    /// [`ListAgain::Behind`] once the ring has dropped one that the watcher has not seen.
    pub fn take(&mut self, most: usize) -> Result<Vec<Arc<RingEvent>>, ListAgain> {
        let state = self.ring.lock();
        if self.has < state.forgotten {
            return Err(ListAgain::Behind);
        }
        let first = state.first_after(self.has);
        let taken: Vec<_> = state.events.range(first..).take(most).cloned().collect();
        drop(state);
        if let Some(last) = taken.last() {
            self.has = last.event.revision;
        }
        Ok(taken)
    }

    /// Waits for the next events, and takes at most so many; `None` once the writer is gone and
    /// everything has been taken.
    ///
    /// Cancel-safe: nothing is taken unless it is returned.
    ///
    /// # Errors
    ///
    /// [`ListAgain::Behind`], as for [`Cursor::take`].
    pub async fn next(&mut self, most: usize) -> Result<Option<Vec<Arc<RingEvent>>>, ListAgain> {
        let mut newest = self.ring.newest.clone();
        loop {
            // Marked as seen before the ring is looked at: what comes after the look wakes.
            newest.borrow_and_update();
            let closed = newest.has_changed().is_err();
            let taken = self.take(most)?;
            if !taken.is_empty() {
                return Ok(Some(taken));
            }
            if closed {
                return Ok(None);
            }
            // An error is the writer's end, which the next look finds.
            let _ = newest.changed().await;
        }
    }
}

#[cfg(test)]
mod tests;
