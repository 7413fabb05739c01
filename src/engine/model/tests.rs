use std::time::Duration;

use super::*;
use crate::clock::Clock;
use crate::lifecycle::Mono;

const SANDBOX: Subject = Subject(0);
const CONTAINER: Subject = Subject(1);

/// The delays that the laws know: just past `settle`, past `grace`, past a tombstone's time.
const LINGERS: &[u32] = &[1_100, 3_000, 70_000];

const SEARCHED: Habits = Habits {
    in_flight: 2,
    addresses_late: false,
    sandboxes_change: true,
    faults: Fault::ALL,
    lingers: LINGERS,
};

const WALKED: Habits = Habits {
    in_flight: 4,
    addresses_late: true,
    sandboxes_change: true,
    faults: Fault::ALL,
    lingers: LINGERS,
};

fn bound(name: &str, optimised: usize, debug: usize) -> usize {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(if cfg!(debug_assertions) {
            debug
        } else {
            optimised
        })
}

/// Searches from `start`: as many states as `share` says, or for `PLEG_MODEL_SECS`.
fn search_from(name: &'static str, start: &Run, share: usize) {
    let clock = Clock::system();
    let elapsed = || clock.now().mono.since(Mono::default());
    let seconds: Option<u64> = std::env::var("PLEG_MODEL_SECS")
        .ok()
        .and_then(|text| text.parse().ok());
    let limit = seconds.map(Duration::from_secs);
    let share = if limit.is_some() { usize::MAX } else { share };
    let bounds = Bounds {
        states: bound("PLEG_MODEL_STATES", share, share / 100),
        depth: bound("PLEG_MODEL_DEPTH", usize::MAX, usize::MAX),
        threads: 2,
    };
    let goes_on = || limit.is_none_or(|limit| elapsed() < limit);
    match search(name, start, bounds, &goes_on) {
        Ok(explored) => println!(
            "{name}: {} states, depth {}{}, {} of them at rest, at most {} full relists each \
             ({:.1?})",
            explored.states,
            explored.depth,
            if explored.exhausted {
                ", exhausted"
            } else {
                ""
            },
            explored.rested,
            explored.full_relists,
            elapsed()
        ),
        Err(counterexample) => panic!("{counterexample}"),
    }
}

fn holds<T>(outcome: Result<T, Violation>) -> T {
    match outcome {
        Ok(value) => value,
        Err(Violation { property, detail }) => panic!("{property} does not hold: {detail}"),
    }
}

fn sandbox_ready() -> Truth {
    Truth::NOTHING.with(SANDBOX, Stage::Running)
}

/// The life of one container in a ready sandbox, with at most two faults of one kind.
fn search_one_kind(name: &'static str, fault: &'static [Fault], in_flight: usize) {
    let habits = Habits {
        in_flight,
        sandboxes_change: false,
        faults: fault,
        lingers: &[1_100],
        ..SEARCHED
    };
    let budget = Budget {
        faults: 2,
        failures: 0,
        readers: 0,
        requests: 1,
        wakes: 1,
        lingers: 1,
    };
    let start = Run::settled(ONE_CONTAINER, habits, budget, &[(SANDBOX, Stage::Running)]);
    search_from(name, &holds(start), 60_000);
}

#[test]
fn delayed_messages_break_no_property() {
    search_one_kind("delay", &[], 2);
}

#[test]
fn lost_messages_break_no_property() {
    search_one_kind("loss", &[Fault::Loss], 1);
}

#[test]
fn messages_twice_break_no_property() {
    search_one_kind("duplicates", &[Fault::Duplicate], 2);
}

#[test]
fn messages_out_of_order_break_no_property() {
    search_one_kind("reorder", &[Fault::Reorder], 3);
}

#[test]
fn missing_and_old_snapshots_break_no_property() {
    search_one_kind("bad snapshots", &[Fault::BadSnapshot], 1);
}

#[test]
fn late_messages_break_no_property() {
    search_one_kind("late messages", &[Fault::Lateness], 2);
}

#[test]
fn false_deletions_break_no_property() {
    search_one_kind("false DELETED", &[Fault::FalseDeleted], 2);
}

#[test]
fn streams_that_break_break_no_property() {
    search_one_kind("breaks", &[Fault::Break], 2);
}

#[test]
fn clock_steps_break_no_property() {
    search_one_kind("clock steps", &[Fault::ClockStep], 2);
}

#[test]
fn a_deaf_runtime_breaks_no_property() {
    search_one_kind("deafness", &[Fault::Deafness], 1);
}

fn all_faults() -> Budget {
    Budget {
        faults: 2,
        failures: 1,
        readers: 1,
        requests: 1,
        wakes: 1,
        lingers: 1,
    }
}

#[test]
fn two_faults_of_any_kind_break_no_property_once_the_stream_is_trusted() {
    let start = Run::settled(
        ONE_CONTAINER,
        SEARCHED,
        all_faults(),
        &[
            (SANDBOX, Stage::Running),
            (CONTAINER, Stage::Created),
            (CONTAINER, Stage::Running),
        ],
    );
    search_from("all faults, trusted stream", &holds(start), 200_000);
}

#[test]
fn two_faults_of_any_kind_break_no_property_at_the_start() {
    let start = Run::cold(ONE_CONTAINER, SEARCHED, all_faults(), sandbox_ready());
    search_from("all faults, just begun", &holds(start), 200_000);
}

#[test]
fn readers_are_told_nothing_older_than_they_asked_for() {
    let habits = Habits {
        in_flight: 1,
        sandboxes_change: false,
        faults: &[Fault::FalseDeleted, Fault::Loss],
        lingers: &[1_100],
        ..SEARCHED
    };
    let budget = Budget {
        faults: 1,
        failures: 1,
        readers: 2,
        requests: 1,
        wakes: 1,
        lingers: 1,
    };
    let start = Run::settled(ONE_CONTAINER, habits, budget, &[(SANDBOX, Stage::Running)]);
    search_from("readers", &holds(start), 60_000);
}

/// Two subjects of one pod that change, with one fault of any kind, a call that fails and a reader.
fn search_larger(name: &'static str, cast: Cast, changes: &[(Subject, Stage)]) {
    let habits = Habits {
        in_flight: 2,
        lingers: &[1_100],
        ..SEARCHED
    };
    let budget = Budget {
        faults: 1,
        failures: 1,
        readers: 1,
        requests: 0,
        wakes: 1,
        lingers: 1,
    };
    let start = Run::settled(cast, habits, budget, changes);
    search_from(name, &holds(start), 30_000);
}

#[test]
fn two_containers_break_no_property() {
    search_larger(
        "two containers",
        TWO_CONTAINERS,
        &[
            (SANDBOX, Stage::Running),
            (CONTAINER, Stage::Created),
            (CONTAINER, Stage::Running),
        ],
    );
}

#[test]
fn two_sandboxes_under_one_uid_break_no_property() {
    search_larger(
        "two sandboxes",
        TWO_SANDBOXES,
        &[(SANDBOX, Stage::Running), (SANDBOX, Stage::Exited)],
    );
}

#[test]
fn a_pod_without_labels_breaks_no_property() {
    search_larger("without labels", UNLABELLED, &[(SANDBOX, Stage::Running)]);
}

#[test]
fn a_subscriber_that_stalls_is_told_the_rest() {
    search_one_kind("stalled subscriber", &[Fault::Stall], 2);
}

#[test]
fn states_that_the_runtime_does_not_know_break_no_property() {
    search_one_kind("unknown states", &[Fault::Unknown, Fault::FalseDeleted], 2);
}

#[test]
fn items_that_cannot_be_read_break_no_property() {
    search_one_kind("unreadable items", &[Fault::Unreadable, Fault::Loss], 1);
}

#[test]
fn an_inbox_that_overflows_breaks_no_property() {
    search_one_kind("overflow", &[Fault::Overflow], 2);
}

#[test]
fn inspections_that_fail_break_no_property() {
    let habits = Habits {
        in_flight: 1,
        sandboxes_change: false,
        faults: &[Fault::Loss],
        lingers: &[3_000],
        ..SEARCHED
    };
    let budget = Budget {
        faults: 1,
        failures: 3,
        readers: 1,
        requests: 1,
        wakes: 2,
        lingers: 1,
    };
    let start = Run::settled(ONE_CONTAINER, habits, budget, &[(SANDBOX, Stage::Running)]);
    search_from("failing inspections", &holds(start), 30_000);
}

/// A counterexample names its steps and tells them as a scenario.
#[test]
fn a_run_that_breaks_is_printed_as_its_steps_and_as_a_scenario() {
    let start = holds(Run::settled(
        ONE_CONTAINER,
        SEARCHED,
        all_faults(),
        &[(SANDBOX, Stage::Running)],
    ));
    let steps = vec![
        Step::Change {
            subject: CONTAINER,
            to: Stage::Created,
            told: Told::Truly,
        },
        Step::Deliver { nth: 0 },
    ];
    let violation = Violation {
        property: "Once",
        detail: "upon a time".to_owned(),
    };
    let text = Counterexample::new("two steps", &start, steps, violation).to_string();
    for part in [
        "Once does not hold",
        "Deliver { nth: 0 }",
        "create: web/app",
        "delay: {messages: {next: 1, type: CREATED}, by: 2ms}",
        "converged: true",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

fn long_budget() -> Budget {
    Budget {
        faults: 6,
        failures: 2,
        readers: 3,
        requests: 4,
        wakes: 40,
        lingers: 4,
    }
}

#[test]
fn long_random_runs_of_larger_pods_break_no_property() {
    let walks = bound("PLEG_MODEL_WALKS", 20_000, 300);
    let seed = bound("PLEG_MODEL_SEED", 1, 1) as u64;
    let starts: Vec<(&'static str, Run)> = vec![
        (
            "one container, begun",
            holds(Run::cold(
                ONE_CONTAINER,
                WALKED,
                long_budget(),
                Truth::NOTHING,
            )),
        ),
        (
            "two containers, begun",
            holds(Run::cold(
                TWO_CONTAINERS,
                WALKED,
                long_budget(),
                sandbox_ready(),
            )),
        ),
        (
            "two sandboxes, begun",
            holds(Run::cold(
                TWO_SANDBOXES,
                WALKED,
                long_budget(),
                Truth::NOTHING,
            )),
        ),
        (
            "two containers, trusted",
            holds(Run::settled(
                TWO_CONTAINERS,
                WALKED,
                long_budget(),
                &[(SANDBOX, Stage::Running)],
            )),
        ),
        (
            "two sandboxes, trusted",
            holds(Run::settled(
                TWO_SANDBOXES,
                WALKED,
                long_budget(),
                &[(SANDBOX, Stage::Running)],
            )),
        ),
    ];
    for nth in 0..walks {
        let nth = nth as u64;
        let (name, start) = &starts[(nth % starts.len() as u64) as usize];
        let mut dice = Dice::seeded(seed.wrapping_mul(0x1_0000_0001).wrapping_add(nth));
        if let Err(counterexample) = walk(name, start, &mut dice, 90) {
            panic!("walk {nth} of seed {seed}: {counterexample}");
        }
    }
    println!("{walks} walks of 90 steps, seed {seed}");
}
