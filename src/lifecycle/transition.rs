//! The one transition table: which lifecycle events a move of a subject owes, whatever told it.
//!
//! It never looks at sources or time, so that stream and relist cannot disagree.

use serde::{Deserialize, Serialize};

use super::{LifecycleKind, Phase};

/// A set of the three events that a subject can owe or have had: Started, Died, Removed.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventSet(u8);

impl std::fmt::Debug for EventSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl EventSet {
    /// No event.
    pub const EMPTY: Self = Self(0);
    /// Started alone.
    pub const STARTED: Self = Self(1);
    /// Died alone.
    pub const DIED: Self = Self(2);
    /// Removed alone.
    pub const REMOVED: Self = Self(4);

    /// Both sets' events.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The events of this set that are not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether it holds all of the other's events.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether it holds none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The events, in the only order in which they may be told.
    pub fn iter(self) -> impl Iterator<Item = LifecycleKind> {
        [
            (Self::STARTED, LifecycleKind::ContainerStarted),
            (Self::DIED, LifecycleKind::ContainerDied),
            (Self::REMOVED, LifecycleKind::ContainerRemoved),
        ]
        .into_iter()
        .filter_map(move |(bit, kind)| self.contains(bit).then_some(kind))
    }

    /// What may still be told after these were: never a repetition, never anything that belongs
    /// before what was told already (a Started heard after Died is dropped).
    #[must_use]
    pub const fn still_tellable(self) -> Self {
        if self.contains(Self::REMOVED) {
            Self::EMPTY
        } else if self.contains(Self::DIED) {
            Self::REMOVED
        } else if self.contains(Self::STARTED) {
            Self::DIED.with(Self::REMOVED)
        } else {
            Self::STARTED.with(Self::DIED).with(Self::REMOVED)
        }
    }
}

/// The table. `from` is the phase before (`None`: unheard of, or only ever Unknown), `to` the phase now.
///
/// Jumps are told as they are: absent to Exited gives Died alone, no Started is invented.
#[must_use]
pub const fn events_owed(from: Option<Phase>, to: Phase) -> EventSet {
    match (from, to) {
        (_, Phase::Created) => EventSet::EMPTY,
        (_, Phase::Running) => EventSet::STARTED,
        (_, Phase::Exited) => EventSet::DIED,
        (Some(Phase::Exited), Phase::Removed) => EventSet::REMOVED,
        (_, Phase::Removed) => EventSet::DIED.with(EventSet::REMOVED),
    }
}
