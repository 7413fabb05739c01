//! What can be typed after `pleg simulate`. The doc comments are the help texts.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};

use crate::cri::Endpoint;
use crate::simulate::Preset;

#[derive(Debug, PartialEq, ClapArgs)]
#[command(after_help = "\
Ends at Ctrl-C and prints what it was asked, what it told and what it cost; on
SIGUSR2 it prints what that has been so far, and goes on.

Examples: a big node that stumbles after ten seconds
  pleg simulate --listen unix:///tmp/cri.sock --pods 1000 --containers 3 \\
    --burst 1000 --burst-after 10s

A load for another client: quiet until SIGUSR1, then 100 starts and ends a second
  pleg simulate --listen unix:///tmp/cri.sock --pods 1000 --containers 3 \\
    --churn 100/s --held --output json")]
pub(crate) struct SimulateArgs {
    /// The socket to serve
    #[arg(long, value_name = "SOCKET")]
    pub(crate) listen: Endpoint,

    /// The runtime to be: containerd-1.6, containerd-1.7, containerd-2, cri-o or cri-o-events-off
    #[arg(long, value_name = "RUNTIME", default_value_t)]
    pub(crate) character: Preset,

    /// Pods that run
    #[arg(long, value_name = "N", default_value = "8", value_parser = within::<0, 10_000>)]
    pub(crate) pods: usize,

    /// Containers in each pod [default: one to three]
    #[arg(long, value_name = "N", value_parser = within::<0, 100>)]
    pub(crate) containers: Option<usize>,

    /// Starts and ends per second
    #[arg(long, value_name = "RATE", default_value = "6/s")]
    pub(crate) churn: ChurnRate,

    /// Churn by restarts alone, each of which works
    #[arg(long)]
    pub(crate) restarts_only: bool,

    /// Ends and starts at once: SIGUSR1, --burst-after
    #[arg(long, value_name = "N", value_parser = within::<1, 100_000>)]
    pub(crate) burst: Option<usize>,

    /// When the first burst comes by itself
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration, requires = "burst")]
    pub(crate) burst_after: Option<Duration>,

    /// Let nothing happen before the first SIGUSR1
    #[arg(long)]
    pub(crate) held: bool,

    /// Stream lists too, N a message (containerd: 5000)
    #[arg(long, value_name = "N", value_parser = within::<1, 1_000_000>)]
    pub(crate) streaming_lists: Option<usize>,

    /// How fast things happen
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = parse_speed)]
    pub(crate) speed: f64,

    /// Live through this scenario, as pleg replay does
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "character", "pods", "containers", "churn", "restarts_only", "burst", "held",
        "streaming_lists", "seed",
    ])]
    pub(crate) scenario: Option<PathBuf>,

    /// End after this time (30s, 5m, 1h30m)
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) lasting: Option<Duration>,

    /// How to print its account
    #[arg(long, short = 'o', value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: AccountFormat,

    /// The same number, the same simulation
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// How `simulate` prints its account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccountFormat {
    // Lines
    #[default]
    Text,
    // One JSON object
    Json,
}

/// Container starts and ends per second: `100/s`, or the number alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ChurnRate(pub(crate) f64);

impl FromStr for ChurnRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.strip_suffix("/s")
            .unwrap_or(text)
            .parse()
            .ok()
            .filter(|rate| (0.0..=1e6).contains(rate))
            .map(Self)
            .ok_or_else(|| "rates are written like 100/s, from 0 to a million".to_owned())
    }
}

/// A number that the memory of a machine has room for.
fn within<const LEAST: usize, const MOST: usize>(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| (LEAST..=MOST).contains(number))
        .ok_or_else(|| format!("must be a number from {LEAST} to {MOST}"))
}

fn parse_speed(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|speed| (1e-3..=1e3).contains(speed))
        .ok_or_else(|| "must be a number from 0.001 to 1000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::super::args::{Args, CommandArgs};
    use super::*;
    use clap::Parser;

    fn parsed(words: &str) -> Result<Args, clap::Error> {
        Args::try_parse_from(
            ["pleg", "simulate"]
                .into_iter()
                .chain(words.split_whitespace()),
        )
    }

    #[test]
    fn what_no_machine_can_bear_is_refused_before_anything_is_made() {
        assert!(parsed("--listen unix:///x.sock --pods 10000 --containers 100").is_ok());
        for words in [
            "--pods 10001",
            "--pods 99999999999",
            "--containers 101",
            "--burst 99999999999999",
            "--streaming-lists 0",
            "--speed 1e-300",
            "--pods x",
        ] {
            let error = parsed(&format!("--listen unix:///x.sock {words}")).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{words}");
        }
    }

    #[test]
    fn a_simulation_may_be_seeded_without_another_word() {
        let args = parsed("--listen unix:///x.sock --seed 7 --churn 2.5/s --pods 3").unwrap();
        let CommandArgs::Simulate(simulate) = args.command else {
            panic!("it simulates");
        };
        assert_eq!(simulate.seed, Some(7));
        assert_eq!(simulate.churn, ChurnRate(2.5));
        assert_eq!((simulate.pods, simulate.containers), (3, None));
        assert_eq!("10".parse(), Ok(ChurnRate(10.0)));
    }

    #[test]
    fn nonsense_is_a_usage_error() {
        for words in [
            "",
            "--listen tcp://127.0.0.1:1",
            "--listen unix:///x --churn -1",
            "--listen unix:///x --churn often",
            "--listen unix:///x --churn 1e9/s",
            "--listen unix:///x --speed 0",
            "--listen unix:///x --burst-after 3s",
            "--listen unix:///x --scenario story.yaml --held",
            "--listen unix:///x --character docker",
        ] {
            assert_eq!(parsed(words).unwrap_err().exit_code(), 2, "{words}");
        }
    }
}
