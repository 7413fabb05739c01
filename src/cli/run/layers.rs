//! Which of several values of a setting counts: flag, then environment, then file, then default.
//!
//! It keeps where each value comes from, for `--print-config` and for errors; it understands none.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::file::ConfigFile;
use super::keys::{Flags, Key};

/// Who set a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A flag, with its dashes.
    Flag(&'static str),
    /// A variable of the environment.
    Variable(&'static str),
    /// A file's line.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
    },
    /// Nobody.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "--{flag}"),
            Self::Variable(name) => f.write_str(name),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value as somebody wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// The setting.
    pub(crate) key: Key,
    /// Its text; empty if it has no value.
    pub(crate) text: String,
    /// Who set it.
    pub(crate) origin: Origin,
}

/// A value that means nothing, or contradicts another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) struct Refused {
    /// Who set it.
    pub(crate) origin: Origin,
    /// The setting's name.
    pub(crate) key: &'static str,
    /// What is wrong, and what is allowed.
    pub(crate) problem: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        // A flag and a variable are named after the key.
        if matches!(self.origin, Origin::File { .. } | Origin::Default) {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.problem)
    }
}

impl Written {
    /// Why the value cannot be.
    pub(crate) fn refused(&self, problem: impl fmt::Display) -> Refused {
        Refused {
            origin: self.origin.clone(),
            key: self.key.spelling().key,
            problem: problem.to_string(),
        }
    }

    /// Why the value cannot be beside another.
    pub(crate) fn contradicts(&self, other: &Self, reason: &str) -> Refused {
        self.refused(format_args!(
            "{} contradicts {} {} ({}): {reason}",
            self.text,
            other.key.spelling().key,
            other.text,
            other.origin,
        ))
    }

    /// The value's meaning.
    ///
    /// # Errors
    ///
    /// It has none; the type says what is allowed.
    pub(crate) fn parse<T: FromStr<Err: fmt::Display>>(&self) -> Result<T, Refused> {
        self.text
            .parse()
            .map_err(|error| self.refused(format_args!("{:?}: {error}", self.text)))
    }
}

/// Every setting's value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layers(BTreeMap<Key, Written>);

impl Layers {
    /// Takes each setting from the first that has it.
    pub(crate) fn gather(
        flags: &Flags,
        variable: &dyn Fn(&str) -> Option<String>,
        file: Option<(&Path, &ConfigFile)>,
    ) -> Self {
        let find = |key: Key| -> (String, Origin) {
            let spelling = key.spelling();
            if let Some(text) = flags.0.get(&key) {
                return (text.clone(), Origin::Flag(spelling.flag));
            }
            // An empty variable is one that was not set.
            if let Some(text) = variable(spelling.variable).filter(|text| !text.trim().is_empty()) {
                return (text, Origin::Variable(spelling.variable));
            }
            if let Some((path, file)) = file
                && let Some((text, line)) = file.settings.get(&key)
            {
                let path = path.to_owned();
                return (text.clone(), Origin::File { path, line: *line });
            }
            (spelling.default.to_owned(), Origin::Default)
        };
        let written = Key::ALL.into_iter().map(|key| {
            let (text, origin) = find(key);
            let text = text.trim().to_owned();
            (key, Written { key, text, origin })
        });
        Self(written.collect())
    }

    /// A setting as it was written.
    pub(crate) fn written(&self, key: Key) -> &Written {
        // `gather` goes through every key.
        &self.0[&key]
    }

    /// A file that sets what counts here, and says who set it.
    pub(crate) fn print(&self) -> String {
        let lines: Vec<(String, &Origin)> = self
            .0
            .values()
            .map(|written| (line(written), &written.origin))
            .collect();
        let width = lines.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
        let commented = lines
            .iter()
            .map(|(line, origin)| format!("{line:width$}  # {origin}"));
        commented.collect::<Vec<_>>().join("\n") + "\n"
    }
}

/// A setting as the file has it.
fn line(Written { key, text, .. }: &Written) -> String {
    let name = key.spelling().key;
    if text.is_empty() {
        return format!("{name}:");
    }
    match key {
        Key::FeatureGates => {
            let gates = text.split(',').filter(|gate| !gate.trim().is_empty());
            let gates: Vec<_> = gates
                .filter_map(|gate| gate.split_once('='))
                .map(|(gate, on)| format!("{}: {}", gate.trim(), go_bool(on)))
                .collect();
            format!("{name}: {{{}}}", gates.join(", "))
        }
        Key::HttpAllowedHosts => format!("{name}: [{text}]"),
        // Quoted, so that YAML reads text: a number, a colon or a hash would be something else.
        _ => format!("{name}: {}", quoted(text)),
    }
}

/// Go's words for a boolean, in YAML's.
fn go_bool(word: &str) -> bool {
    matches!(word.trim(), "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// Text as YAML takes it, quoted if it must be.
fn quoted(text: &str) -> String {
    let plain = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        || !text.starts_with('0') && text.bytes().all(|c| c.is_ascii_alphanumeric());
    if plain {
        text.to_owned()
    } else {
        format!("{text:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(flag: Option<&str>, variable: Option<&str>, file: Option<&str>) -> Layers {
        let flags = flag.map(|text| (Key::RelistPeriod, text.to_owned()));
        let parsed = file.map(|text| ConfigFile::parse(text).unwrap());
        Layers::gather(
            &Flags(flags.into_iter().collect()),
            &|name| {
                variable
                    .filter(|_| name == "PLEG_RELIST_PERIOD")
                    .map(Into::into)
            },
            parsed.as_ref().map(|file| (Path::new("/pleg.yaml"), file)),
        )
    }

    fn period(layers: &Layers) -> (&str, String) {
        let written = layers.written(Key::RelistPeriod);
        (&written.text, written.origin.to_string())
    }

    #[test]
    fn a_flag_outranks_the_environment_which_outranks_the_file_which_outranks_the_default() {
        let (flag, variable, file) = (Some("2s"), Some("3s"), Some("\nrelistPeriod: 4s\n"));
        let all = gathered(flag, variable, file);
        assert_eq!(period(&all), ("2s", "--relist-period".into()));
        let no_flag = gathered(None, variable, file);
        assert_eq!(period(&no_flag), ("3s", "PLEG_RELIST_PERIOD".into()));
        let only_file = gathered(None, Some(" "), file);
        assert_eq!(period(&only_file), ("4s", "/pleg.yaml:2".into()));
        assert_eq!(
            period(&gathered(None, None, None)),
            ("1s", "default".into())
        );
    }

    #[test]
    fn what_is_printed_sets_the_same_when_it_is_read() {
        let file = "httpAllowedHosts: [a, b.example]\nfeatureGates: {EventedPLEG: false}\n\
                    grpcSocketGroup: \"0\"\nlogLevel: \"pleg=debug,h2=info\"\neventHistory: 77\n\
                    maxMessageSize: 70000\nhttpListen: \"[::1]:80\"\n";
        let layers = gathered(Some("1m 30s"), None, Some(file));
        let printed = layers.print();
        let again =
            ConfigFile::parse(&printed).unwrap_or_else(|error| panic!("{error:?} in\n{printed}"));
        for key in Key::ALL {
            let wanted = &layers.written(key).text;
            let found = again.settings.get(&key).map_or("", |(text, _)| text);
            assert_eq!(found, wanted, "{key:?} in\n{printed}");
        }
    }

    #[test]
    fn each_printed_line_tells_where_its_value_comes_from() {
        let printed = gathered(Some("2s"), None, Some("eventHistory: 7\n")).print();
        let line = |key: &str| {
            let mut lines = printed.lines();
            lines.find(|line| line.starts_with(key)).unwrap().to_owned()
        };
        assert!(line("relistPeriod:").ends_with("# --relist-period"));
        assert!(line("eventHistory:").ends_with("# /pleg.yaml:1"));
        assert!(line("httpListen:").ends_with("# default"));
    }
}
