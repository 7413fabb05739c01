//! The daemon's file: YAML, camelCase, strict. It gives each key's text and where it stands; it judges
//! no value.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::keys::Key;

/// Where the file is if nobody names one; it need not exist.
pub(crate) const DEFAULT_FILE: &str = "/etc/pleg/config.yaml";
/// The variable that names it.
pub(crate) const FILE_VARIABLE: &str = "PLEG_CONFIG";
/// What `apiVersion` must be, if it is there.
pub(crate) const API_VERSION: &str = "pleg/v1";
/// What `kind` must be, if it is there.
pub(crate) const KIND: &str = "PlegConfiguration";

/// Two dozen scalars; a file past this is something else.
const FILE_LIMIT: u64 = 1 << 20;

/// What a file sets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    /// Each key's text, and the line that it stands in.
    pub(crate) settings: BTreeMap<Key, (String, u64)>,
}

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// It cannot be read.
    #[error("cannot read the settings in {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Something in it is wrong.
    #[error("{}:{line}: {problem}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong there.
        problem: String,
    },
}

impl ConfigFile {
    /// Reads a file. The caller decides whether a missing one matters.
    ///
    /// # Errors
    ///
    /// It cannot be read, is no YAML, or has a key that nobody knows.
    pub(crate) fn read(path: &Path) -> Result<Self, FileError> {
        let unreadable = |source| FileError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(FILE_LIMIT + 1).read_to_string(&mut text))
            .map_err(unreadable)?;
        if text.len() as u64 > FILE_LIMIT {
            return Err(unreadable(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "larger than 1 MiB, which is no configuration of pleg's",
            )));
        }
        Self::parse(&text).map_err(|(line, problem)| FileError::Broken {
            path: path.to_owned(),
            line,
            problem,
        })
    }

    /// Understands a file's text, or says what is wrong and in which line.
    pub(crate) fn parse(text: &str) -> Result<Self, (u64, String)> {
        // A file without any node is valid YAML, and says nothing.
        let entries: Option<HashMap<Spanned<String>, Written>> = serde_saphyr::from_str(text)
            .map_err(|error| {
                let line = error.location().map_or(1, |at| at.line());
                (line, problem_of(&error))
            })?;
        let mut entries: Vec<_> = entries.unwrap_or_default().into_iter().collect();
        // Of several mistakes the first is told.
        entries.sort_by_key(|(name, _)| name.referenced.line());
        let mut settings = BTreeMap::new();
        for (name, written) in entries {
            let line = name.referenced.line();
            let name = name.value;
            let Some(key) = Key::named(&name) else {
                header(&name, &written).map_err(|problem| (line, problem))?;
                continue;
            };
            let text = written
                .text(key)
                .map_err(|problem| (line, format!("{name}: {problem}")))?;
            // A key without a value is one that was not set.
            if let Some(text) = text {
                settings.insert(key, (text, line));
            }
        }
        Ok(Self { settings })
    }
}

/// The two keys that say what the file is.
fn header(name: &str, written: &Written) -> Result<(), String> {
    let wanted = match name {
        "apiVersion" => API_VERSION,
        "kind" => KIND,
        _ => return Err(unknown(name)),
    };
    match written {
        Written::Text(text) if text == wanted => Ok(()),
        _ => Err(format!("{name} must be {wanted}")),
    }
}

fn unknown(name: &str) -> String {
    if let Some(key) = Key::like(name) {
        return format!("unknown key {name:?}; did you mean {}?", key.spelling().key);
    }
    let keys = Key::ALL.map(|key| key.spelling().key).join(", ");
    format!("unknown key {name:?}; the keys are: {keys}")
}

/// A value as YAML has it.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "no setting has such a value: write one text, whole number, true or false (or a list of \
                 names, or a mapping of gates to true and false); quotes make a text of anything"
)]
enum Written {
    Bool(bool),
    Whole(i64),
    Text(String),
    List(Vec<String>),
    Gates(BTreeMap<String, bool>),
    Nothing(()),
}

impl Written {
    /// The value as a flag would have it.
    fn text(self, key: Key) -> Result<Option<String>, String> {
        Ok(Some(match (self, key) {
            (Self::Nothing(()), _) => return Ok(None),
            (Self::Gates(gates), Key::FeatureGates) => {
                let pairs = gates.into_iter().map(|(name, on)| format!("{name}={on}"));
                pairs.collect::<Vec<_>>().join(",")
            }
            (_, Key::FeatureGates) => {
                return Err("is a mapping, as the kubelet's: {EventedPLEG: false}".to_owned());
            }
            (Self::List(names), Key::HttpAllowedHosts) => names.join(","),
            (Self::List(_) | Self::Gates(_), _) => return Err("is one value".to_owned()),
            (Self::Whole(_), Key::GrpcSocketMode) => {
                return Err(
                    "write the mode in quotes, like \"0660\": YAML may read a bare number \
                            as a decimal one"
                        .to_owned(),
                );
            }
            // For YAML a bare `off` is no text.
            (Self::Bool(false), key) if key.takes_off() => "off".to_owned(),
            (Self::Bool(on), _) => on.to_string(),
            (Self::Whole(number), _) => number.to_string(),
            (Self::Text(text), _) => text,
        }))
    }
}

/// The parser's first line, without the position that is told beside it and without the excerpt.
fn problem_of(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let first = text.lines().next().unwrap_or("not YAML");
    // What it advises is meant for whoever calls it.
    [" at line ", ", set ", "; use "]
        .iter()
        .fold(first, |text, end| text.split(end).next().unwrap_or(text))
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> BTreeMap<Key, (String, u64)> {
        ConfigFile::parse(text)
            .unwrap_or_else(|error| panic!("{text}: {error:?}"))
            .settings
    }

    fn refused(text: &str) -> (u64, String) {
        ConfigFile::parse(text).expect_err(text)
    }

    #[test]
    fn each_key_is_found_with_its_line() {
        let settings = parsed(
            "apiVersion: pleg/v1\nkind: PlegConfiguration\n# by hand\nrelistPeriod: 2s\n\
             featureGates:\n  EventedPLEG: false\neventHistory: 500\nhttpAllowRemote: true\n\
             httpAllowedHosts: [node-1, node-1.example]\ngrpcSocketMode: \"0600\"\n",
        );
        assert_eq!(settings[&Key::RelistPeriod], ("2s".into(), 4));
        assert_eq!(
            settings[&Key::FeatureGates],
            ("EventedPLEG=false".into(), 5)
        );
        assert_eq!(settings[&Key::EventHistory], ("500".into(), 7));
        assert_eq!(settings[&Key::HttpAllowRemote], ("true".into(), 8));
        assert_eq!(
            settings[&Key::HttpAllowedHosts],
            ("node-1,node-1.example".into(), 9)
        );
        assert_eq!(settings[&Key::GrpcSocketMode], ("0600".into(), 10));
    }

    #[test]
    fn off_needs_no_quotes() {
        let settings = parsed("httpListen: off\nwatchdogTimeout: off\nhttpAllowRemote: off\n");
        assert_eq!(settings[&Key::HttpListen].0, "off");
        assert_eq!(settings[&Key::WatchdogTimeout].0, "off");
        assert_eq!(settings[&Key::HttpAllowRemote].0, "false");
    }

    #[test]
    fn what_is_wrong_is_told_to_who_wrote_the_file_and_not_to_who_wrote_the_parser() {
        for (text, wanted) in [
            ("eventHistory: 1e3\n", "no setting has such a value"),
            (
                "eventHistory: 99999999999999999999\n",
                "no setting has such a value",
            ),
            ("relistPeriod: [[1s]]\n", "no setting has such a value"),
            (
                "featureGates: {EventedPLEG: maybe}\n",
                "no setting has such a value",
            ),
            (
                "relistPeriod: 1s\nrelistPeriod: 2s\n",
                "duplicate mapping key: relistPeriod",
            ),
            (
                "relistPeriod: 1s\n---\nrelistPeriod: 2s\n",
                "multiple YAML documents",
            ),
        ] {
            let (_, problem) = refused(text);
            assert!(problem.starts_with(wanted), "{text:?}: {problem}");
            for foreign in ["Written", "Options", "from_str"] {
                assert!(!problem.contains(foreign), "{text:?}: {problem}");
            }
        }
    }

    #[test]
    fn an_empty_file_and_an_empty_key_set_nothing() {
        for text in [
            "",
            "\n",
            "# nothing\n",
            "---\n",
            "relistPeriod:\n",
            "relistPeriod: ~\n",
        ] {
            assert!(parsed(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line_and_its_neighbour() {
        let (line, problem) = refused("logLevel: info\nrelistPeriods: 2s\n");
        assert_eq!(line, 2);
        assert!(problem.contains("did you mean relistPeriod?"), "{problem}");
        let (_, problem) = refused("colour: red\n");
        assert!(
            problem.contains("the keys are: runtimeEndpoint"),
            "{problem}"
        );
    }

    #[test]
    fn what_no_setting_can_be_is_refused_with_its_line() {
        for (text, line) in [
            ("apiVersion: pleg/v2\n", 1),
            ("kind: KubeletConfiguration\n", 1),
            ("logLevel: info\nrelistPeriod: [1s]\n", 2),
            ("featureGates: EventedPLEG=false\n", 1),
            ("grpcSocketMode: 660\n", 1),
            ("relistPeriod: 1s\nrelistPeriod: 2s\n", 2),
            ("eventHistory: 20\nlogLevel: [\n", 2),
            ("- a\n", 1),
            ("just text\n", 1),
        ] {
            let (at, problem) = refused(text);
            assert_eq!(at, line, "{text:?}: {problem}");
            assert!(!problem.is_empty() && !problem.contains('\n'), "{problem}");
        }
    }
}
