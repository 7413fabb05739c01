//! `pleg watch -o json` as a process of its own: what it printed and when, what it was shown, how large
//! it is. It is the one that is held to account, so it can be stopped and continued.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pleg::lifecycle::{EventSubject, LifecycleEvent, UnixNanos};
use pleg::scenario::recording::{self, Record};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{sleep, timeout};

use crate::driver::wall_clock;
use crate::judge::Telling;
use crate::shown::Shown;
use crate::vitals::Descriptors;

/// The process's size at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vitals {
    pub(crate) rss_kib: u64,
    pub(crate) fds: u64,
}

#[derive(Default)]
struct Printed {
    told: Vec<Telling>,
    mode: String,
    modes: BTreeMap<String, u64>,
    /// Lines that are neither an event nor a change of mode.
    strange: Vec<String>,
    /// Recordings that it says it wrote.
    dumps: u64,
    complaints: Vec<String>,
}

/// A running `pleg watch`. It is killed when dropped.
pub(crate) struct Watcher {
    child: Child,
    pid: Pid,
    printed: Arc<Mutex<Printed>>,
    recording: PathBuf,
    shown: Mutex<Shown>,
    /// The newest moment in the recordings so far, and how often older ones were gone by then.
    recorded: Mutex<(Option<UnixNanos>, u64)>,
}

impl Watcher {
    /// Starts it and waits until it follows the runtime.
    pub(crate) async fn start(endpoint: &str, directory: &Path) -> Self {
        let recording = directory.join("pleg.jsonl");
        // Whatever ends the test ends it too, even while it is stopped.
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", env!("CARGO_BIN_EXE_pleg")])
            .args(["watch", "-o", "json", "--runtime-endpoint", endpoint])
            .arg("--dump-last")
            .arg(&recording)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("pleg starts");
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let printed: Arc<Mutex<Printed>> = Arc::default();
        let out = child.stdout.take().expect("it is piped");
        let err = child.stderr.take().expect("it is piped");
        each_line(out, &printed, Printed::take);
        each_line(err, &printed, Printed::complain);
        let watcher = Self {
            child,
            pid: pid.expect("it runs"),
            printed,
            recording,
            shown: Mutex::default(),
            recorded: Mutex::default(),
        };
        let follows = async {
            while watcher.mode().is_empty() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(60), follows)
            .await
            .expect("pleg follows the runtime");
        watcher
    }

    pub(crate) fn stop(&self) {
        kill_process(self.pid, Signal::STOP).expect("our own child takes signals");
    }

    pub(crate) fn go_on(&self) {
        kill_process(self.pid, Signal::CONT).expect("our own child takes signals");
    }

    /// The newest mode, with its reason; empty before the first.
    pub(crate) fn mode(&self) -> String {
        self.printed().mode.clone()
    }

    /// How often each mode began.
    pub(crate) fn modes(&self) -> BTreeMap<String, u64> {
        self.printed().modes.clone()
    }

    pub(crate) fn told(&self) -> Vec<Telling> {
        self.printed().told.clone()
    }

    /// What it printed besides events and modes, and what it said aside.
    pub(crate) fn asides(&self) -> (Vec<String>, Vec<String>) {
        let printed = self.printed();
        (printed.strange.clone(), printed.complaints.clone())
    }

    /// All that its recordings show so far, and how often a part of it was gone before it was read.
    pub(crate) fn shown(&self) -> (Shown, u64) {
        let shown = self.shown.lock().expect("nobody panics").clone();
        (shown, self.recorded.lock().expect("nobody panics").1)
    }

    pub(crate) fn recording(&self) -> &Path {
        &self.recording
    }

    pub(crate) fn vitals(&self) -> Option<Vitals> {
        let process = PathBuf::from(format!("/proc/{}", self.pid.as_raw_nonzero()));
        let status = fs::read_to_string(process.join("status")).ok()?;
        let rss = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let rss_kib = rss.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        let fds = fs::read_dir(process.join("fd")).ok()?.count();
        Some(Vitals {
            rss_kib,
            fds: fds as u64,
        })
    }

    /// Its open descriptors by kind.
    pub(crate) fn descriptors(&self) -> Descriptors {
        let mut kinds = Descriptors::new();
        let folder = format!("/proc/{}/fd", self.pid.as_raw_nonzero());
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            let kind = target.to_string_lossy();
            let kind = kind.split(":[").next().unwrap_or_default().to_owned();
            *kinds.entry(kind).or_default() += 1;
        }
        kinds
    }

    /// Has it write what it was shown lately, and takes that in.
    pub(crate) async fn look_at_the_recording(&self) {
        let before = self.printed().dumps;
        kill_process(self.pid, Signal::USR1).expect("our own child takes signals");
        let written = async {
            while self.printed().dumps == before {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(Duration::from_secs(120), written)
            .await
            .expect("pleg writes its recording");
        let path = self.recording.clone();
        let read = tokio::task::spawn_blocking(move || read_recording(&path));
        let (shown, first, last, gaps) = read.await.expect("the recording can be read");
        self.shown.lock().expect("nobody panics").join(shown);
        let mut recorded = self.recorded.lock().expect("nobody panics");
        let uncovered = first.is_some_and(|first| recorded.0.is_some_and(|seen| first > seen));
        recorded.1 += gaps + u64::from(uncovered);
        recorded.0 = last.or(recorded.0);
    }

    /// Asks it to end, and says whether it did so well.
    pub(crate) async fn end(&mut self) -> bool {
        let _ = kill_process(self.pid, Signal::TERM);
        for _ in 0..600 {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status.success();
            }
            sleep(Duration::from_millis(50)).await;
        }
        false
    }

    fn printed(&self) -> std::sync::MutexGuard<'_, Printed> {
        self.printed.lock().expect("nobody panics")
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Printed {
    fn take(&mut self, line: String) {
        let at = wall_clock();
        if let Ok(event) = serde_json::from_str::<LifecycleEvent>(&line) {
            let id = event.subject.as_ref().map(EventSubject::id);
            self.told.push(Telling {
                pod: event.pod.uid.to_string(),
                id: id.map(|id| id.as_str().to_owned()).unwrap_or_default(),
                kind: event.kind,
                exit_code: event.exit.map(|exit| exit.exit_code),
                at,
                mode: self.mode.clone(),
            });
            return;
        }
        let value: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let word = |key: &str| value[key].as_str().map(ToOwned::to_owned);
        match word("to") {
            Some(mode) => {
                self.mode = match word("reason") {
                    Some(reason) => format!("{mode}({reason})"),
                    None => mode,
                };
                *self.modes.entry(self.mode.clone()).or_default() += 1;
            }
            None => self.strange.push(line),
        }
    }

    fn complain(&mut self, line: String) {
        if line.contains("wrote the last minutes") {
            self.dumps += 1;
        } else {
            self.complaints.push(line);
        }
    }
}

fn each_line(
    from: impl Read + Send + 'static,
    printed: &Arc<Mutex<Printed>>,
    take: impl Fn(&mut Printed, String) + Send + 'static,
) {
    let printed = Arc::clone(printed);
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            take(&mut printed.lock().expect("nobody panics"), line);
        }
    });
}

/// What a recording shows, its first moment if something before it is missing, its last, and its gaps.
fn read_recording(path: &Path) -> (Shown, Option<UnixNanos>, Option<UnixNanos>, u64) {
    let mut reader = recording::open(path).expect("a recording");
    let is_excerpt = reader.header().excerpt;
    let (mut shown, mut first, mut last, mut gaps) = (Shown::default(), None, None, 0);
    while let Some(entry) = reader.next_entry().expect("a whole recording") {
        first = first.or(Some(entry.at.wall));
        last = Some(entry.at.wall);
        match &entry.record {
            Record::Asked { request, question } => shown.asked(entry.at, *request, question),
            Record::Taken(input) => shown.took(input),
            Record::Gap { .. } => gaps += 1,
            _ => {}
        }
    }
    (shown, first.filter(|_| is_excerpt), last, gaps)
}
