//! Connections: how many there are, and how long one may keep its place.
//!
//! The server library bounds heads and the time that they take, and so the idle time between two
//! requests. What it does not bound is bounded here: connections, and the time for which a client takes
//! nothing of what is written to it. A watcher that stalls is therefore cut off, and finds its way back
//! by the id that it has. Whoever only holds a place loses it to whoever comes: a probe must not fail
//! because others are connected and ask nothing.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tracing::{debug, info, warn};

use super::idle::{Idle, Seat};
use super::tally::Counting;
use super::{HttpLimits, stopped};

/// How long to leave a listener alone that cannot give a connection: descriptors are short then.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);

/// The least that the library takes for a buffer.
const LEAST_BUFFER: usize = 8 << 10;

/// Takes connections and serves them.
pub(super) struct Taking {
    router: Router,
    limits: HttpLimits,
    counting: Counting,
    places: Arc<Semaphore>,
    idle: Idle,
    stops: watch::Receiver<bool>,
}

impl Taking {
    pub(super) fn new(
        router: Router,
        limits: HttpLimits,
        counting: Counting,
        stops: watch::Receiver<bool>,
    ) -> Self {
        Self {
            router,
            limits,
            counting,
            places: Arc::new(Semaphore::new(limits.connections)),
            idle: Idle::default(),
            stops,
        }
    }

    /// Takes connections until `stop`; then none, says so by `stopping`, and waits for those that are
    /// open, as long as the limit says.
    pub(super) async fn run(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
        stopping: &watch::Sender<bool>,
    ) {
        if let Ok(address) = listener.local_addr() {
            info!(url = %format_args!("http://{address}/"), "Serving HTTP");
        }
        let mut stop = pin!(stop);
        let mut open = JoinSet::new();
        let mut was_told = false;
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(_) = open.join_next(), if !open.is_empty() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        was_told = false;
                        self.take(stream, &mut open);
                    }
                    Err(error) => {
                        if !std::mem::replace(&mut was_told, true) {
                            warn!(%error, "Cannot take HTTP connections; trying on");
                        }
                        tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                    }
                },
            }
        }
        drop(listener);
        stopping.send_replace(true);
        let ended = async { while open.join_next().await.is_some() {} };
        if tokio::time::timeout(self.limits.drain, ended)
            .await
            .is_err()
        {
            open.shutdown().await;
        }
    }

    /// Serves a connection if there is a place for it, or one that an idle connection can give up.
    /// Otherwise it is closed by being dropped.
    pub(super) fn take<S>(&self, stream: S, open: &mut JoinSet<()>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let place = Arc::clone(&self.places).try_acquire_owned().ok();
        if place.is_none() {
            self.counting.connection_refused();
            if !self.idle.dismiss_longest() {
                return;
            }
        }
        let places = Arc::clone(&self.places);
        let counting = self.counting.clone();
        let idle = self.idle.clone();
        let (router, limits) = (self.router.clone(), self.limits);
        let mut stops = self.stops.clone();
        open.spawn(async move {
            let place = if place.is_some() {
                place
            } else {
                tokio::select! {
                    biased;
                    () = stopped(&mut stops) => None,
                    place = places.acquire_owned() => place.ok(),
                }
            };
            let Some(_place) = place else { return };
            let _counted = counting.connection_opened();
            serve(stream, router, limits, idle.sit_down(), stops).await;
        });
    }
}

/// Serves one connection until it ends, or until its present request ends once the daemon stops.
async fn serve<S>(
    stream: S,
    router: Router,
    limits: HttpLimits,
    seat: Seat,
    mut stops: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.stalled));
    let router = TowerToHyperService::new(router);
    let answering = service_fn(|request| {
        let busy = seat.busy();
        let answer = router.call(request);
        async {
            let Ok(answer) = answer.await;
            Ok::<_, Infallible>(answer.map(|body| busy.until_sent(body)))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .max_headers(limits.headers)
        .max_header_size(limits.head_bytes)
        .max_buf_size(limits.head_bytes.max(LEAST_BUFFER) * 2)
        .serve_connection(TokioIo::new(Box::pin(stream)), answering);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        () = stopped(&mut stops) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = seat.dismissed() => return,
        ended = connection.as_mut() => ended,
    };
    if let Err(error) = ended {
        debug!(%error, "An HTTP connection ended");
    }
}
