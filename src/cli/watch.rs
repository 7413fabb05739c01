//! `pleg watch`: lifecycle events, printed as they happen.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, bail};

use super::Variable;
use super::attach;
use super::config::{RuntimeConfig, WatchConfig};
use super::follow::{Console, Ending, follow};
use super::output::style::Colour;
use super::say;
use crate::engine::RuntimeVersion;

/// How long the end may take: closing the event stream and its thread.
const GOODBYE: Duration = Duration::from_secs(2);

/// Follows the runtime until something ends it.
pub(crate) async fn run(
    runtime: &RuntimeConfig,
    config: &WatchConfig,
    variable: Variable<'_>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    tokio::pin!(stop);
    let attached = tokio::select! {
        biased;
        () = &mut stop => return Ok(()),
        attached = attach::attach(runtime, config.events) => attached?,
    };
    if config.events && takes_events_away(&attached.version) {
        say(&format!(
            "pleg: {} {} has one queue of events for all its clients: following it takes events \
             away from any other event client of this node; --no-events polls instead",
            attached.version.name, attached.version.version
        ));
    }
    let console = Console {
        out: tokio::io::stdout(),
        err: tokio::io::stderr(),
        out_colour: Colour::suiting(&std::io::stdout(), variable),
        err_colour: Colour::suiting(&std::io::stderr(), variable),
    };
    let (events, modes) = (attached.watch(config.from)?, attached.modes());
    let following = attached.follow();
    let ending = follow(events, modes, config, console, &mut stop).await;
    // Bounded: a driver that does not end must not keep the command.
    let stopped = tokio::time::timeout(GOODBYE, following.stop()).await;
    let ending = ending.context("cannot write to standard output")?;
    match ending {
        Ending::FeedEnded => {
            stopped.context("following the runtime broke off")??;
            bail!("following the runtime broke off")
        }
        Ending::Lasted | Ending::Counted | Ending::Stopped | Ending::ReaderGone => Ok(()),
    }
}

/// Whether the runtime gives each event to one client only: containerd before 2 does.
fn takes_events_away(version: &RuntimeVersion) -> bool {
    let number = version.version.trim_start_matches('v');
    let major = number
        .split('.')
        .next()
        .and_then(|major| major.parse().ok());
    &*version.name == "containerd" && major.is_some_and(|major: u32| major < 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_containerd_before_2_takes_events_away() {
        for (name, version, expected) in [
            ("containerd", "1.7.24~ds1", true),
            ("containerd", "v1.6.20", true),
            ("containerd", "2.1.9", false),
            ("containerd", "v2.0.0-rc.1", false),
            ("containerd", "10.0.0", false),
            ("containerd", "unknown", false),
            ("cri-o", "1.36.3", false),
        ] {
            let version = RuntimeVersion {
                name: name.into(),
                version: version.into(),
                api_version: "v1".into(),
            };
            assert_eq!(takes_events_away(&version), expected, "{name} {version:?}");
        }
    }
}
