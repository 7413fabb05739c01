//! `pleg status`: what the node's daemon does and why, at a glance.
//!
//! Exit codes are a check's: 0 healthy, 1 not, 2 cannot tell.

use std::fmt::Write as _;
use std::future::Future;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;

use super::args::StatusFormat;
use super::daemon::{self, DaemonChoice};
use super::follow::write;
use super::output::style::{Screen, Tone};
use super::output::text::{message, shown, wrapped};
use super::{Variable, complain};
use crate::serve::status::{Age, Status};

/// What `status` prints.
#[derive(Debug, PartialEq)]
pub(crate) struct StatusConfig {
    /// Of which daemon.
    pub(crate) daemon: DaemonChoice,
    /// How.
    pub(crate) format: StatusFormat,
}

/// Nobody can tell how things are.
const CANNOT_TELL: u8 = 2;

/// Asks and prints.
pub(crate) async fn run(
    config: &StatusConfig,
    variable: Variable<'_>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<ExitCode> {
    let asked = async {
        let found = daemon::must_find(&config.daemon).await?;
        let status = found.client.status().await;
        status.map_err(|error| found.failed("ask the daemon", &error))
    };
    let status = tokio::select! {
        biased;
        () = stop => return Ok(ExitCode::from(CANNOT_TELL)),
        status = asked => status,
    };
    let status = match status {
        Ok(status) => status,
        Err(error) => {
            complain(&error);
            return Ok(ExitCode::from(CANNOT_TELL));
        }
    };
    let text = match config.format {
        StatusFormat::Table => table(&status, Screen::of(&io::stdout(), variable)),
        StatusFormat::Json => {
            let mut json = serde_json::to_string_pretty(&status)?;
            json.push('\n');
            json
        }
    };
    match write(&mut tokio::io::stdout(), &text).await {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written.context("cannot write to standard output")?,
    }
    Ok(match status.is_healthy() {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::FAILURE,
        None => ExitCode::from(CANNOT_TELL),
    })
}

/// Before what each line tells.
const NAME_WIDTH: usize = 12;

/// The status for people: the sentence first, then a line for each thing that one looks for.
fn table(status: &Status, screen: Screen) -> String {
    let mut text = wrapped(&message(&status.words), 2, screen.width);
    text.push('\n');
    let healthy = match status.is_healthy() {
        Some(true) => Tone::Good,
        Some(false) => Tone::Bad,
        None => Tone::Notice,
    };
    let health = shown(&status.health.words);
    let line = wrapped(
        &format!("{:<NAME_WIDTH$}{health}", "Health"),
        NAME_WIDTH,
        screen.width,
    );
    let (name, health) = line.split_at(NAME_WIDTH);
    text.extend([name, &screen.colour.paint(healthy, health), "\n"]);
    let mut line = |name: &str, value: &str| {
        let line = format!("{name:<NAME_WIDTH$}{}", shown(value));
        text += &wrapped(&line, NAME_WIDTH, screen.width);
        text.push('\n');
    };
    let mode = &status.mode;
    let mut words = mode.name.clone();
    if let Some(reason) = mode.reason {
        let _ = write!(words, " ({reason})");
    }
    let _ = write!(words, ", since {}", Age(mode.since_seconds));
    if let Some(cause) = &mode.cause {
        let _ = write!(words, ": {cause}");
    }
    line("Mode", &words);
    match &status.runtime {
        Some(runtime) => line("Runtime", &format!("{} {}", runtime.name, runtime.version)),
        None => line("Runtime", "has not answered yet"),
    }
    let ago = |seconds: Option<f64>| match seconds {
        Some(seconds) => format!("{} ago", Age(seconds)),
        None => "none yet".to_owned(),
    };
    line("Last relist", &ago(status.last_relist_seconds_ago));
    line("Last event", &ago(status.last_event_seconds_ago));
    if let Some(pending) = &status.pending_call {
        let mut words = format!("{:?} unanswered for {}", pending.call, Age(pending.seconds));
        if let Some(uid) = &pending.uid {
            let _ = write!(words, " (pod {uid})");
        }
        line("Waiting", &words);
    }
    line("Pods", &status.pods.to_string());
    if status.misses.is_empty() {
        line("Missed", "nothing");
    }
    for miss in &status.misses {
        let mut words = format!("{} x {:?} {:?}", miss.count, miss.subject, miss.event);
        if miss.in_known_gap > 0 {
            let _ = write!(words, " ({} never sent by this runtime)", miss.in_known_gap);
        }
        line("Missed", &words);
    }
    if status.subscribers.is_empty() {
        line("Watchers", "none");
    }
    for watcher in &status.subscribers {
        let lag = match watcher.lag {
            Some(lag) => format!("{lag} behind"),
            None => "too far behind".to_owned(),
        };
        let name = if watcher.client.is_empty() {
            "unnamed"
        } else {
            &watcher.client
        };
        let words = format!(
            "#{} {} {name}: {} delivered, {lag}",
            watcher.id, watcher.transport, watcher.delivered
        );
        line("Watchers", &words);
    }
    let nanos = status.at.0.saturating_sub(status.started_at.0);
    let up = Age(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)).as_secs_f64());
    line(
        "Daemon",
        &format!("pleg {}, up {up}, epoch {}", status.version, status.epoch),
    );
    text
}
