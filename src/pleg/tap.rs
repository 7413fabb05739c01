//! The tap: a look at everything that goes into the engine and comes out of it.
//!
//! It sits between driver and engine and changes neither: inputs are shown before the engine takes
//! them, outputs as the driver does. A driver without a tap runs the bare engine.

use std::fmt;
use std::sync::Arc;

use super::driver::Machine;
use super::handle::EngineStats;
use crate::engine::{Health, Input, Mode, Output};
use crate::lifecycle::{Mark, Mono, Now};

/// What a tap is shown.
#[derive(Clone, Copy, Debug)]
pub enum Tapped<'a> {
    /// The engine is about to take this.
    Input {
        /// When.
        now: Now,
        /// What.
        input: &'a Input,
    },
    /// The driver is about to carry this out: it follows from the last input.
    Output(&'a Output),
}

/// Whom to show it to.
#[derive(Clone)]
pub(super) struct Tap(Arc<dyn Fn(Tapped<'_>) + Send + Sync>);

impl Tap {
    pub(super) fn new(tap: impl Fn(Tapped<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tap))
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tap")
    }
}

/// A machine with a tap on it.
pub(super) struct Traced<M> {
    machine: M,
    tap: Tap,
}

impl<M> Traced<M> {
    pub(super) fn new(machine: M, tap: Tap) -> Self {
        Self { machine, tap }
    }
}

impl<M: Machine> Machine for Traced<M> {
    fn handle(&mut self, now: Now, input: Input) {
        (self.tap.0)(Tapped::Input { now, input: &input });
        self.machine.handle(now, input);
    }

    fn poll_output(&mut self) -> Option<Output> {
        let output = self.machine.poll_output()?;
        (self.tap.0)(Tapped::Output(&output));
        Some(output)
    }

    fn poll_timeout(&self) -> Option<Mono> {
        self.machine.poll_timeout()
    }

    fn mode(&self) -> Mode {
        self.machine.mode()
    }

    fn health(&self, now: Now) -> Health {
        self.machine.health(now)
    }

    fn stats(&self) -> EngineStats {
        self.machine.stats()
    }

    fn mark(&mut self, now: Now) -> Mark {
        self.machine.mark(now)
    }
}
