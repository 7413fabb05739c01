//! The record of one sandbox or container: what is known, what was told, what is still owed.

use super::hints::Hint;
use crate::law::Law;
use crate::lifecycle::{
    ContainerDetails, EventKind, EventSet, EventSubject, Exit, Knowledge, Mono, Phase, PodUid,
    Revision, SandboxDetails, SeqPoint, Source, SubjectId, UnixNanos, Verdict, Window, events_owed,
};

/// What is known besides the phase, by kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Details {
    Sandbox(SandboxDetails),
    Container(ContainerDetails),
}

/// Who told of a change first, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    pub(super) source: Source,
    pub(super) runtime_stamp: Option<UnixNanos>,
    pub(super) seen_at: UnixNanos,
    pub(super) initial: bool,
}

/// A change that a read told first and that the stream may still tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Expected {
    pub(super) event: EventKind,
    pub(super) deadline: Mono,
}

/// The record of one subject. A removed one stays as its own tombstone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Subject {
    pub(super) pod: PodUid,
    pub(super) knowledge: Knowledge,
    pub(super) details: Details,
    /// When the newest details were seen: what a report must have begun after to replace them.
    pub(super) details_seen: SeqPoint,
    /// Since when an inspection is wanted before anything more is told.
    pub(super) inspect_since: Option<SeqPoint>,
    /// Whether a list filtered by the pod's uid shows it.
    pub(super) labelled: bool,
    pub(super) told: EventSet,
    pub(super) owed: EventSet,
    pub(super) origin: Origin,
    /// The revision at which it was first published; zero until then.
    pub(super) born: Revision,
    pub(super) expected: Option<Expected>,
    /// When it was found removed; `None` while it is live.
    pub(super) removed_at: Option<SeqPoint>,
    /// Set while a list is applied: the list has mentioned it.
    pub(super) listed: bool,
    /// The stream told its phase here, and no later read has agreed yet.
    pub(super) told_by_stream: Option<SeqPoint>,
    /// What the stream told of it and was not merged.
    pub(super) hint: Option<Hint>,
}

impl Subject {
    pub(super) fn new(
        pod: PodUid,
        knowledge: Knowledge,
        details: Details,
        labelled: bool,
        origin: Origin,
    ) -> Self {
        let details_seen = knowledge.seen();
        let mut subject = Self {
            pod,
            knowledge,
            details,
            details_seen,
            inspect_since: None,
            labelled,
            told: EventSet::EMPTY,
            owed: EventSet::EMPTY,
            origin,
            born: Revision(0),
            expected: None,
            removed_at: None,
            listed: false,
            told_by_stream: None,
            hint: None,
        };
        subject.owe(None);
        subject
    }

    /// Books what a verdict owes to subscribers. Returns whether the pod owes a `PodSync` instead.
    pub(super) fn account(&mut self, verdict: Verdict, origin: Origin) -> bool {
        match verdict {
            Verdict::Moved { from } => {
                if self.knowledge.stepped_back() && Law::StepBackIsToldAsSync.holds() {
                    return true;
                }
                if self.owed.is_empty() {
                    self.origin = origin;
                }
                self.owe(from);
                false
            }
            Verdict::SteppedBack => {
                self.owed = EventSet::EMPTY;
                self.expected = None;
                true
            }
            _ => false,
        }
    }

    fn owe(&mut self, from: Option<Phase>) {
        if let Some(to) = self.knowledge.phase() {
            self.owe_events(events_owed(from, to));
        }
    }

    /// The stream said that the container ran, even if its snapshot is further already.
    pub(super) fn owe_started(&mut self) {
        if !self.knowledge.stepped_back() {
            self.owe_events(EventSet::STARTED);
        }
    }

    fn owe_events(&mut self, events: EventSet) {
        let repeated_or_too_late = if Law::ToldOnce.holds() {
            events.without(self.told.still_tellable())
        } else {
            EventSet::EMPTY
        };
        self.owed = self.owed.with(events.without(repeated_or_too_late));
    }

    /// Whether nothing follows from a read's verdict, as from nearly each one of a list: it agrees, and
    /// nothing waited for that.
    pub(super) fn is_done_with(&self, verdict: Verdict, window: Window) -> bool {
        verdict == Verdict::Agrees
            && self.told_by_stream.is_none()
            && self.hint.is_none()
            && self.knowledge.removal_proven() != Some(window.seen)
    }

    /// Whether nothing more need be read before its events are told.
    pub(super) fn is_ready_to_tell(&self) -> bool {
        let waits_for_details = self.inspect_since.is_some()
            && !self.knowledge.is_removed()
            && Law::EventsWaitForDetails.holds();
        !self.owed.is_empty() && !waits_for_details
    }

    /// Whether a list filtered by the pod's uid speaks of it.
    pub(super) fn is_shown_by_filter(&self) -> bool {
        self.labelled || !Law::FiltersSpeakOfTheirOwn.holds()
    }

    pub(super) fn is_live(&self) -> bool {
        !self.knowledge.is_removed()
    }

    /// Whether it is gone and only an event said so.
    pub(super) fn is_removal_unproven(&self) -> bool {
        self.knowledge.is_removed() && self.knowledge.removal_proven().is_none()
    }

    pub(super) fn sandbox(&self) -> Option<&SandboxDetails> {
        match &self.details {
            Details::Sandbox(details) => Some(details),
            Details::Container(_) => None,
        }
    }

    pub(super) fn container(&self) -> Option<&ContainerDetails> {
        match &self.details {
            Details::Container(details) => Some(details),
            Details::Sandbox(_) => None,
        }
    }

    /// The subject as events name it.
    pub(super) fn named(&self, id: &SubjectId) -> EventSubject {
        match (id, &self.details) {
            (SubjectId::Container(id), Details::Container(details)) => EventSubject::Container {
                id: id.clone(),
                name: details.name.clone(),
                attempt: details.attempt,
            },
            (SubjectId::Sandbox(id), details) => EventSubject::Sandbox {
                id: id.clone(),
                attempt: match details {
                    Details::Sandbox(details) => details.attempt,
                    Details::Container(_) => 0,
                },
            },
            // Details are made with the id's own kind; a container without them has no name to show.
            (SubjectId::Container(id), Details::Sandbox(details)) => EventSubject::Container {
                id: id.clone(),
                name: "".into(),
                attempt: details.attempt,
            },
        }
    }

    /// How it ended, if that is known.
    pub(super) fn exit(&self) -> Option<Exit> {
        let end = self.container()?.end.as_ref()?;
        Some(Exit {
            exit_code: end.exit_code,
            reason: end.reason.clone(),
            finished_at: end.finished_at,
        })
    }

    /// Lets go of what a tombstone does not need.
    pub(super) fn shrink_to_tombstone(&mut self) {
        if self.owed.is_empty() && self.knowledge.is_removed() {
            self.inspect_since = None;
            self.told_by_stream = None;
            self.hint = None;
            if let Details::Container(details) = &mut self.details {
                details.end = None;
            }
        }
    }
}
