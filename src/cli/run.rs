//! `pleg run`: the node daemon. Its settings come in layers; what it serves is [`crate::serve`]'s.

mod file;
mod keys;
mod layers;
mod settings;
mod socket;

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, anyhow};
use tracing::info;

use super::Variable;
use super::args::RunArgs;
use super::attach;
use super::config::{RuntimeChoice, RuntimeConfig};
use super::discover::Candidate;
use crate::Builder;
use crate::cri::Tap;
use crate::scenario::recording::{Flight, FlightLimits, FlightRecorder};
use crate::serve::grpc::{SocketConfig, SocketError};
use crate::serve::{
    Daemon, DaemonConfig, DaemonError, HttpConfig, LastMinutes, Limits, RingLimits, vitals,
};
use file::{ConfigFile, DEFAULT_FILE, FILE_VARIABLE, FileError};
pub(crate) use keys::{Flags, Key};
use layers::{Layers, Refused};
pub(crate) use settings::{LogFormat, RunSettings};

/// What `run` does.
#[derive(Debug, PartialEq)]
pub(crate) struct RunConfig {
    /// What it was told.
    pub(crate) settings: RunSettings,
    /// The same with the origin of each value, if that is all that is wanted.
    pub(crate) print: Option<String>,
}

/// The daemon cannot do what it was told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    /// Its file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A value means nothing, or contradicts another.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl RunConfig {
    /// Understands what was typed, and what the environment and the file say.
    ///
    /// # Errors
    ///
    /// A file that was named but is not there, and anything that cannot be understood.
    pub(crate) fn understand(args: RunArgs, variable: Variable<'_>) -> Result<Self, SettingsError> {
        let mut flags = args.settings;
        let everybodys = [
            (
                Key::RuntimeEndpoint,
                args.runtime
                    .runtime_endpoint
                    .as_ref()
                    .map(ToString::to_string),
            ),
            (
                Key::MaxMessageSize,
                args.runtime
                    .max_message_size
                    .map(|limit| limit.0.to_string()),
            ),
            (
                Key::LogLevel,
                args.runtime.log_level.as_ref().map(ToString::to_string),
            ),
        ];
        for (key, typed) in everybodys {
            flags.0.extend(typed.map(|text| (key, text)));
        }
        let file = read_file(args.settings_file, variable)?;
        let file = file.as_ref().map(|(path, file)| (path.as_path(), file));
        let layers = Layers::gather(&flags, variable, file);
        Ok(Self {
            settings: RunSettings::read(&layers)?,
            print: args.print_config.then(|| layers.print()),
        })
    }
}

/// The file that was named, or the usual one if it is there.
fn read_file(
    named: Option<PathBuf>,
    variable: Variable<'_>,
) -> Result<Option<(PathBuf, ConfigFile)>, FileError> {
    let named = named.or_else(|| {
        let path = variable(FILE_VARIABLE).filter(|path| !path.trim().is_empty());
        path.map(PathBuf::from)
    });
    let (path, must_be_there) = match named {
        Some(path) => (path, true),
        None => (Path::new(DEFAULT_FILE).to_owned(), false),
    };
    match ConfigFile::read(&path) {
        Ok(file) => Ok(Some((path, file))),
        Err(FileError::Unreadable { source, .. })
            if !must_be_there && source.kind() == io::ErrorKind::NotFound =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

impl RunSettings {
    fn set_up(&self, builder: Builder) -> Builder {
        builder
            .relist_period(self.relist_period)
            .relist_threshold(self.relist_threshold)
            .evented_relist_period(self.evented_relist_period)
            .evented_relist_threshold(self.evented_relist_threshold)
    }

    fn daemon(&self) -> DaemonConfig {
        let standard = DaemonConfig::default();
        DaemonConfig {
            grpc: self.grpc_listen.as_ref().map(|path| SocketConfig {
                path: path.clone(),
                mode: self.grpc_socket.mode,
                owner: self.grpc_socket.owner,
                group: self.grpc_socket.group,
            }),
            http: self.http_listen.map(|address| HttpConfig {
                address,
                allow_remote: self.http_allow_remote,
                hosts: self.http_allowed_hosts.clone(),
                ..HttpConfig::default()
            }),
            limits: Limits {
                ring: RingLimits {
                    events: self.event_history,
                    ..RingLimits::default()
                },
                ..standard.limits
            },
            goodbye: self.shutdown_grace_period,
            ..standard
        }
    }
}

/// Runs until something ends it.
pub(crate) async fn run(
    runtime: &RuntimeConfig,
    config: RunConfig,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let settings = config.settings;
    if let RuntimeChoice::Node(candidates) = &runtime.choice {
        for Candidate { endpoint, origin } in candidates {
            info!("The runtime is looked for at {endpoint} ({origin})");
        }
    }
    let (builder, _churn) = attach::for_daemon(runtime, settings.evented)?;
    let (tap, last_minutes) = match settings.flight_recorder {
        None => (None, None),
        Some(limits) => {
            let limits = FlightLimits {
                span: limits.period,
                bytes: limits.size,
            };
            let (tap, recorder) =
                Flight::start(limits, None).context("cannot start the flight recorder")?;
            let recorder: Box<dyn LastMinutes> = Box::new(Recorder(recorder));
            (
                Some(Tap::new(move |tapped| tap.see(tapped))),
                Some(recorder),
            )
        }
    };
    let watchdog = settings.watchdog_timeout;
    let daemon = Daemon {
        builder: settings.set_up(builder),
        tap,
        last_minutes,
        beside: Some(Box::new(move |serving| {
            Box::pin(vitals::attend(serving, watchdog))
        })),
        config: settings.daemon(),
    };
    let served = crate::serve::run(daemon, stop).await;
    served.map_err(|error| {
        let advice = advice(&error);
        anyhow!("{:#}{advice}", anyhow::Error::new(error))
    })
}

/// What whoever started a daemon in vain can do.
fn advice(error: &DaemonError) -> &'static str {
    match error {
        DaemonError::Http { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            "\nAnother pleg run? --http-listen names another address, port 0 takes a free one, off \
             serves none."
        }
        DaemonError::Http { .. } => "\n--http-listen names another address; off serves none.",
        DaemonError::Socket(SocketError::Io { source, .. })
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            "\nThe usual socket is root's: try sudo, or name another with --grpc-listen."
        }
        DaemonError::Socket(_) => "\n--grpc-listen names another socket; off serves none.",
        _ => "",
    }
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
