//! The server in front of a simulated runtime, in memory and in virtual time.

mod client;
mod connections;
mod events;
mod house;
mod probes;
mod requests;
