//! `pleg simulate` as a child process: the runtime that everything is measured on.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::process::Owned;

/// What is simulated.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) character: &'static str,
    pub(crate) pods: usize,
    pub(crate) containers: usize,
    /// Starts and ends a second, once it is released.
    pub(crate) churn: f64,
    /// Whether that is restarts alone.
    pub(crate) restarts_only: bool,
    /// Starts and ends at once, when it is released.
    pub(crate) burst: usize,
    pub(crate) streaming_lists: bool,
}

impl Load {
    /// A node on which nothing happens.
    pub(crate) fn quiet(pods: usize, containers: usize) -> Self {
        Self {
            character: "containerd-2",
            pods,
            containers,
            churn: 0.0,
            restarts_only: true,
            burst: 0,
            // Such a list is larger than a unary answer may be.
            streaming_lists: pods * containers > 15_000,
        }
    }

    pub(crate) fn with_churn(self, churn: f64) -> Self {
        Self { churn, ..self }
    }

    /// Pods come and go too, and some starts fail.
    pub(crate) fn of_all_kinds(self) -> Self {
        Self {
            restarts_only: false,
            ..self
        }
    }

    pub(crate) fn with_burst(self, burst: usize) -> Self {
        Self { burst, ..self }
    }

    pub(crate) fn like(self, character: &'static str) -> Self {
        Self { character, ..self }
    }

    pub(crate) fn streamed(self) -> Self {
        Self {
            streaming_lists: true,
            ..self
        }
    }
}

/// A runtime in a process of its own. It ends when this is dropped.
pub(crate) struct Simulated {
    process: Owned,
    lines: BufReader<ChildStdout>,
    folder: TempDir,
}

impl Simulated {
    pub(crate) fn start(load: &Load) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let socket = folder.path().join("cri.sock");
        let mut command = Command::new(env!("CARGO_BIN_EXE_pleg"));
        command
            .env_clear()
            .args(["simulate", "--held", "--output", "json"])
            .arg(format!("--listen=unix://{}", socket.display()))
            .args(["--character", load.character])
            .args(["--pods", &load.pods.to_string()])
            .args(["--containers", &load.containers.to_string()])
            .args(["--churn", &load.churn.to_string()]);
        if load.restarts_only {
            command.arg("--restarts-only");
        }
        if load.burst > 0 {
            command.args(["--burst", &load.burst.to_string()]);
        }
        if load.streaming_lists {
            command.args(["--streaming-lists", "5000"]);
        }
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let lines = BufReader::new(process.stdout.take().expect("it is a pipe"));
        while !socket.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        Self {
            process: Owned(process),
            lines,
            folder,
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("cri.sock")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Lets things happen from now on.
    pub(crate) fn release(&self) {
        self.signal(Signal::USR1);
    }

    /// What it was asked and what it told, so far.
    pub(crate) fn account(&mut self) -> serde_json::Value {
        self.signal(Signal::USR2);
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("it prints");
        serde_json::from_str(&line).expect("it prints one JSON object a line")
    }

    fn signal(&self, signal: Signal) {
        let process = Pid::from_child(&self.process.0);
        kill_process(process, signal).expect("it is there");
    }
}
