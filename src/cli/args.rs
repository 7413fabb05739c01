//! What can be typed. The doc comments here are the help texts; what the words mean is [`super::config`]'s.

#![expect(
    clippy::doc_markdown,
    reason = "these comments are printed as they are, and backticks would be too"
)]

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use super::config::{ByteLimit, FeatureGates, LogLevel};
use super::run::Flags;
#[cfg(feature = "simulate")]
use super::simulate::args::SimulateArgs;
use crate::cri::Endpoint;
use crate::lifecycle::LifecycleKind;

/// Follow a node's container runtime: pods and their lifecycle events, read-only
#[derive(Debug, Parser)]
#[command(
    name = "pleg",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  pleg watch                       follow the node's runtime
  pleg watch --simulate --for 10s  follow a simulated one, for ten seconds
  pleg pods                        the node's pods, now
  pleg status                      what the node's daemon does, and why
  pleg watch --help                all that watch can do

The runtime is found as crictl finds it: --runtime-endpoint, else the variable
CONTAINER_RUNTIME_ENDPOINT, else the file that --config or CRI_CONFIG_FILE names
or /etc/crictl.yaml, else the usual sockets of containerd, CRI-O and cri-dockerd.
PLEG_LOG is --log-level for every subcommand; NO_COLOR turns colours off."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: CommandArgs,
}

/// Which runtime, and how to speak to it: of the subcommands that follow one, and of no others.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Runtime")]
pub(crate) struct RuntimeArgs {
    /// The runtime's socket [default: as crictl]
    #[arg(long, short = 'r', value_name = "SOCKET")]
    pub(crate) runtime_endpoint: Option<Endpoint>,

    /// crictl's file [default: /etc/crictl.yaml]
    #[arg(long, short = 'c', value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Largest answer to take [default: 16MiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_message_size: Option<ByteLimit>,

    /// Follow a simulated runtime instead
    #[arg(long, conflicts_with_all = ["runtime_endpoint", "config"])]
    pub(crate) simulate: bool,

    /// The same number, the same simulation
    #[arg(long, value_name = "N", requires = "simulate")]
    pub(crate) seed: Option<u64>,

    /// off, error, warn, info, debug, trace
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<LogLevel>,
}

impl RuntimeArgs {
    /// Whether a runtime is named; whoever does so means that one, and no daemon's.
    pub(crate) fn names_one(&self) -> bool {
        self.simulate || self.runtime_endpoint.is_some() || self.config.is_some()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum CommandArgs {
    /// Print lifecycle events as they happen
    Watch(WatchArgs),
    /// Print the node's pods and their containers
    Pods(PodsArgs),
    /// Be the node's daemon: one feed for everybody on the node
    Run(RunArgs),
    /// Print what the node's daemon does, and why
    Status(StatusArgs),
    /// Record what the runtime says, for a replay elsewhere
    Record(RecordArgs),
    /// Audit the runtime's event stream against its own lists
    Verify(VerifyArgs),
    /// Play scenarios and recordings and tell what was not as expected
    Replay(ReplayArgs),
    /// Be a container runtime without containers, for any client of CRI
    #[cfg(feature = "simulate")]
    Simulate(SimulateArgs),
}

impl CommandArgs {
    /// Which runtime is to be followed; `None` if none is.
    pub(crate) fn runtime(&self) -> Option<&RuntimeArgs> {
        match self {
            Self::Watch(watch) => Some(&watch.runtime),
            Self::Pods(pods) => Some(&pods.runtime),
            Self::Run(run) => Some(&run.runtime),
            Self::Verify(verify) => Some(&verify.runtime),
            Self::Record(record) if record.last.is_none() => Some(&record.runtime),
            // Scenarios bring their own, and what the daemon knows is the daemon's.
            Self::Record(_) | Self::Status(_) | Self::Replay(_) => None,
            #[cfg(feature = "simulate")]
            Self::Simulate(_) => None,
        }
    }
}

/// Whom to ask: the daemon, or the runtime itself.
#[derive(Debug, ClapArgs)]
pub(crate) struct AskArgs {
    /// Ask the daemon here [default: /run/pleg/pleg.sock, if it runs]
    #[arg(long, value_name = "SOCKET", conflicts_with_all = [
        "runtime_endpoint", "config", "max_message_size", "simulate",
    ])]
    pub(crate) daemon: Option<Endpoint>,

    /// Ask the runtime itself, past a daemon that runs
    #[arg(long, conflicts_with = "daemon")]
    pub(crate) direct: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Every setting that --print-config shows is a flag too. Flags outrank variables
(PLEG_RELIST_PERIOD), which outrank the file (relistPeriod).

Example: without a runtime; then see http://127.0.0.1:9641/ or ask for its status
  pleg run --simulate --grpc-listen unix:///tmp/pleg.sock
  pleg status --daemon unix:///tmp/pleg.sock")]
pub(crate) struct RunArgs {
    /// The daemon's file [default: PLEG_CONFIG, else /etc/pleg/config.yaml if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) settings_file: Option<PathBuf>,

    /// Print each setting and who has set it, and end
    #[arg(long)]
    pub(crate) print_config: bool,

    #[command(flatten)]
    pub(crate) runtime: RuntimeArgs,

    #[command(flatten)]
    pub(crate) settings: Flags,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Exits with 0 if the node is healthy, 1 if it is not, 2 if nobody can tell.

Example: why does this node poll?
  pleg status")]
pub(crate) struct StatusArgs {
    /// The daemon's socket [default: PLEG_DAEMON, else /run/pleg/pleg.sock]
    #[arg(long, value_name = "SOCKET")]
    pub(crate) daemon: Option<Endpoint>,

    /// How to print it
    #[arg(long, short = 'o', value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: StatusFormat,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example: what dies in kube-system in the next hour, as JSON
  pleg watch --namespace kube-system --type Died --for 1h -o json")]
pub(crate) struct WatchArgs {
    /// How to print; wide has every column whatever the terminal's width
    #[arg(long, short = 'o', value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: WatchFormat,

    /// Begin with what there is already, or with what is new
    #[arg(long, value_name = "FROM", value_enum, default_value_t)]
    pub(crate) from: Begin,

    /// End after this time (30s, 5m, 1h30m)
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) lasting: Option<Duration>,

    /// End after this many events
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) count: Option<u64>,

    /// Only events of this type: Started, Died, Removed or PodSync; may be repeated
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_kind)]
    pub(crate) kinds: Vec<LifecycleKind>,

    /// Only pods of this namespace
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,

    /// Only pods of this name or uid
    #[arg(long, value_name = "POD")]
    pub(crate) pod: Option<String>,

    /// As the kubelet's: EventedPLEG=false polls instead of following events
    #[arg(long, value_name = "GATES", conflicts_with = "daemon")]
    pub(crate) feature_gates: Vec<FeatureGates>,

    /// Poll instead; the same as EventedPLEG=false
    #[arg(long, conflicts_with_all = ["feature_gates", "daemon"])]
    pub(crate) no_events: bool,

    /// At the end, write a recording of the last 10 minutes; SIGUSR1 writes one at any time
    #[arg(long, value_name = "FILE", conflicts_with = "daemon")]
    pub(crate) dump_last: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) ask: AskArgs,

    #[command(flatten)]
    pub(crate) runtime: RuntimeArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example: five minutes of the node's runtime, and what they tell on a laptop
  pleg record --out node.jsonl.zst --for 5m
  pleg replay node.jsonl.zst

Example: what the node's daemon has of the last ten minutes
  pleg record --out node.jsonl.zst --last 10m")]
pub(crate) struct RecordArgs {
    /// Where to; a name that ends in .zst has it compressed
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,

    /// End after this time (30s, 5m, 1h30m)
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) lasting: Option<Duration>,

    /// Poll instead of following events
    #[arg(long)]
    pub(crate) no_events: bool,

    /// Fetch what the daemon's flight recorder has of so much time, and record nothing anew
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = humantime::parse_duration,
        conflicts_with_all = [
            "lasting", "no_events", "runtime_endpoint", "config", "max_message_size", "simulate",
            "log_level",
        ]
    )]
    pub(crate) last: Option<Duration>,

    /// With --last: the daemon's socket [default: /run/pleg/pleg.sock]
    #[arg(long, value_name = "SOCKET", requires = "last")]
    pub(crate) daemon: Option<Endpoint>,

    #[command(flatten)]
    pub(crate) runtime: RuntimeArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example: the addresses of the pods in kube-system
  pleg pods --namespace kube-system -o wide")]
pub(crate) struct PodsArgs {
    /// How to print; wide has every column whatever the terminal's width
    #[arg(long, short = 'o', value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: PodsFormat,

    /// Print ids in full
    #[arg(long)]
    pub(crate) no_trunc: bool,

    /// Only pods of this namespace
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,

    #[command(flatten)]
    pub(crate) ask: AskArgs,

    #[command(flatten)]
    pub(crate) runtime: RuntimeArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Exits with 0 if all was told, 1 if something was lost that this runtime usually
tells, 2 if it cannot tell: no runtime, no events, or nothing happened.

Example: ten minutes of a busy node, for a program to read
  pleg verify --for 10m -o json")]
pub(crate) struct VerifyArgs {
    /// How to print the report
    #[arg(long, short = 'o', value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: VerifyFormat,

    /// How long to audit (30s, 5m, 1h30m)
    #[arg(long = "for", value_name = "DURATION", default_value = "1m", value_parser = humantime::parse_duration)]
    pub(crate) lasting: Duration,

    /// Go on where that takes events away from other clients: containerd 1.7 gives each to one only
    #[arg(long)]
    pub(crate) take_events: bool,

    #[command(flatten)]
    pub(crate) runtime: RuntimeArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Exits with 1 if anything was not as expected.

Example: every scenario of a folder
  pleg replay scenarios")]
pub(crate) struct ReplayArgs {
    /// Scenarios (.yaml), recordings (.jsonl, .jsonl.zst), or folders of them
    #[arg(required_unless_present = "random", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Play so many random stories instead; one that fails is made small and printed as a scenario
    #[arg(long, value_name = "SEEDS", conflicts_with_all = ["paths", "trace", "report", "expect_same_as"])]
    pub(crate) random: Option<u64>,

    /// The seed of the first random story; the others follow it
    #[arg(long, value_name = "SEED", default_value_t = 1, requires = "random")]
    pub(crate) first_seed: u64,

    /// How to print results
    #[arg(long, short = 'o', value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: ReplayFormat,

    /// Print everything that went into the engine and came out of it, too
    #[arg(long)]
    pub(crate) trace: bool,

    /// Write what happened as one HTML page, a lane for each pod
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// What a recording must tell: a trace, or what pleg watch -o json printed
    #[arg(long, value_name = "TRACE")]
    pub(crate) expect_same_as: Option<PathBuf>,
}

// The variants carry plain comments: documented ones would double the length of each help.

/// How `watch` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum WatchFormat {
    // As many columns as the terminal is wide
    #[default]
    Table,
    // All of them
    Wide,
    // One JSON object a line
    Json,
}

/// How `replay` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayFormat {
    // A line for each file, and what was not as expected
    #[default]
    Table,
    // One JSON object a line
    Json,
}

/// How `pods` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PodsFormat {
    // As many columns as the terminal is wide
    #[default]
    Table,
    // All of them: with addresses, images, attempts and uids
    Wide,
    // One JSON object
    Json,
    // The same as YAML
    Yaml,
}

/// How `verify` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyFormat {
    // Findings, then tables
    #[default]
    Table,
    // One JSON object
    Json,
}

/// How `status` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusFormat {
    // A sentence, then a line for each thing
    #[default]
    Table,
    // One JSON object
    Json,
}

/// Where `watch` begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Begin {
    // With events that tell what is there
    #[default]
    Snapshot,
    // With the next change
    Now,
}

fn parse_count(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "must be a whole number of at least 1".to_owned())
}

fn parse_kind(text: &str) -> Result<LifecycleKind, String> {
    let short = match text.get(..9) {
        Some(prefix) if prefix.eq_ignore_ascii_case("container") => &text[9..],
        _ => text,
    };
    [
        ("Started", LifecycleKind::ContainerStarted),
        ("Died", LifecycleKind::ContainerDied),
        ("Removed", LifecycleKind::ContainerRemoved),
        ("PodSync", LifecycleKind::PodSync),
    ]
    .into_iter()
    .find(|(name, _)| name.eq_ignore_ascii_case(short))
    .map(|(_, kind)| kind)
    .ok_or_else(|| "the types are Started, Died, Removed and PodSync".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_holds_together() {
        Args::command().debug_assert();
    }

    /// The help of a subcommand on a terminal of 80 columns.
    fn help(name: &str) -> String {
        let command = Args::command().term_width(80);
        let error = command
            .try_get_matches_from(["pleg", name, "--help"])
            .expect_err("help is no invocation");
        error.to_string()
    }

    #[test]
    fn each_help_fits_a_screen_of_80_columns_and_shows_an_example() {
        let command = Args::command();
        let names = command.get_subcommands().map(clap::Command::get_name);
        for name in names.chain(["--help"]) {
            let help = help(name);
            assert!(help.contains("Example"), "{help}");
            let lines = help.lines().count();
            assert!(lines <= 40, "{name}: {lines} lines\n{help}");
            let long = help.lines().find(|line| line.chars().count() > 80);
            assert_eq!(long, None, "{name}");
            // Examples are laid out by hand: one that is wrapped is too long.
            let whole = help
                .lines()
                .filter(|line| line.starts_with("  pleg "))
                .count();
            assert!(whole >= 1, "{help}");
        }
    }

    #[test]
    fn whoever_follows_no_runtime_knows_no_flags_of_one() {
        for name in ["status", "replay", "simulate"] {
            let help = help(name);
            assert!(!help.contains("Runtime:"), "{help}");
            for flag in ["--simulate", "--runtime-endpoint=/x.sock", "--config=x"] {
                let error = Args::try_parse_from(["pleg", name, flag]).unwrap_err();
                assert_eq!(
                    error.kind(),
                    clap::error::ErrorKind::UnknownArgument,
                    "{name} {flag}"
                );
            }
        }
        for flag in [
            "--simulate",
            "--runtime-endpoint=/x.sock",
            "--log-level=info",
        ] {
            let words = ["pleg", "record", "--out=x", "--last=1m", flag];
            assert!(Args::try_parse_from(words).is_err(), "{flag}");
            let words = ["pleg", "pods", "--daemon=/x.sock", flag];
            let is_log = flag.starts_with("--log");
            assert_eq!(Args::try_parse_from(words).is_ok(), is_log, "{flag}");
        }
    }

    #[test]
    fn event_types_are_taken_with_and_without_the_kubelets_prefix() {
        for text in ["Died", "died", "ContainerDied", "containerdied"] {
            assert_eq!(parse_kind(text), Ok(LifecycleKind::ContainerDied), "{text}");
        }
        assert_eq!(parse_kind("PodSync"), Ok(LifecycleKind::PodSync));
        for text in ["", "Container", "containerä", "ContainerChanged", "Die"] {
            assert!(parse_kind(text).is_err(), "{text}");
        }
    }
}
