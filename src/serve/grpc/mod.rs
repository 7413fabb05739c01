//! `pleg.v1` over gRPC: the service, its socket, and a client of it.
//!
//! Everything is bounded: connections, streams and calls of each, the size of a request, the reads that
//! may be waited for. A watcher that is gone without a word is found by the connection's pings.

mod client;
mod client_stub;
#[doc(hidden)]
pub mod convert;
#[doc(hidden)]
pub mod encoded;
// Made from the proto, which is where they are described: `proto/pleg/v1/pleg.proto`.
#[doc(hidden)]
pub mod messages;
#[doc(hidden)]
pub mod server;
mod service;
mod socket;
#[cfg(all(test, feature = "simulate"))]
mod tests;

use std::future::Future;
use std::io;
use std::time::Duration;

use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::transport::Server;
use tonic::transport::server::Connected;
use tonic_health::ServingStatus;
use tonic_health::server::{HealthReporter, health_reporter};

pub use client::{Begin, ClientError, DaemonClient, Recording, Watched, Watching};
#[doc(hidden)]
pub use service::{LIST_AGAIN, Service};
pub use socket::{DEFAULT_SOCKET, MODE, SocketConfig, SocketError};
#[doc(hidden)]
pub use socket::{Listener, bind, limited};

use super::Serving;

/// Requests are small: a uid, a position, a name.
const REQUEST_BYTES: usize = 64 << 10;

/// Streams and calls at a time on one connection.
const STREAMS_OF_A_CONNECTION: u32 = 128;

/// A peer that says nothing for so long is asked whether it is there ...
const PING_AFTER: Duration = Duration::from_secs(30);

/// ... and let go if it does not answer for so long.
const PING_DEADLINE: Duration = Duration::from_secs(10);

/// How often the health service looks at the health.
const HEALTH_PERIOD: Duration = Duration::from_secs(1);

/// The name of the service, as the health service knows it.
#[doc(hidden)]
pub const SERVICE: &str = server::pleg_server::SERVICE_NAME;

/// Serves connections until `closing`, then waits until those that are open have ended.
///
/// # Errors
///
/// If the transport cannot be set up.
#[doc(hidden)]
pub async fn serve<I>(
    serving: Serving,
    incoming: impl Stream<Item = io::Result<I>>,
    closing: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error>
where
    I: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let (reporter, health) = health_reporter();
    let service = server::pleg_server::PlegServer::new(Service::new(serving.clone()))
        .max_decoding_message_size(REQUEST_BYTES);
    let server = Server::builder()
        .max_concurrent_streams(STREAMS_OF_A_CONNECTION)
        .concurrency_limit_per_connection(STREAMS_OF_A_CONNECTION as usize)
        .http2_keepalive_interval(Some(PING_AFTER))
        .http2_keepalive_timeout(Some(PING_DEADLINE))
        .add_service(health)
        .add_service(service)
        .serve_with_incoming_shutdown(incoming, closing);
    tokio::select! {
        biased;
        ended = server => ended,
        () = report_health(serving, reporter) => Ok(()),
    }
}

/// Tells the health service how things are. Never ends.
async fn report_health(serving: Serving, reporter: HealthReporter) {
    let mut period = tokio::time::interval(HEALTH_PERIOD);
    period.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        period.tick().await;
        let status = match serving.status().await.is_healthy() {
            Some(true) => ServingStatus::Serving,
            Some(false) | None => ServingStatus::NotServing,
        };
        for name in ["", SERVICE] {
            reporter.set_service_status(name, status).await;
        }
    }
}
