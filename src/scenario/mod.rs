//! Scenarios: what happens on a node, minute by minute, and what must come of it, as a file.
//!
//! A [`Scenario`] is read strictly from YAML (`scenarios/README.md` in the repository tells the
//! language); [`play`] runs the whole product (client, shell, engine, cache, feed) against the
//! simulated runtime over memory, in virtual time, and gives what was not as expected, with a
//! [`Trace`] of all that went into the engine and came out of it. The same scenario gives the same
//! trace, to the byte.
//!
//! [`enact`] lets a scenario's runtime alone happen, for clients of other people's.
//!
//! Nothing here knows how a failure is printed, and nothing reads a clock but tokio's.

mod action;
mod check;
mod consumers;
mod counted;
mod delivered;
mod enacting;
mod expect;
mod file;
mod judge;
mod listing;
mod names;
mod player;
pub mod random;
pub mod recording;
mod report;
#[cfg(test)]
mod schema;
mod shown;
mod stage;
mod stage_faults;
mod text;
mod trace;
mod values;
mod written;

pub use action::*;
pub use enacting::enact;
pub use expect::*;
pub use file::{LoadError, Problem, Scenario, Settings, Step, VERSION, scenario_files};
pub use names::Names;
pub use player::{Failure, Played, play};
pub use report::{Report, Section};
// What a scenario's node is made of; `play` and `enact` put it together.
#[doc(hidden)]
pub use stage::{Stage, simulated};
pub use trace::{ListingChange, Trace, TraceEntry, TracedInput};
pub use values::{At, ClockStep, ContainerName, Count, PodName, SandboxName, SubjectName, Time};
