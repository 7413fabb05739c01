//! Lifecycle events as expectations put them.

use std::fmt;

use serde::{Deserialize, Deserializer};

use crate::scenario::values::{Count, SubjectName};

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
            (Some("by"), Some(source @ ("event" | "relist" | "inspect"))) => {
                Some(source.to_owned())
            }
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

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                map: A,
            ) -> Result<Delivered, A::Error> {
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
