//! A model check of the real engine: the laws' properties as an oracle, the world as the adversary.
//!
//! It owns no copy of the engine's rules. The engine runs as it is, on its canonical states; what
//! stands beside it is a runtime, a stream, calls and clocks ([`run`]) and a judge who sees only
//! what the engine puts out and what the world really is ([`oracle`], [`rest`]). [`explore`] visits
//! every state within a budget, shortest ways first; [`walk`] goes further at random.
//!
//! A counterexample prints where it began, its steps, and the same as a scenario ([`scenario`]) for
//! `pleg replay`; a named test is where the steps stay.
//!
//! Bounds: `PLEG_MODEL_STATES` (states for each start), `PLEG_MODEL_SECS` (an end by the clock,
//! for long runs by hand), `PLEG_MODEL_WALKS`, `PLEG_MODEL_SEED`. Without them an optimised build
//! takes about a minute, a debug build a few seconds:
//! `cargo test --profile model --lib engine::model -- --nocapture`.

#![allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "a world is passed by reference whatever its size; it grows with the model"
)]
#![allow(
    clippy::cast_possible_truncation,
    reason = "half of a fingerprint, and counts far below 2^32"
)]

mod drive;
mod explore;
mod fingerprint;
mod moves;
mod offers;
mod oracle;
mod rest;
mod run;
mod scenario;
mod step;
mod subscriber;
mod truth;
mod walk;

#[allow(unused_imports, reason = "for those who break a law on purpose")]
pub(crate) use explore::{Bounds, Counterexample, Explored, search};
pub(crate) use oracle::{Violation, as_one_line, violated};
#[allow(unused_imports, reason = "as above")]
pub(crate) use run::{Run, settings};
#[allow(unused_imports, reason = "played where scenarios are built")]
pub(crate) use scenario::scenario;
pub(crate) use step::{Budget, Fault, Habits, Lie, Step, Told};
pub(crate) use truth::{
    Cast, ONE_CONTAINER, Stage, Subject, TWO_CONTAINERS, TWO_SANDBOXES, Truth, UNLABELLED,
};
#[allow(unused_imports, reason = "as above")]
pub(crate) use walk::{Dice, end, replay, walk};

mod tests;
