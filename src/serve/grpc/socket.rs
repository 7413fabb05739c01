//! The unix socket: made so that nobody else can reach it for a moment, replaced only if nobody
//! answers on it, and taken away at the end.

use std::fs::{self, File, Permissions, TryLockError};
use std::future::Future as _;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{FutureExt as _, Stream, stream};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tonic::transport::server::{Connected, UdsConnectInfo};

/// Where a daemon listens unless told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/pleg/pleg.sock";

/// Who may connect by default: the owner and the group.
pub const MODE: u32 = 0o660;

/// How long a client may take for the first words of HTTP/2. The transport asks whoever has said them
/// whether they are there, but waits for ever for those who have not.
const FIRST_WORDS_WITHIN: Duration = Duration::from_secs(10);

/// The bytes of those words, which are the same for everybody.
const FIRST_WORDS: usize = 24;

/// How long after a failed accept the next one is tried.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// A socket to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketConfig {
    /// Its absolute path. The folder is made if it is missing, as far as its parent exists.
    pub path: PathBuf,
    /// Its permissions.
    pub mode: u32,
    /// The uid of its owner, if it is not to be the process's.
    pub owner: Option<u32>,
    /// The gid of its group, if it is not to be the process's.
    pub group: Option<u32>,
}

impl SocketConfig {
    /// A socket at a path, for owner and group.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            mode: MODE,
            owner: None,
            group: None,
        }
    }
}

/// Why there is no socket.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SocketError {
    /// Another daemon has it.
    #[error("another process serves {}; stop it, or listen elsewhere", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// Something that is no socket has its name.
    #[error("{} exists and is no socket; move it away, or listen elsewhere", path.display())]
    NoSocket {
        /// The name.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A socket that is listened on. It is removed when this is dropped.
#[derive(Debug)]
pub struct Listener {
    listener: UnixListener,
    _file: SocketFile,
}

/// The socket's name in the file system, and the lock that says whose it is.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    inode: u64,
    /// Held for as long as the process lives, however it ends.
    _lock: File,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another process may have put its own there meanwhile.
        if inode(&self.path).is_ok_and(|inode| inode == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens on a socket. A file that a dead daemon left behind is replaced.
///
/// # Errors
///
/// If another process serves it, something else has its name, or the system refuses.
///
/// # Panics
///
/// Outside a tokio runtime.
pub fn bind(config: &SocketConfig) -> Result<Listener, SocketError> {
    let path = &config.path;
    let failed = |doing, path: &Path| {
        let path = path.to_path_buf();
        move |source| SocketError::Io {
            doing,
            path,
            source,
        }
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    if !folder.is_dir() {
        fs::create_dir(folder).map_err(failed("make the folder", folder))?;
    }
    // Two daemons that start at once must not both find the old file deserted.
    let lock_path = beside(path, "lock");
    let lock = File::create(&lock_path).map_err(failed("write the lock file", &lock_path))?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => SocketError::InUse { path: path.clone() },
        TryLockError::Error(source) => failed("lock", &lock_path)(source),
    })?;
    is_free(path)?;
    // Made under another name, so that it has its permissions before anybody can find it.
    let fresh = beside(path, "new");
    let _ = fs::remove_file(&fresh);
    let listener = StdListener::bind(&fresh).map_err(failed("listen on", path))?;
    let placed = chown(&fresh, config.owner, config.group)
        .map_err(failed("give away", path))
        .and_then(|()| {
            fs::set_permissions(&fresh, Permissions::from_mode(config.mode))
                .map_err(failed("set the permissions of", path))
        })
        .and_then(|()| fs::rename(&fresh, path).map_err(failed("put in place", path)));
    if let Err(error) = placed {
        let _ = fs::remove_file(&fresh);
        return Err(error);
    }
    let file = SocketFile {
        inode: inode(path).map_err(failed("look at", path))?,
        path: path.clone(),
        _lock: lock,
    };
    listener
        .set_nonblocking(true)
        .map_err(failed("listen on", path))?;
    let listener = UnixListener::from_std(listener).map_err(failed("listen on", path))?;
    Ok(Listener {
        listener,
        _file: file,
    })
}

/// Whether nobody serves a name that is a socket's or nothing's.
fn is_free(path: &Path) -> Result<(), SocketError> {
    let path = path.to_path_buf();
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            return Err(SocketError::Io {
                doing: "look at",
                path,
                source,
            });
        }
        Ok(found) if !found.file_type().is_socket() => {
            return Err(SocketError::NoSocket { path });
        }
        Ok(_) => {}
    }
    // Whoever would have to be waited for is there.
    let Some(Err(source)) = UnixStream::connect(&path).now_or_never() else {
        return Err(SocketError::InUse { path });
    };
    match source.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Ok(()),
        // So many wait for it that no more may.
        io::ErrorKind::WouldBlock => Err(SocketError::InUse { path }),
        _ => Err(SocketError::Io {
            doing: "find out whether anybody serves",
            path,
            source,
        }),
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

fn inode(path: &Path) -> io::Result<u64> {
    fs::symlink_metadata(path).map(|found| found.ino())
}

/// The connections of a listener, at most so many at a time; further ones wait to be accepted.
pub fn limited(
    listener: Listener,
    most: usize,
) -> impl Stream<Item = io::Result<Connection>> + Send {
    let places = Arc::new(Semaphore::new(most));
    stream::unfold((listener, places), |(listener, places)| async move {
        // It fails only if the semaphore is closed, which nobody does.
        let place = Arc::clone(&places).acquire_owned().await.ok()?;
        let mut was_told = false;
        let stream = loop {
            match listener.listener.accept().await {
                Ok((stream, _)) => break stream,
                // Out of descriptors, most likely: that passes.
                Err(error) => {
                    if !std::mem::replace(&mut was_told, true) {
                        tracing::warn!(%error, "Cannot accept gRPC connections; trying on");
                    }
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        };
        let connection = Connection {
            stream,
            greeting: Some(Greeting {
                heard: 0,
                deadline: Box::pin(tokio::time::sleep(FIRST_WORDS_WITHIN)),
            }),
            _place: place,
        };
        Some((Ok(connection), (listener, places)))
    })
}

/// A connection that has its place among those allowed. It fails if the client says nothing.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    greeting: Option<Greeting>,
    _place: OwnedSemaphorePermit,
}

/// The client's first words, which are awaited.
#[derive(Debug)]
struct Greeting {
    heard: usize,
    deadline: Pin<Box<Sleep>>,
}

impl Connected for Connection {
    type ConnectInfo = UdsConnectInfo;

    fn connect_info(&self) -> UdsConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let Some(greeting) = &mut self.greeting else {
            return read;
        };
        greeting.heard += buf.filled().len() - before;
        if greeting.heard >= FIRST_WORDS {
            self.greeting = None;
        } else if read.is_pending() && greeting.deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream as StdStream;

    use futures::StreamExt as _;
    use tempfile::TempDir;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::UnixSocket;

    use super::*;

    fn refusal(config: &SocketConfig) -> SocketError {
        bind(config).map(|_| ()).expect_err("must be refused")
    }

    #[tokio::test]
    async fn the_folder_is_made_and_only_owner_and_group_may_connect() {
        let dir = TempDir::new().unwrap();
        let config = SocketConfig::at(dir.path().join("pleg/pleg.sock"));
        let listener = bind(&config).unwrap();
        let mode = fs::metadata(&config.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
        assert!(StdStream::connect(&config.path).is_ok());
        drop(listener);
        assert!(!config.path.exists());
    }

    #[tokio::test]
    async fn a_file_that_a_dead_daemon_left_is_replaced() {
        let dir = TempDir::new().unwrap();
        let config = SocketConfig::at(dir.path().join("pleg.sock"));
        drop(StdListener::bind(&config.path).unwrap());
        assert!(StdStream::connect(&config.path).is_err());
        let _listener = bind(&config).unwrap();
        assert!(StdStream::connect(&config.path).is_ok());
    }

    #[tokio::test]
    async fn a_socket_that_somebody_serves_is_left_alone() {
        let dir = TempDir::new().unwrap();
        let config = SocketConfig::at(dir.path().join("pleg.sock"));
        let other = StdListener::bind(&config.path).unwrap();
        assert!(matches!(refusal(&config), SocketError::InUse { .. }));
        drop(other);
        let first = bind(&config).unwrap();
        assert!(matches!(refusal(&config), SocketError::InUse { .. }));
        drop(first);
        drop(bind(&config).unwrap());
    }

    #[tokio::test]
    async fn a_server_that_lets_everybody_wait_is_not_waited_for() {
        let dir = TempDir::new().unwrap();
        let config = SocketConfig::at(dir.path().join("pleg.sock"));
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&config.path).unwrap();
        let _stuck = socket.listen(0).unwrap();
        let mut waiting = Vec::new();
        while let Ok(connection) = UnixStream::connect(&config.path).await {
            waiting.push(connection);
        }
        assert!(!waiting.is_empty());
        assert!(matches!(refusal(&config), SocketError::InUse { .. }));
    }

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_never_removed() {
        let dir = TempDir::new().unwrap();
        let config = SocketConfig::at(dir.path().join("pleg.sock"));
        fs::write(&config.path, "precious").unwrap();
        assert!(matches!(refusal(&config), SocketError::NoSocket { .. }));
        assert_eq!(fs::read_to_string(&config.path).unwrap(), "precious");
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_loses_the_place_and_who_has_spoken_keeps_it() {
        let dir = TempDir::new().unwrap();
        let config = SocketConfig::at(dir.path().join("pleg.sock"));
        let mut connections = std::pin::pin!(limited(bind(&config).unwrap(), 1));
        let mut word = [0; 64];

        let mut half_a_word = StdStream::connect(&config.path).unwrap();
        half_a_word.write_all(b"PRI").unwrap();
        let mut silent = connections.next().await.unwrap().unwrap();
        assert_eq!(silent.read(&mut word).await.unwrap(), 3);
        let error = silent.read(&mut word).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(silent);

        let mut speaks = StdStream::connect(&config.path).unwrap();
        speaks
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .unwrap();
        let mut idle = connections.next().await.unwrap().unwrap();
        assert_eq!(idle.read(&mut word).await.unwrap(), FIRST_WORDS);
        let hour = Duration::from_secs(3_600);
        let more = tokio::time::timeout(hour, idle.read(&mut word)).await;
        assert!(more.is_err(), "{more:?}");
    }

    #[tokio::test]
    async fn another_ones_socket_under_the_name_is_not_removed_at_the_end() {
        let dir = TempDir::new().unwrap();
        let config = SocketConfig::at(dir.path().join("pleg.sock"));
        let listener = bind(&config).unwrap();
        fs::remove_file(&config.path).unwrap();
        let _other = StdListener::bind(&config.path).unwrap();
        drop(listener);
        assert!(config.path.exists());
    }
}
