//! How claims about one subject merge: law 2, per subject.
//!
//! [`Knowledge`] is all that decides a subject's phase. It never sees a runtime, a pod or a clock, and
//! it never forgets when the subject was first heard of, not even across a removal or a step back:
//! a list can only disprove what was there to be seen when it was sent.
//!
//! The wording of each rule was model-checked; simpler ones fail. In short: events and reads
//! join forward; only a read that began after everything known may contradict it, and a step back needs two
//! such reads, `settle` apart; absence proves removal of whatever was first heard of before the list was sent.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Mono, Phase, ReportedState, SeqPoint};
use crate::law::Law;

/// When a read was sent and when its answer was taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Window {
    /// When the request was sent: the answer shows nothing older than this.
    pub begun: SeqPoint,
    /// When the answer was taken in.
    pub seen: SeqPoint,
}

impl Window {
    /// The window of a read, however late its answer came.
    pub(crate) fn of_read(sent: SeqPoint, answered: SeqPoint) -> Self {
        Self {
            begun: if Law::LateAnswersKeepTheirWindow.holds() {
                sent
            } else {
                answered
            },
            seen: answered,
        }
    }
}

/// What a claim did to the knowledge it met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It moved the subject on (or told of it first).
    Moved {
        /// The phase before.
        from: Option<Phase>,
    },
    /// It says what is known.
    Agrees,
    /// It says less than is known and is no newer: nothing changes.
    Behind,
    /// A read that contradicts what is known, too soon after it to count. Worth asking again.
    TooSoon {
        /// From when on a read of the same kind would count.
        ask_at: Mono,
    },
    /// The first of the two reads that a step back needs. The second must be sent at this moment or later.
    Doubted {
        /// When the second may be sent.
        ask_at: Mono,
    },
    /// Two reads agree that the subject is less far than was known: taken.
    SteppedBack,
    /// An absence that proves nothing, since the subject was first heard of too late for that list.
    Unjudged {
        /// From when on a list could judge.
        ask_at: Mono,
    },
}

impl Verdict {
    /// Whether the claim is what the record says after the merge: what vouching asks of a read.
    #[must_use]
    pub fn vouches(self) -> bool {
        matches!(self, Self::Moved { .. } | Self::Agrees | Self::SteppedBack)
    }
}

/// Everything that is known about how far one subject has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Knowledge {
    phase: Option<Phase>,
    unknown: bool,
    first_heard: SeqPoint,
    first_by_event: bool,
    seen: SeqPoint,
    doubted: Option<SeqPoint>,
    removal_proven: Option<SeqPoint>,
    stepped_back: bool,
}

impl Knowledge {
    /// When it was first heard of.
    #[must_use]
    pub fn first_heard(&self) -> SeqPoint {
        self.first_heard
    }

    /// What an event told first, at `at`.
    #[must_use]
    pub fn from_event(state: ReportedState, at: SeqPoint) -> Self {
        Self::new(state, at, true)
    }

    /// What a read told first.
    #[must_use]
    pub fn from_read(state: ReportedState, window: Window) -> Self {
        Self::new(state, window.seen, false)
    }

    fn new(state: ReportedState, heard: SeqPoint, first_by_event: bool) -> Self {
        Self {
            phase: state.phase(),
            unknown: state == ReportedState::Unknown,
            first_heard: heard,
            first_by_event,
            seen: heard,
            doubted: None,
            removal_proven: None,
            stepped_back: false,
        }
    }

    /// The furthest phase known; `None` if the runtime only ever said that it does not know.
    #[must_use]
    pub fn phase(&self) -> Option<Phase> {
        self.phase
    }

    /// What to show: the phase, or Unknown if that is the runtime's latest word. `None` once removed.
    #[must_use]
    pub fn state(&self) -> Option<ReportedState> {
        match self.phase {
            Some(Phase::Removed) => None,
            _ if self.unknown => Some(ReportedState::Unknown),
            Some(Phase::Created) => Some(ReportedState::Created),
            Some(Phase::Running) => Some(ReportedState::Running),
            Some(Phase::Exited) => Some(ReportedState::Exited),
            None => Some(ReportedState::Unknown),
        }
    }

    /// Whether the subject is gone from the runtime, as far as is known.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.phase == Some(Phase::Removed)
    }

    /// When a read proved the removal. An event's word alone proves nothing for forgetting.
    #[must_use]
    pub fn removal_proven(&self) -> Option<SeqPoint> {
        self.removal_proven
    }

    /// Whether the subject ever stepped back; its changes are told as `PodSync` from then on.
    #[must_use]
    pub fn stepped_back(&self) -> bool {
        self.stepped_back
    }

    /// Whether an event told of the subject first.
    #[must_use]
    pub fn first_by_event(&self) -> bool {
        self.first_by_event
    }

    /// The newest mention that said the present phase or a further one.
    #[must_use]
    pub fn seen(&self) -> SeqPoint {
        self.seen
    }

    /// An event says that the subject has come to `phase`. Events have no beginning: they only join.
    pub fn hear_event(&mut self, phase: Phase, at: SeqPoint) -> Verdict {
        let verdict = self.join(phase, at);
        if self.is_removed() && !Law::OnlyReadsProveRemoval.holds() {
            self.removal_proven.get_or_insert(at);
        }
        verdict
    }

    /// A read shows the subject.
    pub fn hear_read(&mut self, state: ReportedState, window: Window, settle: Duration) -> Verdict {
        match state.phase() {
            // It is there, whatever it does: that contradicts a removal.
            None if self.is_removed() => self.hear_contradiction(None, window, settle),
            None => self.hear_unknown(window),
            Some(phase) if self.phase.is_none_or(|known| phase >= known) => {
                self.join(phase, window.seen)
            }
            Some(phase) => self.hear_contradiction(Some(phase), window, settle),
        }
    }

    /// A read whose filter would have matched the subject does not show it.
    pub fn hear_absence(&mut self, window: Window, settle: Duration) -> Verdict {
        let shown_to_that_read = if self.first_by_event && Law::EventNewsSettles.holds() {
            window.begun.is_past(self.first_heard, settle)
        } else {
            self.first_heard < window.begun
        };
        if !shown_to_that_read && Law::AbsenceNeedsOlderNews.holds() {
            let visible = if self.first_by_event {
                self.first_heard.at.after(settle)
            } else {
                window.seen.at
            };
            return Verdict::Unjudged { ask_at: visible };
        }
        let verdict = self.join(Phase::Removed, window.seen);
        self.removal_proven.get_or_insert(window.seen);
        verdict
    }

    fn join(&mut self, phase: Phase, seen: SeqPoint) -> Verdict {
        if self.phase.is_some_and(|known| phase < known) && Law::FurtherPhaseWins.holds() {
            return Verdict::Behind;
        }
        let from = self.phase;
        let moved = from != Some(phase) || self.unknown;
        self.phase = Some(phase);
        self.unknown = false;
        self.seen = self.seen.max(seen);
        if Law::SupportCancelsDoubt.holds() {
            self.doubted = None;
        }
        if moved {
            Verdict::Moved { from }
        } else {
            Verdict::Agrees
        }
    }

    /// Unknown is no phase: it never moves the subject back, it only hides the phase until the
    /// runtime knows again.
    fn hear_unknown(&mut self, window: Window) -> Verdict {
        if self.unknown && self.phase.is_none() {
            return Verdict::Agrees;
        }
        if window.begun <= self.seen {
            return Verdict::Behind;
        }
        if self.unknown {
            return Verdict::Agrees;
        }
        self.unknown = true;
        Verdict::Moved { from: self.phase }
    }

    fn hear_contradiction(
        &mut self,
        phase: Option<Phase>,
        window: Window,
        settle: Duration,
    ) -> Verdict {
        if window.begun <= self.seen {
            return Verdict::Behind;
        }
        if !window.begun.is_past(self.seen, settle) && Law::StepBackSettles.holds() {
            return Verdict::TooSoon {
                ask_at: self.seen.at.after(settle),
            };
        }
        let is_confirmed = self
            .doubted
            .is_some_and(|first| window.begun.is_past(first, settle));
        if is_confirmed || !Law::StepBackIsConfirmed.holds() {
            self.phase = phase;
            self.unknown = phase.is_none();
            self.seen = window.seen;
            self.doubted = None;
            self.removal_proven = None;
            self.stepped_back = true;
            return Verdict::SteppedBack;
        }
        let first = *self.doubted.get_or_insert(window.seen);
        Verdict::Doubted {
            ask_at: first.at.after(settle),
        }
    }

    /// Visits every sequence point, so that a state can be put into its canonical form.
    #[cfg(test)]
    pub(crate) fn visit_points(&mut self, visit: &mut dyn FnMut(&mut SeqPoint)) {
        visit(&mut self.first_heard);
        visit(&mut self.seen);
        self.doubted.iter_mut().for_each(&mut *visit);
        self.removal_proven.iter_mut().for_each(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLE: Duration = Duration::from_secs(1);

    fn point(millis: u64, count: u64) -> SeqPoint {
        SeqPoint {
            at: Mono(millis * 1_000_000),
            count,
        }
    }

    fn window(begun: (u64, u64), seen: (u64, u64)) -> Window {
        Window {
            begun: point(begun.0, begun.1),
            seen: point(seen.0, seen.1),
        }
    }

    fn running() -> Knowledge {
        Knowledge::from_read(ReportedState::Running, window((0, 1), (10, 2)))
    }

    #[test]
    fn an_event_moves_forward_and_never_back() {
        let mut known = running();
        assert_eq!(
            known.hear_event(Phase::Exited, point(20, 3)),
            Verdict::Moved {
                from: Some(Phase::Running)
            }
        );
        assert_eq!(
            known.hear_event(Phase::Running, point(30, 4)),
            Verdict::Behind
        );
        assert_eq!(known.phase(), Some(Phase::Exited));
    }

    #[test]
    fn a_read_sent_before_the_knowledge_says_nothing_against_it() {
        let mut known = running();
        known.hear_event(Phase::Exited, point(20, 4));
        let verdict = known.hear_read(ReportedState::Running, window((15, 3), (30, 5)), SETTLE);
        assert_eq!(verdict, Verdict::Behind);
        assert!(!verdict.vouches());
    }

    #[test]
    fn a_step_back_needs_two_reads_settle_apart() {
        let mut known = running();
        known.hear_event(Phase::Exited, point(20, 3));
        let soon = known.hear_read(ReportedState::Running, window((500, 4), (510, 5)), SETTLE);
        assert_eq!(
            soon,
            Verdict::TooSoon {
                ask_at: Mono(1_020_000_000)
            }
        );
        let first = known.hear_read(ReportedState::Running, window((1020, 6), (1030, 7)), SETTLE);
        assert_eq!(
            first,
            Verdict::Doubted {
                ask_at: Mono(2_030_000_000)
            }
        );
        assert_eq!(known.phase(), Some(Phase::Exited));
        let early = known.hear_read(ReportedState::Running, window((2000, 8), (2010, 9)), SETTLE);
        assert!(matches!(early, Verdict::Doubted { .. }));
        let second = known.hear_read(
            ReportedState::Running,
            window((2030, 10), (2040, 11)),
            SETTLE,
        );
        assert_eq!(second, Verdict::SteppedBack);
        assert_eq!(known.phase(), Some(Phase::Running));
        assert!(known.stepped_back());
    }

    #[test]
    fn support_for_the_old_phase_in_between_cancels_the_first_doubt() {
        let mut known = running();
        known.hear_event(Phase::Exited, point(20, 3));
        known.hear_read(ReportedState::Running, window((1020, 4), (1030, 5)), SETTLE);
        known.hear_event(Phase::Exited, point(1100, 6));
        let again = known.hear_read(ReportedState::Running, window((2200, 7), (2210, 8)), SETTLE);
        assert!(matches!(again, Verdict::Doubted { .. }));
        assert_eq!(known.phase(), Some(Phase::Exited));
    }

    #[test]
    fn absence_proves_removal_of_what_was_first_heard_before_the_list_whatever_came_since() {
        let mut known = running();
        known.hear_event(Phase::Exited, point(60, 5));
        let verdict = known.hear_absence(window((50, 4), (70, 6)), SETTLE);
        assert_eq!(
            verdict,
            Verdict::Moved {
                from: Some(Phase::Exited)
            }
        );
        assert_eq!(known.removal_proven(), Some(point(70, 6)));
    }

    #[test]
    fn absence_says_nothing_of_what_was_first_heard_after_the_list_was_sent() {
        let mut by_event = Knowledge::from_event(ReportedState::Created, point(100, 3));
        assert_eq!(
            by_event.hear_absence(window((90, 2), (120, 4)), SETTLE),
            Verdict::Unjudged {
                ask_at: Mono(1_100_000_000)
            }
        );
        assert!(
            matches!(
                by_event.hear_absence(window((1000, 5), (1010, 6)), SETTLE),
                Verdict::Unjudged { .. }
            ),
            "a list within settle of the event may not show it yet"
        );
        assert!(matches!(
            by_event.hear_absence(window((1100, 7), (1110, 8)), SETTLE),
            Verdict::Moved { .. }
        ));
    }

    #[test]
    fn a_deleted_alone_proves_nothing_for_forgetting() {
        let mut known = running();
        known.hear_event(Phase::Removed, point(20, 3));
        assert_eq!(known.removal_proven(), None);
        known.hear_absence(window((30, 4), (40, 5)), SETTLE);
        assert_eq!(known.removal_proven(), Some(point(40, 5)));
    }

    #[test]
    fn unknown_hides_the_phase_and_never_moves_it_back() {
        let mut known = running();
        assert!(matches!(
            known.hear_read(ReportedState::Unknown, window((20, 3), (30, 4)), SETTLE),
            Verdict::Moved { .. }
        ));
        assert_eq!(known.state(), Some(ReportedState::Unknown));
        assert_eq!(known.phase(), Some(Phase::Running));
        assert!(matches!(
            known.hear_read(ReportedState::Running, window((40, 5), (50, 6)), SETTLE),
            Verdict::Moved { .. }
        ));
        assert_eq!(known.state(), Some(ReportedState::Running));
        assert!(!known.stepped_back());
    }

    #[test]
    fn a_subject_keeps_who_told_of_it_first_and_when() {
        let mut by_event = Knowledge::from_event(ReportedState::Created, point(100, 3));
        let mut by_read = Knowledge::from_read(ReportedState::Created, window((90, 2), (100, 3)));
        for known in [&mut by_event, &mut by_read] {
            known.hear_event(Phase::Running, point(200, 4));
            assert_eq!(known.first_heard(), point(100, 3));
        }
        assert!(by_event.first_by_event() && !by_read.first_by_event());
    }

    #[test]
    fn a_list_sent_at_the_moment_of_the_first_news_is_not_sent_after_it() {
        let mut known = running();
        let verdict = known.hear_absence(window((10, 2), (20, 3)), SETTLE);
        assert!(matches!(verdict, Verdict::Unjudged { .. }));
    }

    #[test]
    fn a_read_sent_before_the_knowledge_does_not_even_confirm_that_nothing_is_known() {
        let mut known = running();
        known.hear_read(ReportedState::Unknown, window((20, 3), (30, 4)), SETTLE);
        let late = known.hear_read(ReportedState::Unknown, window((5, 1), (40, 5)), SETTLE);
        assert_eq!(late, Verdict::Behind);
    }

    #[test]
    fn the_join_is_commutative_associative_and_idempotent() {
        let phases = [
            Phase::Created,
            Phase::Running,
            Phase::Exited,
            Phase::Removed,
        ];
        for a in phases {
            for b in phases {
                for c in phases {
                    let end = |order: [Phase; 3]| {
                        let mut known = Knowledge::from_event(ReportedState::Created, point(0, 1));
                        for (phase, at) in order.into_iter().zip(2..) {
                            known.hear_event(phase, point(at, at));
                            known.hear_event(phase, point(at, at));
                        }
                        known.phase()
                    };
                    assert_eq!(end([a, b, c]), Some(a.max(b).max(c)));
                    assert_eq!(end([c, a, b]), end([a, b, c]));
                }
            }
        }
    }

    #[test]
    fn an_old_doubt_that_support_does_not_cancel_is_missed() {
        Law::SupportCancelsDoubt
            .is_missed_by(support_for_the_old_phase_in_between_cancels_the_first_doubt);
    }

    #[test]
    fn an_absence_too_soon_after_an_event_is_missed() {
        Law::EventNewsSettles
            .is_missed_by(absence_says_nothing_of_what_was_first_heard_after_the_list_was_sent);
    }
}
