//! What is known of one subject's life, and which events of it were heard.
//!
//! Two columns of one account: what must have happened while the stream was open (`proven`), and what
//! the stream said (`heard`). It never asks how either became known.

use crate::lifecycle::{EventKind, Knowledge, Mono, Phase, SandboxId};

/// One subject.
#[derive(Clone, Debug)]
pub(super) struct Trail {
    /// How far it has come, by the rules of the merge.
    pub(super) knowledge: Knowledge,
    /// How far it had come when the stream was first sure to be open; events up to there are not owed.
    pub(super) before: Option<Phase>,
    /// Which of the four events must have been told, and since when that is certain.
    proven: [Option<Mono>; 4],
    heard: [Option<Mono>; 4],
    /// The sandbox of a container, if known.
    pub(super) sandbox: Option<SandboxId>,
    /// It vanished together with its sandbox.
    pub(super) went_with_sandbox: bool,
    /// Its end is known only from its being gone.
    pub(super) end_inferred: bool,
    /// A status said that it was never started.
    pub(super) never_ran: bool,
    /// Lists contradicted one another about it: nothing more is judged.
    pub(super) doubted: bool,
}

impl Trail {
    pub(super) fn new(knowledge: Knowledge) -> Self {
        Self {
            knowledge,
            before: None,
            proven: [None; 4],
            heard: [None; 4],
            sandbox: None,
            went_with_sandbox: false,
            end_inferred: false,
            never_ran: false,
            doubted: false,
        }
    }

    /// The event is certain to have been due by now, unless it lies before what is judged.
    pub(super) fn prove(&mut self, kind: EventKind, at: Mono) {
        if self.doubted || self.before >= Some(phase_of(kind)) {
            return;
        }
        if let Some(slot) = place(kind).and_then(|place| self.proven.get_mut(place)) {
            slot.get_or_insert(at);
        }
    }

    /// Whether it is certain to have run, while it was watched or before.
    pub(super) fn ran(&self) -> bool {
        self.before >= Some(Phase::Running) || self.is_proven(EventKind::Started)
    }

    pub(super) fn is_proven(&self, kind: EventKind) -> bool {
        self.proven_at(kind).is_some()
    }

    /// Since when the event is certain to be due.
    pub(super) fn proven_at(&self, kind: EventKind) -> Option<Mono> {
        *self.proven.get(place(kind)?)?
    }

    /// Whether nothing was heard of it and nothing is certain but that it is there.
    pub(super) fn is_blank(&self) -> bool {
        let nothing = |moments: &[Option<Mono>]| moments.iter().all(Option::is_none);
        self.before.is_none() && nothing(&self.proven) && nothing(&self.heard)
    }

    /// When the event was first heard.
    pub(super) fn heard_at(&self, kind: EventKind) -> Option<Mono> {
        *self.heard.get(place(kind)?)?
    }

    /// Whether a later event of this life was heard.
    pub(super) fn is_behind(&self, kind: EventKind) -> bool {
        let later = place(kind).map_or(&[][..], |place| self.heard.get(place + 1..).unwrap_or(&[]));
        later.iter().any(Option::is_some)
    }

    pub(super) fn hear(&mut self, kind: EventKind, at: Mono) {
        if let Some(slot) = place(kind).and_then(|place| self.heard.get_mut(place)) {
            slot.get_or_insert(at);
        }
    }

    /// Whether an event is certain to be due and was not heard.
    pub(super) fn is_owed(&self, kind: EventKind) -> bool {
        self.is_proven(kind) && self.heard_at(kind).is_none()
    }

    /// A list took back what another showed: neither can be held against the stream.
    pub(super) fn doubt(&mut self) {
        self.doubted = true;
        for (proven, heard) in self.proven.iter_mut().zip(self.heard) {
            if heard.is_none() {
                *proven = None;
            }
        }
    }
}

fn place(kind: EventKind) -> Option<usize> {
    super::KINDS.iter().position(|known| *known == kind)
}

/// The phase that an event tells of.
pub(super) fn phase_of(kind: EventKind) -> Phase {
    match kind {
        EventKind::Created | EventKind::Other(_) => Phase::Created,
        EventKind::Started => Phase::Running,
        EventKind::Stopped => Phase::Exited,
        EventKind::Deleted => Phase::Removed,
    }
}
