//! What a step may expect, as it stands in the file; `check` compares.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer};

use super::action::Method;
use super::values::{At, Count, PodName, SandboxName, SubjectName, Time};

/// What must be so once everything that happens at that moment has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Expect {
    /// All that the subscriber `main` was told since this was last expected; in order for each pod.
    #[serde(default)]
    pub delivered: Option<At<Delivered>>,
    /// The same for other subscribers.
    #[serde(default)]
    pub delivered_to: BTreeMap<String, At<Delivered>>,
    /// What the cache holds of pods; what is not named may be anything.
    #[serde(default)]
    pub cache: BTreeMap<PodName, At<PodExpect>>,
    /// Whether the cache shows just what the runtime has.
    #[serde(default)]
    pub converged: Option<At<bool>>,
    /// The mode: `Connecting`, `Evented` or `Polling(reason)`.
    #[serde(default)]
    pub mode: Option<At<ModeName>>,
    /// The time between two audits, in mode `Evented`.
    #[serde(default)]
    pub audit_period: Option<At<Within>>,
    /// The health.
    #[serde(default)]
    pub health: Option<At<HealthExpect>>,
    /// Counters, since the generator began; `missed` adds up `missed.container.stopped` and its like.
    #[serde(default)]
    pub counters: BTreeMap<String, At<Count>>,
    /// Calls to the runtime since calls were last expected; a method that is not named may be anything.
    #[serde(default)]
    pub calls: BTreeMap<Method, At<Count>>,
    /// What became of the questions of `ask`.
    #[serde(default)]
    pub answers: BTreeMap<String, At<AnswerExpect>>,
    /// Event streams that the runtime has open for us.
    #[serde(default)]
    pub open_streams: Option<At<Count>>,
}

/// What was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// Whatever: not looked at.
    Anything,
    /// So many events.
    Number(Count),
    /// These, in order for each pod.
    Exactly(Vec<DeliveredItem>),
}

/// One event, or several histories of which one must have been told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveredItem {
    /// This event.
    Event(EventLine),
    /// One of these.
    Either(Vec<Vec<EventLine>>),
    /// All of these, in any order.
    AnyOrder(Vec<EventLine>),
}

/// An event in words: `Started web`, `Died web/app 137 OOMKilled`, `Removed web/app#0`, `PodSync web`,
/// each with `by event`, `by relist` or `by inspect` if that matters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct EventLine {
    /// `Started`, `Died`, `Removed` or `PodSync`.
    pub kind: String,
    /// What it is about.
    pub subject: SubjectName,
    /// The exit code, if it matters.
    pub code: Option<i32>,
    /// The reason, if it matters.
    pub reason: Option<String>,
    /// What told it first, if that matters.
    pub source: Option<String>,
}

impl TryFrom<String> for EventLine {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no event: expected one like Started web, Died web/app 137, \
                 Removed web/app#0 by relist or PodSync web"
            )
        };
        let mut words = text.split_whitespace().peekable();
        let kind = words.next().unwrap_or_default().to_owned();
        if !["Started", "Died", "Removed", "PodSync"].contains(&&*kind) {
            return Err(wrong());
        }
        let subject = words.next().ok_or_else(wrong)?.to_owned().try_into()?;
        let code = words.peek().and_then(|word| word.parse().ok());
        if code.is_some() {
            words.next();
        }
        let reason = words.next_if(|word| *word != "by").map(str::to_owned);
        let source = match (words.next(), words.next()) {
            (None, _) => None,
            (Some("by"), Some(source @ ("event" | "relist" | "inspect"))) => Some(source.to_owned()),
            _ => return Err(wrong()),
        };
        if words.next().is_some() || (code.is_some() && kind != "Died") {
            return Err(wrong());
        }
        Ok(Self {
            kind,
            subject,
            code,
            reason,
            source,
        })
    }
}

impl fmt::Display for EventLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.subject)?;
        if let Some(code) = self.code {
            write!(f, " {code}")?;
        }
        if let Some(reason) = &self.reason {
            write!(f, " {reason}")?;
        }
        if let Some(source) = &self.source {
            write!(f, " by {source}")?;
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ItemForm {
    /// Several histories, of which one must have been told.
    #[serde(default)]
    either: Option<Vec<Vec<EventLine>>>,
    /// Events that must all have been told, in any order.
    #[serde(default)]
    any_order: Option<Vec<EventLine>>,
}

impl<'de> Deserialize<'de> for DeliveredItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = DeliveredItem;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an event like Died web/app 137, either: with a list of histories, or anyOrder: with a list of events")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<DeliveredItem, E> {
                EventLine::try_from(text.to_owned())
                    .map(DeliveredItem::Event)
                    .map_err(E::custom)
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                map: A,
            ) -> Result<DeliveredItem, A::Error> {
                let map = serde::de::value::MapAccessDeserializer::new(map);
                match ItemForm::deserialize(map)? {
                    ItemForm {
                        either: Some(ways),
                        any_order: None,
                    } => Ok(DeliveredItem::Either(ways)),
                    ItemForm {
                        either: None,
                        any_order: Some(events),
                    } => Ok(DeliveredItem::AnyOrder(events)),
                    _ => Err(serde::de::Error::custom("expected either or anyOrder")),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl<'de> Deserialize<'de> for Delivered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Delivered;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of events, a number of them, or the word anything")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Delivered, E> {
                if text == "anything" {
                    Ok(Delivered::Anything)
                } else {
                    Err(E::invalid_value(serde::de::Unexpected::Str(text), &self))
                }
            }

            fn visit_u64<E>(self, number: u64) -> Result<Delivered, E> {
                Ok(Delivered::Number(Count {
                    least: number,
                    most: number,
                }))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Delivered, A::Error> {
                let map = serde::de::value::MapAccessDeserializer::new(map);
                Count::deserialize(map).map(Delivered::Number)
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut items: A,
            ) -> Result<Delivered, A::Error> {
                let mut all = Vec::new();
                while let Some(item) = items.next_element()? {
                    all.push(item);
                }
                Ok(Delivered::Exactly(all))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PodShows {
    /// Its addresses, all of them.
    #[serde(default)]
    pub ips: Option<Vec<String>>,
    /// A part of its error; empty: it has none.
    #[serde(default)]
    pub error: Option<String>,
    /// Sandboxes by name (`web#0`): `ready`, `notReady` or `absent`.
    #[serde(default)]
    pub sandboxes: BTreeMap<SandboxName, SandboxState>,
    /// The sandbox that is named first.
    #[serde(default)]
    pub newest_sandbox: Option<SandboxName>,
    /// Containers by their name in the pod (`app`, `app#0`): `created`, `running`, `unknown`,
    /// `absent`, `exited`, `exited 137` or `exited 137 OOMKilled`.
    #[serde(default)]
    pub containers: BTreeMap<String, ContainerState>,
    /// The container that looking up a name gives: `app: app#1`.
    #[serde(default)]
    pub newest: BTreeMap<String, String>,
}

impl<'de> Deserialize<'de> for PodExpect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = PodExpect;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("absent, or what the status shows (ips, error, sandboxes, containers …)")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PodExpect, E> {
                if text == "absent" {
                    Ok(PodExpect::Absent)
                } else {
                    Err(E::invalid_value(serde::de::Unexpected::Str(text), &self))
                }
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<PodExpect, A::Error> {
                let map = serde::de::value::MapAccessDeserializer::new(map);
                PodShows::deserialize(map).map(PodExpect::Shows)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// How a sandbox is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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

/// How a container is shown, in words.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ContainerState {
    /// `created`, `running`, `exited`, `unknown` or `absent`.
    pub state: String,
    /// The exit code, if it matters.
    pub code: Option<i32>,
    /// The reason, if it matters.
    pub reason: Option<String>,
}

impl TryFrom<String> for ContainerState {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no state: expected created, running, unknown, absent, exited, \
                 exited 137 or exited 137 OOMKilled"
            )
        };
        let mut words = text.split_whitespace();
        let state = words.next().unwrap_or_default().to_owned();
        if !["created", "running", "exited", "unknown", "absent"].contains(&&*state) {
            return Err(wrong());
        }
        let code = words
            .next()
            .map(|word| word.parse().map_err(|_| wrong()))
            .transpose()?;
        let reason = words.next().map(str::to_owned);
        if words.next().is_some() || (code.is_some() && state != "exited") {
            return Err(wrong());
        }
        Ok(Self {
            state,
            code,
            reason,
        })
    }
}

impl fmt::Display for ContainerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.state)?;
        if let Some(code) = self.code {
            write!(f, " {code}")?;
        }
        if let Some(reason) = &self.reason {
            write!(f, " {reason}")?;
        }
        Ok(())
    }
}

/// A mode by its name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ModeName(pub String);

const MODES: [&str; 7] = [
    "Connecting",
    "Evented",
    "Polling(Unsupported)",
    "Polling(StreamBroken)",
    "Polling(Unresponsive)",
    "Polling(Untrusted)",
    "Polling(Disabled)",
];

impl TryFrom<String> for ModeName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if MODES.contains(&&*text) {
            Ok(Self(text))
        } else {
            Err(format!("{text:?} is no mode: expected one of {}", MODES.join(", ")))
        }
    }
}

/// A time, or bounds for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    /// At least.
    pub least: Time,
    /// At most.
    pub most: Option<Time>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WithinForm {
    #[serde(default)]
    at_least: Time,
    #[serde(default)]
    at_most: Option<Time>,
}

impl<'de> Deserialize<'de> for Within {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Within;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time like 300s, or {atLeast: TIME, atMost: TIME}")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Within, E> {
                let time = Time::try_from(text.to_owned()).map_err(E::custom)?;
                Ok(Within {
                    least: time,
                    most: Some(time),
                })
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Within, A::Error> {
                let map = serde::de::value::MapAccessDeserializer::new(map);
                let form = WithinForm::deserialize(map)?;
                Ok(Within {
                    least: form.at_least,
                    most: form.at_most,
                })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// The health.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HealthExpect {
    /// The verdict.
    pub is: HealthName,
    /// A part of the message.
    #[serde(default)]
    pub says: Option<String>,
}

/// A verdict on health.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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
