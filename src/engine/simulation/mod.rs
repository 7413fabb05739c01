//! Random simulation of the engine alone: up to ten pods, the faults of the scenario language, virtual
//! time, no transport.
//!
//! A seed gives a [`Plan`]; [`run`] plays it, lets the node rest and holds what was published and told
//! against the truth: per subject for a subscriber that reads at once and one that stalls (over the
//! real feed and cache), the cache against the node, each claim of freshness against the past. A plan
//! that fails is shrunk, and printed as a scenario to replay.
//!
//! `PLEG_SIM_SEEDS` (how many) and `PLEG_SIM_FIRST_SEED` are for long runs by hand:
//! `PLEG_SIM_SEEDS=100000 cargo test --profile model --no-default-features --lib engine::simulation -- --nocapture`.
//! Without them an optimised build runs 5,000 seeds and a debug build 200.

mod act;
mod calls;
mod draft;
mod node;
mod play;
mod rest;
mod scenario;
mod shrink;
mod stream;
mod trouble;
mod watchers;
mod witness;

#[cfg(test)]
mod tests;

pub(crate) use act::{Act, Plan};
pub(crate) use play::Play;
pub(crate) use shrink::{shrink, shrink_with};

use std::fmt;

use crate::engine::Settings;
use crate::engine::model::Violation;

/// One seed in so many is watched for quiet after its rest: that takes long.
const WATCHED_FOR_QUIET: u64 = 16;

/// A plan that broke a property.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) plan: Plan,
    pub(crate) violation: Violation,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { property, detail } = &self.violation;
        let seed = self.plan.seed;
        writeln!(f, "{property} does not hold with seed {seed}: {detail}")?;
        write!(f, "as a scenario, for pleg replay:\n\n{}", self.scenario())
    }
}

/// Plays the plan of a seed with the settings that simulations use.
pub(crate) fn run_seed(seed: u64) -> Result<(), Box<Failure>> {
    let plan = Plan::draw(seed);
    match run(&plan) {
        Ok(()) => Ok(()),
        Err(violation) => Err(Box::new(Failure { plan, violation })),
    }
}

/// Plays a plan, lets the node rest, and says what did not hold.
pub(crate) fn run(plan: &Plan) -> Result<(), Violation> {
    run_with(plan, settings(plan.seed))
}

/// The same for an engine that is set up in another way.
pub(crate) fn run_with(plan: &Plan, settings: Settings) -> Result<(), Violation> {
    let mut run = Play::begin(plan, settings)?;
    for step in &plan.steps {
        run.pass(step.after)?;
        run.act(step.act)?;
    }
    run.rest()?;
    if plan.seed.is_multiple_of(WATCHED_FOR_QUIET) {
        run.idle()?;
    }
    Ok(())
}

/// The kubelet's, with a jitter of the seed's.
pub(crate) fn settings(seed: u64) -> Settings {
    Settings {
        seed,
        ..Settings::default()
    }
}
