//! The client side of CRI: endpoints, calls, the event stream, and the one place that knows the wire.
//!
//! Everything above sees observations of [`crate::lifecycle`], never a message of the wire. Only the
//! read calls exist here: nothing in this crate can change a node's state.

mod client;
mod endpoint;
mod error;
mod inbox;
#[doc(hidden)]
pub mod raw;
mod reader;
mod rpc_counts;
mod tap;
pub(crate) mod wire;

pub use client::{CallLimits, CriClient, EventStream, StreamedMessage};
pub use endpoint::{Endpoint, EndpointError, EndpointProblem};
pub use error::{CallError, DecodeError, ListStreaming, SizeLimit};
pub use inbox::ReaderCounts;
// The shell's own, which only the driver puts together rightly; public for this repository's tests.
#[doc(hidden)]
pub use inbox::{Inbox, StreamItem};
pub use reader::StartError;
#[doc(hidden)]
pub use reader::{ReaderLimits, ReaderPlace, StreamReader, StreamSource};
pub use rpc_counts::MethodAndCode;
pub use tap::{Tap, Tapped};

#[cfg(all(test, feature = "simulate"))]
mod tests;
