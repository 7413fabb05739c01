//! The JSON Schema of the language: generated from the types, kept in step by a test.
//!
//! Types with a form of their own (a word, a number or a map) say here how they look; all others derive
//! it. Only tests need any of it.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::expect::{
    AnswerExpect, ContainerState, Delivered, DeliveredItem, EventLine, ModeName, PodExpect,
    PodShows, Within,
};
use super::file::Scenario;
use super::values::{At, ClockStep, ContainerName, Count, PodName, SandboxName, SubjectName, Time};

const NAME: &str = "[A-Za-z0-9._-]+";

macro_rules! text {
    ($type:ty, $name:literal, $about:literal, $pattern:expr) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let pattern: String = $pattern;
                json_schema!({ "type": "string", "description": $about, "pattern": pattern })
            }
        }
    };
}

macro_rules! any_of {
    ($type:ty, $name:literal, $about:literal, |$generator:ident| [$($form:expr),+ $(,)?]) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                let forms: Vec<Schema> = vec![$($form),+];
                json_schema!({ "description": $about, "anyOf": forms })
            }
        }
    };
}

text!(
    Time,
    "Time",
    "A time: 400ms, 1.5s, 5m, 1h30m",
    r"^0$|^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$".into()
);
text!(
    ClockStep,
    "ClockStep",
    "A step of the clock: -40s, 10m",
    r"^[+-]?(0|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$".into()
);
text!(
    PodName,
    "Pod",
    "A pod's name in the scenario",
    format!("^{NAME}$")
);
text!(
    SandboxName,
    "Sandbox",
    "A sandbox: web, the pod's newest; web#0, its first",
    format!("^{NAME}(#[0-9]+)?$")
);
text!(
    ContainerName,
    "Container",
    "A container: web/app, the newest of that name; web/app#0, the first",
    format!("^{NAME}/{NAME}(#[0-9]+)?$")
);
text!(
    SubjectName,
    "Subject",
    "A container (web/app) or a sandbox (web)",
    format!("^{NAME}(/{NAME})?(#[0-9]+)?$")
);
text!(
    EventLine,
    "Event",
    "An event: Started web, Died web/app 137 OOMKilled by event, Removed web/app#0, PodSync web",
    format!(
        "^(Started|Died|Removed|PodSync) +{NAME}(/{NAME})?(#[0-9]+)?( +-?[0-9]+)?( +[^ ]+)?\
         ( +by +(event|relist|inspect))?$"
    )
);
text!(
    ContainerState,
    "ContainerState",
    "created, running, unknown, absent, exited, exited 137 or exited 137 OOMKilled",
    r"^(created|running|unknown|absent|exited( +-?[0-9]+( +[^ ]+)?)?)$".into()
);

impl JsonSchema for ModeName {
    fn schema_name() -> Cow<'static, str> {
        "Mode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "A mode", "enum": super::expect::MODES })
    }
}

any_of!(
    Count,
    "Count",
    "Exactly so many, or within bounds",
    |_generator| [
        json_schema!({ "type": "integer", "minimum": 0 }),
        json_schema!({
            "type": "object",
            "properties": {
                "atLeast": { "type": "integer", "minimum": 0 },
                "atMost": { "type": "integer", "minimum": 0 },
            },
            "additionalProperties": false,
        }),
    ]
);
any_of!(
    Within,
    "Within",
    "Just this time, or within bounds",
    |generator| [
        generator.subschema_for::<Time>(),
        json_schema!({
            "type": "object",
            "properties": {
                "atLeast": generator.subschema_for::<Time>(),
                "atMost": generator.subschema_for::<Time>(),
            },
            "additionalProperties": false,
        }),
    ]
);
any_of!(
    DeliveredItem,
    "DeliveredItem",
    "An event, or several",
    |generator| [
        generator.subschema_for::<EventLine>(),
        json_schema!({
            "type": "object",
            "description": "Several histories, of which one must have been told",
            "properties": { "either": generator.subschema_for::<Vec<Vec<EventLine>>>() },
            "required": ["either"],
            "additionalProperties": false,
        }),
        json_schema!({
            "type": "object",
            "description": "Events that must all have been told, in any order",
            "properties": { "anyOrder": generator.subschema_for::<Vec<EventLine>>() },
            "required": ["anyOrder"],
            "additionalProperties": false,
        }),
    ]
);
any_of!(
    Delivered,
    "Delivered",
    "These events, in order for each pod; or so many; or anything",
    |generator| [
        json_schema!({ "const": "anything" }),
        generator.subschema_for::<Count>(),
        generator.subschema_for::<Vec<DeliveredItem>>(),
    ]
);
any_of!(
    PodExpect,
    "PodExpect",
    "Absent, or what is shown",
    |generator| [
        json_schema!({ "const": "absent" }),
        generator.subschema_for::<PodShows>(),
    ]
);
any_of!(
    AnswerExpect,
    "AnswerExpect",
    "Pending, absent, or what the answer shows",
    |generator| [
        json_schema!({ "enum": ["pending", "absent"] }),
        generator.subschema_for::<PodShows>(),
    ]
);

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

#[test]
fn the_schema_beside_the_scenarios_is_that_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/scenario.schema.json");
    let written = serde_json::to_string_pretty(&schemars::schema_for!(Scenario)).unwrap() + "\n";
    let kept = fs::read_to_string(&path).unwrap_or_default();
    if kept != written {
        let new = path.with_extension("json.new");
        fs::write(&new, written).unwrap();
        panic!(
            "{} is not that of the types; if the change is meant, {} is to replace it",
            path.display(),
            new.display()
        );
    }
}
