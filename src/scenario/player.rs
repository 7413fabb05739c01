//! The player: a scenario from beginning to end, in virtual time, on one thread.
//!
//! It does what each step says at its moment, lets everything that follows at that moment happen,
//! and holds the expectations against what came of it. Nothing is left to chance: the clock is
//! tokio's paused one, the seeds are in the file, so that the same file gives the same trace.

use std::io;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::action::Action;
use super::check::Checker;
use super::consumers::Consumers;
use super::enacting::Enacting;
use super::file::Scenario;
use super::judge::{Account, Truth, Unlawful, judge};
use super::names::Names;
use super::shown::converged;
use super::stage::Stage;
use super::trace::{Trace, TraceRecorder};
use super::values::{At, Time};
use crate::clock::Clock;
use crate::lifecycle::{Mono, UnixNanos};

/// What the node's wall clock shows when a scenario begins: 2026-01-01, midnight UTC.
pub(super) const BEGINNING: UnixNanos = UnixNanos(1_767_225_600_000_000_000);

/// How long it takes until everything has happened that happens at one moment: timers are told apart
/// by the millisecond.
const SETTLING: Duration = Duration::from_millis(1);

/// What was not as expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Failure {
    /// The line of the scenario that expected it; 0 if it is one of the laws that hold always.
    pub line: u64,
    /// The column.
    pub column: u64,
    /// When.
    #[serde(serialize_with = "in_seconds", rename = "atSeconds")]
    pub at: Duration,
    /// What was looked at.
    pub what: String,
    /// What it should have been.
    pub expected: String,
    /// What it was.
    pub got: String,
    /// The two line by line, where that says more.
    pub diff: Option<String>,
}

fn in_seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

/// A scenario that was played.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Played {
    /// What was not as expected, in order; empty: it passed.
    pub failures: Vec<Failure>,
    /// Everything that went into the engine and came out of it.
    pub trace: Trace,
    /// Who is who in it.
    pub names: Names,
    /// How much time passed on the node.
    pub lasted: Duration,
    /// How many events `main` was told.
    pub delivered: usize,
    /// How many expectations were held against what happened.
    pub checks: usize,
}

impl Played {
    /// Whether everything was as expected.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Plays a scenario.
///
/// # Errors
/// If no event loop can be made for it.
pub fn play(scenario: &Scenario) -> io::Result<Played> {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    Ok(tokio.block_on(async {
        let mut player = Player::new(scenario);
        player.run(scenario).await;
        player.finish().await
    }))
}

struct Player {
    clock: Clock,
    node: Enacting,
    consumers: Consumers,
    recorder: TraceRecorder,
    checker: Checker,
    failures: Vec<Failure>,
}

impl Player {
    fn new(scenario: &Scenario) -> Self {
        let clock = Clock::starting_at(BEGINNING);
        let stage = Stage::new(&scenario.runtime, &clock);
        let recorder = TraceRecorder::default();
        let consumers =
            Consumers::new(scenario.settings, &clock, stage.runtime(), recorder.clone());
        // The clock's own origin: nothing has passed since.
        let mut node = Enacting::new(stage, clock.instant(Mono(0)), 1.0);
        node.truth = Some(Truth::default());
        Self {
            node,
            clock,
            consumers,
            recorder,
            checker: Checker::default(),
            failures: Vec::new(),
        }
    }

    async fn run(&mut self, scenario: &Scenario) {
        let moments = match scenario.moments() {
            Ok(moments) => moments,
            Err(problem) => {
                let place = (problem.line, problem.column);
                return self.cannot(Duration::ZERO, place, "the steps", problem.what);
            }
        };
        self.set_the_stage(scenario).await;
        let starts = scenario.pleg_starts_at.0;
        let mut is_started = false;
        for (step, at) in scenario.steps.iter().zip(moments) {
            if !is_started && starts <= at {
                is_started = true;
                self.start(starts).await;
            }
            self.advance_to(at).await;
            for action in &step.value.actions {
                self.act(at, action).await;
            }
            if let Some(expect) = &step.value.expect {
                self.advance_to(at + SETTLING).await;
                let found = self
                    .checker
                    .check(expect, at, &self.node.stage, &mut self.consumers)
                    .await;
                self.failures.extend(found);
                if let Some(lawful) = &expect.value.lawful {
                    self.judge(at, lawful).await;
                }
            }
            self.keep_the_laws(at);
        }
    }

    async fn start(&mut self, at: Duration) {
        self.advance_to(at).await;
        if let Err(why) = self.consumers.start() {
            self.cannot(at, (0, 0), "the settings", why);
        }
    }

    /// What there is before anything else.
    async fn set_the_stage(&mut self, scenario: &Scenario) {
        let mut failed = Vec::new();
        self.node
            .stage
            .set(scenario, &mut |line, column, why| {
                failed.push(((line, column), why.to_owned()));
            })
            .await;
        self.node.witness(Duration::ZERO);
        for (place, why) in failed {
            self.cannot(Duration::ZERO, place, "this action", why);
        }
    }

    async fn act(&mut self, at: Duration, action: &At<Action>) {
        let place = (action.line, action.column);
        let done = match self.node.act(at, action).await {
            Ok(false) => {
                let names = self.node.stage.names();
                self.consumers.perform(&action.value, names).await
            }
            done => done,
        };
        match done {
            Ok(true) => {}
            // Every action is the stage's, the consumers' or the churn.
            Ok(false) => self.cannot(at, place, "this action", "nobody can do it".into()),
            Err(why) => self.cannot(at, place, "this action", why),
        }
    }

    /// Lets the time pass, and the churn go on.
    async fn advance_to(&mut self, at: Duration) {
        if let Some(undone) = self.node.advance_to(at).await {
            self.cannot(undone.at, undone.place, "the churn", undone.why);
        }
    }

    /// Whether all that must hold at rest does.
    async fn judge(&mut self, at: Duration, lawful: &At<bool>) {
        self.checker.count();
        let found = match self.breaches_of_law().await {
            Ok(found) => found,
            Err(why) => return self.cannot(at, (lawful.line, lawful.column), "the judge", why),
        };
        if !lawful.value && found.is_empty() {
            self.failures.push(Failure {
                line: lawful.line,
                column: lawful.column,
                at,
                what: "the laws".to_owned(),
                expected: "one is broken".to_owned(),
                got: "all hold".to_owned(),
                diff: None,
            });
        }
        for unlawful in found.into_iter().filter(|_| lawful.value) {
            let names = self.node.stage.names();
            let subject = unlawful.subject.as_ref();
            let whose = subject.map(|subject| format!(", at {}", names.of(subject.as_str())));
            self.failures.push(Failure {
                line: lawful.line,
                column: lawful.column,
                at: Duration::from_nanos(unlawful.at.0),
                what: format!("a law{}", whose.unwrap_or_default()),
                expected: unlawful.law.to_owned(),
                got: unlawful.what,
                diff: None,
            });
        }
    }

    async fn breaches_of_law(&self) -> Result<Vec<Unlawful>, String> {
        let cache = self.consumers.pleg()?.cache().clone();
        let told = self.consumers.told().await?;
        let stage = &self.node.stage;
        let differs = stage
            .runtime
            .world(|world| converged(world, &cache, stage.names()));
        let none = Truth::default();
        Ok(self.recorder.look(|entries| {
            judge(&Account {
                truth: self.node.truth.as_ref().unwrap_or(&none),
                entries,
                subscribers: &told,
                differs,
                now: self.clock.now().mono,
            })
        }))
    }

    /// What holds always.
    fn keep_the_laws(&mut self, at: Duration) {
        for breach in self.consumers.breaches() {
            self.failures.push(Failure {
                line: 0,
                column: 0,
                at: Duration::from_nanos(breach.at.0),
                what: format!("a law, at {}", self.node.stage.names().event(&breach.event)),
                expected: breach.law.to_owned(),
                got: breach.got,
                diff: None,
            });
        }
        let streams = self.node.stage.runtime.open_streams();
        let ours = streams.saturating_sub(self.node.stage.competing_streams());
        if ours > 1 {
            self.failures.push(Failure {
                line: 0,
                column: 0,
                at,
                what: "a law, at the event streams".to_owned(),
                expected: "at most one is open at a time".to_owned(),
                got: format!("{ours} are open"),
                diff: None,
            });
        }
    }

    fn cannot(&mut self, at: Duration, place: (u64, u64), what: &str, why: String) {
        self.failures.push(Failure {
            line: place.0,
            column: place.1,
            at,
            what: what.to_owned(),
            expected: "it can be done".to_owned(),
            got: why,
            diff: None,
        });
    }

    async fn finish(mut self) -> Played {
        let lasted = self.clock.now().mono.since(Mono(0));
        let unlooked = Checker::leftovers(lasted, self.node.stage.names(), &mut self.consumers);
        self.failures.extend(unlooked);
        if self.consumers.pleg().is_ok()
            && let Err(why) = self.consumers.stop().await
        {
            self.cannot(lasted, (0, 0), "the end", why);
        }
        self.keep_the_laws(lasted);
        Played {
            delivered: self.consumers.all_heard().len(),
            failures: self.failures,
            trace: self.recorder.finish(),
            names: self.node.stage.names().clone(),
            lasted,
            checks: self.checker.checks(),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", Time(self.at), self.what)
    }
}
