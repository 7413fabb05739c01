//! The daemon as a process: killed, stopped, started before its runtime, and asked over its socket.
//!
//! The runtime is a simulated one of this process, on a socket. The clock is the real one, so nothing
//! is slept through but what a daemon needs to be killed at a random moment.
#![cfg(all(feature = "cli", feature = "simulate"))]

mod killed;
mod life;
mod process;
mod service_manager;
