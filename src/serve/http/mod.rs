//! HTTP: for probes, Prometheus, scripts, and people with a browser. It only ever reads.
//!
//! | path | what it gives |
//! |---|---|
//! | `/` | the page |
//! | `/livez` `/readyz` `/healthz` | whether to restart, to send clients, to worry (`?verbose`) |
//! | `/metrics` | everything that is counted |
//! | `/api/v1/status` | the mode and why, in words and figures |
//! | `/api/v1/pods` | every pod, and the position to follow after |
//! | `/api/v1/pods/{uid}` | one pod, if wanted from a read that is newer than a mark or than now |
//! | `/api/v1/events` | what happens, as server-sent events that can be resumed |
//!
//! Nothing in here can slow the driver: it asks it questions with a deadline, and watchers read the
//! ring. Nothing a client does can cost more than `HttpLimits` says: heads, bodies, connections,
//! watchers, idle and stalled time are all bounded. Hosts are checked ([`HostPolicy`]), and no answer
//! may be read, framed or kept by another site.

mod connections;
mod events;
mod guard;
mod health;
mod host;
mod idle;
mod page;
mod pods;
mod problem;
mod tally;
#[cfg(all(test, feature = "simulate"))]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::Serving;
use super::metrics::{Figures, Format, Served};
use super::status::Status;
pub use host::RemoteRefused;
#[doc(hidden)]
pub use host::{HostPolicy, HostRefused, may_listen};
use problem::Problem;
use tally::Counting;
#[doc(hidden)]
pub use tally::HttpTally;

/// What a client may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Connections at a time. One more, and the one that has been idle longest is closed, or it itself if
    /// none is idle.
    pub connections: usize,
    /// Watchers of `/api/v1/events` at a time; fewer than connections, so that probes and scrapes
    /// always find a place.
    pub watchers: usize,
    /// Reads of the runtime that may be waited for at a time; with the watchers fewer than connections, so
    /// that probes find a place while the runtime hangs.
    pub reads: usize,
    /// Bytes of a request's line and headers. A request's body must be empty.
    pub head_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// How long a client may take to send a head, which is also how long a connection may be idle.
    pub idle: Duration,
    /// How long a client may take nothing while there is something for it.
    pub stalled: Duration,
    /// How often a watcher hears something, if nothing happens.
    pub keep_alive: Duration,
    /// How long open requests have to end when the daemon does.
    pub drain: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 128,
            watchers: 64,
            reads: 32,
            head_bytes: 8 << 10,
            headers: 64,
            // Prometheus scrapes every 15 s or 30 s on a connection that it keeps.
            idle: Duration::from_secs(35),
            stalled: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            drain: Duration::from_secs(3),
        }
    }
}

/// The server of one daemon.
#[derive(Clone)]
#[doc(hidden)]
pub struct HttpServer {
    shared: Shared,
    limits: HttpLimits,
    stopping: Arc<watch::Sender<bool>>,
}

/// What every request needs.
#[derive(Clone)]
struct Shared {
    serving: Serving,
    hosts: Arc<HostPolicy>,
    counting: Counting,
    watchers: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    keep_alive: Duration,
    stops: watch::Receiver<bool>,
}

impl HttpServer {
    /// A server that listens to nobody yet.
    #[must_use]
    pub fn new(serving: Serving, hosts: HostPolicy, limits: HttpLimits) -> Self {
        let (stopping, stops) = watch::channel(false);
        let shared = Shared {
            serving,
            hosts: Arc::new(hosts),
            counting: Counting::default(),
            watchers: Arc::new(Semaphore::new(limits.watchers)),
            reads: Arc::new(Semaphore::new(limits.reads)),
            keep_alive: limits.keep_alive,
            stops,
        };
        Self {
            shared,
            limits,
            stopping: Arc::new(stopping),
        }
    }

    /// Serves until `stop`, then lets open requests end within the limit. Watchers are told to come
    /// back by the end of their stream. Check the address with [`may_listen`] first.
    pub async fn run(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let router = self.router();
        let Self {
            shared,
            limits,
            stopping,
        } = self;
        let taking = connections::Taking::new(router, limits, shared.counting, shared.stops);
        taking.run(listener, stop, &stopping).await;
    }

    fn router(&self) -> Router {
        Router::new()
            .route("/", get(page::page))
            .route("/livez", get(health::livez))
            .route("/readyz", get(health::readyz))
            .route("/healthz", get(health::healthz))
            .route("/metrics", get(metrics))
            .route("/api/v1/status", get(status))
            .route("/api/v1/pods", get(pods::list))
            .route("/api/v1/pods/{uid}", get(pods::one))
            .route("/api/v1/events", get(events::follow))
            .fallback(nothing)
            .layer(middleware::from_fn_with_state(
                self.shared.clone(),
                guard::guard,
            ))
            .with_state(self.shared.clone())
    }
}

/// Waits until the server stops.
async fn stopped(stops: &mut watch::Receiver<bool>) {
    // An error means that the server is gone, which is a stop too.
    let _ = stops.wait_for(|stops| *stops).await;
}

async fn status(State(shared): State<Shared>) -> Json<Status> {
    Json(shared.serving.status().await)
}

async fn metrics(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT);
    let format = Format::accepted(accept.and_then(|accept| accept.to_str().ok()).unwrap_or(""));
    let served = Served::of(&shared.serving, shared.counting.read());
    let figures = Figures::gather(shared.serving.pleg(), served).await;
    match figures.write(format) {
        Ok(written) => ([(header::CONTENT_TYPE, format.content_type())], written).into_response(),
        Err(error) => Problem::internal(error.to_string()).into_response(),
    }
}

async fn nothing() -> Problem {
    Problem::not_found("there is nothing here; see / for the page and /api/v1/pods for the API")
}
