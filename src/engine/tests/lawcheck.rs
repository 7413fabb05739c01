//! The counterexamples to simpler wordings of the laws, each as a story that the real engine must
//! get right. They came out of a model of the laws; the ids (C1 to C14) are that check's.
//!
//! The oracle watches every step of every story: that nothing is told twice, nothing published goes
//! back, no reader is told what is older than it asked for. What is asserted here is the rest.

use std::time::Duration;

use crate::engine::model::{
    Budget, Cast, Fault, Habits, Lie, ONE_CONTAINER, Run, Stage, Step, Subject, TWO_SANDBOXES,
    Told, Truth, UNLABELLED, Violation,
};
use crate::engine::{Freshness, Question};
use crate::lifecycle::LifecycleKind::{
    self, ContainerDied as Died, ContainerRemoved as Removed, ContainerStarted as Started,
};

const SANDBOX: Subject = Subject(0);
const CONTAINER: Subject = Subject(1);

const HABITS: Habits = Habits {
    in_flight: 8,
    addresses_late: false,
    sandboxes_change: true,
    faults: Fault::ALL,
    lingers: &[],
};

const NO_BUDGET: Budget = Budget {
    faults: 0,
    failures: 0,
    readers: 0,
    requests: 0,
    wakes: 0,
    lingers: 0,
};

fn holds<T>(outcome: Result<T, Violation>) -> T {
    match outcome {
        Ok(value) => value,
        Err(Violation { property, detail }) => panic!("{property} does not hold: {detail}"),
    }
}

/// A pod and its runtime, told line by line.
struct Story(Run);

impl Story {
    /// The stream has been trusted for long: nothing is relisted for minutes unless asked for.
    fn of_container(stage: Stage) -> Self {
        let mut changes = vec![(SANDBOX, Stage::Running)];
        for to in [Stage::Created, Stage::Running, Stage::Exited] {
            if to <= stage {
                changes.push((CONTAINER, to));
            }
        }
        Self::of(ONE_CONTAINER, &changes)
    }

    fn of(cast: Cast, changes: &[(Subject, Stage)]) -> Self {
        Self(holds(Run::settled(cast, HABITS, NO_BUDGET, changes)))
    }

    fn begun(truth: Truth) -> Self {
        Self(holds(Run::cold(ONE_CONTAINER, HABITS, NO_BUDGET, truth)))
    }

    /// The change happens and its message is on its way.
    fn becomes(&mut self, subject: Subject, stage: Stage) {
        self.0.change(subject, stage, Told::Truly);
    }

    fn becomes_silently(&mut self, subject: Subject, stage: Stage) {
        self.0.change(subject, stage, Told::Silently);
    }

    fn is_said_to_be_deleted(&mut self, subject: Subject) {
        self.0.tell_false_deleted(subject, Lie::Whole);
    }

    /// The oldest message on its way arrives.
    fn message_arrives(&mut self) {
        holds(self.0.deliver(0, false));
    }

    /// It arrives, and will a second time.
    fn message_arrives_and_will_again(&mut self) {
        holds(self.0.deliver(0, true));
    }

    fn full_relist_is_sent(&mut self) {
        holds(self.0.apply(Step::RequestRelist { of_pod: false }));
        assert!(self.full_relist_is_out(), "{:?}", self.0);
    }

    fn pod_read_is_sent(&mut self) {
        holds(self.0.apply(Step::RequestRelist { of_pod: true }));
        assert!(self.pod_read_is_out(), "{:?}", self.0);
    }

    fn full_relist_is_out(&self) -> bool {
        self.0.call(is_full).is_some()
    }

    fn pod_read_is_out(&self) -> bool {
        self.0.call(is_pod_relist).is_some()
    }

    /// Answered with the world as it is.
    fn full_relist_is_answered(&mut self) {
        let call = self.0.call(is_full).expect("a full relist is under way");
        holds(self.0.answer_now(call));
    }

    fn pod_read_is_answered(&mut self) {
        let call = self
            .0
            .call(is_pod_relist)
            .expect("a pod relist is under way");
        holds(self.0.answer_now(call));
    }

    /// Answered with the world as it was when the read was sent.
    fn pod_read_is_answered_as_sent(&mut self) {
        let call = self
            .0
            .call(is_pod_relist)
            .expect("a pod relist is under way");
        holds(self.0.answer(call, 0, 0));
    }

    fn reader_asks(&mut self, freshness: Freshness) {
        holds(self.0.read(freshness));
    }

    fn reader_waits(&self) -> bool {
        self.0.reader_waits()
    }

    fn everything_is_answered(&mut self) {
        holds(self.0.catch_up());
    }

    /// Time passes; what the engine asks meanwhile is answered.
    fn passes(&mut self, time: Duration) {
        holds(self.0.pass(time));
    }

    fn world_rests(&mut self) {
        holds(self.0.rest());
    }

    fn stays_quiet(&mut self) {
        self.world_rests();
        holds(self.0.idle());
    }

    fn told(&self, subject: Subject) -> Vec<LifecycleKind> {
        self.0.oracle.told(subject)
    }

    fn cache_shows(&self, subject: Subject) -> bool {
        self.0.oracle.shows(subject)
    }
}

fn is_full(question: &Question) -> bool {
    *question == Question::FullRelist
}

fn is_pod_relist(question: &Question) -> bool {
    matches!(question, Question::PodRelist { .. })
}

/// C1: an older read that is answered late must not keep a removed container alive.
#[test]
fn absence_proves_removal_though_an_older_read_mentions_the_container_later() {
    let mut story = Story::of_container(Stage::Created);
    story.pod_read_is_sent();
    story.becomes_silently(CONTAINER, Stage::Removed);
    story.full_relist_is_sent();
    story.pod_read_is_answered_as_sent();
    story.full_relist_is_answered();
    story.everything_is_answered();
    assert_eq!(story.told(CONTAINER), [Died, Removed]);
    assert!(!story.cache_shows(CONTAINER));
}

/// C2: a list cannot judge what was first heard of after it was sent; the owner asks once more by
/// itself instead of waiting for its period.
#[test]
fn an_absence_that_a_list_cannot_judge_is_settled_by_the_next_one_at_once() {
    let mut story = Story::of_container(Stage::Absent);
    story.full_relist_is_sent();
    story.becomes(CONTAINER, Stage::Created);
    story.becomes_silently(CONTAINER, Stage::Removed);
    story.message_arrives();
    story.full_relist_is_answered();
    assert!(
        story.cache_shows(CONTAINER),
        "just born, or gone: that list cannot know"
    );
    story.passes(Duration::from_secs(3));
    assert!(!story.cache_shows(CONTAINER));
    story.world_rests();
}

/// C3 a: a STARTED stamped after the list that found the removal began is no new container.
#[test]
fn a_started_stamped_after_the_list_that_proved_the_removal_revives_nothing() {
    let mut story = Story::of_container(Stage::Created);
    story.full_relist_is_sent();
    story.becomes(CONTAINER, Stage::Running);
    story.becomes_silently(CONTAINER, Stage::Removed);
    story.full_relist_is_answered();
    story.everything_is_answered();
    story.message_arrives();
    story.everything_is_answered();
    assert_eq!(story.told(CONTAINER), [Died, Removed]);
    assert!(!story.cache_shows(CONTAINER));
}

/// C3 b: nor is one whose stamp is younger than its content, and younger than the next list too.
#[test]
fn a_tombstone_outlives_the_next_list_and_an_event_gathered_before_the_removal() {
    let mut story = Story::of_container(Stage::Created);
    story.becomes(CONTAINER, Stage::Running);
    story.becomes_silently(CONTAINER, Stage::Removed);
    story.full_relist_is_sent();
    story.full_relist_is_answered();
    story.full_relist_is_sent();
    holds(story.0.apply(Step::StampLate { nth: 0 }));
    story.full_relist_is_answered();
    story.passes(Duration::from_secs(70));
    story.message_arrives();
    story.everything_is_answered();
    assert_eq!(story.told(CONTAINER), [Died, Removed]);
    assert!(!story.cache_shows(CONTAINER));
}

/// C3 c: what only a DELETED told is no proof by which a tombstone may be forgotten.
#[test]
fn a_false_deleted_does_not_start_the_forgetting() {
    let mut story = Story::of_container(Stage::Created);
    story.is_said_to_be_deleted(CONTAINER);
    story.message_arrives();
    story.full_relist_is_sent();
    story.becomes(CONTAINER, Stage::Running);
    story.becomes_silently(CONTAINER, Stage::Removed);
    story.full_relist_is_answered();
    story.message_arrives();
    story.everything_is_answered();
    assert_eq!(story.told(CONTAINER), [Died, Removed]);
    assert!(!story.cache_shows(CONTAINER));
    story.world_rests();
}

/// C4: the wall clock steps back under a delayed event; by then its tombstone is gone. The event's
/// stamp is younger than the newest list's beginning by the wall clock, and not absurd.
#[test]
pub(super) fn an_event_from_before_a_clock_step_is_stale_though_its_stamp_looks_newer_than_the_list()
 {
    let mut story = Story::of_container(Stage::Created);
    story.becomes(CONTAINER, Stage::Running);
    story.becomes_silently(CONTAINER, Stage::Removed);
    story.full_relist_is_sent();
    story.full_relist_is_answered();
    holds(story.0.apply(Step::ClockBack { seconds: 75 }));
    story.passes(Duration::from_secs(70));
    story.full_relist_is_sent();
    story.full_relist_is_answered();
    story.passes(Duration::from_secs(10));
    story.message_arrives();
    story.everything_is_answered();
    assert_eq!(story.told(CONTAINER), [Died, Removed]);
    assert!(!story.cache_shows(CONTAINER));
}

/// C5: ids that nobody knows are stale in a read, too, if it was sent before the newest full relist.
#[test]
fn a_read_sent_before_the_last_full_relist_brings_no_unknown_container() {
    let mut story = Story::of_container(Stage::Running);
    story.pod_read_is_sent();
    story.becomes_silently(CONTAINER, Stage::Removed);
    story.full_relist_is_sent();
    story.full_relist_is_answered();
    holds(story.0.linger(Duration::from_secs(70)));
    if !story.full_relist_is_out() {
        story.full_relist_is_sent();
    }
    story.full_relist_is_answered();
    story.pod_read_is_answered_as_sent();
    story.everything_is_answered();
    assert_eq!(story.told(CONTAINER), [Started, Died, Removed]);
    assert!(!story.cache_shows(CONTAINER));
}

/// C6: a DELETED told again after the tombstone went.
#[test]
fn a_deleted_of_a_forgotten_container_tells_nothing() {
    let mut story = Story::of_container(Stage::Exited);
    story.becomes(CONTAINER, Stage::Removed);
    story.message_arrives_and_will_again();
    story.everything_is_answered();
    assert_eq!(story.told(CONTAINER), [Started, Died, Removed]);
    story.full_relist_is_sent();
    story.full_relist_is_answered();
    story.passes(Duration::from_secs(70));
    story.full_relist_is_sent();
    story.full_relist_is_answered();
    story.message_arrives();
    story.everything_is_answered();
    assert_eq!(story.told(CONTAINER), [Started, Died, Removed]);
    story.world_rests();
}

/// C6: a DELETED of a container that came and went unheard.
#[test]
fn a_deleted_of_a_container_never_heard_of_tells_nothing() {
    let mut story = Story::of_container(Stage::Absent);
    story.becomes_silently(CONTAINER, Stage::Created);
    story.becomes(CONTAINER, Stage::Removed);
    story.message_arrives();
    story.everything_is_answered();
    assert_eq!(story.told(CONTAINER), []);
    assert!(!story.cache_shows(CONTAINER));
}

/// C7: after a false DELETED the container lives on, and its true end is told, as `PodSync`.
#[test]
fn a_container_that_stepped_back_is_told_of_by_pod_sync_to_its_end() {
    let mut story = Story::of_container(Stage::Running);
    story.is_said_to_be_deleted(CONTAINER);
    story.message_arrives();
    assert_eq!(story.told(CONTAINER), [Started, Died, Removed]);
    story.world_rests();
    assert!(story.0.oracle.has_stepped_back(CONTAINER));
    assert!(story.cache_shows(CONTAINER));
    let after_step_back = story.0.pod_syncs;
    assert!(after_step_back > 0);
    story.becomes(CONTAINER, Stage::Exited);
    story.message_arrives();
    story.world_rests();
    assert!(story.0.pod_syncs > after_step_back);
    assert_eq!(story.told(CONTAINER), [Started, Died, Removed]);
}

/// C8 a: a read that cannot judge a phantom does not vouch for the pod.
#[test]
fn a_reader_is_not_answered_by_a_read_that_could_not_judge() {
    let mut story = Story::of_container(Stage::Absent);
    story.becomes(CONTAINER, Stage::Created);
    story.becomes_silently(CONTAINER, Stage::Removed);
    story.reader_asks(Freshness::Phases);
    story.message_arrives();
    story.pod_read_is_answered();
    assert!(story.reader_waits());
    story.world_rests();
    assert!(!story.reader_waits());
}

/// C8 b: nor does one that looked before a DELETED and shows the container.
#[test]
fn a_reader_is_not_told_gone_on_the_word_of_an_event() {
    let mut story = Story::of_container(Stage::Running);
    story.reader_asks(Freshness::Phases);
    story.is_said_to_be_deleted(CONTAINER);
    story.message_arrives();
    story.pod_read_is_answered_as_sent();
    assert!(story.reader_waits());
    story.world_rests();
    assert!(story.cache_shows(CONTAINER));
}

/// C8 c: nor one that lacks the container since it looked before its birth.
#[test]
fn a_reader_is_not_told_gone_by_a_read_from_before_the_birth() {
    let mut story = Story::of_container(Stage::Absent);
    story.reader_asks(Freshness::Phases);
    story.becomes(CONTAINER, Stage::Created);
    story.message_arrives();
    story.is_said_to_be_deleted(CONTAINER);
    story.message_arrives();
    story.pod_read_is_answered_as_sent();
    assert!(story.reader_waits());
    story.world_rests();
}

/// C8 d: nor the first of the two reads that a step back needs.
#[test]
pub(super) fn a_reader_is_not_answered_by_a_read_that_awaits_its_confirmation() {
    let mut story = Story::of_container(Stage::Running);
    story.is_said_to_be_deleted(CONTAINER);
    story.message_arrives();
    story.passes(Duration::from_millis(1_100));
    assert!(!story.0.oracle.has_stepped_back(CONTAINER));
    story.reader_asks(Freshness::Phases);
    story.everything_is_answered();
    assert!(story.reader_waits());
    story.world_rests();
    assert!(story.0.oracle.has_stepped_back(CONTAINER));
}

/// C8 e: a filter that matches nothing of a pod says nothing of it.
#[test]
fn a_filtered_read_neither_removes_nor_vouches_for_what_its_filter_cannot_match() {
    let mut story = Story::of(
        UNLABELLED,
        &[(SANDBOX, Stage::Running), (CONTAINER, Stage::Created)],
    );
    story.becomes_silently(CONTAINER, Stage::Running);
    story.reader_asks(Freshness::Phases);
    story.world_rests();
    assert!(story.cache_shows(SANDBOX));
    assert_eq!(story.told(CONTAINER), [Started]);
}

/// C8 e: a new sandbox of the pod that nobody has heard of is seen by the read that answers.
#[test]
fn a_reader_is_told_of_a_new_attempt_that_no_event_announced() {
    let mut story = Story::of(TWO_SANDBOXES, &[(SANDBOX, Stage::Running)]);
    story.becomes_silently(SANDBOX, Stage::Exited);
    story.becomes_silently(Subject(1), Stage::Running);
    story.reader_asks(Freshness::Details);
    story.everything_is_answered();
    assert!(!story.reader_waits());
    assert!(story.cache_shows(Subject(1)));
}

/// C9: a DELETED has the pod read at once, and that read answers whoever waits.
#[test]
fn a_deleted_wakes_nobody_and_starts_the_read_that_does() {
    let mut story = Story::of_container(Stage::Running);
    story.reader_asks(Freshness::Phases);
    story.becomes(CONTAINER, Stage::Removed);
    story.message_arrives();
    assert!(story.reader_waits());
    story.pod_read_is_answered_as_sent();
    assert!(story.reader_waits(), "that read looked before the removal");
    assert!(story.pod_read_is_out(), "{:?}", story.0);
    story.pod_read_is_answered();
    story.everything_is_answered();
    assert!(!story.reader_waits());
    assert!(!story.cache_shows(CONTAINER));
}

/// C10: a wish shares a read only while it is not yet sent.
#[test]
fn a_reader_does_not_join_a_read_that_was_sent_before_it_asked() {
    let mut story = Story::of_container(Stage::Absent);
    story.pod_read_is_sent();
    story.becomes_silently(CONTAINER, Stage::Created);
    story.reader_asks(Freshness::Phases);
    story.pod_read_is_answered_as_sent();
    assert!(story.reader_waits());
    story.everything_is_answered();
    assert!(!story.reader_waits());
    assert!(story.cache_shows(CONTAINER));
}

/// C10: what became due while a relist was under way is not satisfied by it.
#[test]
fn a_relist_that_was_requested_during_a_relist_is_sent_after_it() {
    let mut story = Story::of_container(Stage::Absent);
    story.full_relist_is_sent();
    holds(story.0.apply(Step::RequestRelist { of_pod: false }));
    story.full_relist_is_answered();
    assert!(story.full_relist_is_out());
}

/// C11: an inspection is one more observation; it does not put a started container back.
#[test]
fn a_read_from_before_the_start_does_not_take_the_start_back() {
    let mut story = Story::of_container(Stage::Created);
    story.pod_read_is_sent();
    story.becomes(CONTAINER, Stage::Running);
    story.message_arrives();
    assert_eq!(story.told(CONTAINER), [Started]);
    story.pod_read_is_answered_as_sent();
    story.everything_is_answered();
    assert_eq!(story.told(CONTAINER), [Started]);
    assert!(!story.0.oracle.has_stepped_back(CONTAINER));
}

/// C11: an inspection that an event asks for is sent after it, and shows what the event could not.
#[test]
fn an_event_without_a_snapshot_has_the_pod_read_after_it() {
    let mut story = Story::of_container(Stage::Running);
    story
        .0
        .change(CONTAINER, Stage::Exited, Told::WithoutSnapshot);
    assert_eq!(story.0.questions().count(), 0);
    story.message_arrives();
    assert!(story.0.questions().count() > 0);
    story.everything_is_answered();
    assert_eq!(story.told(CONTAINER), [Started, Died]);
}

/// C12: facts that do not age do not keep a reader waiting: one new read answers.
#[test]
fn a_container_that_ended_long_ago_is_vouched_for_by_one_new_read() {
    let mut story = Story::of_container(Stage::Exited);
    story.reader_asks(Freshness::Details);
    assert!(story.reader_waits());
    story.everything_is_answered();
    assert!(!story.reader_waits());
}

/// C13: a container that rests in Created is watched with back-off that ends.
#[test]
fn a_container_that_is_never_started_leaves_the_node_quiet() {
    Story::of_container(Stage::Created).stays_quiet();
}

/// C13: so is a finished pod that is kept for days.
#[test]
fn a_finished_pod_that_is_kept_leaves_the_node_quiet() {
    let mut story = Story::of_container(Stage::Exited);
    story.becomes(SANDBOX, Stage::Exited);
    story.message_arrives();
    story.stays_quiet();
}

/// C14: before the first full relist every event is stale, so that a backlog tells of no ghosts.
#[test]
fn a_backlog_from_before_the_first_relist_tells_of_nothing() {
    let mut story = Story::begun(Truth::NOTHING.with(SANDBOX, Stage::Running));
    story.becomes(CONTAINER, Stage::Created);
    story.becomes(CONTAINER, Stage::Running);
    story.becomes_silently(CONTAINER, Stage::Removed);
    story.message_arrives();
    story.message_arrives();
    assert!(!story.cache_shows(CONTAINER));
    story.full_relist_is_answered();
    story.everything_is_answered();
    assert_eq!(story.told(CONTAINER), []);
    assert!(!story.cache_shows(CONTAINER));
    story.world_rests();
}
