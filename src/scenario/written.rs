//! The language written: a scenario that was made in memory, as the file that it would have been.
//!
//! Types whose form in the file is a word or a map of their own say here how they are written; all
//! others derive it. What is as it would be if absent is left out. Reading the text back gives the
//! same scenario, but for the places.

use std::fmt::Write as _;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::expect::{
    AnswerExpect, ContainerState, Delivered, DeliveredItem, EventLine, ModeName, PodExpect, Within,
};
use super::file::Scenario;
use super::values::{At, ClockStep, ContainerName, Count, PodName, SandboxName, SubjectName, Time};

macro_rules! as_it_is_shown {
    ($($type:ty),+ $(,)?) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )+};
}

as_it_is_shown!(
    PodName,
    SandboxName,
    ContainerName,
    SubjectName,
    EventLine,
    ContainerState
);

impl<T: Serialize> Serialize for At<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&in_units(self.0.as_millis()))
    }
}

impl Serialize for ClockStep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sign = if self.nanos < 0 { "-" } else { "" };
        let millis = u128::from(self.nanos.unsigned_abs() / 1_000_000);
        serializer.serialize_str(&format!("{sign}{}", in_units(millis)))
    }
}

/// `400ms`, `1.5s`, `300s`.
fn in_units(millis: u128) -> String {
    let (seconds, rest) = (millis / 1_000, millis % 1_000);
    match (seconds, rest) {
        (0, rest) => format!("{rest}ms"),
        (seconds, 0) => format!("{seconds}s"),
        (seconds, rest) => {
            let fraction = format!("{rest:03}");
            format!("{seconds}.{}s", fraction.trim_end_matches('0'))
        }
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.least == self.most {
            return serializer.serialize_u64(self.least);
        }
        let mut bounds = serializer.serialize_map(None)?;
        if self.least > 0 {
            bounds.serialize_entry("atLeast", &self.least)?;
        }
        if self.most < u64::MAX {
            bounds.serialize_entry("atMost", &self.most)?;
        }
        bounds.end()
    }
}

impl Serialize for Within {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.most == Some(self.least) {
            return self.least.serialize(serializer);
        }
        let mut bounds = serializer.serialize_map(None)?;
        bounds.serialize_entry("atLeast", &self.least)?;
        if let Some(most) = &self.most {
            bounds.serialize_entry("atMost", most)?;
        }
        bounds.end()
    }
}

impl Serialize for ModeName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl Serialize for Delivered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Anything => serializer.serialize_str("anything"),
            Self::Number(number) => number.serialize(serializer),
            Self::Exactly(items) => {
                let mut all = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    all.serialize_element(item)?;
                }
                all.end()
            }
        }
    }
}

impl Serialize for DeliveredItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut form = match self {
            Self::Event(event) => return event.serialize(serializer),
            Self::Either(_) | Self::AnyOrder(_) => serializer.serialize_map(Some(1))?,
        };
        match self {
            Self::Event(_) => {}
            Self::Either(ways) => form.serialize_entry("either", ways)?,
            Self::AnyOrder(events) => form.serialize_entry("anyOrder", events)?,
        }
        form.end()
    }
}

impl Serialize for PodExpect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent => serializer.serialize_str("absent"),
            Self::Shows(shows) => shows.serialize(serializer),
        }
    }
}

impl Serialize for AnswerExpect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Pending => serializer.serialize_str("pending"),
            Self::With(expect) => expect.serialize(serializer),
        }
    }
}

impl Scenario {
    /// The scenario as a file.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        // Writing to a String never fails.
        let _ = writeln!(text, "version: {}", self.version.value);
        let _ = writeln!(text, "name: {}", flow(&self.name));
        let _ = writeln!(text, "story: {}", flow(&self.story));
        let mut key = |name: &str, value: String, default: &str| {
            if value != default {
                let _ = writeln!(text, "{name}: {value}");
            }
        };
        key("covers", flow(&self.covers), "[]");
        key("settings", flow(&self.settings), "{}");
        key("runtime", flow(&self.runtime), "{}");
        key("plegStartsAt", flow(&self.pleg_starts_at), "0ms");
        if !self.initial.is_empty() {
            text.push_str("initial:\n");
            for action in &self.initial {
                let _ = writeln!(text, "  - {}", flow(action));
            }
        }
        text.push_str(if self.steps.is_empty() {
            "steps: []\n"
        } else {
            "steps:\n"
        });
        for step in &self.steps {
            let step = &step.value;
            let moment = match (&step.at, &step.after) {
                (Some(at), _) => format!("at: {}", flow(at)),
                (None, Some(after)) => format!("after: {}", flow(after)),
                (None, None) => "after: 0ms".to_owned(),
            };
            let _ = writeln!(text, "  - {moment}");
            match step.actions.as_slice() {
                [] => {}
                [action] => {
                    let _ = writeln!(text, "    do: [{}]", flow(action));
                }
                actions => {
                    text.push_str("    do:\n");
                    for action in actions {
                        let _ = writeln!(text, "      - {}", flow(action));
                    }
                }
            }
            if let Some(expect) = &step.expect {
                let _ = writeln!(text, "    expect: {}", flow(expect));
            }
        }
        text
    }
}

/// A value on one line: YAML's flow form.
fn flow(value: &impl Serialize) -> String {
    let mut text = String::new();
    // Every key of the language is a string and it has no value that JSON lacks.
    write_flow(&mut text, &serde_json::to_value(value).unwrap_or_default());
    text
}

fn write_flow(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => write_word(out, text),
        Value::Array(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                out.push_str(if number > 0 { ", " } else { "" });
                write_flow(out, item);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            out.push('{');
            for (number, (key, item)) in entries.iter().enumerate() {
                out.push_str(if number > 0 { ", " } else { "" });
                write_word(out, key);
                out.push_str(": ");
                write_flow(out, item);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// A string, bare where nothing else could be meant.
fn write_word(out: &mut String, text: &str) {
    let is_plain = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '/'))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&text.to_ascii_lowercase().as_str());
    let is_time = text.ends_with('s')
        && text
            .chars()
            .next()
            .is_some_and(|c| c.is_ascii_digit() || c == '-')
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '-' | '.' | 'm' | 's'));
    if is_plain || is_time {
        out.push_str(text);
    } else {
        // A JSON string is a double-quoted YAML one.
        out.push_str(&Value::from(text).to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Without the places, which differ.
    fn without_places(mut scenario: Scenario) -> String {
        scenario.covers.sort();
        let text = format!("{scenario:?}");
        let mut parts = text.split(", line: ");
        let mut stripped = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let rest = part.split_once(" }").map_or("", |(_, rest)| rest);
            stripped.push_str(rest);
        }
        stripped
    }

    #[test]
    fn each_scenario_is_read_back_as_it_was_written() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let files = crate::scenario::scenario_files(&folder).unwrap();
        let mut read = 0;
        for file in files
            .iter()
            .filter(|file| file.extension().is_some_and(|e| e == "yaml"))
        {
            let scenario = Scenario::load(file).unwrap();
            let written = scenario.to_yaml();
            let again = Scenario::parse(&written)
                .unwrap_or_else(|problem| panic!("{}: {problem}\n{written}", file.display()));
            assert_eq!(without_places(again), without_places(scenario), "{written}");
            read += 1;
        }
        assert!(read >= 50, "only {read} scenarios");
    }
}
