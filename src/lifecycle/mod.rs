//! The life of sandboxes and containers: names, phases, observations, the merge and the one
//! transition table.
//!
//! Everything here is a value or a pure function of values. It never does I/O, reads no clock, knows
//! no runtime, no transport and no engine: the rules can be read, tested and model-checked alone.

mod details;
mod event;
mod id;
mod merge;
mod observation;
mod phase;
mod status;
mod time;
mod transition;

pub use event::{EventSubject, Exit, LifecycleEvent, LifecycleKind, Source};
pub use id::{ContainerId, PodIdentity, PodUid, SandboxId, SubjectId, SubjectKind};
// The rules themselves: what the engine and the audit are made of, and no promise to anybody else.
#[doc(hidden)]
pub use details::{ContainerDetails, ContainerEnd, SandboxDetails, Standing};
#[doc(hidden)]
pub use merge::{Knowledge, Verdict, Window};
pub use observation::{
    ContainerListing, ContainerStatus, EventKind, Listed, NodeList, Refusal, RuntimeEvent,
    SandboxListing, SandboxStatus,
};
pub use phase::{Phase, ReportedState};
pub(crate) use status::newest_sandbox_first;
pub use status::{PodContainer, PodSandbox, PodStatus};
pub use time::{Mark, Mono, Now, Revision, SeqPoint, UnixNanos};
#[doc(hidden)]
pub use transition::{EventSet, events_owed};
