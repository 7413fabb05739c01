//! What a step may expect, as it stands in the file; `check` compares.

mod events;
mod words;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

pub use events::{Delivered, DeliveredItem, EventLine};
#[cfg(test)]
pub(super) use words::MODES;
pub use words::{ContainerState, ModeName, Within};

use super::action::Method;
use super::values::{At, Count, PodName, SandboxName, is_default};

/// What must be so once everything that happens at that moment has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Expect {
    /// All that the subscriber `main` was told since this was last expected; in order for each pod.
    #[serde(default, skip_serializing_if = "is_default")]
    pub delivered: Option<At<Delivered>>,
    /// The same for other subscribers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub delivered_to: BTreeMap<String, At<Delivered>>,
    /// What the cache holds of pods; what is not named may be anything.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cache: BTreeMap<PodName, At<PodExpect>>,
    /// Whether the cache shows just what the runtime has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub converged: Option<At<bool>>,
    /// Whether all that must hold at rest does, with what was told, shown and answered until then.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lawful: Option<At<bool>>,
    /// The mode: `Connecting`, `Evented` or `Polling(reason)`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: Option<At<ModeName>>,
    /// The time between two audits, in mode `Evented`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub audit_period: Option<At<Within>>,
    /// The health.
    #[serde(default, skip_serializing_if = "is_default")]
    pub health: Option<At<HealthExpect>>,
    /// Counters, since the generator began; `missed` adds up `missed.container.stopped` and its like.
    #[serde(default, skip_serializing_if = "is_default")]
    pub counters: BTreeMap<String, At<Count>>,
    /// Calls to the runtime since calls were last expected; a method that is not named may be anything.
    #[serde(default, skip_serializing_if = "is_default")]
    pub calls: BTreeMap<Method, At<Count>>,
    /// What became of the questions of `ask`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub answers: BTreeMap<String, At<AnswerExpect>>,
    /// Event streams that the runtime has open for us.
    #[serde(default, skip_serializing_if = "is_default")]
    pub open_streams: Option<At<Count>>,
}

/// What the cache holds of a pod: the word `absent`, or any of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodExpect {
    /// Nothing.
    Absent,
    /// At least this.
    Shows(PodShows),
}

/// What is looked at in a pod's status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PodShows {
    /// Its addresses, all of them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ips: Option<Vec<String>>,
    /// A part of its error; empty: it has none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub error: Option<String>,
    /// Sandboxes by name (`web#0`): `ready`, `notReady` or `absent`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sandboxes: BTreeMap<SandboxName, SandboxState>,
    /// The sandbox that is named first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub newest_sandbox: Option<SandboxName>,
    /// Containers by their name in the pod (`app`, `app#0`): `created`, `running`, `unknown`,
    /// `absent`, `exited`, `exited 137` or `exited 137 OOMKilled`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub containers: BTreeMap<String, ContainerState>,
    /// The container that looking up a name gives: `app: app#1`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub newest: BTreeMap<String, String>,
}

impl<'de> Deserialize<'de> for PodExpect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = PodExpect;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "absent, or what the status shows (ips, error, sandboxes, containers …)",
                )
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PodExpect, E> {
                if text == "absent" {
                    Ok(PodExpect::Absent)
                } else {
                    Err(E::invalid_value(serde::de::Unexpected::Str(text), &self))
                }
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                map: A,
            ) -> Result<PodExpect, A::Error> {
                let map = serde::de::value::MapAccessDeserializer::new(map);
                PodShows::deserialize(map).map(PodExpect::Shows)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// How a sandbox is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum SandboxState {
    /// Ready.
    Ready,
    /// Not ready.
    NotReady,
    /// Not at all.
    Absent,
}

/// The health.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthExpect {
    /// The verdict.
    pub is: HealthName,
    /// A part of the message.
    #[serde(default, skip_serializing_if = "is_default")]
    pub says: Option<String>,
}

/// A verdict on health.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum HealthName {
    /// It is well.
    Healthy,
    /// The last good relist is too long ago.
    Unhealthy,
    /// No relist has succeeded yet.
    NotYetRelisted,
}

/// What became of an `ask`: the word `pending`, or what the answer shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerExpect {
    /// No answer yet.
    Pending,
    /// It was answered with this.
    With(PodExpect),
}

impl<'de> Deserialize<'de> for AnswerExpect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = AnswerExpect;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("pending, absent, or what the answered status shows")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<AnswerExpect, E> {
                match text {
                    "pending" => Ok(AnswerExpect::Pending),
                    "absent" => Ok(AnswerExpect::With(PodExpect::Absent)),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                map: A,
            ) -> Result<AnswerExpect, A::Error> {
                let map = serde::de::value::MapAccessDeserializer::new(map);
                PodShows::deserialize(map).map(|shows| AnswerExpect::With(PodExpect::Shows(shows)))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
