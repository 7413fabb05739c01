//! An engine with a tap on it: what goes in is shown before the engine takes it, what comes out as the
//! driver does.

use super::driver::Machine;
use super::handle::EngineStats;
use crate::cri::{Tap, Tapped};
use crate::engine::{Engine, Health, Input, Mode, Output};
use crate::lifecycle::{Mark, Mono, Now};

/// A machine with a tap on it.
pub(super) struct Traced<M> {
    machine: M,
    tap: Tap,
}

impl<M> Traced<M> {
    fn new(machine: M, tap: Tap) -> Self {
        Self { machine, tap }
    }
}

impl Traced<Engine> {
    /// Shows with what the engine begins.
    pub(super) fn begin(engine: Engine, tap: Tap, now: Now) -> Self {
        let settings = engine.settings();
        tap.show(Tapped::Begun { now, settings });
        Self::new(engine, tap)
    }
}

impl<M: Machine> Machine for Traced<M> {
    fn handle(&mut self, now: Now, input: Input) {
        self.tap.show(Tapped::Input { now, input: &input });
        self.machine.handle(now, input);
    }

    fn poll_output(&mut self) -> Option<Output> {
        let output = self.machine.poll_output()?;
        self.tap.show(Tapped::Output(&output));
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
        self.tap.show(Tapped::Marked { now });
        self.machine.mark(now)
    }
}
