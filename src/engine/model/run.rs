//! One run: the real engine, the world around it, and the oracle that watches both.
//!
//! It owns the stream, the calls under way and the two clocks, and offers every step that may come
//! next within the budget. The world is adversarial but true: an answer shows, for each of its
//! parts, some moment between the question and the answer; only a DELETED may lie, and only where
//! the budget pays for it.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use super::fingerprint::Fingerprint;
use super::oracle::{Oracle, Violation};
use super::step::{Budget, Habits, Told};
use super::subscriber::Subscriber;
use super::truth::{Cast, Stage, Subject, Truth};
use crate::engine::{
    Engine, Input, Mode, Question, RequestId, RuntimeVersion, SessionId, Settings,
};
use crate::lifecycle::{EventKind, Mark, Mono, Now, UnixNanos};

/// An event whose content is older than this when it is stamped is beyond what the laws assume.
pub(super) const LONGEST_GATHERING: Duration = Duration::from_secs(2);
const WALL_AT_START: i64 = 1_700_000_000_000_000_000;
/// More wake-ups or answers than this at one instant are a live-lock.
pub(super) const STEPS_AT_ONE_INSTANT: u32 = 64;

/// What a message's statuses show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Snapshot {
    Of(Truth),
    Missing,
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) about: Subject,
    pub(super) kind: EventKind,
    pub(super) snapshot: Snapshot,
    pub(super) gathered: Mono,
    pub(super) stamp: UnixNanos,
    pub(super) lie: bool,
}

/// A question that has no answer yet.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) request: RequestId,
    pub(super) question: Question,
    /// The world when it was asked, and each world since.
    pub(super) worlds: Vec<Truth>,
    /// Whether a reader held a mark by then.
    pub(super) after_held: bool,
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Run {
    pub(super) cast: Cast,
    pub(super) habits: Habits,
    pub(super) budget: Budget,
    pub(super) engine: Engine,
    pub(super) now: Now,
    pub(super) truth: Truth,
    pub(crate) oracle: Oracle,
    /// Somebody who is told what is delivered, through the feed's own queue.
    pub(super) subscriber: Subscriber,
    /// How the world came to be as it was when the run began.
    pub(super) prelude: Prelude,
    pub(super) messages: Vec<Message>,
    pub(super) stream: Option<SessionId>,
    pub(super) calls: Vec<Call>,
    /// Whether heartbeats fail.
    pub(super) deaf: bool,
    pub(super) last_reader: u64,
    /// The mark that a reader holds, and the world when it was taken.
    pub(super) held: Option<(Mark, Truth)>,
    /// Whether a call that was sent after that mark has been answered.
    pub(super) read_since_held: bool,
    /// When the stream last brought something.
    pub(super) last_heard: Mono,
    /// What was asked, by kind, since the run began.
    pub(super) asked: Asked,
    /// What was put out since the run began.
    pub(super) deliveries: u64,
    pub(super) publications: u64,
    pub(crate) pod_syncs: u64,
}

/// See [`Run`].
#[derive(Clone, Debug)]
pub(super) struct Prelude {
    pub(super) initial: Truth,
    /// What happened, and was told, before the run began.
    pub(super) changes: Vec<(Mono, Subject, Stage)>,
}

/// Questions asked so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub versions: u64,
    pub full_relists: u64,
    pub pod_reads: u64,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("at", &(self.now.mono.0 / 1_000_000))
            .field("truth", &self.truth)
            .field("messages", &self.messages)
            .field("calls", &self.calls)
            .field("mode", &self.engine.mode())
            .field("cache", &self.oracle.status())
            .finish_non_exhaustive()
    }
}

impl Run {
    /// An engine that has just begun, before a runtime in this state. Its first questions are out.
    pub(crate) fn cold(
        cast: Cast,
        habits: Habits,
        budget: Budget,
        truth: Truth,
    ) -> Result<Self, Violation> {
        Self::cold_with(settings(), cast, habits, budget, truth)
    }

    /// The same for an engine that is set up in another way.
    pub(crate) fn cold_with(
        settings: Settings,
        cast: Cast,
        habits: Habits,
        budget: Budget,
        truth: Truth,
    ) -> Result<Self, Violation> {
        let now = Now {
            mono: Mono(1_000_000_000),
            wall: UnixNanos(WALL_AT_START),
        };
        let mut engine = Engine::new(settings);
        let mark = engine.mark(now);
        let mut run = Self {
            cast,
            habits,
            budget,
            engine,
            now,
            truth,
            oracle: Oracle::new(cast, mark, truth),
            subscriber: Subscriber::new(cast),
            prelude: Prelude {
                initial: truth,
                changes: Vec::new(),
            },
            messages: Vec::new(),
            stream: None,
            calls: Vec::new(),
            deaf: false,
            last_reader: 0,
            held: None,
            read_since_held: false,
            last_heard: Mono::default(),
            asked: Asked::default(),
            deliveries: 0,
            publications: 0,
            pod_syncs: 0,
        };
        run.take(Input::Start)?;
        Ok(run)
    }

    /// An engine that has seen the world come to this state by way of events, and has since audited
    /// it until the audits are as rare as they get.
    pub(crate) fn settled(
        cast: Cast,
        habits: Habits,
        budget: Budget,
        changes: &[(Subject, Stage)],
    ) -> Result<Self, Violation> {
        Self::settled_with(settings(), cast, habits, budget, changes)
    }

    /// The same for an engine that is set up in another way.
    pub(crate) fn settled_with(
        settings: Settings,
        cast: Cast,
        habits: Habits,
        budget: Budget,
        changes: &[(Subject, Stage)],
    ) -> Result<Self, Violation> {
        let mut run = Self::cold_with(settings, cast, habits, budget, Truth::NOTHING)?;
        run.catch_up()?;
        for &(subject, to) in changes {
            run.prelude.changes.push((run.now.mono, subject, to));
            run.change(subject, to, Told::Truly);
            while !run.messages.is_empty() {
                run.deliver(0, false)?;
            }
            run.catch_up()?;
            run.linger(Duration::from_secs(5))?;
            run.catch_up()?;
        }
        for _ in 0..2_000 {
            if let Mode::Evented { audit_period } = run.engine.mode()
                && audit_period >= Duration::from_secs(300)
            {
                break;
            }
            if run.now.mono >= Mono(3_000_000_000_000) {
                break;
            }
            run.catch_up()?;
            run.wake()?;
        }
        run.catch_up()?;
        Ok(run)
    }
    /// The position of the call that asks this, if it is under way.
    pub(crate) fn call(&self, of_interest: impl Fn(&Question) -> bool) -> Option<u8> {
        let at = self
            .calls
            .iter()
            .position(|call| of_interest(&call.question))?;
        u8::try_from(at).ok()
    }

    /// The questions under way, oldest first.
    pub(crate) fn questions(&self) -> impl Iterator<Item = &Question> {
        self.calls.iter().map(|call| &call.question)
    }

    pub(super) fn can_deliver(&self) -> bool {
        self.stream.is_some() && !self.messages.is_empty()
    }

    /// Whether nothing from before now is still on its way: no message, and no call that was asked
    /// in a world that has changed since.
    pub(super) fn is_drained(&self) -> bool {
        self.messages.is_empty() && self.calls.iter().all(|call| call.worlds.len() == 1)
    }

    pub(super) fn full_relist_under_way(&self) -> bool {
        self.call(|question| *question == Question::FullRelist)
            .is_some()
    }

    /// Names the state up to the things that nothing depends on.
    pub(super) fn fingerprint(&self) -> u128 {
        let mut hasher = Fingerprint::default();
        self.engine.canonical(self.now).hash(&mut hasher);
        self.truth.hash(&mut hasher);
        self.budget.hash(&mut hasher);
        self.deaf.hash(&mut hasher);
        self.oracle.hash(&mut hasher);
        self.subscriber.hash(&mut hasher);
        let held = self.held.map(|(_, then)| (then, self.read_since_held));
        held.hash(&mut hasher);
        self.stream.is_some().hash(&mut hasher);
        for call in &self.calls {
            let after_held = held.is_some() && call.after_held;
            (&call.question, &call.worlds, after_held).hash(&mut hasher);
        }
        for message in &self.messages {
            let Message {
                about,
                kind,
                snapshot,
                gathered,
                stamp,
                lie,
            } = message;
            let age = self.now.mono.since(*gathered).min(LONGEST_GATHERING);
            let stamped = self.now.wall.0 - stamp.0;
            (about, kind, snapshot, age, stamped, lie).hash(&mut hasher);
        }
        hasher.value()
    }
}

/// The settings that searches use: no jitter, which would only multiply states.
pub(crate) fn settings() -> Settings {
    Settings {
        jitter_percent: 0,
        ..Settings::default()
    }
}

pub(super) fn version() -> RuntimeVersion {
    RuntimeVersion {
        name: "containerd".into(),
        version: "2.1.0".into(),
        api_version: "v1".into(),
    }
}
