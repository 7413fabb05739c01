use super::*;
use crate::clock::Clock;
use crate::lifecycle::Mono;

fn bound(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[test]
fn what_must_always_hold_holds_for_each_seed() {
    let clock = Clock::system();
    let first = bound("PLEG_SIM_FIRST_SEED", 0);
    let seeds = bound(
        "PLEG_SIM_SEEDS",
        if cfg!(debug_assertions) { 200 } else { 5_000 },
    );
    let half = |begin: u64| {
        let mine = (first + begin..first + seeds).step_by(2);
        mine.map(run_seed).find_map(Result::err)
    };
    let failures = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let mine = half(0);
        [mine, other.join().expect("a worker does not panic")]
    });
    let elapsed = clock.now().mono.since(Mono::default());
    if let Some(failure) = failures.into_iter().flatten().next() {
        let shrunk = shrink(&failure);
        panic!(
            "seed {}: {:?}\n{:#?}",
            shrunk.plan.seed, shrunk.violation, shrunk.plan
        );
    }
    println!("{seeds} seeds from {first} on: nothing violated ({elapsed:.1?})");
}
