//! What a step can do: to the runtime, to its event stream, to its answers, and as a consumer.
//!
//! Data only, as it stands in the file; `stage` and `consumers` act on it.

mod character;
mod consumer;
mod node;
mod trouble;

use serde::{Deserialize, Serialize};

pub use character::{Character, Events, Preset, Stamps};
pub use consumer::{Ask, Subscribe};
pub use node::{AmendReason, Churn, Exit, ExitMany, Run, RunMany, SetIps};
pub use trouble::{
    AnswerFrom, Calls, Code, CutList, Delayed, Duplicated, Emit, Failing, MessageType, Messages,
    Method, SandboxShown, ShownState, Slow,
};

use super::values::{ClockStep, ContainerName, PodName, SandboxName, SubjectName};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
