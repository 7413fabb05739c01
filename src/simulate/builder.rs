//! Describes a simulated runtime: who it is, what it runs, how much happens, by which clock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::churn::{ChurnConfig, ChurnKind, ChurnPlan};
use super::history::REACH;
use super::runtime::ReadClock;
use super::{Character, SimulatedRuntime, World};
use crate::clock::Clock;
use crate::lifecycle::{Now, UnixNanos};

/// Builds a [`SimulatedRuntime`]. The default is an empty containerd 2 on the system's clock.
#[derive(Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    character: Character,
    churn: ChurnConfig,
    clock: Option<ReadClock>,
    epoch: Option<UnixNanos>,
    history: Duration,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            character: Character::default(),
            churn: ChurnConfig {
                seed: 1,
                rate: 0.0,
                pods: 0,
                containers: None,
                kind: ChurnKind::default(),
            },
            clock: None,
            epoch: None,
            history: REACH,
        }
    }
}

impl Builder {
    /// A node as one meets it: eight pods with one to three containers, and about six container
    /// starts and ends a second once the churn is driven.
    pub fn busy_node(self) -> Self {
        self.pods(8).churn(6.0)
    }

    /// Which runtime it plays.
    pub fn character(mut self, character: Character) -> Self {
        self.character = character;
        self
    }

    /// Where ids, names and the churn begin. The same seed gives the same run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.churn.seed = seed;
        self
    }

    /// Pods that run when it is built, and about as many as the churn keeps.
    pub fn pods(mut self, pods: usize) -> Self {
        self.churn.pods = pods;
        self
    }

    /// Containers in each of those pods, instead of one to three.
    pub fn containers(mut self, containers: usize) -> Self {
        self.churn.containers = Some(containers);
        self
    }

    /// Container starts and ends per second once the churn is driven, by
    /// [`churn`](SimulatedRuntime::churn) or [`spawn_churn`](SimulatedRuntime::spawn_churn).
    pub fn churn(mut self, per_second: f64) -> Self {
        self.churn.rate = per_second;
        self
    }

    /// What happens while it churns; everything that does on a node, by default.
    pub fn churn_kind(mut self, kind: ChurnKind) -> Self {
        self.churn.kind = kind;
        self
    }

    /// Makes its wall clock read `epoch` when it is built and move with tokio's clock from there:
    /// in virtual time every stamp is then the same in every run.
    pub fn epoch(mut self, epoch: UnixNanos) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// How far back its past can be [answered from](super::AsOf::Ago): ten minutes by default; zero
    /// keeps nothing.
    pub fn history(mut self, reach: Duration) -> Self {
        self.history = reach;
        self
    }

    /// Takes the time from `clock`, which may step. It must not read this runtime. To step the wall
    /// clock of a runtime and of its client together, give both copies of one
    /// [`Clock`](crate::clock::Clock): `clock(move || clock.now())`.
    pub fn clock(mut self, clock: impl Fn() -> Now + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Builds the runtime. In-memory connections are served on the tokio runtime that this is called
    /// in; without one, on that of whoever dials.
    #[must_use]
    pub fn build(self) -> SimulatedRuntime {
        let clock = self.clock.unwrap_or_else(|| {
            let clock = self.epoch.map_or_else(Clock::system, Clock::starting_at);
            Arc::new(move || clock.now())
        });
        let mut world = World::new(self.churn.seed, self.character.habits.clone());
        let churn = ChurnPlan::new(self.churn, &mut world, clock().wall);
        SimulatedRuntime::new(world, self.character, clock, churn, self.history)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("character", &self.character)
            .field("churn", &self.churn)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}
