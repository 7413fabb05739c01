//! A scenario as its file has it, and how it is read: strictly, each refusal with its place.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::action::{Action, Character};
use super::expect::Expect;
use super::values::{At, Time, is_default};

/// The version of the language that this crate speaks.
pub const VERSION: u64 = 1;

/// A scenario: what happens on a node, and what must come of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Scenario {
    /// The version of the language: 1.
    pub version: At<u64>,
    /// What it is called; by custom the name of its file.
    pub name: String,
    /// What it tells, and what of that is the point.
    pub story: String,
    /// Which known faults it guards against, by their ids in `COVERAGE.md`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub covers: Vec<String>,
    /// How the generator is set up.
    #[serde(default, skip_serializing_if = "is_default")]
    pub settings: Settings,
    /// The runtime that it follows.
    #[serde(default, skip_serializing_if = "is_default")]
    pub runtime: Character,
    /// What there is before anything else; it is not told on the event stream unless the runtime's
    /// `backlog` says so.
    #[serde(default, skip_serializing_if = "is_default")]
    pub initial: Vec<At<Action>>,
    /// When the generator starts; at 0 if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pleg_starts_at: Time,
    /// What happens, in order.
    pub steps: Vec<At<Step>>,
}

/// What happens at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Step {
    /// When, counted from the beginning.
    #[serde(default, skip_serializing_if = "is_default")]
    pub at: Option<Time>,
    /// When, counted from the step before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub after: Option<Time>,
    /// What is done, in order, at that moment.
    #[serde(default, skip_serializing_if = "is_default", rename = "do")]
    pub actions: Vec<At<Action>>,
    /// What must be so when all that happens at that moment has happened.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expect: Option<At<Expect>>,
}

/// The settings that an embedder may choose; the kubelet's if absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Settings {
    /// Whether the event stream is used at all; it is if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub evented: Option<bool>,
    /// The time between relists while polling; 1 s if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub relist_period: Option<Time>,
    /// Without a good relist for so long, polling is unhealthy; 3 min if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub relist_threshold: Option<Time>,
    /// The time between relists that a trusted stream earns; 300 s if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub evented_relist_period: Option<Time>,
    /// Without a good relist for so long, it is unhealthy while events drive; 10 min if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub evented_relist_threshold: Option<Time>,
    /// How many events a subscriber may fall behind before they fold; 1000 if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub channel_capacity: Option<usize>,
    /// The largest message taken from the runtime, in bytes; 16 MiB if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_message_size: Option<usize>,
    /// How much of the event stream may wait to be taken, in bytes; 16 MiB if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stream_inbox_bytes: Option<usize>,
    /// What the jitter of reconnects is drawn from; 0 if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seed: u64,
}

/// Why a scenario was not taken.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file could not be read.
    #[error("{}: cannot read it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no scenario.
    #[error("{}: {problem}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// Where and why.
        problem: Problem,
    },
}

/// What is wrong with a scenario, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The line, from 1; 0 if it is nowhere in particular.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// What is wrong and what was expected.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}, column {}: ", self.line, self.column)?;
        }
        f.write_str(&self.what)
    }
}

impl Scenario {
    /// Reads one from a file.
    ///
    /// # Errors
    /// If the file cannot be read or is no scenario.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let text = fs::read_to_string(path).map_err(|source| LoadError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text).map_err(|problem| LoadError::Wrong {
            path: path.to_owned(),
            problem,
        })
    }

    /// Reads one from text.
    ///
    /// # Errors
    /// If it is no scenario.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        // First, because a file of another version may well have what this one does not know.
        if let Ok(Versioned { version }) = serde_saphyr::from_str::<Versioned>(text) {
            check_version(version)?;
        }
        let scenario: Self = serde_saphyr::from_str(text).map_err(|error| problem(&error))?;
        scenario.moments()?;
        Ok(scenario)
    }

    /// The moment of each step.
    ///
    /// # Errors
    /// If a step has no moment or two, or lies before the one before it.
    pub fn moments(&self) -> Result<Vec<Duration>, Problem> {
        let mut now = Duration::ZERO;
        let mut moments = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let wrong = |what: String| Problem {
                line: step.line,
                column: step.column,
                what,
            };
            now = match (step.value.at, step.value.after) {
                (Some(at), None) => at.0,
                (None, Some(after)) => now.saturating_add(after.0),
                (None, None) => {
                    return Err(wrong(
                        "this step has no moment: expected at or after".into(),
                    ));
                }
                (Some(_), Some(_)) => {
                    return Err(wrong(
                        "this step has at and after: expected one of them".into(),
                    ));
                }
            };
            if moments.last().is_some_and(|before| *before > now) {
                return Err(wrong(format!(
                    "this step is at {}, before the one above it: expected them in order",
                    Time(now)
                )));
            }
            moments.push(now);
        }
        Ok(moments)
    }
}

#[derive(Deserialize)]
struct Versioned {
    version: At<u64>,
}

fn check_version(version: At<u64>) -> Result<(), Problem> {
    if version.value == VERSION {
        return Ok(());
    }
    Err(Problem {
        line: version.line,
        column: version.column,
        what: format!(
            "this scenario is of version {}: expected {VERSION}, the only one that this pleg knows",
            version.value
        ),
    })
}

/// The parser's first line, without the position that is told beside it and without the excerpt.
fn problem(error: &serde_saphyr::Error) -> Problem {
    let (line, column) = error
        .location()
        .map_or((0, 0), |at| (at.line(), at.column()));
    let text = error.without_snippet().to_string();
    let what = text.lines().next().unwrap_or("not YAML");
    let position = format!(" at line {line}, column {column}");
    Problem {
        line,
        column,
        what: what.strip_suffix(&position).unwrap_or(what).to_owned(),
    }
}

/// What can be played at a path: the file itself, or each scenario (`.yaml`) and each recording
/// (`.jsonl`, `.jsonl.zst`) in the folder and the folders in it, in order of path. Links to folders
/// are not followed.
///
/// # Errors
/// If the path cannot be read.
pub fn scenario_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if [".yaml", ".jsonl", ".jsonl.zst"]
                .iter()
                .any(|ending| name.ends_with(ending))
            {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Scenario::parse(text)
            .expect_err("must be refused")
            .to_string()
    }

    fn with_step(step: &str) -> String {
        format!("version: 1\nname: n\nstory: s\nsteps:\n  - at: 1s\n    {step}\n")
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place_and_what_was_expected() {
        for (step, place, expected) in [
            ("dont: []", "line 6, column 5: ", "dont"),
            ("do: [explode]", "line 6, column 10: ", "explode"),
            (
                "do: [exit: {container: web}]",
                "line 6, column 28: ",
                "expected pod/container",
            ),
            (
                "expect: {mode: Evening}",
                "line 6, column 20: ",
                "expected one of Connecting",
            ),
            (
                "expect: {delivered: [Died]}",
                "line 6, column 26: ",
                "expected one like Started web",
            ),
            (
                "expect: {delivered: nothing}",
                "line 6, column 14: ",
                "the word anything",
            ),
            ("after: 1s", "line 5, column 5: ", "expected one of them"),
            (
                "do: [slow: {by: soon}]",
                "line 6, column 21: ",
                "is no time",
            ),
        ] {
            let refusal = refusal(&with_step(step));
            assert!(refusal.starts_with(place), "{step}: {refusal}");
            assert!(refusal.contains(expected), "{step}: {refusal}");
        }
    }

    #[test]
    fn another_version_is_refused_as_such_whatever_else_is_in_it() {
        let refusal = refusal("version: 2\nname: n\nnovelty: yes\n");
        assert_eq!(
            refusal,
            "line 1, column 10: this scenario is of version 2: expected 1, the only one that this pleg knows"
        );
    }

    #[test]
    fn steps_are_in_order() {
        let text =
            "version: 1\nname: n\nstory: s\nsteps:\n  - at: 2s\n  - after: 500ms\n  - at: 2.4s\n";
        assert!(refusal(text).contains("before the one above it"));
        let text = text.replace("2.4s", "2.5s");
        let moments = Scenario::parse(&text).unwrap().moments().unwrap();
        assert_eq!(moments.last(), Some(&Duration::from_millis(2_500)));
    }

    #[test]
    fn no_text_makes_the_parser_panic() {
        for text in [
            "",
            "{",
            "a: &x [*x]",
            "- 1",
            "version: -1",
            "\u{feff}",
            "version: {}",
        ] {
            assert!(Scenario::parse(text).is_err(), "{text:?}");
        }
    }
}
