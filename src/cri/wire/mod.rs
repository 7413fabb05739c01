//! The wire: CRI's messages as bytes, and what is read out of them.
//!
//! The message types never leave this module, but for the simulated runtime, which serves them.
//! What leaves is observations, so that the decoder can be replaced without touching anything else.

pub(crate) mod call;
pub(crate) mod codec;
pub(crate) mod decode;
pub(crate) mod listing;

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
