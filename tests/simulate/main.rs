//! The simulated runtime as its clients see it, over memory in virtual time, and once over a socket.
#![cfg(feature = "simulate")]

mod churn;
mod client;
#[cfg(feature = "cli")]
mod command;
mod events;
mod faults;
mod own_client;
mod reads;
mod stream_faults;
mod trouble;

use pleg::lifecycle::UnixNanos;
use pleg::simulate::{Builder, Character, SimulatedRuntime};

/// 1 January 2026.
const EPOCH: UnixNanos = UnixNanos(1_767_225_600_000_000_000);

fn builder(character: Character) -> Builder {
    SimulatedRuntime::builder()
        .character(character)
        .epoch(EPOCH)
}

fn runtime(character: Character) -> SimulatedRuntime {
    builder(character).build()
}
