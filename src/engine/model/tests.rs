use std::time::Duration;

use super::explore::{Bounds, explore};
use super::walk::{Dice, walk};
use super::*;

const SANDBOX: Subject = Subject(0);
const CONTAINER: Subject = Subject(1);

/// The delays that the laws know: just past `settle`, past `grace`, past a tombstone's time.
const LINGERS: &[u32] = &[1_100, 3_000, 70_000];

const SEARCHED: Habits = Habits {
    in_flight: 2,
    addresses_late: false,
    lingers: LINGERS,
};

const WALKED: Habits = Habits {
    in_flight: 4,
    addresses_late: true,
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

#[expect(
    clippy::disallowed_methods,
    reason = "a bound for long runs by hand, not a clock of the engine"
)]
fn search(name: &'static str, start: &Run, share: usize) {
    let began = std::time::Instant::now();
    let seconds = std::env::var("PLEG_MODEL_SECS")
        .ok()
        .and_then(|text| text.parse().ok());
    let bounds = Bounds {
        states: bound("PLEG_MODEL_STATES", share, share / 100),
        depth: bound("PLEG_MODEL_DEPTH", usize::MAX, usize::MAX),
        time: seconds.map(Duration::from_secs),
    };
    let outcome = explore(name, start, bounds, &|limit| began.elapsed() >= limit);
    match outcome {
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
            began.elapsed()
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

fn budget() -> Budget {
    Budget {
        faults: 2,
        failures: 0,
        readers: 0,
        requests: 1,
        wakes: 1,
        lingers: 1,
    }
}

#[test]
fn two_faults_of_the_stream_break_no_property() {
    let start = holds(Run::settled(
        ONE_CONTAINER,
        SEARCHED,
        budget(),
        &[(SANDBOX, Stage::Running)],
    ));
    search("a ready sandbox, trusted stream", &start, 300_000);
}

#[test]
fn two_faults_of_the_stream_break_no_property_from_the_start() {
    let start = holds(Run::cold(
        ONE_CONTAINER,
        SEARCHED,
        budget(),
        sandbox_ready(),
    ));
    search("a ready sandbox, just begun", &start, 200_000);
}

#[test]
fn two_faults_break_no_property_of_a_running_container() {
    let start = holds(Run::settled(
        ONE_CONTAINER,
        SEARCHED,
        budget(),
        &[
            (SANDBOX, Stage::Running),
            (CONTAINER, Stage::Created),
            (CONTAINER, Stage::Running),
        ],
    ));
    search("a running container, trusted stream", &start, 300_000);
}

#[test]
fn readers_are_told_nothing_older_than_they_asked_for() {
    let start = holds(Run::settled(
        ONE_CONTAINER,
        SEARCHED,
        Budget {
            faults: 1,
            failures: 1,
            readers: 1,
            ..budget()
        },
        &[(SANDBOX, Stage::Running)],
    ));
    search("a reader, a ready sandbox", &start, 200_000);
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
