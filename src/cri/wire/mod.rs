//! The wire: CRI's messages as bytes, and what is read out of them.
//!
//! The message types never leave this module, but for the simulated runtime, which serves them.
//! What leaves is observations. Answers and messages are read by a decoder of our own: `fields` reads the
//! wire format, `views` the messages, `observe` makes observations of them. It reads what it uses and
//! borrows until it keeps; prost, which builds every message whole, only writes requests here.

pub(crate) mod call;
pub(crate) mod codec;
pub(crate) mod decode;
pub(crate) mod event;
mod fields;
pub(crate) mod listing;
mod observe;
pub(crate) mod texts;
mod views;

#[cfg(not(feature = "simulate"))]
mod messages;
#[cfg(feature = "simulate")]
pub(crate) mod messages;
#[cfg(feature = "simulate")]
pub(crate) mod server;

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
