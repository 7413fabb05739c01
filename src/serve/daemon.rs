//! The life of a daemon: sockets first, then the driver on a thread of its own, the feeder, the
//! transports; and an end within a deadline, whoever hangs.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::thread;
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::grpc::{self, SocketConfig, SocketError};
use super::http::{HostPolicy, HttpLimits, HttpServer, RemoteRefused, may_listen};
use super::position::Epoch;
use super::status::Notebook;
use super::{LastMinutes, Limits, Serving};
use crate::cri::{StartError, Tap};
use crate::feed::WatchError;
use crate::{BuildError, Builder, Driver};

/// What of the deadline the driver may take before the watchers are ended without it.
const DRIVERS_SHARE: u32 = 2;

/// What a daemon serves, and how it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonConfig {
    /// The gRPC socket, if there is to be one.
    pub grpc: Option<SocketConfig>,
    /// Connections to it at a time.
    pub grpc_connections: usize,
    /// What is served over HTTP, if anything is.
    pub http: Option<HttpConfig>,
    /// Limits of what is served.
    pub limits: Limits,
    /// How long the end may take.
    pub goodbye: Duration,
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self {
            grpc: Some(SocketConfig::at(grpc::DEFAULT_SOCKET)),
            grpc_connections: 256,
            http: Some(HttpConfig::default()),
            limits: Limits::default(),
            goodbye: Duration::from_secs(5),
        }
    }
}

/// Where HTTP is served, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// The address.
    pub address: SocketAddr,
    /// Whether it may be one that other machines reach.
    pub allow_remote: bool,
    /// Host names to answer to, besides loopback's.
    pub hosts: Vec<String>,
    /// What a client may cost.
    pub limits: HttpLimits,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 9641)),
            allow_remote: false,
            hosts: Vec::new(),
            limits: HttpLimits::default(),
        }
    }
}

/// Something that runs beside the transports, for as long as the daemon does: a watchdog.
pub type Beside = Box<dyn FnOnce(Serving) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// A daemon to be run.
#[non_exhaustive]
pub struct Daemon {
    /// What is followed. Its tap is the daemon's own; give yours in `tap`.
    pub builder: Builder,
    /// Who else looks over the shoulder: the flight recorder.
    pub tap: Option<Tap>,
    /// The flight recorder, to be fetched.
    pub last_minutes: Option<Box<dyn LastMinutes>>,
    /// What runs beside.
    pub beside: Option<Beside>,
    /// What is served.
    pub config: DaemonConfig,
}

impl Daemon {
    /// A daemon that follows what `builder` names and serves it as `config` says, with no flight
    /// recorder and nothing beside it.
    #[must_use]
    pub fn new(builder: Builder, config: DaemonConfig) -> Self {
        Self {
            builder,
            tap: None,
            last_minutes: None,
            beside: None,
            config,
        }
    }
}

/// Why a daemon did not start, or ended by itself.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// The settings contradict each other.
    #[error("cannot follow the runtime")]
    Build(#[from] BuildError),
    /// The feed has ended before it began.
    #[error("cannot follow the runtime")]
    Watch(#[from] WatchError),
    /// A socket could not be made.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// HTTP may not be served there.
    #[error(transparent)]
    Remote(#[from] RemoteRefused),
    /// HTTP cannot be served there.
    #[error("cannot serve HTTP on {address}")]
    Http {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// There is no thread for the driver.
    #[error("cannot start the driver's thread")]
    Thread(#[source] io::Error),
    /// The event stream's reader could not be started.
    #[error("cannot follow the runtime's events")]
    Start(#[from] StartError),
    /// The driver ended by itself, which it should not.
    #[error("following the runtime broke off")]
    BrokeOff,
    /// A transport ended by itself.
    #[error("cannot serve {what}")]
    Transport {
        /// Which.
        what: &'static str,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

type Served = Result<(), DaemonError>;

/// Runs a daemon until `stop`, on the present runtime but for the driver.
///
/// # Errors
///
/// If it cannot start, or a part of it ends by itself.
pub async fn run(daemon: Daemon, stop: impl Future<Output = ()>) -> Result<(), DaemonError> {
    let Daemon {
        builder,
        tap,
        last_minutes,
        beside,
        config,
    } = daemon;
    tokio::pin!(stop);
    let notebook = Notebook::default();
    let noting = notebook.clone();
    let builder = builder
        .channel_capacity(config.limits.ring.events.max(1))
        .tap(move |tapped| {
            noting.see(tapped);
            if let Some(tap) = &tap {
                tap.show(tapped);
            }
        });
    let listeners = Listeners::bind(&config)?;
    let (pleg, driver) = builder.build()?;
    let epoch = new_epoch();
    let (serving, feeder) = Serving::new(pleg, epoch, config.limits, notebook, last_minutes)?;
    let mut feeding = tokio::spawn(feeder.run());
    let mut driving = drive(driver)?;
    let (closing, closed) = watch::channel(false);
    let mut transports = listeners.serve(&serving, &config, &closed);
    let beside = async {
        if let Some(beside) = beside {
            beside(serving.clone()).await;
        }
        std::future::pending::<()>().await;
    };
    info!(%epoch, "Daemon serves");
    let ended = tokio::select! {
        biased;
        () = &mut stop => Ok(()),
        outcome = &mut driving => Err(match outcome {
            Ok(Err(error)) => error.into(),
            Ok(Ok(())) | Err(_) => DaemonError::BrokeOff,
        }),
        Some(served) = transports.join_next() => {
            served.unwrap_or(Err(DaemonError::BrokeOff)).and(Err(DaemonError::BrokeOff))
        }
        () = beside => Ok(()),
    };
    // It fails only if no transport is left to be told.
    let _ = closing.send(true);
    let farewell = async {
        let driver_ends = tokio::time::timeout(config.goodbye / DRIVERS_SHARE, async {
            serving.pleg().shutdown().await;
            // The feeder carries what was delivered before the end, then ends the watchers.
            let _ = (&mut feeding).await;
        });
        if driver_ends.await.is_err() {
            warn!("Driver does not end; watchers are ended without it");
            feeding.abort();
        }
        while transports.join_next().await.is_some() {}
    };
    if tokio::time::timeout(config.goodbye, farewell)
        .await
        .is_err()
    {
        warn!("Connections do not end; they are cut");
    }
    transports.shutdown().await;
    info!("Daemon ended");
    ended
}

/// What is listened on, before anything is served: what cannot be had is found out at once.
struct Listeners {
    grpc: Option<grpc::Listener>,
    http: Option<(TcpListener, HttpConfig)>,
}

impl Listeners {
    fn bind(config: &DaemonConfig) -> Result<Self, DaemonError> {
        let grpc = config.grpc.as_ref().map(grpc::bind).transpose()?;
        let http = config.http.as_ref().map(listen).transpose()?;
        Ok(Self { grpc, http })
    }

    /// Serves each in a task of its own until `closed` says so.
    fn serve(
        self,
        serving: &Serving,
        config: &DaemonConfig,
        closed: &watch::Receiver<bool>,
    ) -> JoinSet<Served> {
        let mut transports = JoinSet::new();
        if let Some(listener) = self.grpc {
            let serving = serving.clone();
            let incoming = grpc::limited(listener, config.grpc_connections);
            let closing = until(closed.clone());
            transports.spawn(async move {
                let served = grpc::serve(serving, incoming, closing).await;
                served.map_err(|error| DaemonError::Transport {
                    what: "gRPC",
                    source: error.into(),
                })
            });
        }
        if let Some((listener, http)) = self.http {
            let hosts = HostPolicy::new(http.hosts, http.allow_remote);
            let server = HttpServer::new(serving.clone(), hosts, http.limits);
            let closing = until(closed.clone());
            transports.spawn(async move {
                server.run(listener, closing).await;
                Ok(())
            });
        }
        transports
    }
}

/// Listens for HTTP.
fn listen(http: &HttpConfig) -> Result<(TcpListener, HttpConfig), DaemonError> {
    let address = http.address;
    may_listen(address, http.allow_remote)?;
    let listener = std::net::TcpListener::bind(address)
        .and_then(|listener| {
            listener.set_nonblocking(true)?;
            TcpListener::from_std(listener)
        })
        .map_err(|source| DaemonError::Http { address, source })?;
    Ok((listener, http.clone()))
}

/// Resolves when it is time to close.
async fn until(mut closed: watch::Receiver<bool>) {
    // An error means that the daemon is gone: time to close, too.
    let _ = closed.wait_for(|closed| *closed).await;
}

/// Runs the driver on a thread of its own. The answer resolves when it has ended.
fn drive(driver: Driver) -> Result<oneshot::Receiver<Result<(), StartError>>, DaemonError> {
    let (tell, told) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(DaemonError::Thread)?;
    thread::Builder::new()
        .name("pleg-driver".to_owned())
        .spawn(move || {
            // It fails only if the daemon has ended without waiting.
            let _ = tell.send(runtime.block_on(driver.run()));
        })
        .map_err(DaemonError::Thread)?;
    Ok(told)
}

/// Different in each life: drawn from the system's randomness, never from a clock.
fn new_epoch() -> Epoch {
    Epoch(RandomState::new().hash_one("epoch"))
}
