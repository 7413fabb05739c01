//! What was typed, understood: the one step from [`Args`] to [`Config`].
//!
//! It reads crictl's file and the environment through [`Surroundings`] and does nothing else;
//! whatever is wrong with the invocation comes out here, before anything is connected.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tracing_subscriber::filter::{LevelFilter, Targets};

use super::args::{
    Args, AskArgs, Begin, CommandArgs, PodsFormat, ReplayFormat, VerifyFormat, WatchArgs,
    WatchFormat,
};
use super::daemon::DaemonChoice;
use super::discover::{self, Candidate, DiscoverError, Surroundings};
use super::run::{LogFormat, RunConfig, SettingsError};
#[cfg(feature = "simulate")]
use super::simulate::args::SimulateArgs;
use super::status::StatusConfig;
use crate::cri::Endpoint;
use crate::lifecycle::{LifecycleEvent, LifecycleKind, PodIdentity};

/// The variable that names the daemon's socket.
const DAEMON_VARIABLE: &str = "PLEG_DAEMON";

/// One invocation.
#[derive(Debug, PartialEq)]
pub(crate) struct Config {
    /// What to log.
    pub(crate) log: LogLevel,
    /// How to log it.
    pub(crate) log_format: LogFormat,
    /// Which runtime, and how to speak to it.
    pub(crate) runtime: RuntimeConfig,
    /// What to do.
    pub(crate) command: Command,
}

/// Which runtime, and how to speak to it.
#[derive(Debug, PartialEq)]
pub(crate) struct RuntimeConfig {
    /// Which.
    pub(crate) choice: RuntimeChoice,
    /// The largest answer to accept, in bytes.
    pub(crate) max_message_size: usize,
}

/// Which runtime to follow.
#[derive(Debug, PartialEq)]
pub(crate) enum RuntimeChoice {
    /// The first of these that answers.
    Node(Vec<Candidate>),
    /// One of our own, in this process.
    Simulated {
        /// What it begins from; absent: the simulation's own default.
        seed: Option<u64>,
    },
}

/// What to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    /// Print lifecycle events.
    Watch(WatchConfig),
    /// Print the pods once.
    Pods(PodsConfig),
    /// Be the node's daemon.
    Run(RunConfig),
    /// Print what the daemon does.
    Status(StatusConfig),
    /// Record what the runtime says.
    Record(RecordConfig),
    /// Audit the runtime's event stream.
    Verify(VerifyConfig),
    /// Fetch what the daemon has recorded.
    RecordLast(RecordLastConfig),
    /// Play scenarios.
    Replay(ReplayConfig),
    /// Serve a simulated runtime.
    #[cfg(feature = "simulate")]
    Simulate(SimulateArgs),
}

/// What `watch` prints and when it ends.
#[derive(Debug, PartialEq)]
pub(crate) struct WatchConfig {
    /// How to print.
    pub(crate) format: WatchFormat,
    /// Where to begin.
    pub(crate) from: Begin,
    /// Ends after this time.
    pub(crate) lasting: Option<Duration>,
    /// Ends after this many events.
    pub(crate) count: Option<u64>,
    /// Which events to print.
    pub(crate) filter: EventFilter,
    /// Whether to follow the runtime's events; else it is polled.
    pub(crate) events: bool,
    /// Where the last minutes go at the end.
    pub(crate) dump_last: Option<PathBuf>,
    /// Whom to ask.
    pub(crate) daemon: DaemonChoice,
}

/// What `record` writes and when it ends.
#[derive(Debug, PartialEq)]
pub(crate) struct RecordConfig {
    /// Where to.
    pub(crate) out: PathBuf,
    /// Ends after this time.
    pub(crate) lasting: Option<Duration>,
    /// Whether to follow the runtime's events; else it is polled.
    pub(crate) events: bool,
}

/// What `record --last` fetches.
#[derive(Debug, PartialEq)]
pub(crate) struct RecordLastConfig {
    /// Where to.
    pub(crate) out: PathBuf,
    /// How much.
    pub(crate) span: Duration,
    /// From which daemon.
    pub(crate) daemon: DaemonChoice,
}

/// What `pods` prints.
#[derive(Debug, PartialEq)]
pub(crate) struct PodsConfig {
    /// How to print.
    pub(crate) format: PodsFormat,
    /// Whether ids are cut.
    pub(crate) cut_ids: bool,
    /// Only this namespace.
    pub(crate) namespace: Option<String>,
    /// Whom to ask.
    pub(crate) daemon: DaemonChoice,
}

/// What `verify` audits and prints.
#[derive(Debug, PartialEq)]
pub(crate) struct VerifyConfig {
    /// How to print.
    pub(crate) format: VerifyFormat,
    /// How long to audit.
    pub(crate) lasting: Duration,
    /// Whether it may take events away from other clients.
    pub(crate) may_take_events: bool,
}

/// What `replay` plays and prints.
#[derive(Debug, PartialEq)]
pub(crate) struct ReplayConfig {
    /// Scenarios, recordings, or folders of them.
    pub(crate) paths: Vec<PathBuf>,
    /// Random stories instead: the seeds.
    pub(crate) random: Option<std::ops::Range<u64>>,
    /// How to print.
    pub(crate) format: ReplayFormat,
    /// Whether to print the traces.
    pub(crate) trace: bool,
    /// Where the report goes.
    pub(crate) report: Option<PathBuf>,
    /// What a recording must tell.
    pub(crate) expect_same_as: Option<PathBuf>,
}

impl Config {
    /// Understands what was typed.
    ///
    /// # Errors
    ///
    /// crictl's file is needed and cannot be used, or a variable or the daemon's file makes no sense.
    pub(crate) fn from_args(args: Args, around: &Surroundings<'_>) -> Result<Self, ConfigError> {
        let follows = args.command.runtime().cloned();
        let runtime = follows.clone().unwrap_or_default();
        let names_runtime = runtime.names_one();
        let command = match args.command {
            CommandArgs::Watch(watch) => {
                Command::Watch(understand_watch(watch, names_runtime, around)?)
            }
            CommandArgs::Pods(pods) => Command::Pods(PodsConfig {
                format: pods.output,
                cut_ids: !pods.no_trunc,
                namespace: pods.namespace,
                daemon: whom(pods.ask, names_runtime, around)?,
            }),
            CommandArgs::Run(run) => Command::Run(RunConfig::understand(run, around.variable)?),
            CommandArgs::Status(status) => Command::Status(StatusConfig {
                daemon: which_daemon(status.daemon, around)?,
                format: status.output,
            }),
            CommandArgs::Record(record) => match record.last {
                Some(span) => Command::RecordLast(RecordLastConfig {
                    out: record.out,
                    span,
                    daemon: which_daemon(record.daemon, around)?,
                }),
                None => Command::Record(RecordConfig {
                    out: record.out,
                    lasting: record.lasting,
                    events: !record.no_events,
                }),
            },
            CommandArgs::Verify(verify) => Command::Verify(VerifyConfig {
                format: verify.output,
                lasting: verify.lasting,
                may_take_events: verify.take_events,
            }),
            CommandArgs::Replay(replay) => Command::Replay(ReplayConfig {
                paths: replay.paths,
                random: replay
                    .random
                    .map(|seeds| replay.first_seed..replay.first_seed.saturating_add(seeds)),
                format: replay.output,
                trace: replay.trace,
                report: replay.report,
                expect_same_as: replay.expect_same_as,
            }),
            #[cfg(feature = "simulate")]
            CommandArgs::Simulate(simulate) => Command::Simulate(simulate),
        };
        let (log, log_format, max_message_size, endpoint) = match &command {
            Command::Run(RunConfig { settings, .. }) => (
                settings.log_level.clone(),
                settings.log_format,
                settings.max_message_size,
                settings.runtime_endpoint.as_ref(),
            ),
            _ => (
                log_level(runtime.log_level, around)?,
                LogFormat::Text,
                runtime.max_message_size.unwrap_or(ByteLimit::USUAL).0,
                runtime.runtime_endpoint.as_ref(),
            ),
        };
        let choice = if runtime.simulate || follows.is_none() {
            RuntimeChoice::Simulated { seed: runtime.seed }
        } else {
            let crictls = runtime.config.as_deref();
            RuntimeChoice::Node(discover::candidates(endpoint, crictls, around)?)
        };
        Ok(Self {
            log,
            log_format,
            runtime: RuntimeConfig {
                choice,
                max_message_size,
            },
            command,
        })
    }
}

/// The level of a subcommand that has no settings of its own.
fn log_level(flag: Option<LogLevel>, around: &Surroundings<'_>) -> Result<LogLevel, ConfigError> {
    const VARIABLE: &str = "PLEG_LOG";
    match (flag, (around.variable)(VARIABLE)) {
        (Some(level), _) => Ok(level),
        (None, text) => text
            .unwrap_or_default()
            .parse()
            .map_err(|problem| ConfigError::Variable {
                name: VARIABLE,
                problem,
            }),
    }
}

/// An invocation that cannot be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// Nobody can tell where the runtime is.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// The daemon's settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A variable.
    #[error("{name}: {problem}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

fn understand_watch(
    args: WatchArgs,
    names_runtime: bool,
    around: &Surroundings<'_>,
) -> Result<WatchConfig, ConfigError> {
    // The last word counts, as with the kubelet's flag.
    let gate = args
        .feature_gates
        .iter()
        .rev()
        .find_map(|gates| gates.evented_pleg);
    let events = !args.no_events && gate.unwrap_or(true);
    // A daemon follows the runtime in its own way, and keeps its own recording.
    let own_way = names_runtime || !events || args.dump_last.is_some();
    Ok(WatchConfig {
        format: args.output,
        from: args.from,
        lasting: args.lasting,
        count: args.count,
        filter: EventFilter {
            kinds: args.kinds,
            namespace: args.namespace,
            pod: args.pod,
        },
        events,
        dump_last: args.dump_last,
        daemon: whom(args.ask, own_way, around)?,
    })
}

/// Whom to ask; `own_way` if something was typed that only the runtime itself can do.
fn whom(
    ask: AskArgs,
    own_way: bool,
    around: &Surroundings<'_>,
) -> Result<DaemonChoice, ConfigError> {
    if ask.direct || own_way {
        return Ok(DaemonChoice::Direct);
    }
    which_daemon(ask.daemon, around)
}

/// The daemon that a flag or else a variable names, or the usual one.
fn which_daemon(
    flag: Option<Endpoint>,
    around: &Surroundings<'_>,
) -> Result<DaemonChoice, ConfigError> {
    if let Some(socket) = flag {
        return Ok(DaemonChoice::At(socket));
    }
    let named = (around.variable)(DAEMON_VARIABLE).filter(|text| !text.trim().is_empty());
    match named.map(|text| text.parse()).transpose() {
        Ok(socket) => Ok(socket.map_or(DaemonChoice::Usual, DaemonChoice::At)),
        Err(error) => Err(ConfigError::Variable {
            name: DAEMON_VARIABLE,
            problem: error.to_string(),
        }),
    }
}

/// Which events to print. What is not named is not asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EventFilter {
    /// Any of these types.
    pub(crate) kinds: Vec<LifecycleKind>,
    /// Pods of this namespace.
    pub(crate) namespace: Option<String>,
    /// Pods of this name or uid.
    pub(crate) pod: Option<String>,
}

impl EventFilter {
    /// Whether an event is wanted.
    pub(crate) fn wants(&self, event: &LifecycleEvent) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && in_namespace(&event.pod, self.namespace.as_deref())
            && self
                .pod
                .as_deref()
                .is_none_or(|pod| *event.pod.name == *pod || event.pod.uid.as_str() == pod)
    }
}

/// Whether a pod is of a namespace, if one is asked for.
pub(crate) fn in_namespace(pod: &PodIdentity, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|wanted| *pod.namespace == *wanted)
}

/// A limit in bytes, from 64 KiB to 1 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteLimit(pub(crate) usize);

impl ByteLimit {
    /// gRPC's own limit in Go, which is the kubelet's: 16 MiB.
    pub(crate) const USUAL: Self = Self(16 << 20);
}

impl FromStr for ByteLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor: usize = match unit.trim() {
            "" | "B" => 1,
            "Ki" | "KiB" => 1 << 10,
            "Mi" | "MiB" => 1 << 20,
            "Gi" | "GiB" => 1 << 30,
            _ => return Err("sizes are written like 16MiB, 64KiB or 16777216".to_owned()),
        };
        number
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_mul(factor))
            .filter(|bytes| (64 << 10..=1 << 30).contains(bytes))
            .map(Self)
            .ok_or_else(|| "must be from 64KiB to 1GiB".to_owned())
    }
}

/// The gates of one `--feature-gates`, in the kubelet's syntax.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FeatureGates {
    /// `EventedPLEG`, if named.
    pub(crate) evented_pleg: Option<bool>,
}

impl FromStr for FeatureGates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut gates = Self::default();
        for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("{pair:?} has no value; write {}=false", pair.trim()))?;
            if name.trim() != "EventedPLEG" {
                return Err(format!(
                    "unknown gate {:?}; the known gates are: EventedPLEG",
                    name.trim()
                ));
            }
            // Go's words for a boolean, which are the kubelet's.
            gates.evented_pleg = Some(match value.trim() {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
                "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
                other => return Err(format!("{other:?} is neither true nor false")),
            });
        }
        Ok(gates)
    }
}

/// What to log: a level for `pleg` itself, or a level for each of several targets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogLevel {
    text: String,
    levels: Targets,
}

impl LogLevel {
    /// The filter.
    pub(crate) fn filter(&self) -> Targets {
        self.levels.clone()
    }
}

impl FromStr for LogLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // tracing reads an empty word as "error"; an empty variable is one that was not set.
        let text = if text.trim().is_empty() { "warn" } else { text };
        if let Ok(level) = text.parse::<LevelFilter>() {
            // Below a warning the transport's own lines would bury ours.
            let others = level.min(LevelFilter::WARN);
            return Ok(Self {
                text: format!("{others},pleg={level}"),
                levels: Targets::new()
                    .with_default(others)
                    .with_target("pleg", level),
            });
        }
        match text.parse::<Targets>() {
            Ok(levels) if text.contains(['=', ',']) => Ok(Self {
                text: text.to_owned(),
                levels,
            }),
            _ => Err(
                "the levels are off, error, warn, info, debug and trace; a filter looks like \
                 pleg=debug,h2=info"
                    .to_owned(),
            ),
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
