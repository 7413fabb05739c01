//! The shell in virtual time: alone, and with the real engine in front of a simulated runtime.

mod scripted;
#[cfg(feature = "simulate")]
mod simulated;
