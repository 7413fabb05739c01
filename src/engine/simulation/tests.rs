use super::act::Named;
use super::*;
use crate::clock::Clock;
use crate::engine::model::violated;
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

/// A world that breaks at the first possible false DELETED.
fn breaks_at_false_news(plan: &Plan) -> Result<(), Violation> {
    let mut run = Play::begin(plan, settings(plan.seed))?;
    for step in &plan.steps {
        run.pass(step.after)?;
        if let Act::FalseDeleted { pod, name } = step.act {
            let slandered = match name {
                Some(name) => run.node.container(Named { pod, name }),
                None => run.node.sandbox(pod),
            };
            if slandered.is_some() {
                return violated("No false news", format!("of p{pod}"));
            }
        }
        run.act(step.act)?;
    }
    Ok(())
}

#[test]
fn a_plan_that_fails_is_cut_down_to_what_matters_and_printed_as_a_scenario() {
    let (plan, violation) = (0..)
        .map(Plan::draw)
        .filter(|plan| plan.steps.len() > 20)
        .find_map(|plan| Some((plan.clone(), breaks_at_false_news(&plan).err()?)))
        .expect("a seed in many");
    let failure = Failure { plan, violation };
    let shrunk = shrink_with(&failure, &breaks_at_false_news);
    assert_eq!(shrunk.violation.property, "No false news");
    assert!(
        shrunk.plan.steps.len() + shrunk.plan.initial.len() <= 3,
        "{:?}",
        shrunk.plan
    );
    let text = shrunk.scenario();
    assert!(text.contains("emit: {type: DELETED"), "{text}");
    replays(&text);
}

#[cfg(feature = "scenarios")]
fn replays(text: &str) {
    let parsed = crate::scenario::Scenario::parse(text)
        .unwrap_or_else(|problem| panic!("{problem} in\n{text}"));
    let played = crate::scenario::play(&parsed).expect("an event loop");
    assert!(played.passed(), "{:#?} in\n{text}", played.failures);
}

#[cfg(not(feature = "scenarios"))]
fn replays(_text: &str) {}

/// What is drawn at random, faults and all, can be replayed with the whole product.
#[cfg(feature = "scenarios")]
#[test]
fn plans_replay_as_scenarios() {
    let nothing = Violation {
        property: "Everything",
        detail: "held".to_owned(),
    };
    for seed in 0..10 {
        let failure = Failure {
            plan: Plan::draw(seed),
            violation: nothing.clone(),
        };
        replays(&failure.scenario());
    }
}
