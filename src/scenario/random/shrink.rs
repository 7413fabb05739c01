//! Making a failing scenario small: pods, actions, faults and settings are left out while it still
//! breaks the same law.
//!
//! What can no longer be done without what was left out is left out too. The rest at the end stays:
//! without it every scenario would fail, for another reason.

use std::collections::BTreeSet;
use std::io;

use super::generate::{Generated, expect_anything};
use super::{Outcome, Wrong, play_through};
use crate::scenario::action::{Action, Character};
use crate::scenario::file::{Scenario, Settings};
use crate::scenario::values::{At, Time};

/// How many scenarios are played for one finding, at most.
const MOST_PLAYS: usize = 400;

/// The smallest that was found.
#[derive(Clone, Debug)]
pub(super) struct Smallest {
    pub(super) scenario: Scenario,
    pub(super) plays: usize,
}

pub(super) fn smallest(generated: &Generated, failure: &Wrong) -> io::Result<Smallest> {
    let mut shrinker = Shrinker {
        best: generated.scenario.clone(),
        rest: generated.rest,
        law: failure.law.clone(),
        plays: 0,
    };
    shrinker.leave_out_pods()?;
    shrinker.leave_out_actions()?;
    shrinker.simplify()?;
    shrinker.leave_out_actions()?;
    Ok(Smallest {
        scenario: shrinker.finish(),
        plays: shrinker.plays,
    })
}

struct Shrinker {
    best: Scenario,
    /// Steps from this on are kept.
    rest: usize,
    law: String,
    plays: usize,
}

impl Shrinker {
    /// Takes `candidate` if it breaks the same law, without what can no longer be done in it.
    fn attempt(&mut self, mut candidate: Scenario) -> io::Result<bool> {
        // What is undone may leave more to be undone.
        for _ in 0..4 {
            if self.plays >= MOST_PLAYS {
                return Ok(false);
            }
            self.plays += 1;
            expect_anything(&mut candidate.steps);
            number(&mut candidate);
            let outcome = play_through(&candidate)?;
            let undone = undone(&outcome);
            if undone.is_empty() {
                let is_as_bad = outcome.is_wrong_as(&self.law);
                if is_as_bad {
                    self.best = candidate;
                }
                return Ok(is_as_bad);
            }
            retain(&mut candidate, usize::MAX, |action| {
                !undone.contains(&action.line)
            });
        }
        Ok(false)
    }

    fn leave_out_pods(&mut self) -> io::Result<()> {
        let mut pods: Vec<String> = Vec::new();
        each(&self.best, |action| pods.extend(pod_of(&action.value)));
        pods.sort();
        pods.dedup();
        // Many at once first.
        let mut size = pods.len().div_ceil(2);
        while size > 0 && !pods.is_empty() {
            let mut kept = Vec::new();
            for some in pods.chunks(size) {
                let mut candidate = self.best.clone();
                retain(&mut candidate, usize::MAX, |action| {
                    pod_of(&action.value).is_none_or(|pod| !some.contains(&pod))
                });
                if !self.attempt(candidate)? {
                    kept.extend_from_slice(some);
                }
            }
            pods = kept;
            size /= 2;
        }
        Ok(())
    }

    fn leave_out_actions(&mut self) -> io::Result<()> {
        number(&mut self.best);
        let mut size = self.lines().len().div_ceil(2);
        while size > 0 {
            let mut from = 0;
            loop {
                number(&mut self.best);
                let lines = self.lines();
                let Some(some) = lines.get(from..).filter(|some| !some.is_empty()) else {
                    break;
                };
                let some: BTreeSet<_> = some.iter().take(size).copied().collect();
                let mut candidate = self.best.clone();
                retain(&mut candidate, self.rest, |action| {
                    !some.contains(&action.line)
                });
                if !self.attempt(candidate)? {
                    from += size;
                }
                if self.plays >= MOST_PLAYS {
                    return Ok(());
                }
            }
            size /= 2;
        }
        Ok(())
    }

    /// The numbers of the actions that may be left out.
    fn lines(&self) -> Vec<u64> {
        let initial = self.best.initial.iter();
        let steps = self.best.steps.iter().take(self.rest);
        let done = steps.flat_map(|step| &step.value.actions);
        initial.chain(done).map(|action| action.line).collect()
    }

    /// Settings and habits as they are if nobody says anything.
    fn simplify(&mut self) -> io::Result<()> {
        let changes: [fn(&mut Scenario); 12] = [
            |scenario| {
                scenario.settings = Settings {
                    seed: scenario.settings.seed,
                    ..Settings::default()
                };
            },
            |scenario| {
                scenario.runtime = Character {
                    is: scenario.runtime.is,
                    ..Character::default()
                };
            },
            |scenario| scenario.pleg_starts_at = Time::default(),
            |scenario| scenario.settings.channel_capacity = None,
            |scenario| scenario.settings.stream_inbox_bytes = None,
            |scenario| scenario.settings.relist_period = None,
            |scenario| scenario.settings.evented_relist_period = None,
            |scenario| scenario.runtime.latency = None,
            |scenario| scenario.runtime.latency_of.clear(),
            |scenario| scenario.runtime.stamps = None,
            |scenario| scenario.runtime.streaming_lists = None,
            |scenario| scenario.runtime.backlog = false,
        ];
        for change in changes {
            let mut candidate = self.best.clone();
            change(&mut candidate);
            if candidate != self.best {
                self.attempt(candidate)?;
            }
        }
        Ok(())
    }

    /// The best, without steps in which nothing is done.
    fn finish(&self) -> Scenario {
        let mut scenario = self.best.clone();
        scenario
            .steps
            .retain(|step| !step.value.actions.is_empty() || step.value.expect.is_some());
        scenario
    }
}

/// Numbers the actions, so that those that could not be done are found again. A detail that changes
/// in silence has one number with what makes it news: without that nobody could know of it.
fn number(scenario: &mut Scenario) {
    let mut number = 0;
    let steps = scenario.steps.iter_mut();
    let moments = steps.map(|step| &mut step.value.actions);
    for actions in std::iter::once(&mut scenario.initial).chain(moments) {
        let mut is_muted = false;
        for action in actions {
            let is_in_silence = is_muted || is_no_address(&action.value);
            number += u64::from(!is_in_silence);
            action.line = number;
            match action.value {
                Action::Mute => is_muted = true,
                Action::Unmute => is_muted = false,
                _ => {}
            }
        }
    }
}

fn is_no_address(action: &Action) -> bool {
    matches!(action, Action::SetIps(set) if set.ips.is_empty())
}

fn undone(outcome: &Outcome) -> BTreeSet<u64> {
    let failures = outcome.played.failures.iter();
    failures
        .filter(|failure| failure.what == "this action" && failure.line > 0)
        .map(|failure| failure.line)
        .collect()
}

/// Keeps the actions that `keeps`, of the steps before number `until`.
fn retain(scenario: &mut Scenario, until: usize, keeps: impl Fn(&At<Action>) -> bool) {
    scenario.initial.retain(&keeps);
    for step in scenario.steps.iter_mut().take(until) {
        step.value.actions.retain(&keeps);
    }
}

fn each(scenario: &Scenario, mut visit: impl FnMut(&At<Action>)) {
    let steps = scenario.steps.iter();
    let actions = steps.flat_map(|step| &step.value.actions);
    for action in scenario.initial.iter().chain(actions) {
        visit(action);
    }
}

/// The pod that an action is about, and that it makes no sense without.
fn pod_of(action: &Action) -> Option<String> {
    let pod = match action {
        Action::Run(run) => &run.pod,
        Action::Create(name)
        | Action::Start(name)
        | Action::RunContainer(name)
        | Action::FailStart(name)
        | Action::Remove(name)
        | Action::SetUnknown(name) => &name.pod,
        Action::Exit(exit) => &exit.container.pod,
        Action::AmendReason(amend) => &amend.container.pod,
        Action::StopSandbox(name) | Action::LoseSandbox(name) | Action::RemoveSandbox(name) => {
            &name.pod
        }
        Action::SetIps(set) => &set.sandbox.pod,
        Action::RemovePod(pod) | Action::Relist(pod) | Action::Reinspect(pod) => pod,
        Action::Ask(ask) => &ask.pod,
        Action::Deny(subject) => subject.pod(),
        Action::Emit(emit) => emit.about.as_ref()?.pod(),
        _ => return None,
    };
    Some(pod.0.clone())
}
