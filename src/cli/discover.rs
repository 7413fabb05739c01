//! Where the runtime may be, by crictl's conventions: flag, then variable, then file, then the usual
//! sockets.
//!
//! It says what to try and in which order; it never connects. The process's environment and the
//! fixed paths are parameters, so that nothing here depends on the machine it runs on.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::cri::Endpoint;

/// The variable that names the endpoint.
pub(crate) const ENDPOINT_VARIABLE: &str = "CONTAINER_RUNTIME_ENDPOINT";
/// The variable that names crictl's file.
pub(crate) const CONFIG_VARIABLE: &str = "CRI_CONFIG_FILE";
/// Where crictl keeps its file.
pub(crate) const DEFAULT_CONFIG: &str = "/etc/crictl.yaml";
/// Where runtimes listen unless told otherwise, in the order in which crictl tries them.
pub(crate) const USUAL_SOCKETS: [&str; 3] = [
    "unix:///run/containerd/containerd.sock",
    "unix:///run/crio/crio.sock",
    "unix:///var/run/cri-dockerd.sock",
];

/// Six short scalars; a file past this is not crictl's.
const CONFIG_LIMIT: u64 = 1 << 20;

/// What surrounds the process, as far as discovery looks at it.
pub(crate) struct Surroundings<'a> {
    /// Reads an environment variable.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// crictl's file if nobody names one; it need not exist.
    pub(crate) default_config: &'a Path,
    /// The endpoints to try if nobody names one.
    pub(crate) usual_sockets: &'a [&'a str],
}

/// Who named an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// `--runtime-endpoint`.
    Flag,
    /// `CONTAINER_RUNTIME_ENDPOINT`.
    Variable,
    /// The key `runtime-endpoint` of this file.
    ConfigFile(PathBuf),
    /// Nobody: it is where a runtime usually listens.
    UsualSocket,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("from --runtime-endpoint"),
            Self::Variable => write!(f, "from {ENDPOINT_VARIABLE}"),
            Self::ConfigFile(path) => write!(f, "from {}", path.display()),
            Self::UsualSocket => f.write_str("a usual socket"),
        }
    }
}

/// An endpoint to try, as it was written, and who named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The endpoint, not parsed yet if it comes from a file or a variable.
    pub(crate) endpoint: String,
    /// Who named it.
    pub(crate) origin: Origin,
}

/// crictl's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiscoverError {
    /// It cannot be read.
    #[error("cannot read crictl's file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no YAML, or the key holds no text.
    #[error("{}:{line}:{column}: {problem}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// What is wrong there.
        problem: String,
    },
}

/// The part of crictl's file that concerns us; its other keys are its own affair.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CrictlConfig {
    #[serde(default)]
    runtime_endpoint: Option<String>,
}

/// The endpoints to try, in order. An endpoint that somebody named is the only one: falling through
/// to another runtime would report on the wrong node.
///
/// # Errors
///
/// A file that was named but is not there, and any file that is there but cannot be understood. The
/// default file is not opened if a flag or a variable has named the endpoint.
pub(crate) fn candidates(
    flag: Option<&Endpoint>,
    config: Option<&Path>,
    around: &Surroundings<'_>,
) -> Result<Vec<Candidate>, DiscoverError> {
    // A file named on the command line is read even if a flag outranks it: a typing mistake in its
    // name must not go unnoticed.
    let from_named_file = config.map(read_config).transpose()?;

    if let Some(endpoint) = flag {
        return Ok(vec![Candidate {
            endpoint: endpoint.to_string(),
            origin: Origin::Flag,
        }]);
    }
    if let Some(endpoint) = said((around.variable)(ENDPOINT_VARIABLE)) {
        return Ok(vec![Candidate {
            endpoint,
            origin: Origin::Variable,
        }]);
    }
    let from_file = match from_named_file {
        Some(found) => found,
        None => match said((around.variable)(CONFIG_VARIABLE)) {
            Some(path) => read_config(Path::new(&path))?,
            None => match read_config(around.default_config) {
                Err(DiscoverError::Unreadable { source, .. })
                    if source.kind() == io::ErrorKind::NotFound =>
                {
                    None
                }
                read => read?,
            },
        },
    };
    if let Some(candidate) = from_file {
        return Ok(vec![candidate]);
    }
    Ok(around
        .usual_sockets
        .iter()
        .map(|&endpoint| Candidate {
            endpoint: endpoint.to_owned(),
            origin: Origin::UsualSocket,
        })
        .collect())
}

/// An empty setting is one that was not made.
fn said(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

fn read_config(path: &Path) -> Result<Option<Candidate>, DiscoverError> {
    let unreadable = |source| DiscoverError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(CONFIG_LIMIT + 1).read_to_string(&mut text))
        .map_err(unreadable)?;
    if text.len() as u64 > CONFIG_LIMIT {
        return Err(unreadable(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "larger than 1 MiB, which is no file of crictl's",
        )));
    }
    let config = parse_config(&text).map_err(|error| {
        let (line, column) = error
            .location()
            .map_or((1, 1), |at| (at.line(), at.column()));
        DiscoverError::Broken {
            path: path.to_owned(),
            line,
            column,
            problem: problem_of(&error, line, column),
        }
    })?;
    Ok(said(config.runtime_endpoint).map(|endpoint| Candidate {
        endpoint,
        origin: Origin::ConfigFile(path.to_owned()),
    }))
}

fn parse_config(text: &str) -> Result<CrictlConfig, serde_saphyr::Error> {
    // A file without any node is valid YAML, and says nothing.
    serde_saphyr::from_str::<Option<CrictlConfig>>(text).map(Option::unwrap_or_default)
}

/// The parser's first line, without the position that is told beside it and without the excerpt.
fn problem_of(error: &serde_saphyr::Error, line: u64, column: u64) -> String {
    let text = error.without_snippet().to_string();
    let problem = text.lines().next().unwrap_or("not YAML");
    let position = format!(" at line {line}, column {column}");
    problem
        .strip_suffix(&position)
        .unwrap_or(problem)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;
    use tempfile::TempDir;

    struct Node {
        dir: TempDir,
        variables: BTreeMap<&'static str, String>,
    }

    impl Node {
        fn new() -> Self {
            Self {
                dir: TempDir::new().unwrap(),
                variables: BTreeMap::new(),
            }
        }

        fn file(&self, name: &str, text: &str) -> PathBuf {
            let path = self.dir.path().join(name);
            fs::write(&path, text).unwrap();
            path
        }

        fn variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
            self.variables.insert(name, value.into());
            self
        }

        fn find(
            &self,
            flag: Option<&str>,
            config: Option<&Path>,
        ) -> Result<Vec<Candidate>, DiscoverError> {
            let flag = flag.map(|text| text.parse().unwrap());
            candidates(
                flag.as_ref(),
                config,
                &Surroundings {
                    variable: &|name| self.variables.get(name).cloned(),
                    default_config: &self.dir.path().join("crictl.yaml"),
                    usual_sockets: &USUAL_SOCKETS,
                },
            )
        }

        fn only(&self, flag: Option<&str>, config: Option<&Path>) -> (String, Origin) {
            let found = self.find(flag, config).unwrap();
            assert_eq!(found.len(), 1, "{found:?}");
            (found[0].endpoint.clone(), found[0].origin.clone())
        }
    }

    #[test]
    fn without_any_setting_the_usual_sockets_are_tried_in_crictls_order() {
        let found = Node::new().find(None, None).unwrap();
        let endpoints: Vec<_> = found.iter().map(|c| c.endpoint.as_str()).collect();
        assert_eq!(
            endpoints,
            [
                "unix:///run/containerd/containerd.sock",
                "unix:///run/crio/crio.sock",
                "unix:///var/run/cri-dockerd.sock"
            ]
        );
        assert!(found.iter().all(|c| c.origin == Origin::UsualSocket));
    }

    #[test]
    fn the_flag_outranks_the_variable_which_outranks_the_file() {
        let node = Node::new().variable(ENDPOINT_VARIABLE, "unix:///variable");
        node.file("crictl.yaml", "runtime-endpoint: unix:///file\n");
        assert_eq!(
            node.only(Some("unix:///flag"), None),
            ("unix:///flag".into(), Origin::Flag)
        );
        assert_eq!(
            node.only(None, None),
            ("unix:///variable".into(), Origin::Variable)
        );
        let node = Node::new();
        let path = node.file("crictl.yaml", "runtime-endpoint: unix:///file\n");
        assert_eq!(
            node.only(None, None),
            ("unix:///file".into(), Origin::ConfigFile(path))
        );
    }

    #[test]
    fn a_file_named_by_flag_outranks_one_named_by_variable_which_outranks_the_default() {
        let node = Node::new();
        node.file("crictl.yaml", "runtime-endpoint: unix:///default\n");
        let by_variable = node.file("variable.yaml", "runtime-endpoint: unix:///variable\n");
        let by_flag = node.file("flag.yaml", "runtime-endpoint: unix:///flag\n");
        let node = node.variable(CONFIG_VARIABLE, by_variable.to_str().unwrap());
        assert_eq!(node.only(None, Some(&by_flag)).0, "unix:///flag");
        assert_eq!(node.only(None, None).0, "unix:///variable");
    }

    #[test]
    fn crictls_other_keys_are_no_error_and_neither_are_an_empty_file_or_an_empty_key() {
        let node = Node::new();
        let full = node.file(
            "full.yaml",
            "# by hand\nruntime-endpoint: \"unix:///run/x.sock\"\nimage-endpoint: unix:///y\n\
             timeout: 10\ndebug: false\npull-image-on-create: true\nfuture: {a: [1, 2]}\n",
        );
        assert_eq!(node.only(None, Some(&full)).0, "unix:///run/x.sock");
        for text in [
            "",
            "\n",
            "# nothing\n",
            "---\n",
            "timeout: 2\n",
            "runtime-endpoint: \"\"\n",
            "runtime-endpoint:\n",
        ] {
            let path = node.file("silent.yaml", text);
            let found = node.find(None, Some(&path)).unwrap();
            assert_eq!(found.len(), 3, "{text:?} names no endpoint: {found:?}");
        }
    }

    #[test]
    fn an_empty_variable_is_no_setting() {
        let node = Node::new()
            .variable(ENDPOINT_VARIABLE, "")
            .variable(CONFIG_VARIABLE, " ");
        assert_eq!(node.find(None, None).unwrap().len(), 3);
    }

    #[test]
    fn a_broken_file_is_named_with_line_and_column() {
        let node = Node::new();
        for (text, place) in [
            ("timeout: 2\nruntime-endpoint: \"unix:///x\n", ":2:"),
            ("timeout: 2\nruntime-endpoint: [a, b]\n", ":2:19: "),
            ("- a\n- b\n", ":1:1: "),
        ] {
            let path = node.file("crictl.yaml", text);
            let error = node.find(None, None).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{}{place}", path.display())),
                "{text:?}: {error}"
            );
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_file_that_was_named_must_be_there_even_if_a_flag_outranks_it() {
        let node = Node::new();
        let missing = node.dir.path().join("crictl.yml");
        let error = node.find(Some("unix:///flag"), Some(&missing)).unwrap_err();
        assert!(error.to_string().contains("crictl.yml"), "{error}");
        assert!(matches!(error, DiscoverError::Unreadable { .. }));

        let node = node.variable(CONFIG_VARIABLE, missing.to_str().unwrap());
        assert!(node.find(None, None).is_err());
    }

    #[test]
    fn a_broken_default_file_matters_only_if_it_is_needed() {
        let node = Node::new();
        node.file("crictl.yaml", "runtime-endpoint: [");
        assert_eq!(node.only(Some("unix:///flag"), None).1, Origin::Flag);
        assert!(node.find(None, None).is_err());
    }

    #[test]
    fn a_file_that_never_ends_is_refused() {
        let error = Node::new()
            .find(None, Some(Path::new("/dev/zero")))
            .unwrap_err();
        assert!(matches!(error, DiscoverError::Unreadable { .. }), "{error}");
    }
}
