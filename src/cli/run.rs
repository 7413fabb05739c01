//! `pleg run`: the node daemon.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Context;

use super::attach;
use super::config::RuntimeConfig;
use crate::scenario::recording::{Flight, FlightLimits, FlightRecorder};
use crate::serve::{Beside, Daemon, DaemonConfig, LastMinutes};

/// What `run` does.
#[derive(Debug, PartialEq)]
pub(crate) struct RunConfig {
    /// What is served, and how it ends.
    pub(crate) daemon: DaemonConfig,
    /// Whether to follow the event stream.
    pub(crate) events: bool,
}

/// Runs until something ends it.
pub(crate) async fn run(
    runtime: &RuntimeConfig,
    config: RunConfig,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let beside: Option<Beside> = None;
    let (builder, _churn) = attach::for_daemon(runtime, config.events)?;
    let (tap, recorder) =
        Flight::start(FlightLimits::default(), None).context("cannot start the flight recorder")?;
    let daemon = Daemon {
        builder,
        tap: Some(crate::cri::Tap::new(move |tapped| tap.see(tapped))),
        last_minutes: Some(Box::new(Recorder(recorder))),
        beside,
        config: config.daemon,
    };
    Ok(crate::serve::run(daemon, stop).await?)
}

/// The flight recorder, as the daemon serves it.
struct Recorder(FlightRecorder);

impl LastMinutes for Recorder {
    fn recording(
        &self,
        span: Duration,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<u8>>> + Send + '_>> {
        let (tell, told) = tokio::sync::oneshot::channel();
        self.0.errand(move |flight| {
            let mut lines = Vec::new();
            let written = flight.write_last(span, &mut lines);
            // It fails only if the client has gone.
            let _ = tell.send(written.map(|_| lines));
        });
        Box::pin(async move {
            let gone = |_| io::Error::other("the flight recorder has ended");
            told.await.map_err(gone)?
        })
    }
}
