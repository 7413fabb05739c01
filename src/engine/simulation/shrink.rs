//! Takes steps out of a plan that fails, as long as it fails in the same way.

use super::{Failure, Plan, run};
use crate::engine::model::Violation;

/// The shortest plan found that breaks the same property.
pub(crate) fn shrink(failure: &Failure) -> Failure {
    shrink_with(failure, &run)
}

/// The same for another way to play it.
pub(crate) fn shrink_with(
    failure: &Failure,
    play: &dyn Fn(&Plan) -> Result<(), Violation>,
) -> Failure {
    let mut best = failure.clone();
    let still_fails = |plan: &Plan| match play(plan) {
        Err(violation) if violation.property == failure.violation.property => Some(Failure {
            plan: plan.clone(),
            violation,
        }),
        _ => None,
    };
    loop {
        let before = size(&best.plan);
        best = without_steps(best, &still_fails);
        best = without_initial(best, &still_fails);
        best = with_shorter_waits(best, &still_fails);
        if size(&best.plan) == before {
            return best;
        }
    }
}

fn size(plan: &Plan) -> (usize, u64) {
    let waits = plan.steps.iter().map(|step| u64::from(step.after)).sum();
    (plan.steps.len() + plan.initial.len(), waits)
}

type StillFails<'a> = dyn Fn(&Plan) -> Option<Failure> + 'a;

fn without_steps(mut best: Failure, still_fails: &StillFails) -> Failure {
    let mut piece = best.plan.steps.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        while at < best.plan.steps.len() {
            let end = (at + piece).min(best.plan.steps.len());
            let mut shorter = best.plan.clone();
            let waits: u32 = shorter
                .steps
                .drain(at..end)
                .map(|step| step.after)
                .fold(0, u32::saturating_add);
            let mut at_the_same_time = shorter.clone();
            if let Some(next) = at_the_same_time.steps.get_mut(at) {
                next.after = next.after.saturating_add(waits);
            }
            match still_fails(&at_the_same_time).or_else(|| still_fails(&shorter)) {
                Some(failure) => best = failure,
                None => at += piece,
            }
        }
        piece /= 2;
    }
    best
}

fn without_initial(mut best: Failure, still_fails: &StillFails) -> Failure {
    let mut at = 0;
    while at < best.plan.initial.len() {
        let mut shorter = best.plan.clone();
        shorter.initial.remove(at);
        match still_fails(&shorter) {
            Some(failure) => best = failure,
            None => at += 1,
        }
    }
    best
}

fn with_shorter_waits(mut best: Failure, still_fails: &StillFails) -> Failure {
    for at in 0..best.plan.steps.len() {
        let wait = best.plan.steps[at].after;
        for shorter_wait in [0, wait / 10, wait / 2] {
            if shorter_wait >= best.plan.steps[at].after {
                continue;
            }
            let mut shorter = best.plan.clone();
            shorter.steps[at].after = shorter_wait;
            if let Some(failure) = still_fails(&shorter) {
                best = failure;
                break;
            }
        }
    }
    best
}
