//! The client and the reader against a runtime of a few lines, over memory and in virtual time.
//!
//! What is called F1, F2 … is a habit of Go's servers or of tonic's client that was seen on real
//! runtimes.

mod calls;
mod fake;
mod net;
mod socket;
mod stream;
