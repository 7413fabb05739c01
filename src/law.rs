//! The laws, by name: what the design promises, one sentence each, and where it stands there.
//!
//! Where a decision in `lifecycle`, `engine` or `feed` would be another without a law, the code names the
//! law that it obeys and asks whether it [`holds`](Law::holds). Outside tests that is the constant
//! `true`, and nothing of the question is left in the product. A test may suspend one law for a while
//! (`engine::breakages`) to show that breaking it does not go unnoticed.
//!
//! The first law, one owner, is not among them: it is kept by types (`Engine::handle` is the only way
//! in, and no writer is `Clone`), and what the compiler refuses needs no test.

/// One rule of the laws. The numbers are the design's: 2 how facts merge, 3 what is claimed, 4 the
/// transition table, 5 relists, the stream and the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Law {
    /// 2.1: an event's window has no beginning, so what it shows of a known phase fills gaps and
    /// replaces nothing.
    EventsReplaceNothing,
    /// 2.2: of two claims that cannot be ordered the further phase wins.
    FurtherPhaseWins,
    /// 2.2: details of one phase that cannot be ordered keep the value already published.
    DetailsInDoubtStay,
    /// 2.3: only a read that began `settle` after what it contradicts may step back.
    StepBackSettles,
    /// 2.3: a step back needs a second read, sent `settle` after the first was received.
    StepBackIsConfirmed,
    /// 2.3: support for the old phase cancels the first of the two reads.
    SupportCancelsDoubt,
    /// 2.3: a subject that stepped back has every later change told as `PodSync`.
    StepBackIsToldAsSync,
    /// 2.4: absence proves the removal of what was first heard of before the list was sent.
    AbsenceNeedsOlderNews,
    /// 2.4: what an event told first is judged by a list only `settle` later.
    EventNewsSettles,
    /// 2.4: a list that cannot judge an absence makes one more relist due.
    UnjudgedAbsenceIsAskedAgain,
    /// 2.4: a read that failed proves nothing.
    FailedReadsProveNothing,
    /// 2.4: a filtered list speaks only of subjects that its filter would have matched.
    FiltersSpeakOfTheirOwn,
    /// 2.5: a removed subject leaves a tombstone that keeps what was told.
    TombstonesAreKept,
    /// 2.5: a tombstone goes with a list that began `keep` after a read had proven the removal.
    TombstonesOutlastTheirProof,
    /// 2.5: a removal that an event told is proven by a read only.
    OnlyReadsProveRemoval,
    /// 2.5: an event about an unknown id that may be older than the newest full relist is not taken.
    StaleNewsIsNotTaken,
    /// 2.5: nor is a read that was sent before it.
    StaleReadsAreNotTaken,
    /// 2.5: a wall clock that steps back does not make old news look new.
    ClockStepsAreGuarded,
    /// 2.5: a DELETED of an unknown id changes nothing.
    UnknownDeletedChangesNothing,
    /// 2.6: a message that contradicts itself is not merged; its pod is read.
    ContradictionsAreNotMerged,
    /// 2.7: what is due is satisfied only by a read that was sent after it became due.
    WishesNeedLaterReads,
    /// 2.8: a stamp that no sane runtime could have made orders nothing.
    AbsurdStampsAreRefused,
    /// 3.1: a reader is answered by what a read begun at its mark or later vouches for.
    MarksAreHonoured,
    /// 3.1: no event vouches for anything, nor does a read for what only an event told.
    HearsayVouchesForNothing,
    /// 3.1: a read vouches only if its own verdict is what the record says after the merge.
    OnlyAgreementVouches,
    /// 3.1: a reader causes a read instead of waiting for luck.
    ReadersCauseReads,
    /// 3.2: the cache is written before the event is delivered.
    CacheFirst,
    /// 3.3: each of a subject's events is told once at most, and in order.
    ToldOnce,
    /// 3.4: the fold of a slow subscriber keeps the end of whatever it was told of.
    FoldsKeepOwedEnds,
    /// 4: events wait for the inspection that completes them.
    EventsWaitForDetails,
    /// 5: one full relist at a time.
    OneRelistAtATime,
    /// 5: a late answer is judged by its own window.
    LateAnswersKeepTheirWindow,
    /// 5: a change that a read tells first is a miss only after the stream's grace.
    MissesHaveGrace,
    /// 5: a miss begins the ramp of the audit period anew.
    MissesRestartTheRamp,
    /// 5: past `unproven`, the period grows only for a stream that has proved itself.
    SilenceEarnsLittle,
    /// 5: what a runtime is known never to send is no distrust.
    GapsAreNoDistrust,
    /// 5: subjects that may change without an event are watched.
    UnsettledAreWatched,
    /// 5: the reconnect schedule begins anew after a minute of a stream's life, not with its opening.
    BackoffOutlivesConnecting,
    /// 5: health is never washed clean by a longer threshold.
    HealthIsNotWashedClean,
}

impl Law {
    /// Whether the law is in force. It always is, outside tests.
    #[cfg(not(test))]
    #[inline]
    #[expect(clippy::unused_self, reason = "a test's build looks which law it is")]
    pub(crate) const fn holds(self) -> bool {
        true
    }
}

#[cfg(test)]
mod suspension {
    use std::cell::Cell;

    use super::Law;

    thread_local! {
        static SUSPENDED: Cell<Option<Law>> = const { Cell::new(None) };
    }

    /// While it lives, one law is not in force on this thread.
    pub(crate) struct Suspension {
        before: Option<Law>,
    }

    impl Law {
        pub(crate) fn holds(self) -> bool {
            SUSPENDED.get() != Some(self)
        }

        /// Suspends the law on this thread for as long as the guard lives.
        #[must_use = "the law holds again once this is dropped"]
        pub(crate) fn suspend(self) -> Suspension {
            Suspension {
                before: SUSPENDED.replace(Some(self)),
            }
        }

        /// Tells the story without the law: it must fail.
        pub(crate) fn is_missed_by(self, story: fn()) {
            let _suspension = self.suspend();
            let outcome = std::panic::catch_unwind(story);
            assert!(
                outcome.is_err(),
                "{self:?} is broken and the story does not miss it"
            );
        }
    }

    impl Drop for Suspension {
        fn drop(&mut self) {
            SUSPENDED.set(self.before);
        }
    }
}
