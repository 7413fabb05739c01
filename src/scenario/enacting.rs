//! The node's side of a scenario: what happens in the runtime, at its moments and at any pace.
//!
//! It owns the stage and the churn. It never holds an expectation against anything and knows no
//! consumer: the player adds those, and [`enact`] does without, for clients of other people's.

use std::time::Duration;

use tokio::time::Instant;

use super::action::{Action, Churn};
use super::file::Scenario;
use super::judge::Truth;
use super::stage::Stage;
use super::values::{At, PodName};
use crate::lifecycle::Mono;

/// A stage on which time passes.
pub(super) struct Enacting {
    pub(super) stage: Stage,
    origin: Instant,
    /// How much faster than the clock the story goes.
    speed: f64,
    churn: Option<Churning>,
    /// What has really happened, if somebody wants to know.
    pub(super) truth: Option<Truth>,
}

struct Churning {
    plan: Churn,
    pods: Vec<PodName>,
    turn: u64,
    next: Duration,
    place: (u64, u64),
}

/// A part of a story that could not be done.
pub(super) struct Undone {
    pub(super) at: Duration,
    pub(super) place: (u64, u64),
    pub(super) why: String,
}

impl Enacting {
    /// A story that begins at `origin`.
    pub(super) fn new(stage: Stage, origin: Instant, speed: f64) -> Self {
        Self {
            stage,
            origin,
            speed,
            churn: None,
            truth: None,
        }
    }

    /// Takes down what has changed on the node, if somebody wants to know.
    pub(super) fn witness(&mut self, at: Duration) {
        if let Some(truth) = &mut self.truth {
            let at = Mono::default().after(at);
            self.stage.runtime.world(|world| truth.note(at, world));
        }
    }

    /// Does an action of the node at its moment; gives whether it was one.
    pub(super) async fn act(&mut self, at: Duration, action: &At<Action>) -> Result<bool, String> {
        if let Action::Churn(churn) = &action.value {
            self.churn = Some(Churning {
                pods: self.stage.names().pods_named(&churn.pods.0),
                plan: churn.clone(),
                turn: 0,
                next: at + churn.every.0,
                place: (action.line, action.column),
            });
            return Ok(true);
        }
        if let Some(truth) = &mut self.truth {
            truth.note_lies(&action.value, &self.stage.names);
        }
        let done = self.stage.perform(&action.value).await;
        self.witness(at);
        done
    }

    /// Lets the time pass, and the churn go on. Returns what of the churn could not be done.
    pub(super) async fn advance_to(&mut self, at: Duration) -> Option<Undone> {
        let mut undone = None;
        while let Some(churning) = &mut self.churn
            && churning.next <= at
        {
            let (next, turn, place) = (churning.next, churning.turn, churning.place);
            let pods = churning.pods.len().max(1) as u64;
            let pod = churning
                .pods
                .get(usize::try_from(turn % pods).unwrap_or(0))
                .cloned();
            churning.turn += 1;
            churning.next += churning.plan.every.0;
            if churning.turn >= churning.plan.times {
                self.churn = None;
            }
            self.sleep_until(next).await;
            let done = match pod {
                Some(pod) => self.stage.replace_container(&pod, turn / pods),
                None => Err("there are no such pods".into()),
            };
            self.witness(next);
            if let Err(why) = done {
                self.churn = None;
                undone = Some(Undone {
                    at: next,
                    place,
                    why,
                });
            }
        }
        self.sleep_until(at).await;
        undone
    }

    async fn sleep_until(&self, at: Duration) {
        let passed = if (self.speed - 1.0).abs() < f64::EPSILON {
            at
        } else {
            Duration::try_from_secs_f64(at.as_secs_f64() / self.speed).unwrap_or(Duration::MAX)
        };
        match self.origin.checked_add(passed) {
            Some(moment) => tokio::time::sleep_until(moment).await,
            None => std::future::pending().await,
        }
    }
}

/// Lets the node's side of a scenario happen on a stage whose runtime others look at, `speed` times as
/// fast as it is written. What consumers do and what is expected are left out. Tells `undone` what
/// could not be done, with its place in the file, and returns after the last step.
pub async fn enact(
    scenario: &Scenario,
    stage: Stage,
    speed: f64,
    undone: &mut dyn FnMut(u64, u64, &str),
) {
    let moments = match scenario.moments() {
        Ok(moments) => moments,
        Err(problem) => return undone(problem.line, problem.column, &problem.what),
    };
    let mut enacting = Enacting::new(stage, Instant::now(), speed);
    for (step, at) in scenario.steps.iter().zip(moments) {
        if let Some(failed) = enacting.advance_to(at).await {
            undone(failed.place.0, failed.place.1, &failed.why);
        }
        for action in &step.value.actions {
            if let Err(why) = enacting.act(at, action).await {
                undone(action.line, action.column, &why);
            }
        }
    }
}

impl Stage {
    /// Puts on the stage what a scenario begins with. Tells `undone` as [`enact`] does.
    pub async fn set(&mut self, scenario: &Scenario, undone: &mut dyn FnMut(u64, u64, &str)) {
        self.runtime.set_muted(!scenario.runtime.backlog);
        for action in &scenario.initial {
            match self.perform(&action.value).await {
                Ok(true) => {}
                Ok(false) => undone(action.line, action.column, "nobody can do it"),
                Err(why) => undone(action.line, action.column, &why),
            }
        }
        self.runtime.set_muted(false);
    }
}
