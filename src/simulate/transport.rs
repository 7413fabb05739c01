//! How clients reach a simulated runtime: in memory, or over a unix socket.
//!
//! In memory every dial makes a fresh duplex pair, so that tests run in virtual time without the
//! kernel. Either way a connection is wrapped so that it can be cut from outside: ending a server
//! would leave its connections alive.

use std::future::Future;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::{Either, select};
use futures::stream;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint, Server, Uri};

use super::SimulatedRuntime;
use super::server::CriService;
use crate::cri::StreamSource;

/// Bytes in flight each way on an in-memory connection: that of a socket, so that back-pressure is
/// felt as on one.
const DUPLEX_BUFFER: usize = 64 * 1024;

/// How long after a failed accept the next one is tried.
const ACCEPT_RETRY: Duration = Duration::from_millis(10);

impl SimulatedRuntime {
    /// A channel to this runtime, over memory. It dials at the first call and again after a cut.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn channel(&self) -> Channel {
        Endpoint::from_static("http://simulated").connect_with_connector_lazy(self.connector())
    }

    /// What a tonic [`Endpoint`] dials this runtime with, over memory.
    #[must_use]
    pub fn connector(&self) -> InMemoryConnector {
        InMemoryConnector {
            runtime: self.clone(),
        }
    }

    /// Where this crate's own reader takes the event stream from, over memory: each stream has a
    /// connection of its own.
    #[must_use]
    pub fn stream_source(&self) -> StreamSource {
        let runtime = self.clone();
        StreamSource::Connector(Arc::new(move || runtime.channel()))
    }

    /// Makes one in-memory connection. The runtime's end is served on the tokio runtime in which this
    /// [`SimulatedRuntime`] was built, else on the present one.
    ///
    /// # Errors
    /// If the runtime is down, or there is no tokio runtime to serve on.
    pub fn dial(&self) -> io::Result<DuplexStream> {
        if !self.is_up() {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionRefused,
                "the simulated runtime is down",
            ));
        }
        let tokio = match &self.shared.tokio {
            Some(tokio) => tokio.clone(),
            None => tokio::runtime::Handle::try_current().map_err(io::Error::other)?,
        };
        let (ours, theirs) = tokio::io::duplex(DUPLEX_BUFFER);
        let cut = cut(self.shared.cuts.subscribe());
        tokio.spawn(serve_connection(self.clone(), Severable::new(theirs, cut)));
        Ok(ours)
    }

    /// Listens on a unix socket until the answer is dropped. The socket is there when this returns;
    /// one that a dead server left behind is replaced.
    ///
    /// While the runtime is [down](Self::set_up) there is no socket.
    ///
    /// # Errors
    /// If the socket cannot be bound: another server listens there, the folder is missing, or the
    /// path is too long (Linux: 107 bytes).
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn serve_unix(&self, path: impl AsRef<Path>) -> io::Result<UnixServer> {
        let path = path.as_ref().to_path_buf();
        let listener = bind(&path)?;
        let closing = watch::Sender::new(());
        let task = tokio::spawn(listen(
            self.clone(),
            listener,
            path.clone(),
            closing.subscribe(),
        ));
        Ok(UnixServer {
            path,
            task: task.abort_handle(),
            _closing: closing,
        })
    }

    /// Drives the churn that the builder described, in a task of its own, until the answer is
    /// dropped.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use = "the churn ends when this is dropped"]
    pub fn spawn_churn(&self) -> ChurnTask {
        let runtime = self.clone();
        ChurnTask(tokio::spawn(async move {
            runtime.churn().await;
        }))
    }
}

/// Keeps the churn going; dropping it ends it.
#[derive(Debug)]
pub struct ChurnTask(JoinHandle<()>);

impl Drop for ChurnTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A listening unix socket. Dropping it closes the socket and its connections and removes the file.
#[derive(Debug)]
pub struct UnixServer {
    path: PathBuf,
    task: AbortHandle,
    /// Its end cuts the connections.
    _closing: watch::Sender<()>,
}

impl UnixServer {
    /// Where it listens.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnixServer {
    fn drop(&mut self) {
        self.task.abort();
        remove_socket(&self.path);
    }
}

/// Dials a simulated runtime in memory.
#[derive(Clone, Debug)]
pub struct InMemoryConnector {
    runtime: SimulatedRuntime,
}

impl tower::Service<Uri> for InMemoryConnector {
    type Response = TokioIo<DuplexStream>;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _endpoint: Uri) -> Self::Future {
        std::future::ready(self.runtime.dial().map(TokioIo::new))
    }
}

/// Listens while the runtime is up.
async fn listen(
    runtime: SimulatedRuntime,
    mut listener: UnixListener,
    path: PathBuf,
    closing: watch::Receiver<()>,
) {
    loop {
        accept(&runtime, &listener, &closing).await;
        drop(listener);
        remove_socket(&path);
        runtime.until_up(true).await;
        listener = match bind(&path) {
            Ok(listener) => listener,
            Err(error) => {
                let path = path.display();
                tracing::warn!(%error, %path, "Simulated runtime cannot listen again");
                return;
            }
        };
    }
}

/// Takes connections until the runtime goes down.
async fn accept(
    runtime: &SimulatedRuntime,
    listener: &UnixListener,
    closing: &watch::Receiver<()>,
) {
    loop {
        let went_down = std::pin::pin!(runtime.until_up(false));
        let accepted = std::pin::pin!(listener.accept());
        match select(went_down, accepted).await {
            Either::Left(_) => return,
            Either::Right((Ok((io, _)), _)) => {
                let cuts = runtime.shared.cuts.subscribe();
                let mut closing = closing.clone();
                let cut = async move {
                    let closed = std::pin::pin!(closing.changed());
                    select(cut(cuts), closed).await;
                };
                let io = Severable::new(io, Box::pin(cut));
                tokio::spawn(serve_connection(runtime.clone(), io));
            }
            // Out of file descriptors, mostly: those in use may end.
            Either::Right((Err(_), _)) => tokio::time::sleep(ACCEPT_RETRY).await,
        }
    }
}

async fn serve_connection<T>(runtime: SimulatedRuntime, io: Severable<T>)
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = CriService::new(runtime);
    let incoming = stream::iter([Ok::<_, io::Error>(io)]);
    // Ends as soon as the connection is taken, which lives on as a task of its own. How it ends
    // is the client's to see.
    let _ = Server::builder()
        .serve_with_incoming(service, incoming)
        .await;
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_abandoned(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

/// Whether `path` is a socket that nobody listens on.
fn is_abandoned(path: &Path) -> bool {
    is_socket(path)
        && std::os::unix::net::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

fn is_socket(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

fn remove_socket(path: &Path) {
    if is_socket(path) {
        // Already gone is as good.
        let _ = std::fs::remove_file(path);
    }
}

type Cut = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Comes when the connections are cut next, or the runtime is gone.
fn cut(mut cuts: watch::Receiver<u64>) -> Cut {
    Box::pin(async move {
        let _ = cuts.changed().await;
    })
}

/// A connection that can be cut from outside.
struct Severable<T> {
    io: T,
    /// `None` once it was cut.
    cut: Option<Cut>,
}

impl<T> Severable<T> {
    fn new(io: T, cut: Cut) -> Self {
        Self { io, cut: Some(cut) }
    }

    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if let Some(cut) = &mut self.cut
            && cut.as_mut().poll(cx).is_pending()
        {
            return Ok(());
        }
        self.cut = None;
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Severable<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Severable<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
        Poll::Ready(Ok(()))
    }
}

impl<T: Send + Unpin + 'static> Connected for Severable<T> {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}
