//! What a step can do: to the runtime, to its event stream, to its answers, and as a consumer.
//!
//! Data only, as it stands in the file; `stage` and `consumers` act on it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::values::{At, ClockStep, ContainerName, PodName, SandboxName, SubjectName, Time};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Action {
    // On the node.
    /// A sandbox for a pod, with running containers: the pod's next one, if it has one already.
    Run(Run),
    /// Many pods at once, named `p-0`, `p-1` and so on.
    RunMany(RunMany),
    /// Creates a container, without starting it.
    Create(ContainerName),
    /// Starts a created container.
    Start(ContainerName),
    /// Creates and starts a container; the next of its name, if there was one.
    RunContainer(ContainerName),
    /// A start that fails, as this runtime has it.
    FailStart(ContainerName),
    /// A container ends.
    Exit(Exit),
    /// Whatever runs in many pods ends, in order of name.
    ExitMany(ExitMany),
    /// Removes a container, killing it first if it runs.
    Remove(ContainerName),
    /// Stops a sandbox: what runs in it is killed.
    StopSandbox(SandboxName),
    /// A sandbox's own process dies; its containers live on.
    LoseSandbox(SandboxName),
    /// Removes a sandbox with all that is in it.
    RemoveSandbox(SandboxName),
    /// Removes all sandboxes of a pod.
    RemovePod(PodName),
    /// The runtime no longer knows a container's state.
    SetUnknown(ContainerName),
    /// The runtime changes its mind about why a container ended.
    AmendReason(AmendReason),
    /// A sandbox's addresses become others.
    SetIps(SetIps),
    /// Containers exit and are replaced, one after the other, for a long time.
    Churn(Churn),

    // The runtime's process and its clock.
    /// The runtime's process ends: connections are refused.
    StopRuntime,
    /// It starts again.
    StartRuntime,
    /// Both at one moment.
    RestartRuntime,
    /// The process is halted, as by SIGSTOP: nothing is cut, nothing is answered.
    FreezeRuntime,
    /// It goes on.
    ThawRuntime,
    /// The process is replaced by another runtime on the same containers.
    Upgrade(Character),
    /// All connections are cut; new ones can be made at once.
    CutConnections,
    /// The node's wall clock steps.
    StepClock(ClockStep),

    // The event stream.
    /// Messages are lost.
    Lose(Messages),
    /// Messages come later.
    Delay(Delayed),
    /// Messages come several times.
    Duplicate(Duplicated),
    /// Each of these messages comes after the one that follows it.
    Reorder(Messages),
    /// From now on no message comes, though the stream stays open.
    Mute,
    /// The end of `mute`, and of every other trouble of the stream.
    Unmute,
    /// Another client opens the event stream and takes its share.
    Compete,
    /// That client goes.
    StopCompeting,
    /// A message of any content.
    Emit(Emit),
    /// Bytes that are no message, in hexadecimal.
    EmitBytes(String),
    /// The runtime ends the stream without an error.
    EndStream,
    /// The runtime ends the stream with an error.
    BreakStream(Code),

    // The answers.
    /// Calls fail.
    Fail(Failing),
    /// Calls are never answered.
    Hang(Calls),
    /// Calls are read and answered later.
    Slow(Slow),
    /// A streamed list breaks off.
    Cut(CutList),
    /// The runtime denies having a container or sandbox, whatever is asked of it.
    Deny(SubjectName),
    /// Remembers what the runtime would answer now, under a name.
    Remember(String),
    /// Calls are answered with what was remembered.
    AnswerFrom(AnswerFrom),
    /// The end of all these.
    Heal,

    // Consumers.
    /// A subscriber besides `main`, which is there from the beginning.
    Subscribe(Subscribe),
    /// A subscriber stops reading.
    StopReading(String),
    /// It reads on.
    ResumeReading(String),
    /// A mark under a name, to ask for something newer than.
    Mark(String),
    /// `get_newer_than`.
    Ask(Ask),
    /// Gives up waiting for an answer.
    GiveUp(String),
    /// A relist of a pod.
    Relist(PodName),
    /// A relist of the node.
    RelistAll,
    /// A reinspection of a pod.
    Reinspect(PodName),
    /// The generator is shut down.
    StopPleg,
    /// It is started again, without memory.
    StartPleg,
}

/// See [`Action::Run`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Run {
    /// The pod.
    pub pod: PodName,
    /// Its containers, all running.
    #[serde(default)]
    pub containers: Vec<String>,
    /// Its uid; made up if absent. Two pods may share one.
    #[serde(default)]
    pub uid: Option<String>,
    /// Its namespace; `default` if absent.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Whether it uses the node's network.
    #[serde(default)]
    pub host_network: bool,
    /// Whether it was made with crictl, and so has no kubelet labels.
    #[serde(default)]
    pub by_crictl: bool,
}

/// See [`Action::RunMany`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunMany {
    /// How the names begin.
    pub named: PodName,
    /// How many pods.
    pub pods: usize,
    /// The containers of each, all running.
    #[serde(default)]
    pub containers: Vec<String>,
    /// How many exited containers each has besides, named `old-0` and so on.
    #[serde(default)]
    pub exited: usize,
}

/// See [`Action::Exit`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Exit {
    /// The container.
    pub container: ContainerName,
    /// The exit code; 0 if absent.
    #[serde(default)]
    pub code: i32,
    /// The runtime's reason; `Completed` or `Error` if absent.
    #[serde(default)]
    pub reason: Option<String>,
}

/// See [`Action::ExitMany`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExitMany {
    /// The pods: those whose names begin so.
    pub pods: PodName,
    /// The exit code; 0 if absent.
    #[serde(default)]
    pub code: i32,
}

/// See [`Action::AmendReason`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AmendReason {
    /// The container.
    pub container: ContainerName,
    /// The new reason.
    pub reason: String,
}

/// See [`Action::SetIps`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SetIps {
    /// The sandbox.
    pub sandbox: SandboxName,
    /// Its addresses, primary first.
    pub ips: Vec<String>,
}

/// See [`Action::Churn`]. It runs beside the steps.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Churn {
    /// The pods: those whose names begin so.
    pub pods: PodName,
    /// The time between two exits.
    pub every: Time,
    /// How many exits; each is followed by the removal of the container and the start of its successor.
    pub times: u64,
}

/// See [`Action::Lose`] and [`Action::Reorder`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Messages {
    /// How many; all from now on if absent.
    #[serde(default)]
    pub next: Option<u32>,
    /// Only one in so many of those that fit, the first at once.
    #[serde(default)]
    pub one_in: Option<u32>,
    /// Only those about this container or sandbox.
    #[serde(default)]
    pub about: Option<SubjectName>,
    /// Only those of this pod.
    #[serde(default)]
    pub pod: Option<PodName>,
    /// Only those of this type.
    #[serde(default, rename = "type")]
    pub kind: Option<MessageType>,
}

/// See [`Action::Delay`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Delayed {
    /// Which messages.
    #[serde(default)]
    pub messages: Messages,
    /// How much later they come.
    pub by: Time,
}

/// See [`Action::Duplicate`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Duplicated {
    /// Which messages.
    #[serde(default)]
    pub messages: Messages,
    /// How often each comes besides.
    pub times: u32,
}

/// The type of a stream message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum MessageType {
    /// `CONTAINER_CREATED_EVENT`.
    Created,
    /// `CONTAINER_STARTED_EVENT`.
    Started,
    /// `CONTAINER_STOPPED_EVENT`.
    Stopped,
    /// `CONTAINER_DELETED_EVENT`.
    Deleted,
}

/// See [`Action::Emit`]. What is left out is as an honest runtime would have it now.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Emit {
    /// The type.
    #[serde(default, rename = "type")]
    pub kind: Option<MessageType>,
    /// The type as a number, for those that CRI does not have yet.
    #[serde(default)]
    pub type_number: Option<i32>,
    /// What it is about.
    #[serde(default)]
    pub about: Option<SubjectName>,
    /// The id that it is about, as it goes over the wire, for those that nobody has.
    #[serde(default)]
    pub id: Option<String>,
    /// Its stamp: a moment of the scenario, by the wall clock.
    #[serde(default)]
    pub stamp: Option<Time>,
    /// Its stamp as a number.
    #[serde(default)]
    pub raw_stamp: Option<i64>,
    /// Whether it carries the sandbox's status.
    #[serde(default)]
    pub sandbox: Option<SandboxShown>,
    /// The containers that it shows, and how; all as they are if absent.
    #[serde(default)]
    pub containers: Option<BTreeMap<ContainerName, ShownState>>,
    /// The pod's uid in it.
    #[serde(default)]
    pub uid: Option<String>,
}

/// How a message shows its sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum SandboxShown {
    /// Ready.
    Ready,
    /// Not ready, without addresses.
    NotReady,
    /// Not at all.
    Missing,
    /// Without metadata.
    WithoutMetadata,
}

/// How a message shows a container.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum ShownState {
    /// Created.
    Created,
    /// Running.
    Running,
    /// Exited with this code.
    Exited(i32),
    /// Unknown.
    Unknown,
    /// As it is.
    AsItIs,
    /// As it is, and once more.
    Twice,
}

/// A gRPC status code, by its name in Go and Rust.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "gRPC's own names")]
pub enum Code {
    Cancelled,
    #[default]
    Unavailable,
    Unknown,
    NotFound,
    DeadlineExceeded,
    Unimplemented,
    Internal,
    ResourceExhausted,
    PermissionDenied,
    FailedPrecondition,
}

/// A method of CRI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "CRI's own names")]
pub enum Method {
    Version,
    ListPodSandbox,
    StreamPodSandboxes,
    PodSandboxStatus,
    ListContainers,
    StreamContainers,
    ContainerStatus,
    GetContainerEvents,
}

/// Which calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Calls {
    /// The method; all if absent.
    #[serde(default)]
    pub call: Option<Method>,
    /// Only calls that ask for this container or sandbox.
    #[serde(default)]
    pub of: Option<SubjectName>,
    /// How often; until `heal` if absent.
    #[serde(default)]
    pub times: Option<u32>,
}

/// See [`Action::Fail`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Failing {
    /// The method; all if absent.
    #[serde(default)]
    pub call: Option<Method>,
    /// Only calls that ask for this container or sandbox.
    #[serde(default)]
    pub of: Option<SubjectName>,
    /// How often; until `heal` if absent.
    #[serde(default)]
    pub times: Option<u32>,
    /// With this code; `Unavailable` if absent.
    #[serde(default)]
    pub code: Code,
    /// After this time.
    #[serde(default)]
    pub after: Time,
}

/// See [`Action::Slow`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Slow {
    /// The method; all if absent.
    #[serde(default)]
    pub call: Option<Method>,
    /// Only calls that ask for this container or sandbox.
    #[serde(default)]
    pub of: Option<SubjectName>,
    /// How often; until `heal` if absent.
    #[serde(default)]
    pub times: Option<u32>,
    /// How long the answer is under way.
    pub by: Time,
    /// Whether the answer shows what is so when it arrives, instead of when it was asked for.
    #[serde(default)]
    pub read_late: bool,
}

/// See [`Action::Cut`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CutList {
    /// `StreamPodSandboxes` or `StreamContainers`.
    pub call: Method,
    /// After so many items.
    pub after: usize,
    /// How often; until `heal` if absent.
    #[serde(default)]
    pub times: Option<u32>,
}

/// See [`Action::AnswerFrom`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnswerFrom {
    /// What was remembered.
    pub remembered: String,
    /// Which calls.
    #[serde(default)]
    pub calls: Calls,
}

/// See [`Action::Subscribe`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Subscribe {
    /// Its name.
    #[serde(rename = "as")]
    pub name: String,
    /// Whether it begins with what is there.
    #[serde(default)]
    pub with_snapshot: bool,
    /// Whether it does not read for the time being.
    #[serde(default)]
    pub asleep: bool,
}

/// See [`Action::Ask`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ask {
    /// What the answer is called in expectations.
    #[serde(rename = "as")]
    pub name: String,
    /// The pod.
    pub pod: PodName,
    /// Newer than this mark; than this moment if absent.
    #[serde(default)]
    pub newer_than: Option<String>,
    /// Whether phases are enough.
    #[serde(default)]
    pub phases_only: bool,
}

/// Which runtime it is, and what is unusual about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Character {
    /// The runtime; containerd 2 if absent.
    #[serde(default)]
    pub is: Preset,
    /// Its version; the preset's if absent.
    #[serde(default)]
    pub version: Option<String>,
    /// What it does when asked for events.
    #[serde(default)]
    pub events: Option<Events>,
    /// Whether several event clients share the events instead of each getting all.
    #[serde(default)]
    pub competing: Option<bool>,
    /// How stamps are written.
    #[serde(default)]
    pub stamps: Option<Stamps>,
    /// The most items in one message of a streamed list; without it lists are not streamed.
    #[serde(default)]
    pub streaming_lists: Option<usize>,
    /// Whether the status of a sandbox carries those of its containers.
    #[serde(default)]
    pub status_carries_containers: Option<bool>,
    /// How long each answer is under way.
    #[serde(default)]
    pub latency: Option<Time>,
    /// The same for single methods.
    #[serde(default)]
    pub latency_of: BTreeMap<Method, Time>,
    /// Whether a new sandbox gives CREATED besides STARTED.
    #[serde(default)]
    pub sandbox_created: Option<bool>,
    /// Where ids begin.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Whether the messages about the initial state wait for the first event client.
    #[serde(default)]
    pub backlog: bool,
}

/// A runtime as nodes have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Preset {
    /// containerd 1.6: no events.
    #[serde(rename = "containerd-1.6")]
    Containerd16,
    /// containerd 1.7: one queue of events for all clients.
    #[serde(rename = "containerd-1.7")]
    Containerd17,
    /// containerd 2: every client gets every event.
    #[default]
    #[serde(rename = "containerd-2")]
    Containerd2,
    /// CRI-O with events on.
    #[serde(rename = "cri-o")]
    CriO,
    /// CRI-O as it comes.
    #[serde(rename = "cri-o-events-off")]
    CriOEventsOff,
}

/// What `GetContainerEvents` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Events {
    /// Answers Unimplemented.
    Unimplemented,
    /// Ends at once without an error.
    EndsAtOnce,
}

/// How a message's stamp is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Stamps {
    /// In seconds instead of nanoseconds.
    Seconds,
    /// In milliseconds.
    Milliseconds,
    /// Always 0.
    Zero,
    /// Below zero.
    Negative,
    /// By a clock that is ahead.
    Ahead(Time),
    /// By a clock that is behind.
    Behind(Time),
}

/// What to do, with its place.
pub type PlacedAction = At<Action>;
