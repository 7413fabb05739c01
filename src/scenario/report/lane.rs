//! What a report draws: lanes with their phases, marks and troubles, and the bands of the node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::Mode;
use crate::lifecycle::{LifecycleKind, Mono, PodIdentity, ReportedState, Source};

/// A pod.
#[derive(Debug)]
pub(super) struct Lane {
    /// As the scenario calls it, else its namespace and name.
    pub(super) name: String,
    pub(super) pod: PodIdentity,
    pub(super) rows: BTreeMap<RowKey, Row>,
}

/// What shares a row: all sandboxes of a pod, all attempts of a container's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RowKey {
    Sandboxes,
    Container(Arc<str>),
}

#[derive(Debug, Default)]
pub(super) struct Row {
    /// In order of attempt, so that a later one is drawn over what is left of those before it.
    pub(super) bars: Vec<Bar>,
    pub(super) marks: Vec<Mark>,
    pub(super) troubles: Vec<Trouble>,
}

/// A phase that lasted.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) from: Mono,
    pub(super) until: Mono,
    pub(super) state: ReportedState,
    pub(super) is_failure: bool,
    pub(super) words: String,
    pub(super) attempt: u32,
}

/// An event that was delivered.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) at: Mono,
    pub(super) kind: LifecycleKind,
    pub(super) source: Source,
    pub(super) initial: bool,
    pub(super) words: String,
}

/// How grave something is that went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gravity {
    /// A relist found what no event had told.
    Miss,
    /// An event said one thing and showed another.
    Contradiction,
    /// Refused, ignored, failed: it cost nothing but time.
    Other,
}

#[derive(Clone, Debug)]
pub(super) struct Trouble {
    pub(super) at: Mono,
    pub(super) gravity: Gravity,
    pub(super) words: String,
}

/// A mode that lasted; `None` while none was told.
#[derive(Debug)]
pub(super) struct ModeBand {
    pub(super) from: Mono,
    pub(super) until: Mono,
    pub(super) mode: Option<Mode>,
    pub(super) cause: Arc<str>,
}

#[derive(Debug)]
pub(super) struct Relist {
    pub(super) asked: Mono,
    pub(super) ended: Mono,
    /// What it showed, or why it showed nothing.
    pub(super) outcome: Result<String, String>,
}

/// A time in which relists began at about the same distance from each other.
#[derive(Debug)]
pub(super) struct Period {
    pub(super) from: Mono,
    pub(super) until: Mono,
    pub(super) relists: u32,
}

impl Period {
    pub(super) fn each(&self) -> Duration {
        self.until.since(self.from) / self.relists.max(1)
    }
}

impl Lane {
    /// Without the namespace: of two names of pods it is the end that differs.
    pub(super) fn short_name(&self) -> &str {
        let within = self.name.strip_prefix(&*self.pod.namespace);
        within
            .and_then(|rest| rest.strip_prefix('/'))
            .unwrap_or(&self.name)
    }

    pub(super) fn count(&self, gravity: Gravity) -> usize {
        self.rows
            .values()
            .flat_map(|row| &row.troubles)
            .filter(|trouble| trouble.gravity == gravity)
            .count()
    }
}
