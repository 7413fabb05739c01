//! Real containerd daemons for tests: started in directories of their own, disturbed, and cleaned up
//! after.
//!
//! The work is done by `tests/testbed.sh`. A guard process of the script holds the other end of a
//! pipe: whatever ends a test (its end, a panic, the process killed) ends its daemons, pods, mounts
//! and files too. Nothing here speaks CRI.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::OnceCell;
use tokio::time::sleep;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/testbed.sh");

/// A runtime that the suite runs against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// Has no event stream.
    Containerd16,
    /// One event queue that all clients share.
    Containerd17,
    /// An event queue for each client; a client that stops reading blocks the runtime.
    Containerd21,
}

impl Version {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Containerd16 => "1.6",
            Self::Containerd17 => "1.7",
            Self::Containerd21 => "2.1",
        }
    }

    /// What it says of a container that exited with `code` while the daemon was down: since 1.7 the
    /// code is lost.
    pub(crate) fn exit_code_after_downtime(self, code: i32) -> i32 {
        match self {
            Self::Containerd16 => code,
            Self::Containerd17 | Self::Containerd21 => 255,
        }
    }
}

/// One daemon with everything that belongs to it.
pub(crate) struct Testbed {
    version: Version,
    directory: PathBuf,
    guard: Child,
}

impl Testbed {
    /// The daemon of this version that all tests share which only run pods. It lives as long as the
    /// test process.
    pub(crate) async fn shared(version: Version) -> &'static Self {
        static SHARED: [OnceCell<Testbed>; 3] = [const { OnceCell::const_new() }; 3];
        let slot = match version {
            Version::Containerd16 => &SHARED[0],
            Version::Containerd17 => &SHARED[1],
            Version::Containerd21 => &SHARED[2],
        };
        slot.get_or_init(|| Self::start(version)).await
    }

    /// A new daemon in a new directory, with the test images imported.
    ///
    /// # Panics
    /// If the daemon cannot be installed or started; the message is the script's.
    pub(crate) async fn start(version: Version) -> Self {
        static INSTALLED: OnceCell<()> = OnceCell::const_new();
        INSTALLED
            .get_or_init(|| async {
                run_script(&["install"]).await;
            })
            .await;
        // Kept, so that nobody but the guard removes it: there may be mounts below it.
        let directory = tempfile::Builder::new()
            .prefix("pleg-real-")
            .tempdir()
            .expect("a temporary directory")
            .keep();
        let bed = Self {
            version,
            guard: guard(&directory).expect("the guard starts"),
            directory,
        };
        bed.restart().await;
        run_script(&["image", bed.path()]).await;
        bed
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// The runtime's socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("containerd.sock")
    }

    /// The socket as CRI clients are told of it.
    pub(crate) fn endpoint(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Starts the daemon, which must not be running, and waits until it serves CRI. Containers have
    /// gone on under their shims meanwhile and are picked up again.
    pub(crate) async fn restart(&self) {
        run_script(&["start", self.version.label(), self.path()]).await;
    }

    /// Ends the daemon without warning (SIGKILL) and waits until it is gone.
    pub(crate) async fn kill(&self) {
        self.end_daemon(Signal::KILL).await;
    }

    /// Ends the daemon as an init system does (SIGTERM) and waits until it is gone.
    pub(crate) async fn terminate(&self) {
        self.end_daemon(Signal::TERM).await;
    }

    /// Freezes the daemon (SIGSTOP): its sockets stay open and nothing answers.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a frozen daemon go on (SIGCONT).
    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Whether the daemon's process is there, be it frozen or not.
    pub(crate) fn is_running(&self) -> bool {
        self.daemon().is_some()
    }

    /// The first process of a running container, which a test may kill behind the runtime's back.
    pub(crate) fn process_of(&self, container_id: &str) -> Process {
        let path = self
            .directory
            .join("state/io.containerd.runtime.v2.task/k8s.io")
            .join(container_id)
            .join("init.pid");
        let text = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("no process of container {container_id}: {error}"));
        Process(parse_pid(&text).expect("the runtime wrote a process id"))
    }

    /// Ends the daemon and all that belongs to it, and says whether that left nothing behind.
    pub(crate) fn stop(mut self) -> bool {
        self.clean_up() && !self.directory.exists()
    }

    fn path(&self) -> &str {
        self.directory
            .to_str()
            .expect("temporary directories have plain names")
    }

    /// The daemon's process, if it is there; a reused process id does not fool it.
    fn daemon(&self) -> Option<Pid> {
        let pid = parse_pid(&fs::read_to_string(self.directory.join("containerd.pid")).ok()?)?;
        let command = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
        let ours = self.directory.join("config.toml");
        String::from_utf8_lossy(&command)
            .contains(ours.to_str()?)
            .then_some(pid)
    }

    fn signal(&self, signal: Signal) {
        let daemon = self.daemon().expect("the daemon is running");
        kill_process(daemon, signal).expect("our own daemon takes signals");
    }

    async fn end_daemon(&self, signal: Signal) {
        self.signal(signal);
        while self.is_running() {
            sleep(Duration::from_millis(2)).await;
        }
    }

    fn clean_up(&mut self) -> bool {
        drop(self.guard.stdin.take());
        self.guard.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        if !self.clean_up() {
            eprintln!("the test bed in {} was not cleaned up", self.path());
        }
    }
}

/// A process of a container.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(Pid);

impl Process {
    /// Kills it (SIGKILL) and waits until it is gone.
    pub(crate) async fn kill(self) {
        kill_process(self.0, Signal::KILL).expect("the container's process takes signals");
        let stat = format!("/proc/{}/stat", self.0.as_raw_nonzero());
        // "pid (name) state ...": a zombie's state is Z.
        while fs::read_to_string(&stat)
            .is_ok_and(|text| !text.rsplit(')').next().unwrap_or("").starts_with(" Z"))
        {
            sleep(Duration::from_millis(2)).await;
        }
    }
}

fn parse_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.trim().parse().ok()?)
}

/// A process group of its own, so that an interrupt of the test does not reach the clean-up.
fn guard(directory: &Path) -> io::Result<Child> {
    use std::os::unix::process::CommandExt;
    Command::new(SCRIPT)
        .arg("guard")
        .arg(directory)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
}

async fn run_script(arguments: &[&str]) {
    let output = tokio::process::Command::new(SCRIPT)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await
        .expect("the test bed's script runs");
    assert!(
        output.status.success(),
        "testbed.sh {} failed:\n{}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
}
