//! The client side of CRI: endpoints, calls, the event stream, and the one place that knows the wire.
//!
//! Everything above sees observations of [`crate::lifecycle`], never a message of the wire, a gRPC
//! status or a channel. Only the read calls exist here: nothing in this crate can change a node's
//! state.

pub(crate) mod wire;
