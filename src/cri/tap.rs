//! A tap on the wire: a look at everything that passes between the engine and the runtime.
//!
//! A second event stream would change what it watches (containerd before 2 gives each event to one
//! client only), so whoever wants to see the wire looks over the shoulder of the one client there is.
//! The tap sees each question as it goes out, each answer and each thing that the stream brought as
//! the engine is handed it, and what else goes into the engine and comes out of it, all in the
//! engine's own order and with the very moment that the engine was given. That order and those moments
//! are what an exact replay needs; the bytes are not, because everything above this module sees
//! decoded observations and never a byte.
//!
//! The event stream's reader knows nothing of it: what the inbox had to drop shows as the gap that the
//! engine was told of. It changes nothing; without one the driver runs the bare engine.

use std::fmt;
use std::sync::Arc;

use crate::engine::{Input, Output, Settings};
use crate::lifecycle::Now;

/// What a tap is shown.
#[derive(Clone, Copy, Debug)]
pub enum Tapped<'a> {
    /// The driver begins.
    Begun {
        /// When.
        now: Now,
        /// What the engine was set up with, the seed of its jitter included.
        settings: &'a Settings,
    },
    /// The engine is about to take this.
    Input {
        /// When.
        now: Now,
        /// What.
        input: &'a Input,
    },
    /// The driver is about to carry this out: it follows from the last input, at its moment.
    Output(&'a Output),
    /// Somebody is given a mark, which takes a point in the engine's order.
    Marked {
        /// When.
        now: Now,
    },
}

/// Whom to show it to. It runs on the driver's task, between two inputs: it must return at once, and
/// must neither wait nor panic.
#[derive(Clone)]
pub struct Tap(Arc<dyn Fn(Tapped<'_>) + Send + Sync>);

impl Tap {
    /// Shows everything to a function.
    #[must_use]
    pub fn new(show: impl Fn(Tapped<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(show))
    }

    /// Shows something.
    pub fn show(&self, tapped: Tapped<'_>) {
        (self.0)(tapped);
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tap")
    }
}
