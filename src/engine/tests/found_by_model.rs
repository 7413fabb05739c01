//! What the model check found in the engine itself, each as the shortest run that showed it.
//!
//! The oracle watches every step and the rest that follows: the right outcome is that nothing is
//! violated, that every read ends, and that nobody waits for ever.

use crate::engine::Freshness;
use crate::engine::model::{
    Budget, Cast, Fault, Habits, Lie, ONE_CONTAINER, Run, Stage, Step, Subject, TWO_SANDBOXES,
    Told, Truth, UNLABELLED, Violation, end,
};

const SANDBOX: Subject = Subject(0);
const CONTAINER: Subject = Subject(1);
const SECOND_SANDBOX: Subject = Subject(1);

const HABITS: Habits = Habits {
    in_flight: 8,
    addresses_late: false,
    sandboxes_change: true,
    faults: Fault::ALL,
    lingers: &[],
};

const BUDGET: Budget = Budget {
    faults: 8,
    failures: 8,
    readers: 8,
    requests: 8,
    wakes: 8,
    lingers: 8,
};

/// A ready sandbox and a stream that has been trusted for long.
fn trusted() -> Run {
    holds(Run::settled(
        ONE_CONTAINER,
        HABITS,
        BUDGET,
        &[(SANDBOX, Stage::Running)],
    ))
}

fn begun(cast: Cast) -> Run {
    holds(Run::cold(cast, HABITS, BUDGET, Truth::NOTHING))
}

fn holds<T>(outcome: Result<T, Violation>) -> T {
    match outcome {
        Ok(value) => value,
        Err(Violation { property, detail }) => panic!("{property} does not hold: {detail}"),
    }
}

fn comes_right(mut run: Run, steps: &[Step]) {
    replays(&run, steps);
    for &step in steps {
        holds(run.apply(step));
    }
    holds(end(&mut run));
}

/// As a scenario the same steps parse, can be done, and come right for the whole product.
#[cfg(feature = "scenarios")]
fn replays(start: &Run, steps: &[Step]) {
    let known = Violation {
        property: "Once upon a time",
        detail: "this did not hold".to_owned(),
    };
    let text = crate::engine::model::scenario("found by model", start, steps, &known);
    let parsed = crate::scenario::Scenario::parse(&text)
        .unwrap_or_else(|problem| panic!("{problem} in\n{text}"));
    let played = crate::scenario::play(&parsed).expect("an event loop");
    assert!(played.passed(), "{:#?} in\n{text}", played.failures);
}

#[cfg(not(feature = "scenarios"))]
fn replays(_start: &Run, _steps: &[Step]) {}

fn change(subject: Subject, to: Stage) -> Step {
    Step::Change {
        subject,
        to,
        told: Told::Truly,
    }
}

fn silently(subject: Subject, to: Stage) -> Step {
    Step::Change {
        subject,
        to,
        told: Told::Silently,
    }
}

/// Answers a call with the worlds of these moments since it was sent.
fn answer(call: u8, sandboxes: u8, containers: u8) -> Step {
    Step::Answer {
        call,
        sandboxes,
        containers,
    }
}

const ARRIVES: Step = Step::Deliver { nth: 0 };
const READ_DETAILS: Step = Step::Read {
    freshness: Freshness::Details,
};
const READ_PHASES: Step = Step::Read {
    freshness: Freshness::Phases,
};

/// The lists vouched for a sandbox, its inspection was under way, and a DELETED came: the reader was
/// told "gone" on the word of an event.
#[test]
fn a_reader_of_details_is_not_told_gone_by_a_deleted_before_its_inspection_ends() {
    comes_right(
        trusted(),
        &[
            READ_DETAILS,
            answer(0, 0, 0),
            Step::TellFalseDeleted {
                subject: SANDBOX,
                lie: Lie::Whole,
            },
            ARRIVES,
        ],
    );
}

/// A list that could not judge an absence yet was asked again back to back for a second.
#[test]
fn a_read_that_cannot_judge_yet_is_not_repeated_back_to_back() {
    comes_right(
        trusted(),
        &[
            change(CONTAINER, Stage::Created),
            ARRIVES,
            silently(CONTAINER, Stage::Removed),
            Step::RequestRelist { of_pod: true },
        ],
    );
}

/// So was an inspection that found nothing.
#[test]
fn an_inspection_that_finds_nothing_yet_is_not_repeated_back_to_back() {
    comes_right(
        trusted(),
        &[
            change(CONTAINER, Stage::Created),
            ARRIVES,
            silently(CONTAINER, Stage::Running),
            Step::RequestRelist { of_pod: false },
            silently(CONTAINER, Stage::Removed),
            answer(0, 0, 0),
        ],
    );
}

/// Details read before a list moved the container on answered for details of a mark before both.
#[test]
fn a_reader_of_details_waits_for_the_exit_code_that_a_list_made_due() {
    comes_right(
        trusted(),
        &[
            Step::TakeMark,
            change(CONTAINER, Stage::Created),
            ARRIVES,
            Step::RequestRelist { of_pod: true },
            answer(0, 0, 0),
            answer(0, 0, 0),
            Step::RequestRelist { of_pod: false },
            silently(CONTAINER, Stage::StartFailed),
            answer(0, 1, 1),
            READ_DETAILS,
        ],
    );
}

/// An event older than the list that lacked its sandbox made a phantom, which a reader with a mark
/// from before that list was told of.
#[test]
fn a_reader_with_an_older_mark_is_not_told_of_what_only_an_event_knows() {
    comes_right(
        begun(ONE_CONTAINER),
        &[
            change(SANDBOX, Stage::Running),
            change(SANDBOX, Stage::Exited),
            Step::Deliver { nth: 2 },
            silently(SANDBOX, Stage::Removed),
            answer(0, 0, 0),
            Step::TakeMark,
            Step::RequestRelist { of_pod: false },
            answer(0, 0, 0),
            Step::Deliver { nth: 1 },
            READ_PHASES,
        ],
    );
}

/// A retry and a look at an unsettled pod fell due together; the look took the retry's place and the
/// error stayed for ever.
#[test]
fn the_error_of_a_failed_inspection_ends_though_another_read_is_due_with_its_retry() {
    comes_right(
        trusted(),
        &[
            change(SANDBOX, Stage::Exited),
            ARRIVES,
            READ_DETAILS,
            answer(0, 0, 0),
            Step::Fail { call: 0 },
        ],
    );
}

/// What wanted the inspection was gone before its retry, and the error stayed for ever.
#[test]
fn the_error_of_a_failed_inspection_does_not_outlive_its_container() {
    comes_right(
        trusted(),
        &[
            silently(CONTAINER, Stage::Created),
            READ_PHASES,
            change(CONTAINER, Stage::Removed),
            ARRIVES,
            answer(0, 0, 0),
            Step::Fail { call: 0 },
        ],
    );
}

/// The retry read only what had changed, which answers no reinspection.
#[test]
fn a_reinspection_whose_inspection_fails_is_answered_after_the_retry() {
    comes_right(
        trusted(),
        &[
            change(CONTAINER, Stage::Created),
            ARRIVES,
            silently(CONTAINER, Stage::Running),
            Step::RequestReinspect,
            answer(0, 0, 0),
            Step::Fail { call: 0 },
        ],
    );
}

/// A full relist that was sent before a read of the pod, and answered after it, brought a sandbox
/// that the read had not found any more.
#[test]
fn a_full_relist_older_than_what_vouched_for_a_pod_brings_no_unknown_sandbox() {
    comes_right(
        holds(Run::settled(
            TWO_SANDBOXES,
            HABITS,
            BUDGET,
            &[(SANDBOX, Stage::Running)],
        )),
        &[
            silently(SANDBOX, Stage::Exited),
            silently(SECOND_SANDBOX, Stage::Running),
            Step::RequestRelist { of_pod: false },
            silently(SECOND_SANDBOX, Stage::Removed),
            READ_DETAILS,
            answer(1, 0, 0),
            answer(0, 0, 0),
            Step::Fail { call: 0 },
        ],
    );
}

/// Nothing was left to inspect, and the retry of the failed inspection read the pod back to back.
#[test]
fn the_error_of_a_failed_inspection_goes_with_the_whole_pod() {
    comes_right(
        trusted(),
        &[
            change(SANDBOX, Stage::Exited),
            ARRIVES,
            READ_DETAILS,
            answer(0, 0, 0),
            Step::Fail { call: 0 },
            change(SANDBOX, Stage::Removed),
            ARRIVES,
            Step::RequestRelist { of_pod: true },
        ],
    );
}

/// An older list's answer came after a newer one's, and the statuses that followed were booked to it.
#[test]
fn a_reinspection_is_answered_though_an_older_read_ends_last() {
    comes_right(
        trusted(),
        &[
            READ_DETAILS,
            Step::RequestReinspect,
            Step::Break { backlog: true },
            answer(1, 0, 0),
        ],
    );
}

/// A false DELETED keeps the lists from vouching, and the retry of the failed inspection read the pod
/// back to back.
#[test]
fn a_failed_inspection_is_retried_at_a_pace_while_lists_cannot_vouch() {
    comes_right(
        holds(Run::cold(
            ONE_CONTAINER,
            HABITS,
            BUDGET,
            Truth::NOTHING.with(SANDBOX, Stage::Running),
        )),
        &[
            answer(0, 0, 0),
            Step::Fail { call: 0 },
            silently(CONTAINER, Stage::Created),
            Step::TellFalseDeleted {
                subject: SANDBOX,
                lie: Lie::Whole,
            },
            ARRIVES,
        ],
    );
}

/// A DELETED that was none, about a container whose state the runtime does not know: no number of lists
/// that showed it brought it back, because a state without a phase contradicted nothing.
#[test]
fn a_container_in_state_unknown_comes_back_after_a_false_deleted() {
    comes_right(
        trusted(),
        &[
            change(CONTAINER, Stage::Created),
            ARRIVES,
            change(CONTAINER, Stage::Running),
            ARRIVES,
            silently(CONTAINER, Stage::Obscured),
            Step::TellFalseDeleted {
                subject: CONTAINER,
                lie: Lie::Whole,
            },
            ARRIVES,
        ],
    );
}

/// A list filtered by the pod had an item that could not be read, of an id that nobody knew, and
/// vouched for the pod without it.
#[test]
fn a_pod_is_not_vouched_for_by_a_list_with_an_item_of_it_that_cannot_be_read() {
    comes_right(
        trusted(),
        &[
            silently(CONTAINER, Stage::Created),
            READ_PHASES,
            Step::AnswerUnreadable {
                call: 0,
                subject: CONTAINER,
            },
        ],
    );
}

/// A list found the container further while a status from before was on its way. That was taken for a
/// runtime whose statuses lag: an error was shown, and its exit code was asked for only a second later.
#[test]
fn a_status_from_before_the_list_that_wants_it_is_asked_again_at_once() {
    for further in [Stage::Running, Stage::StartFailed] {
        comes_right(
            trusted(),
            &[
                silently(CONTAINER, Stage::Created),
                Step::RequestRelist { of_pod: false },
                answer(0, 0, 0),
                silently(CONTAINER, further),
                Step::Wake,
                Step::Linger { millis: 1100 },
                answer(1, 0, 0),
                answer(0, 0, 0),
            ],
        );
    }
}

/// A message with a whole snapshot ended the error of a failed inspection, in the record alone.
#[test]
fn an_error_that_a_snapshot_ends_is_shown_no_longer() {
    comes_right(
        trusted(),
        &[
            change(CONTAINER, Stage::Created),
            silently(CONTAINER, Stage::Removed),
            READ_DETAILS,
            answer(0, 0, 0),
            Step::Wake,
            Step::Fail { call: 0 },
            Step::RequestRelist { of_pod: false },
            ARRIVES,
        ],
    );
}

/// A list showed that the runtime does not know the container's state; a message from long before made
/// it Created, and that a reader was told.
#[test]
fn an_old_message_does_not_know_what_the_runtime_does_not() {
    let start = Run::settled(UNLABELLED, HABITS, BUDGET, &[(SANDBOX, Stage::Running)]);
    comes_right(
        holds(start),
        &[
            change(CONTAINER, Stage::Created),
            change(CONTAINER, Stage::Running),
            silently(CONTAINER, Stage::Obscured),
            READ_DETAILS,
            answer(0, 0, 0),
            ARRIVES,
            Step::Fail { call: 0 },
        ],
    );
}

/// A list had no such container; a message told of it, and an older list confirmed that. The inspection
/// that completes the first list failed, and a reader was told of both the error and the container.
#[test]
fn an_error_answers_nobody_with_what_its_lists_did_not_show() {
    comes_right(
        trusted(),
        &[
            change(CONTAINER, Stage::Created),
            Step::RequestRelist { of_pod: false },
            silently(CONTAINER, Stage::Removed),
            READ_DETAILS,
            answer(1, 0, 0),
            ARRIVES,
            answer(0, 0, 0),
            Step::Fail { call: 0 },
        ],
    );
}
