//! What a simulation does, as data: what can happen on the node, on the stream, to the answers and
//! among the consumers, in the words of the scenario language.
//!
//! Acts name pods and containers by number, `c1` of `p0` being the newest of that name, so that a plan
//! stays a plan when steps are taken out of it: what has become impossible is left out when it is
//! played.

/// The most pods that a plan has.
pub(crate) const PODS: u8 = 10;
/// This pod uses the node's network.
pub(crate) const ON_THE_HOST_NETWORK: u8 = 7;
/// This pod was made by crictl: it has no labels, so no filter by its uid shows it.
pub(crate) const BY_CRICTL: u8 = 8;

/// A whole run: where it begins and what happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The seed that it came from; transit times are drawn from it too.
    pub seed: u64,
    /// The runtime and the feed.
    pub character: Character,
    /// What there is before the engine starts.
    pub initial: Vec<Act>,
    /// What happens then.
    pub steps: Vec<Step>,
}

/// What does not change during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Character {
    /// Whether the runtime has an event stream.
    pub events: bool,
    /// Whether messages are kept for the next client while there is none, as in containerd 1.7.
    pub keeps_messages: bool,
    /// How many events a subscriber may fall behind before they fold.
    pub capacity: usize,
    /// How long an answer is under way, in milliseconds.
    pub latency: u32,
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// How long after the step before, in milliseconds.
    pub after: u32,
    /// What.
    pub act: Act,
}

/// A container by its pod and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub pod: u8,
    pub name: u8,
}

/// A method of CRI, as far as faults tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Version,
    ListSandboxes,
    ListContainers,
    SandboxStatus,
    ContainerStatus,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    // On the node.
    /// The pod's next sandbox, with this many running containers.
    Run {
        pod: u8,
        containers: u8,
    },
    Create(Named),
    Start(Named),
    /// Created and started at once.
    RunContainer(Named),
    FailStart(Named),
    Exit {
        container: Named,
        code: i32,
    },
    Remove(Named),
    SetUnknown(Named),
    StopSandbox {
        pod: u8,
    },
    LoseSandbox {
        pod: u8,
    },
    RemoveSandbox {
        pod: u8,
    },

    // The runtime's process and the node's wall clock.
    StopRuntime,
    StartRuntime,
    FreezeRuntime,
    ThawRuntime,
    StepClock {
        millis: i64,
    },

    // The event stream.
    Lose {
        next: u32,
    },
    Delay {
        next: u32,
        millis: u32,
    },
    Duplicate {
        next: u32,
    },
    Reorder {
        next: u32,
    },
    /// The inbox is full: the next messages are dropped, and the engine is told so.
    Overflow {
        next: u32,
    },
    Mute,
    /// Every trouble of the stream ends; what was kept back is sent.
    Unmute,
    /// A second client takes every other message.
    Compete,
    StopCompeting,
    /// A DELETED of the newest sandbox, or of a container, that is there.
    FalseDeleted {
        pod: u8,
        name: Option<u8>,
    },
    /// Bytes that are no message.
    Garbage,
    EndStream,
    BreakStream,

    // The answers.
    Fail {
        call: Method,
        times: u32,
    },
    Slow {
        call: Method,
        times: u32,
        millis: u32,
        read_late: bool,
    },
    /// A list breaks off after its first items.
    Cut {
        call: Method,
        times: u32,
    },
    /// The newest sandbox, or a container, cannot be read in lists.
    Garble {
        pod: u8,
        name: Option<u8>,
    },
    /// The end of all these.
    Heal,

    // Consumers.
    StopReading,
    ResumeReading,
    /// Somebody comes who wants to know what is there, and what follows.
    Subscribe,
    /// A mark to ask with later.
    Mark,
    /// Somebody asks for something newer than the mark held, or than now.
    Ask {
        pod: u8,
        phases_only: bool,
    },
    /// The reader who asked last gives up.
    GiveUp,
    Relist {
        pod: u8,
    },
    RelistAll,
    Reinspect {
        pod: u8,
    },
}
