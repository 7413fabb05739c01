//! Where the searches begin: close to where a broken law shows, with a budget for that and no more.

use crate::engine::model::{
    Budget, Cast, Fault, Habits, Lie, ONE_CONTAINER, Run, Stage, Step, Subject, Told, Truth,
    UNLABELLED, Violation,
};
use crate::lifecycle::EventKind;

const SANDBOX: Subject = Subject(0);
const CONTAINER: Subject = Subject(1);

/// One message at a time, no fault, a sandbox that stays.
const CALM: Habits = Habits {
    in_flight: 1,
    addresses_late: false,
    sandboxes_change: false,
    faults: &[],
    lingers: &[1_100],
};

const NOTHING: Budget = Budget {
    faults: 0,
    failures: 0,
    readers: 0,
    requests: 0,
    wakes: 0,
    lingers: 0,
};

const FIRST_ANSWER: Step = Step::Answer {
    call: 0,
    sandboxes: 0,
    containers: 0,
};

fn holds<T>(outcome: Result<T, Violation>) -> T {
    outcome.unwrap_or_else(|Violation { property, detail }| {
        panic!("{property} does not hold: {detail}")
    })
}

/// A trusted stream that has told the container's life so far.
fn trusted(cast: Cast, habits: Habits, budget: Budget, life: &[Stage]) -> Run {
    let of_container = life.iter().map(|&stage| (CONTAINER, stage));
    let changes: Vec<_> = [(SANDBOX, Stage::Running)]
        .into_iter()
        .chain(of_container)
        .collect();
    holds(Run::settled(cast, habits, budget, &changes))
}

fn running(habits: Habits, budget: Budget) -> Run {
    let life = [Stage::Created, Stage::Running];
    trusted(ONE_CONTAINER, habits, budget, &life)
}

fn after(mut run: Run, steps: &[Step]) -> Run {
    for &step in steps {
        holds(run.apply(step));
    }
    run
}

/// A running container and two messages that may overtake each other.
pub(super) fn out_of_order() -> Run {
    let habits = Habits {
        in_flight: 2,
        faults: &[Fault::Reorder],
        ..CALM
    };
    let budget = Budget {
        faults: 1,
        ..NOTHING
    };
    running(habits, budget)
}

/// A container that is about to start, and a message that may come twice.
pub(super) fn created() -> Run {
    let habits = Habits {
        faults: &[Fault::Duplicate],
        ..CALM
    };
    let budget = Budget {
        faults: 1,
        ..NOTHING
    };
    trusted(ONE_CONTAINER, habits, budget, &[Stage::Created])
}

/// A sandbox whose container is still to be made, and a relist that somebody asks for.
pub(super) fn unborn() -> Run {
    let budget = Budget {
        requests: 1,
        lingers: 1,
        ..NOTHING
    };
    trusted(ONE_CONTAINER, CALM, budget, &[])
}

/// A running container of which a DELETED may lie, and a reader.
pub(super) fn false_news() -> Run {
    let habits = Habits {
        faults: &[Fault::FalseDeleted],
        ..CALM
    };
    let budget = Budget {
        faults: 1,
        readers: 1,
        ..NOTHING
    };
    running(habits, budget)
}

/// The same of a pod that is nothing but its sandbox.
pub(super) fn sandbox_alone() -> Run {
    let habits = Habits {
        sandboxes_change: true,
        faults: &[Fault::FalseDeleted],
        ..CALM
    };
    let budget = Budget {
        faults: 1,
        readers: 1,
        ..NOTHING
    };
    trusted(ONE_CONTAINER, habits, budget, &[])
}

/// A running container that was said to be gone and came back by two reads.
pub(super) fn stepped_back() -> Run {
    let habits = Habits {
        faults: &[Fault::FalseDeleted],
        ..CALM
    };
    let budget = Budget {
        faults: 1,
        lingers: 2,
        ..NOTHING
    };
    let false_deleted = Step::TellFalseDeleted {
        subject: CONTAINER,
        lie: Lie::Whole,
    };
    let linger = Step::Linger { millis: 1_100 };
    let arrives = Step::Deliver { nth: 0 };
    after(
        running(habits, budget),
        &[
            false_deleted,
            arrives,
            FIRST_ANSWER,
            linger,
            FIRST_ANSWER,
            linger,
            FIRST_ANSWER,
            FIRST_ANSWER,
        ],
    )
}

/// A running container, relists that somebody asks for, and calls that may fail.
pub(super) fn requests() -> Run {
    let budget = Budget {
        failures: 1,
        requests: 2,
        ..NOTHING
    };
    running(CALM, budget)
}

/// A running container whose changes may go untold.
pub(super) fn losses() -> Run {
    let habits = Habits {
        faults: &[Fault::Loss],
        ..CALM
    };
    let budget = Budget {
        faults: 1,
        ..NOTHING
    };
    running(habits, budget)
}

/// A running container that no filter by its pod would match, and a reader.
pub(super) fn made_by_crictl() -> Run {
    let budget = Budget {
        readers: 1,
        ..NOTHING
    };
    let life = [Stage::Created, Stage::Running];
    trusted(UNLABELLED, CALM, budget, &life)
}

/// A container that went untold and was found gone, so long ago, while a message about its life is
/// still on its way; and one more relist that somebody asks for.
pub(super) fn late_news_of_the_dead(millis: u32) -> Run {
    let habits = Habits {
        faults: &[Fault::Lateness, Fault::Loss],
        ..CALM
    };
    let budget = Budget {
        faults: 2,
        requests: 2,
        lingers: 1,
        ..NOTHING
    };
    after(
        running(habits, budget),
        &[
            Step::TellLate {
                subject: CONTAINER,
                kind: EventKind::Created,
            },
            Step::Change {
                subject: CONTAINER,
                to: Stage::Removed,
                told: Told::Silently,
            },
            Step::RequestRelist { of_pod: false },
            FIRST_ANSWER,
            Step::Linger { millis },
        ],
    )
}

/// A pod that ended and went while two lists that still show it are on their way: the one of the
/// node was sent first, a tombstone's time ago.
pub(super) fn old_reads_of_the_dead() -> Run {
    let habits = Habits {
        sandboxes_change: true,
        faults: &[Fault::Loss],
        ..CALM
    };
    let budget = Budget {
        faults: 1,
        requests: 2,
        wakes: 1,
        lingers: 1,
        ..NOTHING
    };
    let change = |subject, to, told| Step::Change { subject, to, told };
    after(
        running(habits, budget),
        &[
            change(CONTAINER, Stage::Removed, Told::Silently),
            Step::RequestRelist { of_pod: false },
            change(SANDBOX, Stage::Exited, Told::Truly),
            Step::RequestRelist { of_pod: true },
            Step::Deliver { nth: 0 },
            change(SANDBOX, Stage::Removed, Told::Truly),
            Step::Answer {
                call: 0,
                sandboxes: 2,
                containers: 2,
            },
            Step::Linger { millis: 70_000 },
        ],
    )
}

/// A running container and a subscriber that may stop reading.
pub(super) fn stalled() -> Run {
    let habits = Habits {
        faults: &[Fault::Stall],
        ..CALM
    };
    let budget = Budget {
        faults: 1,
        ..NOTHING
    };
    running(habits, budget)
}

/// An engine whose first relist has no answer yet.
pub(super) fn just_begun() -> Run {
    let budget = Budget {
        lingers: 1,
        ..NOTHING
    };
    let truth = Truth::NOTHING.with(SANDBOX, Stage::Running);
    holds(Run::cold(ONE_CONTAINER, CALM, budget, truth))
}
