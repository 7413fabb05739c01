//! Seeded random walks through more of the world than can be searched, and the shrinker that cuts
//! a failed one down to the steps that matter.

use super::explore::Counterexample;
use super::oracle::Violation;
use super::run::Run;
use super::step::Step;

/// One walk in so many is watched for quiet at its end: that takes long.
const WATCHED_FOR_QUIET: u64 = 64;

/// `SplitMix64`: small, seeded, and good enough to choose steps by.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of the numbers below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.roll() % limit.max(1)
    }
}

/// Walks `length` steps at random, then lets the world rest.
pub(crate) fn walk(
    name: &'static str,
    start: &Run,
    dice: &mut Dice,
    length: usize,
) -> Result<(), Box<Counterexample>> {
    let mut run = start.clone();
    let mut steps = Vec::with_capacity(length);
    let mut outcome = Ok(());
    for _ in 0..length {
        let Some(step) = choose(&run.steps(), dice) else {
            break;
        };
        steps.push(step);
        outcome = run.apply(step);
        if outcome.is_err() {
            break;
        }
    }
    let outcome = outcome.and_then(|()| {
        end(&mut run)?;
        if dice.below(WATCHED_FOR_QUIET) == 0 {
            run.idle()?;
        }
        Ok(())
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(violation) => Err(Box::new(shrink(
            Counterexample::new(name, start, steps, violation),
            start,
        ))),
    }
}

/// Chooses a step, answers and arrivals more often than the things that end the run's budget.
fn choose(steps: &[Step], dice: &mut Dice) -> Option<Step> {
    let weights: u64 = steps.iter().map(weight).sum();
    let mut at = dice.below(weights);
    steps.iter().copied().find(|step| {
        let weight = weight(step);
        if at < weight {
            return true;
        }
        at -= weight;
        false
    })
}

fn weight(step: &Step) -> u64 {
    match step {
        Step::Deliver { nth: 0 } | Step::Answer { .. } => 8,
        Step::Change { told, .. } if *told == super::step::Told::Truly => 8,
        Step::Wake | Step::Change { .. } => 4,
        Step::Deliver { .. } | Step::RequestRelist { .. } | Step::Read { .. } => 3,
        Step::ClockBack { .. } | Step::Fail { .. } => 1,
        _ => 2,
    }
}

/// What is still under way arrives, old answers first; then the world rests.
pub(crate) fn end(run: &mut Run) -> Result<(), Violation> {
    for _ in 0..64 {
        if run.is_drained() {
            run.rest()?;
            return Ok(());
        }
        if run.questions().next().is_some() {
            run.answer(0, 0, 0)?;
        } else if run.can_deliver() {
            run.deliver(0, false)?;
        } else {
            run.wake()?;
        }
    }
    run.rest().map(|_| ())
}

/// Takes the steps again, leaving out those that are impossible by now.
pub(crate) fn replay(start: &Run, steps: &[Step]) -> (Vec<Step>, Result<(), Violation>) {
    let mut run = start.clone();
    let mut taken = Vec::with_capacity(steps.len());
    for &step in steps {
        if !run.steps().contains(&step) {
            continue;
        }
        taken.push(step);
        let outcome = run.apply(step);
        if outcome.is_err() {
            return (taken, outcome);
        }
    }
    let outcome = end(&mut run).and_then(|()| run.idle());
    (taken, outcome)
}

fn shrink(mut example: Counterexample, start: &Run) -> Counterexample {
    let mut piece = example.steps.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        let mut shorter_found = false;
        while at < example.steps.len() {
            let mut shorter = example.steps.clone();
            shorter.drain(at..(at + piece).min(shorter.len()));
            match replay(start, &shorter) {
                (steps, Err(violation))
                    if violation.property == example.violation.property
                        && steps.len() < example.steps.len() =>
                {
                    example = Counterexample::new(example.start, start, steps, violation);
                    shorter_found = true;
                }
                _ => at += piece,
            }
        }
        if !shorter_found {
            piece /= 2;
        }
    }
    example
}
