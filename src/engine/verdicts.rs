//! What follows from a read's verdict about a known subject: what is owed, what is read again, what is
//! counted.

use super::subject::Origin;
use super::{Engine, Note};
use crate::law::Law;
use crate::lifecycle::{Source, SubjectId, Verdict, Window};

impl Engine {
    /// Draws the consequences of a read's verdict about a known subject.
    pub(super) fn read_judged(
        &mut self,
        id: &SubjectId,
        verdict: Verdict,
        window: Window,
        source: Source,
    ) {
        let origin = self.origin(source, None);
        let Some(subject) = self.records.subjects.get_mut(id) else {
            return;
        };
        let uid = subject.pod.clone();
        let owes_sync = subject.account(verdict, origin);
        let is_removed = subject.knowledge.is_removed();
        let first_heard = subject.knowledge.first_heard();
        let newly_proven = subject.knowledge.removal_proven() == Some(window.seen);
        let agreed = verdict == Verdict::Agrees
            && subject
                .told_by_stream
                .is_some_and(|told| window.begun > told);
        if verdict == Verdict::Agrees && subject.hint.is_some_and(|hint| hint.at < window.begun) {
            subject.hint = None;
        }
        let overtaken = matches!(verdict, Verdict::Moved { .. } | Verdict::SteppedBack);
        if agreed || overtaken {
            // What a read agrees with from now on is what a read told.
            subject.told_by_stream = None;
        }
        if agreed {
            self.trust.agreed();
        }
        match verdict {
            Verdict::Moved { .. } | Verdict::SteppedBack => {
                if source == Source::Relist && !is_removed {
                    subject.inspect_since = Some(window.seen);
                }
                if owes_sync && let Some(pod) = self.records.pods.get_mut(&uid) {
                    pod.sync_owed = true;
                }
                self.records.index_tombstone(id, window.seen);
                self.touch(&uid);
            }
            Verdict::Agrees if newly_proven => self.touch(&uid),
            Verdict::TooSoon { ask_at } | Verdict::Doubted { ask_at } => {
                self.counters.doubts += 1;
                if let Some(pod) = self.records.pods.get_mut(&uid) {
                    pod.want_read(window.seen, ask_at, false);
                }
                self.waiting.insert(uid.clone());
                self.touch(&uid);
            }
            Verdict::Unjudged { ask_at } => {
                self.counters.unjudged_absences += 1;
                // It was told as gone, or made since the list was sent.
                let is_expected = is_removed || first_heard >= window.begun;
                if Law::UnjudgedAbsenceIsAskedAgain.holds() {
                    if is_expected {
                        self.want_relist_for_proof(ask_at);
                    } else {
                        self.want_relist_at(ask_at);
                    }
                }
                if let Some(pod) = self.records.pods.get_mut(&uid)
                    && !pod.readers.is_empty()
                {
                    pod.want_read(window.seen, ask_at, false);
                }
                self.touch(&uid);
            }
            Verdict::Agrees | Verdict::Behind => {}
        }
        if !matches!(verdict, Verdict::Unjudged { .. } | Verdict::Behind) {
            self.records.unconfirmed.remove(id);
        }
        match verdict {
            Verdict::SteppedBack => {
                self.counters.steps_back += 1;
                self.note(Note::SteppedBack {
                    id: id.as_str().into(),
                });
            }
            Verdict::Moved { from } => self.expect_from_stream(id, from, window.seen),
            _ => {}
        }
    }

    pub(super) fn origin(
        &self,
        source: Source,
        runtime_stamp: Option<crate::lifecycle::UnixNanos>,
    ) -> Origin {
        Origin {
            source,
            runtime_stamp,
            seen_at: self.now.wall,
            initial: source == Source::Relist && self.full_observed.is_none(),
        }
    }
}
