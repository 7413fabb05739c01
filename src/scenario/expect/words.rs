//! States, modes and bounds as expectations put them.

use std::fmt;

use serde::{Deserialize, Deserializer};

use crate::scenario::values::Time;

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

pub(in crate::scenario) const MODES: [&str; 7] = [
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
            Err(format!(
                "{text:?} is no mode: expected one of {}",
                MODES.join(", ")
            ))
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
