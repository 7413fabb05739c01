//! Which runtime is played.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Method;
use crate::scenario::values::{Time, is_default};

/// Which runtime it is, and what is unusual about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Character {
    /// The runtime; containerd 2 if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is: Preset,
    /// Its version; the preset's if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub version: Option<String>,
    /// What it does when asked for events.
    #[serde(default, skip_serializing_if = "is_default")]
    pub events: Option<Events>,
    /// Whether several event clients share the events instead of each getting all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub competing: Option<bool>,
    /// How stamps are written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stamps: Option<Stamps>,
    /// The most items in one message of a streamed list; without it lists are not streamed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub streaming_lists: Option<usize>,
    /// Whether the status of a sandbox carries those of its containers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub status_carries_containers: Option<bool>,
    /// How long each answer is under way.
    #[serde(default, skip_serializing_if = "is_default")]
    pub latency: Option<Time>,
    /// The same for single methods.
    #[serde(default, skip_serializing_if = "is_default")]
    pub latency_of: BTreeMap<Method, Time>,
    /// Whether a new sandbox gives CREATED besides STARTED.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sandbox_created: Option<bool>,
    /// Where ids begin.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seed: Option<u64>,
    /// Whether the messages about the initial state wait for the first event client.
    #[serde(default, skip_serializing_if = "is_default")]
    pub backlog: bool,
}

/// A runtime as nodes have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Events {
    /// Answers Unimplemented.
    Unimplemented,
    /// Ends at once without an error.
    EndsAtOnce,
}

/// How a message's stamp is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
