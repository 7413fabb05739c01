//! A daemon in a process of its own, and the commands that ask it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use pleg::cri::Endpoint;
use pleg::serve::grpc::DaemonClient;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

/// Longer than anything here takes, shorter than anybody's patience.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a runtime's and a daemon's sockets.
pub(crate) struct Node {
    folder: TempDir,
}

impl Node {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("a temporary directory");
        Self { folder }
    }

    pub(crate) fn runtime_socket(&self) -> PathBuf {
        self.folder.path().join("runtime.sock")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("pleg/pleg.sock")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn client(&self) -> DaemonClient {
        let endpoint: Endpoint = text(&self.socket()).parse().expect("an absolute path");
        DaemonClient::at(&endpoint)
    }

    /// `pleg` with words of its own, told where the daemon is.
    pub(crate) fn pleg(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pleg"));
        command
            .env_clear()
            .env("PLEG_DAEMON", self.socket())
            .args(words.split_whitespace())
            .stdin(Stdio::null());
        command
    }

    pub(crate) async fn output(&self, words: &str) -> Output {
        let mut command = self.pleg(words);
        let ended = tokio::task::spawn_blocking(move || command.output());
        let ended = timeout(PATIENCE, ended).await.expect("it ends by itself");
        ended.expect("no panic").expect("the binary starts")
    }

    /// Starts the daemon and waits until it answers.
    pub(crate) async fn run(&self) -> Daemon {
        let daemon = Daemon::start(self);
        until("the daemon answers", async || {
            self.client().status().await.is_ok()
        })
        .await;
        daemon
    }
}

/// `pleg run`. Killed when dropped.
pub(crate) struct Daemon(Child);

impl Daemon {
    pub(crate) fn start(node: &Node) -> Self {
        Self::start_with(node, |_| {})
    }

    /// Starts it with something more, say a variable.
    pub(crate) fn start_with(node: &Node, more: impl FnOnce(&mut Command)) -> Self {
        let mut command = node.pleg("run");
        more(&mut command);
        command
            .args(["--runtime-endpoint", &text(&node.runtime_socket())])
            .args(["--grpc-listen", &text(&node.socket())])
            // Many run at once.
            .args(["--http-listen", "off"]);
        Self(command.spawn().expect("the binary starts"))
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }

    /// Sends SIGTERM and gives the exit code, once it has ended by itself.
    pub(crate) async fn terminate(&mut self) -> Option<i32> {
        let id = self.0.id().to_string();
        let sent = Command::new("sh")
            .args(["-c", &format!("kill {id}")])
            .status();
        assert!(sent.expect("sh starts").success());
        until("the daemon ends", async || {
            self.0.try_wait().expect("waiting works").is_some()
        })
        .await;
        self.0.wait().expect("it has ended").code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It fails if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let held = timeout(PATIENCE, async {
        while !holds().await {
            sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(held.await.is_ok(), "never: {what}");
}

pub(crate) fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}
