//! Random simulation of the whole product: seeds, each a story of its own, played in virtual time and
//! judged. `PLEG_RANDOM_SEEDS` says how many, `PLEG_RANDOM_FIRST_SEED` from which on; a seed that fails
//! is made small and printed as a scenario file that fails by `pleg replay`, too.
#![cfg(feature = "scenarios")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use pleg::scenario::random::{self, Simulated};
use pleg::scenario::{Scenario, play};

/// How many seeds are played unless the environment says so: an unoptimised build is slow.
const SEEDS: u64 = if cfg!(debug_assertions) { 12 } else { 100 };

/// How many findings are made small and shown.
const MOST_FINDINGS: usize = 5;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}: expected a number"))
    })
}

#[derive(Default)]
struct Totals {
    events: AtomicU64,
    entries: AtomicU64,
    seconds: AtomicU64,
}

#[test]
fn all_laws_hold_in_random_stories() {
    let first = number("PLEG_RANDOM_FIRST_SEED", 1);
    let seeds = number("PLEG_RANDOM_SEEDS", SEEDS);
    #[expect(clippy::disallowed_methods, reason = "says how long the tests took")]
    let began = Instant::now();
    let next = AtomicU64::new(0);
    let totals = Totals::default();
    let findings = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= seeds || findings.lock().unwrap().len() >= MOST_FINDINGS {
                        return;
                    }
                    match random::simulate(first + number).unwrap() {
                        Simulated::Lawful(played) => {
                            assert!(played.checks > 0, "nothing was judged");
                            let entries = played.trace.entries.len() as u64;
                            totals
                                .events
                                .fetch_add(played.delivered as u64, Ordering::Relaxed);
                            totals.entries.fetch_add(entries, Ordering::Relaxed);
                            totals
                                .seconds
                                .fetch_add(played.lasted.as_secs(), Ordering::Relaxed);
                        }
                        Simulated::Failed(finding) => {
                            println!(
                                "seed {} failed: {}\nplayed {} times to make it small:\n\n{}",
                                finding.seed,
                                finding.why,
                                finding.plays,
                                finding.scenario.to_yaml()
                            );
                            findings.lock().unwrap().push(finding.seed);
                        }
                    }
                }
            });
        }
    });
    println!(
        "{seeds} seeds from {first}: {} events told, {} inputs taken, {} h on the node, in {:.1} s",
        totals.events.load(Ordering::Relaxed),
        totals.entries.load(Ordering::Relaxed),
        totals.seconds.load(Ordering::Relaxed) / 3_600,
        began.elapsed().as_secs_f64()
    );
    let findings = findings.into_inner().unwrap();
    assert!(findings.is_empty(), "seeds that failed: {findings:?}");
    assert!(
        seeds == 0 || totals.events.load(Ordering::Relaxed) > seeds,
        "hardly anything happened"
    );
}

#[test]
fn a_seed_gives_the_same_story_and_its_file_the_same_outcome() {
    for seed in [3, 5, 8] {
        let scenario = random::scenario(seed);
        let written = scenario.to_yaml();
        assert_eq!(random::scenario(seed).to_yaml(), written);
        let read = Scenario::parse(&written).unwrap_or_else(|why| panic!("{why}\n{written}"));
        let (once, again) = (play(&scenario).unwrap(), play(&read).unwrap());
        assert!(once.trace.entries.len() > 20);
        assert_eq!(
            once.trace.text(&once.names),
            again.trace.text(&again.names),
            "seed {seed}"
        );
    }
}
