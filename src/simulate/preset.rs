//! A character as files and command lines name it: a preset, and what differs from it.
//!
//! ```yaml
//! character: containerd-1.7
//! ```
//!
//! ```yaml
//! character:
//!   like: containerd-2
//!   streamingLists: 5000
//!   stamps: seconds
//!   latency: {ContainerStatus: 20ms}
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::spelling::duration;
use super::{
    Character, EventDelivery, EventSupport, FailedStart, Rpc, SandboxRemoval, Sharing,
    SnapshotScope, Stamps, WhenFull, WithoutClient,
};

/// A runtime that a [`Character`] is ready for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Preset {
    /// [`Character::containerd_1_6`].
    #[serde(rename = "containerd-1.6")]
    Containerd16,
    /// [`Character::containerd_1_7`].
    #[serde(rename = "containerd-1.7")]
    Containerd17,
    /// [`Character::containerd_2`].
    #[default]
    #[serde(rename = "containerd-2")]
    Containerd2,
    /// [`Character::cri_o`].
    #[serde(rename = "cri-o")]
    CriO,
    /// [`Character::cri_o_events_off`].
    #[serde(rename = "cri-o-events-off")]
    CriOEventsOff,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 5] = [
        Self::Containerd16,
        Self::Containerd17,
        Self::Containerd2,
        Self::CriO,
        Self::CriOEventsOff,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Containerd16 => "containerd-1.6",
            Self::Containerd17 => "containerd-1.7",
            Self::Containerd2 => "containerd-2",
            Self::CriO => "cri-o",
            Self::CriOEventsOff => "cri-o-events-off",
        }
    }

    /// The character.
    #[must_use]
    pub fn character(self) -> Character {
        match self {
            Self::Containerd16 => Character::containerd_1_6(),
            Self::Containerd17 => Character::containerd_1_7(),
            Self::Containerd2 => Character::containerd_2(),
            Self::CriO => Character::cri_o(),
            Self::CriOEventsOff => Character::cri_o_events_off(),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|preset| preset.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("the runtimes are {names}")
        })
    }
}

/// A preset and what differs from it. In a file it may be the preset's name alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "Written")]
pub struct CharacterSpec(Written);

/// What stands in a file. Every field but the first is one of [`Character`]'s or of what that holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Written {
    like: Preset,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Events>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sharing: Option<Sharing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    when_full: Option<WhenFull>,
    #[serde(skip_serializing_if = "Option::is_none")]
    without_client: Option<WithoutClient>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_buffer: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swallowed_by_dead_stream: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<SnapshotScope>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox_created: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox_removal: Option<SandboxRemoval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_start: Option<FailedStart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unstarted_removal_stops: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stamps: Option<Stamps>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lag: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_carries_containers: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    streaming_lists: Option<usize>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    latency: BTreeMap<Rpc, Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Events {
    Served,
    Unimplemented,
    EndsAtOnce,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Span(#[serde(with = "duration")] Duration);

impl CharacterSpec {
    /// The character.
    #[must_use]
    pub fn character(&self) -> Character {
        let Self(written) = self;
        let mut character = written.like.character();
        put(&mut character.runtime_name, written.runtime_name.clone());
        put(
            &mut character.runtime_version,
            written.runtime_version.clone(),
        );
        put(
            &mut character.status_carries_containers,
            written.status_carries_containers,
        );
        if written.streaming_lists.is_some() {
            character.streaming_lists = written.streaming_lists;
        }
        let latency = written
            .latency
            .iter()
            .map(|(rpc, Span(time))| (*rpc, *time));
        character.latency.extend(latency);

        let habits = &mut character.habits;
        put(&mut habits.snapshot, written.snapshot);
        put(&mut habits.sandbox_created, written.sandbox_created);
        put(&mut habits.sandbox_removal, written.sandbox_removal);
        put(&mut habits.failed_start, written.failed_start);
        put(
            &mut habits.unstarted_removal_stops,
            written.unstarted_removal_stops,
        );
        put(&mut habits.stamps, written.stamps);
        put(&mut habits.lag, written.lag.map(|Span(time)| time));

        character.events = match (written.events, character.events) {
            (Some(Events::Unimplemented), _) => EventSupport::Unimplemented,
            (Some(Events::EndsAtOnce), _) => EventSupport::EndsAtOnce,
            (_, EventSupport::Served(delivery)) => written.served(delivery),
            (Some(Events::Served), _) => match Character::default().events {
                EventSupport::Served(delivery) => written.served(delivery),
                other => other,
            },
            (None, other) => other,
        };
        character
    }
}

impl Written {
    fn served(&self, mut delivery: EventDelivery) -> EventSupport {
        put(&mut delivery.sharing, self.sharing);
        put(&mut delivery.queue, self.queue);
        put(&mut delivery.when_full, self.when_full);
        put(&mut delivery.without_client, self.without_client);
        put(&mut delivery.stream_buffer, self.stream_buffer);
        put(
            &mut delivery.swallowed_by_dead_stream,
            self.swallowed_by_dead_stream,
        );
        EventSupport::Served(delivery)
    }
}

fn put<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

impl From<Preset> for CharacterSpec {
    fn from(like: Preset) -> Self {
        Self(Written {
            like,
            ..Written::default()
        })
    }
}

impl From<CharacterSpec> for Written {
    fn from(CharacterSpec(written): CharacterSpec) -> Self {
        written
    }
}

impl<'de> Deserialize<'de> for CharacterSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpecVisitor)
    }
}

struct SpecVisitor;

impl<'de> de::Visitor<'de> for SpecVisitor {
    type Value = CharacterSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a runtime's name, or a map with `like` and what differs")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<CharacterSpec, E> {
        Preset::deserialize(StrDeserializer::new(name)).map(CharacterSpec::from)
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<CharacterSpec, A::Error> {
        Written::deserialize(MapAccessDeserializer::new(map)).map(CharacterSpec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(value: serde_json::Value) -> Result<CharacterSpec, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_alone_is_the_preset() {
        for preset in Preset::ALL {
            let read = spec(json!(preset.name())).unwrap();
            assert_eq!(read.character(), preset.character());
            assert_eq!(preset.name().parse(), Ok(preset));
        }
        let refused = spec(json!("containerd-3")).unwrap_err();
        assert!(refused.contains("`containerd-1.7`"), "{refused}");
        assert!("docker".parse::<Preset>().unwrap_err().contains("cri-o"));
    }

    #[test]
    fn what_is_named_differs_and_nothing_else() {
        let read = spec(json!({
            "like": "containerd-1.7",
            "queue": 7,
            "withoutClient": {"keepFor": "5m"},
            "stamps": {"ahead": "1h"},
            "streamingLists": 100,
            "latency": {"ContainerStatus": "20ms"},
        }))
        .unwrap();
        let mut expected = Character::containerd_1_7().with_streaming_lists(100);
        expected.habits.stamps = Stamps::Ahead(Duration::from_hours(1));
        expected
            .latency
            .insert(Rpc::ContainerStatus, Duration::from_millis(20));
        if let EventSupport::Served(delivery) = &mut expected.events {
            delivery.queue = 7;
            delivery.without_client = WithoutClient::KeepFor(Duration::from_mins(5));
        }
        assert_eq!(read.character(), expected);
        let again = serde_json::to_value(&read).unwrap();
        assert_eq!(spec(again).unwrap(), read);
    }

    #[test]
    fn events_can_be_taken_from_a_runtime_and_given_to_one() {
        let off = spec(json!({"like": "cri-o", "events": "unimplemented"})).unwrap();
        assert_eq!(off.character().events, EventSupport::Unimplemented);
        let on = spec(json!({"like": "containerd-1.6", "events": "served", "queue": 3})).unwrap();
        let EventSupport::Served(delivery) = on.character().events else {
            panic!("events are served");
        };
        assert_eq!(delivery.queue, 3);
    }

    #[test]
    fn a_key_that_is_not_known_is_refused() {
        let refused = spec(json!({"like": "cri-o", "latencies": {}})).unwrap_err();
        assert!(refused.contains("unknown field `latencies`"), "{refused}");
        let refused = spec(json!({"lag": "soon"})).unwrap_err();
        assert!(refused.contains("write 250ms"), "{refused}");
    }
}
