//! Seeded churn: pods come and go, containers crash, restart and are cleaned up after.
//!
//! The choices are pure, [`ChurnPlan::step`]; waiting between them is [`SimulatedRuntime::churn`]'s.
//! The same seed gives the same steps at the same moments of the runtime's clock.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use super::population::{Blueprint, Population};
use super::seed::Seeded;
use super::subject::{ExitStatus, Pod};
use super::world::Told;
use super::{OperationError, SimulatedRuntime, World};
use crate::lifecycle::{ContainerId, EventKind, ReportedState, SandboxId, UnixNanos};

/// How much happens, and to how many pods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ChurnConfig {
    pub(super) seed: u64,
    /// Container starts and ends per second.
    pub(super) rate: f64,
    /// Pods at the beginning, and about as many all the time.
    pub(super) pods: usize,
    /// Containers in each pod; `None`: one to three.
    pub(super) containers: Option<usize>,
    /// What may happen.
    pub(super) kind: ChurnKind,
}

/// What may happen while a runtime churns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChurnKind {
    /// What does on a node: containers crash, restart or fail to, pods come and go, sandboxes die.
    #[default]
    Everything,
    /// Containers end and start again, each told by runtimes; pods stay. For loads that are to be
    /// compared.
    Restarts,
}

/// How containers end by themselves, and how often out of 100.
const EXITS: &[(u64, i32, &str)] = &[
    (30, 1, "Error"),
    (25, 0, "Completed"),
    (12, 2, "Error"),
    (12, 137, "OOMKilled"),
    (8, 143, "Error"),
    (5, 139, "Error"),
    (4, 137, "Error"),
    (2, 127, "Error"),
    (2, 255, "Error"),
];

/// How many steps a stopped pod is left before it is removed.
const STEPS_BEFORE_REMOVAL: u64 = 6;

/// What happens next on a node, one step after the other.
#[derive(Clone, Debug)]
pub(super) struct ChurnPlan {
    config: ChurnConfig,
    dice: Seeded,
    population: Population,
    steps: u64,
    /// Ready sandboxes that the churn looks after.
    alive: Vec<SandboxId>,
    /// Containers that ended and will be restarted, oldest first.
    crashed: VecDeque<ContainerId>,
    /// Stopped sandboxes, with the step at which each is removed.
    leaving: VecDeque<(u64, SandboxId)>,
}

impl ChurnPlan {
    /// Settles the first pods in `world`.
    pub(super) fn new(config: ChurnConfig, world: &mut World, at: UnixNanos) -> Self {
        let mut population = Population::new(config.seed ^ 0x706f_6473, config.containers);
        let alive = population.settle(world, at, config.pods);
        Self {
            config,
            dice: Seeded::new(config.seed ^ 0x6368_6f69_6365),
            population,
            steps: 0,
            alive,
            crashed: VecDeque::new(),
            leaving: VecDeque::new(),
        }
    }

    /// How long after a step that made `transitions` starts and ends the next one comes, at once if
    /// there were none; `None` if never.
    pub(super) fn pause(&mut self, transitions: usize) -> Option<Duration> {
        if !(self.config.rate.is_finite() && self.config.rate > 0.0) {
            return None;
        }
        let count = u32::try_from(transitions).unwrap_or(u32::MAX);
        // Half to one and a half of the mean, by thousandths.
        let spread = u32::try_from(500 + self.dice.below(1001)).unwrap_or(1000);
        let seconds = f64::from(count) / self.config.rate * f64::from(spread) / 1000.0;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Does one thing to the world and returns what it tells.
    pub(super) fn step(&mut self, world: &mut World, at: UnixNanos) -> Told {
        self.steps += 1;
        if let Some((due, _)) = self.leaving.front()
            && *due <= self.steps
            && let Some((_, sandbox)) = self.leaving.pop_front()
        {
            return world.remove_sandbox(at, &sandbox).unwrap_or_default();
        }
        if self.config.kind == ChurnKind::Restarts {
            let done = self.restart(world, at).or_else(|| self.crash(world, at));
            return done.unwrap_or_default();
        }
        let pods = self.alive.len();
        let done = match self.dice.below(100) {
            0..40 => self.restart(world, at),
            80..88 if pods <= self.config.pods => self.arrive(world, at),
            88..95 if pods > self.config.pods / 2 => self.leave(world, at),
            95..98 => self.replace_sandbox(world, at),
            _ => self.crash(world, at),
        };
        // Somebody else may have removed what was chosen; then the next kind of thing is done.
        done.filter(|told| !told.is_empty())
            .or_else(|| self.restart(world, at))
            .or_else(|| self.crash(world, at))
            .or_else(|| self.arrive(world, at))
            .unwrap_or_default()
    }

    fn crash(&mut self, world: &mut World, at: UnixNanos) -> Option<Told> {
        let sandbox = self.dice.pick(&self.alive)?.clone();
        let running: Vec<ContainerId> = world
            .containers_in(&sandbox)
            .filter(|container| container.state == ReportedState::Running)
            .map(|container| container.id.clone())
            .collect();
        let container = self.dice.pick(&running)?;
        let exit = self.exit();
        let told = world.exit_container(at, container, exit).ok()?;
        self.crashed.push_back(container.clone());
        Some(told)
    }

    fn exit(&mut self) -> ExitStatus {
        let mut roll = self
            .dice
            .below(EXITS.iter().map(|(weight, ..)| weight).sum());
        for (weight, code, reason) in EXITS {
            if roll < *weight {
                return ExitStatus::with_reason(*code, *reason);
            }
            roll -= weight;
        }
        ExitStatus::code(1)
    }

    /// The next attempt of what crashed first; the dead one before that is cleaned up, as the
    /// kubelet keeps one.
    fn restart(&mut self, world: &mut World, at: UnixNanos) -> Option<Told> {
        let (sandbox, name, attempt) = loop {
            let crashed = self.crashed.pop_front()?;
            if let Some(container) = world.container(crashed.as_str())
                && world
                    .sandbox(container.sandbox.as_str())
                    .is_some_and(|sandbox| sandbox.ready)
            {
                let sandbox = container.sandbox.clone();
                break (sandbox, container.name.clone(), container.attempt);
            }
        };
        let (id, mut told) = world.create_container(at, &sandbox, &name).ok()?;
        let may_fail = self.config.kind == ChurnKind::Everything;
        if may_fail && self.dice.below(15) == 0 {
            told.append(&mut world.fail_start(at, &id).ok()?);
            self.crashed.push_back(id);
        } else {
            told.append(&mut world.start_container(at, &id).ok()?);
        }
        told.append(&mut remove_before(world, at, &sandbox, &name, attempt)?);
        Some(told)
    }

    fn arrive(&mut self, world: &mut World, at: UnixNanos) -> Option<Told> {
        let Blueprint { pod, containers } = self.population.next(world)?;
        self.run(world, at, pod, &containers).ok()
    }

    fn leave(&mut self, world: &mut World, at: UnixNanos) -> Option<Told> {
        let sandbox = self.take_alive()?;
        let mut told = self.end_containers(world, at, &sandbox).ok()?;
        told.append(&mut world.stop_sandbox(at, &sandbox).ok()?);
        let due = self.steps + STEPS_BEFORE_REMOVAL;
        self.leaving.push_back((due, sandbox));
        Some(told)
    }

    /// The sandbox dies; the kubelet kills what is left and runs the pod in a new one.
    fn replace_sandbox(&mut self, world: &mut World, at: UnixNanos) -> Option<Told> {
        let old = self.take_alive()?;
        let pod = world.sandbox(old.as_str())?.pod.clone();
        let names: BTreeSet<Arc<str>> = world
            .containers_in(&old)
            .map(|container| container.name.clone())
            .collect();
        let names: Vec<Arc<str>> = names.into_iter().collect();
        let mut told = world.lose_sandbox(at, &old).ok()?;
        told.append(&mut self.end_containers(world, at, &old).ok()?);
        told.append(&mut self.run(world, at, pod, &names).ok()?);
        let due = self.steps + STEPS_BEFORE_REMOVAL;
        self.leaving.push_back((due, old));
        Some(told)
    }

    fn run(
        &mut self,
        world: &mut World,
        at: UnixNanos,
        pod: Arc<Pod>,
        names: &[Arc<str>],
    ) -> Result<Told, OperationError> {
        let (sandbox, mut told) = world.run_sandbox(at, pod);
        for name in names {
            let (container, mut created) = world.create_container(at, &sandbox, name)?;
            told.append(&mut created);
            told.append(&mut world.start_container(at, &container)?);
        }
        self.alive.push(sandbox);
        Ok(told)
    }

    /// Most end when asked to, with 143 or 0; one that does not is killed.
    fn end_containers(
        &mut self,
        world: &mut World,
        at: UnixNanos,
        sandbox: &SandboxId,
    ) -> Result<Told, OperationError> {
        let running: Vec<ContainerId> = world
            .containers_in(sandbox)
            .filter(|container| container.state == ReportedState::Running)
            .map(|container| container.id.clone())
            .collect();
        let mut told = Told::new();
        for container in running {
            let code = self.dice.pick(&[143, 143, 0, 137]).copied().unwrap_or(143);
            told.append(&mut world.exit_container(at, &container, code)?);
        }
        Ok(told)
    }

    fn take_alive(&mut self) -> Option<SandboxId> {
        let index = usize::try_from(self.dice.below(self.alive.len() as u64)).ok()?;
        (index < self.alive.len()).then(|| self.alive.swap_remove(index))
    }
}

/// Container starts and ends among `told`.
pub(super) fn transitions(told: &Told) -> usize {
    told.iter()
        .filter(|message| matches!(message.kind, EventKind::Started | EventKind::Stopped))
        .filter(|message| {
            let sandbox = message.sandbox.as_ref().map(|sandbox| sandbox.id.as_str());
            sandbox != Some(&*message.id)
        })
        .count()
}

impl SimulatedRuntime {
    /// Drives the churn that the builder described, for as long as it is polled.
    ///
    /// Like the kubelet it waits for its operations: while a stream which does not read blocks the
    /// runtime, nothing more happens. Every call begins the same churn anew, so drive one.
    pub async fn churn(&self) -> Infallible {
        let mut plan = self.shared.churn.clone();
        let mut done = 1;
        let mut next = self.mono();
        loop {
            match plan.pause(done) {
                // From when it was due, not from now: timers are coarse, the rate is not to suffer.
                Some(pause) => next = next.after(pause),
                None => std::future::pending().await,
            }
            tokio::time::sleep(next.since(self.mono())).await;
            self.unblocked().await;
            if self.mono().since(next) > MOST_BEHIND {
                next = self.mono();
            }
            done = self.operate(|world, at| {
                let told = plan.step(world, at);
                // Where nothing can happen, nothing is tried over and over.
                let done = if told.is_empty() {
                    1
                } else {
                    transitions(&told)
                };
                (done, told)
            });
        }
    }

    /// So many container ends and starts at one moment: containers that run end one after another,
    /// each followed by its next attempt, as if the node had stumbled. Fewer if nothing runs; the
    /// answer is how many.
    #[expect(
        clippy::must_use_candidate,
        reason = "how many there were is known beforehand, mostly"
    )]
    pub fn burst(&self, transitions: usize) -> usize {
        self.operate(|world, at| burst(world, at, transitions))
    }
}

/// How far the churn may fall behind its rate and still make up for it.
const MOST_BEHIND: Duration = Duration::from_secs(1);

fn burst(world: &mut World, at: UnixNanos, transitions: usize) -> (usize, Told) {
    let mut told = Told::new();
    let mut done = 0;
    while done < transitions {
        let before = done;
        let running: Vec<ContainerId> = world
            .containers()
            .filter(|container| container.state == ReportedState::Running)
            .take((transitions - done).div_ceil(2))
            .map(|container| container.id.clone())
            .collect();
        for id in running {
            let Ok(mut ended) = world.exit_container(at, &id, 137) else {
                continue;
            };
            told.append(&mut ended);
            done += 1;
            if done == transitions {
                break;
            }
            if let Some(mut started) = next_attempt(world, at, &id) {
                told.append(&mut started);
                done += 1;
            }
        }
        if done == before {
            break;
        }
    }
    (done, told)
}

/// The next attempt of a container that ended; the one before that is removed, as the kubelet does.
fn next_attempt(world: &mut World, at: UnixNanos, ended: &ContainerId) -> Option<Told> {
    let container = world.container(ended.as_str())?;
    let (sandbox, name) = (container.sandbox.clone(), container.name.clone());
    let attempt = container.attempt;
    if !world.sandbox(sandbox.as_str())?.ready {
        return None;
    }
    let (id, mut told) = world.create_container(at, &sandbox, &name).ok()?;
    told.append(&mut world.start_container(at, &id).ok()?);
    told.append(&mut remove_before(world, at, &sandbox, &name, attempt)?);
    Some(told)
}

/// Removes the exited containers of this name that came before `attempt`.
fn remove_before(
    world: &mut World,
    at: UnixNanos,
    sandbox: &SandboxId,
    name: &str,
    attempt: u32,
) -> Option<Told> {
    let stale: Vec<ContainerId> = world
        .containers_in(sandbox)
        .filter(|container| {
            &*container.name == name && container.attempt < attempt && container.is_exited()
        })
        .map(|container| container.id.clone())
        .collect();
    let mut told = Told::new();
    for container in stale {
        told.append(&mut world.remove_container(at, &container).ok()?);
    }
    Some(told)
}
