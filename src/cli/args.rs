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
  pleg watch --simulate --for 10s  follow a simulated one: no runtime needed, nothing to set up
  pleg pods -o wide                the node's pods, now
  pleg status                      what the node's daemon does, and why"
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: CommandArgs,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Runtime")]
pub(crate) struct GlobalArgs {
    /// The runtime's socket [env: CONTAINER_RUNTIME_ENDPOINT] [default: /etc/crictl.yaml's, then the usual ones]
    #[arg(long, short = 'r', global = true, value_name = "ENDPOINT")]
    pub(crate) runtime_endpoint: Option<Endpoint>,

    /// crictl's configuration file [env: CRI_CONFIG_FILE] [default: /etc/crictl.yaml]
    #[arg(long, short = 'c', global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The largest answer to accept from the runtime [default: 16MiB]
    #[arg(long, global = true, value_name = "SIZE")]
    pub(crate) max_message_size: Option<ByteLimit>,

    /// Follow a simulated runtime instead of the node's
    #[arg(long, global = true, conflicts_with_all = ["runtime_endpoint", "config"])]
    pub(crate) simulate: bool,

    /// Let the simulation repeat itself: the same number, the same pods and crashes
    #[arg(long, global = true, value_name = "N", requires = "simulate")]
    pub(crate) seed: Option<u64>,

    /// What to log to stderr: off, error, warn, info, debug, trace, or directives as in tracing
    /// [env: PLEG_LOG] [default: warn; run: info]
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(crate) log_level: Option<LogLevel>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CommandArgs {
    /// Print lifecycle events as they happen
    Watch(WatchArgs),
    /// Print the node's pods and their containers
    Pods(PodsArgs),
    /// Be the node's daemon: one feed for everybody on the node
    Run(RunArgs),
    /// Print what the node's daemon does, and why; exits 0 if healthy, 1 if not, 2 if nobody can tell
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

/// Whom to ask: the daemon, or the runtime itself.
#[derive(Debug, ClapArgs)]
pub(crate) struct AskArgs {
    /// Ask the daemon at this socket [default: the one at /run/pleg/pleg.sock, if it runs]
    #[arg(long, value_name = "SOCKET", env = "PLEG_DAEMON", hide_env = true)]
    pub(crate) daemon: Option<Endpoint>,

    /// Ask the runtime itself, past a daemon that runs
    #[arg(long, conflicts_with = "daemon")]
    pub(crate) direct: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Every setting that --print-config shows is a flag too. Flags outrank variables (PLEG_RELIST_PERIOD
for --relist-period), which outrank the file (relistPeriod).

Example: without a runtime; see http://127.0.0.1:9641/ and, from elsewhere, pleg status
  pleg run --simulate --grpc-listen unix:///tmp/pleg.sock
  pleg status --daemon unix:///tmp/pleg.sock")]
pub(crate) struct RunArgs {
    /// The daemon's file [env: PLEG_CONFIG] [default: /etc/pleg/config.yaml, if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) settings_file: Option<PathBuf>,

    /// Print every setting with who has set it, and end
    #[arg(long)]
    pub(crate) print_config: bool,

    #[command(flatten)]
    pub(crate) settings: Flags,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example: why does this node poll?
  pleg status")]
pub(crate) struct StatusArgs {
    /// The daemon's socket [default: /run/pleg/pleg.sock]
    #[arg(long, value_name = "SOCKET", env = "PLEG_DAEMON", hide_env = true)]
    pub(crate) daemon: Option<Endpoint>,

    /// How to print it
    #[arg(long, short = 'o', value_enum, default_value_t)]
    pub(crate) output: StatusFormat,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example: what dies in kube-system in the next hour, as JSON
  pleg watch --namespace kube-system --type Died --for 1h -o json")]
pub(crate) struct WatchArgs {
    /// How to print events
    #[arg(long, short = 'o', value_enum, default_value_t)]
    pub(crate) output: WatchFormat,

    /// Where to begin: with what runs already, or with what happens from now on
    #[arg(long, value_enum, default_value_t)]
    pub(crate) from: Begin,

    /// End after this time (30s, 5m, 1h30m)
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) lasting: Option<Duration>,

    /// End after this many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
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
    #[arg(long, value_name = "GATES", default_value = "EventedPLEG=true")]
    pub(crate) feature_gates: Vec<FeatureGates>,

    /// Poll instead of following events; the same as --feature-gates EventedPLEG=false
    #[arg(long, conflicts_with = "feature_gates")]
    pub(crate) no_events: bool,

    /// At the end, write a recording of the last 10 minutes; SIGUSR1 writes one at any time
    #[arg(long, value_name = "FILE")]
    pub(crate) dump_last: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) ask: AskArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example: five minutes of the node's runtime, compressed, and what they tell on a laptop
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
        conflicts_with_all = ["lasting", "no_events"]
    )]
    pub(crate) last: Option<Duration>,

    /// With --last: the daemon's socket [default: /run/pleg/pleg.sock]
    #[arg(long, value_name = "SOCKET", env = "PLEG_DAEMON", hide_env = true)]
    pub(crate) daemon: Option<Endpoint>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example: the addresses of the pods in kube-system
  pleg pods --namespace kube-system -o wide")]
pub(crate) struct PodsArgs {
    /// How to print pods
    #[arg(long, short = 'o', value_enum, default_value_t)]
    pub(crate) output: PodsFormat,

    /// Print ids in full
    #[arg(long)]
    pub(crate) no_trunc: bool,

    /// Only pods of this namespace
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,

    #[command(flatten)]
    pub(crate) ask: AskArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Exits with 0 if all was told, 1 if something was lost that this runtime usually tells,
2 if it cannot tell: no runtime, no events, or nothing happened.

Example: ten minutes of a busy node, for a program to read
  pleg verify --for 10m -o json")]
pub(crate) struct VerifyArgs {
    /// How to print the report
    #[arg(long, short = 'o', value_enum, default_value_t)]
    pub(crate) output: VerifyFormat,

    /// How long to audit (30s, 5m, 1h30m)
    #[arg(long = "for", value_name = "DURATION", default_value = "1m", value_parser = humantime::parse_duration)]
    pub(crate) lasting: Duration,

    /// Go on where that takes events away from other clients: containerd 1.7 gives each to one only
    #[arg(long)]
    pub(crate) take_events: bool,
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
    #[arg(long, short = 'o', value_enum, default_value_t)]
    pub(crate) output: WatchFormat,

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
    // Aligned columns
    #[default]
    Table,
    // One JSON object a line
    Json,
}

/// How `pods` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PodsFormat {
    // Aligned columns
    #[default]
    Table,
    // The same with addresses, images, attempts and uids
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

    #[test]
    fn each_help_fits_a_screen_and_shows_an_example() {
        for name in [
            "watch", "pods", "run", "status", "record", "verify", "replay", "simulate",
        ] {
            let error = Args::try_parse_from(["pleg", name, "--help"]).unwrap_err();
            let help = error.to_string();
            assert!(help.contains("Example"), "{help}");
            assert!(help.lines().count() <= 42, "{name}:\n{help}");
            assert!(
                help.lines().all(|line| line.chars().count() <= 100),
                "{help}"
            );
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
