//! A tap on the wire: an observer of everything that passes between the engine and the runtime.
//!
//! A second event stream would change what it watches (containerd before 2 gives each event to one
//! client only), so whoever wants to see the wire looks over the shoulder of the one client there is.
//! The tap sits where the driver meets this module: it sees each question as it goes out, each answer
//! and each thing that the stream brought as the engine is handed it, and what else the engine was
//! told between them, all in the engine's own order and with the very moment that the engine was
//! given. That order and those moments are what an exact replay needs; the bytes are not, because
//! everything above this module sees decoded observations and never a byte.
//!
//! The event stream's reader knows nothing of it: what the inbox had to drop shows as the gap that the
//! engine was told of. Without a tap the driver pays for one look at an `Option` each time.

use crate::engine::{Input, Question, RequestId, SessionId, Settings};
use crate::lifecycle::Now;

/// Something that passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed<'a> {
    /// The driver begins, with an engine that has these settings.
    Begun {
        /// The engine's settings, the seed of its jitter included.
        settings: &'a Settings,
    },
    /// A question goes out.
    Asked {
        /// The number that its answer carries.
        request: RequestId,
        /// The question.
        question: &'a Question,
    },
    /// The event stream is asked for.
    StreamOpened {
        /// Its number.
        session: SessionId,
    },
    /// The event stream is dropped.
    StreamClosed {
        /// Its number.
        session: SessionId,
    },
    /// The engine takes an input: an answer, something that the stream brought, a timer, a wish.
    Taken(&'a Input),
    /// Somebody is given a mark, which takes a point in the engine's order.
    Marked,
}

/// Sees what passes. It is called on the driver's task, between two inputs: it must return at once,
/// and must neither wait nor panic.
pub trait Tap: Send + Sync {
    /// Sees one thing, at the moment that the engine has for it.
    fn passed(&self, at: Now, what: Passed<'_>);
}
