//! One step of a run: what the runtime, the stream, the calls, the clocks or a reader do next.
//!
//! A step names its object by position, so that a list of steps is a whole run: printed by a
//! counterexample, replayed by a test, cut down by the shrinker.

use super::truth::{Stage, Subject};
use crate::engine::Freshness;
use crate::lifecycle::EventKind;

/// How the stream tells a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Told {
    /// By the runtime's usual messages.
    Truly,
    /// Not at all: the message is lost, or this change never gives one.
    Silently,
    /// With a message that carries no statuses. A fault.
    WithoutSnapshot,
    /// With a message whose statuses are from before the change. A fault.
    WithOldSnapshot,
}

/// How a DELETED lies about a subject that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Lie {
    /// Its snapshot agrees with it.
    Whole,
    /// Its snapshot still shows the subject.
    Contradicted,
}

/// What the stream and the wall clock may get wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A change whose message is lost.
    Loss,
    /// A message without statuses, or with old ones.
    BadSnapshot,
    /// A message about something past, or stamped later than gathered.
    Lateness,
    /// Messages out of their order.
    Reorder,
    /// Messages that come twice.
    Duplicate,
    /// A DELETED of what is there.
    FalseDeleted,
    /// The stream ends.
    Break,
    /// The wall clock steps, back or forward.
    ClockStep,
    /// Heartbeats fail for a while.
    Deafness,
    /// The runtime no longer knows a container's state.
    Unknown,
    /// A list with an item that cannot be read.
    Unreadable,
    /// The inbox has no room for a message.
    Overflow,
    /// A subscriber stops reading.
    Stall,
}

impl Fault {
    pub(crate) const ALL: &[Self] = &[
        Self::Loss,
        Self::BadSnapshot,
        Self::Lateness,
        Self::Reorder,
        Self::Duplicate,
        Self::FalseDeleted,
        Self::Break,
        Self::ClockStep,
        Self::Deafness,
        Self::Unknown,
        Self::Unreadable,
        Self::Overflow,
        Self::Stall,
    ];
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The runtime changes.
    Change {
        subject: Subject,
        to: Stage,
        told: Told,
    },
    /// The stream gets a message about something past, with a snapshot of now. A fault.
    TellLate { subject: Subject, kind: EventKind },
    /// The stream gets a DELETED of a subject that is there. A fault.
    TellFalseDeleted { subject: Subject, lie: Lie },
    /// A message that was gathered a moment ago is stamped only now. A fault.
    StampLate { nth: u8 },
    /// A message arrives. Any but the first: a fault.
    Deliver { nth: u8 },
    /// A message arrives, and will once more. A fault.
    DeliverTwice { nth: u8 },
    /// The stream ends. What was in flight waits for the next one, or is lost. A fault.
    Break { backlog: bool },
    /// A call is answered; each of its two parts shows one of the moments since it was sent.
    Answer {
        call: u8,
        sandboxes: u8,
        containers: u8,
    },
    /// A call fails.
    Fail { call: u8 },
    /// Of an inspection, the containers' statuses fail.
    FailContainers { call: u8 },
    /// A list is answered with what is so now, but an item of it cannot be read. A fault.
    AnswerUnreadable { call: u8, subject: Subject },
    /// The inbox has no room for the first message, and says so, with the pod or without. A fault.
    Overflow { of_pod: bool },
    /// The subscriber stops reading, a fault, or reads on.
    Stall { stalled: bool },
    /// Time passes to the engine's next timeout.
    Wake,
    /// This much time passes; the engine is woken at each of its timeouts.
    Linger { millis: u32 },
    /// The wall clock steps back. A fault.
    ClockBack { seconds: u32 },
    /// It steps forward. A fault.
    ClockForward { seconds: u32 },
    /// From now on heartbeats fail, or no more. Beginning is a fault.
    BeDeaf { deaf: bool },
    /// A reader takes a mark, to ask later.
    TakeMark,
    /// A reader asks for something newer than the mark taken, or than now.
    Read { freshness: Freshness },
    /// The reader who asked last gives up.
    GiveUp,
    /// Somebody asks for a relist: of the pod, or of everything.
    RequestRelist { of_pod: bool },
    /// Somebody wants the pod inspected, and a `PodSync` when that was done.
    RequestReinspect,
}

/// What a run may still do of the things that must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    /// Faults of the stream and of the wall clock.
    pub faults: u8,
    /// Calls that fail.
    pub failures: u8,
    /// Readers that ask.
    pub readers: u8,
    /// Relists and reinspections that somebody requests, and readers who give up.
    pub requests: u8,
    /// Jumps to the engine's next timeout.
    pub wakes: u8,
    /// Longer waits.
    pub lingers: u8,
}

/// What does not change during a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// The most messages in flight.
    pub in_flight: usize,
    /// Whether a sandbox may be ready before it has an address.
    pub addresses_late: bool,
    /// Whether sandboxes change at all.
    pub sandboxes_change: bool,
    /// The faults that may be paid for.
    pub faults: &'static [Fault],
    /// The lengths of the longer waits, in milliseconds: each tells one of the engine's delays
    /// from the next.
    pub lingers: &'static [u32],
}
