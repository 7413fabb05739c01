//! `pleg record`: what the runtime says, into a file, until something ends it.
//!
//! It follows the runtime as `watch` does, with the same client and the same engine, so that what is
//! recorded is what `watch` would have been told, and nothing is asked twice.

use std::future::{Future, pending};
use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context, bail};

use super::attach;
use super::config::{RecordConfig, RecordLastConfig, RuntimeConfig};
use super::daemon;
use super::say;
use super::watch::{check_place, warn_of_taking_events};
use crate::scenario::recording::{FileRecorder, QueueLimits, Recorder, recording_file};

/// How long the end may take: closing the event stream and its thread.
const GOODBYE: Duration = Duration::from_secs(2);

/// Records until something ends it.
pub(crate) async fn run(
    runtime: &RuntimeConfig,
    config: &RecordConfig,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    tokio::pin!(stop);
    let shown = config.out.display();
    check_place(&config.out)?;
    let mut recorder = None;
    let attaching = attach::attach_with(runtime, config.events, |builder, version| {
        let file = FileRecorder::create(&config.out, Some(version.clone()))
            .with_context(|| format!("cannot write {shown}"))?;
        let (tap, started) =
            Recorder::start(file, QueueLimits::default()).context("cannot start the recorder")?;
        recorder = Some(started);
        Ok(builder.tap(move |tapped| tap.see(tapped)))
    });
    let attached = tokio::select! {
        biased;
        () = &mut stop => return Ok(()),
        attached = attaching => attached?,
    };
    let Some(mut recorder) = recorder else {
        bail!("nothing was recorded");
    };
    if config.events {
        warn_of_taking_events(&attached.version);
    }
    let deadline = async {
        match config.lasting {
            Some(lasting) => tokio::time::sleep(lasting).await,
            None => pending().await,
        }
    };
    let following = attached.follow();
    let broke_off = tokio::select! {
        biased;
        () = &mut stop => false,
        () = recorder.failed() => false,
        () = following.broke_off() => true,
        () = deadline => false,
    };
    // Bounded: a driver that does not end must not keep the command.
    let stopped = tokio::time::timeout(GOODBYE, following.stop()).await;
    let outcome = recorder
        .finish()
        .with_context(|| format!("cannot write {shown}; what it has so far can be replayed"))?;
    say(&format!(
        "pleg: recorded {} entries into {shown}",
        outcome.entries
    ));
    if broke_off {
        stopped.context("following the runtime broke off")??;
        bail!("following the runtime broke off");
    }
    Ok(())
}

/// Fetches what a daemon's flight recorder has.
pub(crate) async fn fetch(
    config: &RecordLastConfig,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    check_place(&config.out)?;
    let shown = config.out.display();
    let fetched = async {
        let found = daemon::must_find(&config.daemon).await?;
        let refused = |error| found.failed("fetch what was recorded by the daemon", &error);
        let mut recording = found.client.recording(config.span).await.map_err(refused)?;
        let failed = || format!("cannot write {shown}");
        let mut out = recording_file(&config.out).with_context(failed)?;
        while let Some(piece) = recording.next().await.map_err(refused)? {
            out.write_all(&piece).with_context(failed)?;
        }
        out.flush().with_context(failed)?;
        say(&format!(
            "pleg: wrote what the daemon has recorded to {shown}; pleg replay {shown} plays it"
        ));
        Ok(())
    };
    tokio::select! {
        biased;
        () = stop => bail!("stopped; {shown} is not complete"),
        fetched = fetched => fetched,
    }
}
