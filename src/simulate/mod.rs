//! A CRI runtime without containers: the test double of this crate, the default of
//! `pleg watch --simulate`, and something to point any other client of CRI's read calls at.
//!
//! It serves the read half of `runtime.v1.RuntimeService` as containerd 1.6, 1.7 and 2.x and CRI-O
//! do, as far as a client can tell: what each operation is told with, in which order, with which
//! snapshot; what becomes of events while nobody listens, while two listen and while one does not
//! read. Those ways are data, a [`Character`]. Ids, names and churn come from a seed, time from one
//! clock, so that in virtual time a run repeats to the byte.
//!
//! It never runs a process, and it has no call that changes anything: changes are made through the
//! handle, [`SimulatedRuntime`], or by its seeded churn.
//!
//! In a test, over memory and in virtual time:
//!
//! ```
//! use pleg::simulate::{Character, Rpc, SimulatedRuntime};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = SimulatedRuntime::builder()
//!     .character(Character::containerd_1_7())
//!     .build();
//! let web = runtime.run_pod("default", "web-0", &["app"]);
//! let channel = runtime.channel(); // give this to the agent under test
//! # drop(channel);
//! runtime.exit_container(&web.containers[0], 137)?;
//! assert_eq!(runtime.rpc_counts().of(Rpc::ListContainers), 0);
//! # Ok(())
//! # }
//! ```
//!
//! For somebody else's agent, on a socket, with something going on:
//!
//! ```no_run
//! # async fn agent() -> std::io::Result<()> {
//! let runtime = pleg::simulate::SimulatedRuntime::builder().busy_node().seed(7).build();
//! let _server = runtime.serve_unix("/tmp/simulated.sock")?;
//! runtime.churn().await;
//! # Ok(())
//! # }
//! ```
//!
//! What goes wrong is data too: a [`Fault`] for calls (fail, hang, slow, stale, cut), a
//! [`StreamFault`] for the event stream (lose, delay, duplicate, fall behind, hold), a [`RawEvent`]
//! for messages that no honest runtime sends. All have a form for files; a [`Preset`] is a character's name
//! there.
//!
//! ```
//! use pleg::simulate::{Fault, Rpc, SimulatedRuntime, StreamFault};
//!
//! let runtime = SimulatedRuntime::builder().build();
//! let stuck = runtime.inject(Fault::hang(Rpc::PodSandboxStatus));
//! runtime.inject_stream(StreamFault::lose().times(3));
//! // ... and when enough has been seen of that:
//! runtime.lift(stuck);
//! ```
//!
//! [`World`] holds what there is and tells what changes, [`Character`] says how, faults stand between
//! that and a queue, which brings it to the streams; a server answers, a transport lets clients in.
//! All but the last two are pure. Answers are written as bytes, with the annotations and mounts that
//! a kubelet's pods have; list items are kept encoded, so that it can be a load without being the
//! bottleneck.

mod builder;
mod character;
mod churn;
mod codec;
mod encode;
mod events;
mod fault;
mod history;
mod listing;
mod message;
mod operations;
mod population;
mod preset;
mod queue;
mod raw;
mod rpc;
mod runtime;
mod seed;
mod server;
mod spelling;
mod stream_fault;
mod subject;
mod transport;
mod trouble;
mod wire;
mod world;

pub use builder::Builder;
pub use character::{
    Character, EventDelivery, EventHabits, EventSupport, FailedStart, SandboxRemoval, Sharing,
    SnapshotScope, Stamps, WhenFull, WithoutClient,
};
pub use churn::ChurnKind;
use churn::ChurnPlan;
pub use fault::{AsOf, Fault, FaultId, Outcome};
pub use operations::RunningPod;
pub use preset::{Preset, UnknownPreset};
pub use queue::EventCounts;
pub use raw::{RawContainer, RawContainerMetadata, RawEvent, RawSandbox, RawSandboxMetadata};
pub use rpc::{Rpc, RpcCounts};
pub use runtime::SimulatedRuntime;
pub use stream_fault::{Mishap, StreamEnd, StreamFault};
pub use subject::{Container, ExitStatus, Labels, Pod, Sandbox, StreamMessage};
pub use transport::{ChurnTask, InMemoryConnector, UnixServer};
pub use world::{OperationError, Told, World};
