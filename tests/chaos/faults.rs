//! The faults: to the runtime, to what it runs, to `pleg`.
//!
//! Two hands deal them side by side: one has the daemon, with lulls between, the other all the rest.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pleg::lifecycle::{LifecycleKind, SubjectKind};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::sleep;

use crate::chance::{Chance, Deck};
use crate::driver::{container_events, wall_clock};
use crate::testbed::{Testbed, Version};
use crate::watcher::Watcher;
use crate::workload::Node;

/// Shared by the two hands.
pub(crate) struct Faults<'a> {
    pub(crate) bed: &'a Testbed,
    pub(crate) node: &'a Node,
    pub(crate) watcher: &'a Watcher,
    pub(crate) over: &'a AtomicBool,
    /// A lull: only what the runtime runs is killed.
    lull: AtomicBool,
}

#[derive(Clone, Copy)]
enum OfTheDaemon {
    Killed,
    Terminated,
    Stopped,
    StoppedForLong,
    Lull,
}

#[derive(Clone, Copy)]
enum OfOthers {
    ShimKilled,
    PauseKilled,
    ProcessKilled,
    PlegStopped,
    EventsStolen,
}

impl<'a> Faults<'a> {
    pub(crate) fn new(
        bed: &'a Testbed,
        node: &'a Node,
        watcher: &'a Watcher,
        over: &'a AtomicBool,
    ) -> Self {
        Self {
            bed,
            node,
            watcher,
            over,
            lull: AtomicBool::new(false),
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Waits, but not past the end.
    async fn wait(&self, time: Duration) {
        let mut left = time;
        while !left.is_zero() && !self.is_over() {
            let step = left.min(Duration::from_millis(100));
            sleep(step).await;
            left -= step;
        }
    }

    pub(crate) async fn of_the_daemon(&self, mut chance: Chance) {
        use OfTheDaemon::{Killed, Lull, Stopped, StoppedForLong, Terminated};
        let cards = vec![
            Killed,
            Killed,
            Terminated,
            Stopped,
            Stopped,
            StoppedForLong,
            Lull,
        ];
        let mut deck = Deck::new(cards);
        self.wait(chance.millis(1_000, 3_000)).await;
        while !self.is_over() {
            match deck.deal(&mut chance) {
                Killed => self.end_the_daemon("containerd SIGKILL", &mut chance).await,
                Terminated => self.end_the_daemon("containerd SIGTERM", &mut chance).await,
                Stopped => self.stop_the_daemon(chance.millis(500, 5_000)).await,
                // Longer than the heartbeat's period and its deadline.
                StoppedForLong => self.stop_the_daemon(chance.millis(17_000, 22_000)).await,
                Lull => {
                    self.lull.store(true, Ordering::Relaxed);
                    self.wait(chance.millis(15_000, 20_000)).await;
                    self.lull.store(false, Ordering::Relaxed);
                }
            }
            self.wait(chance.millis(500, 5_000)).await;
        }
    }

    async fn end_the_daemon(&self, how: &'static str, chance: &mut Chance) {
        let _disturbance = self.node.record.disturb();
        self.node.record.lock().fault(how);
        self.node.record.lock().runtime_deaths.push(wall_clock());
        if how.ends_with("KILL") {
            self.bed.kill().await;
        } else {
            self.bed.terminate().await;
        }
        self.wait(chance.millis(0, 4_000)).await;
        self.bed.restart().await;
    }

    async fn stop_the_daemon(&self, time: Duration) {
        let _disturbance = self.node.record.disturb();
        self.node.record.lock().fault("containerd SIGSTOP");
        self.bed.freeze();
        self.wait(time).await;
        self.bed.thaw();
    }

    pub(crate) async fn of_others(&self, mut chance: Chance) {
        use OfOthers::{EventsStolen, PauseKilled, PlegStopped, ProcessKilled, ShimKilled};
        let mut cards = vec![
            ShimKilled,
            PauseKilled,
            ProcessKilled,
            ProcessKilled,
            PlegStopped,
        ];
        if self.bed.version() == Version::Containerd17 {
            cards.push(EventsStolen);
        }
        let mut deck = Deck::new(cards);
        while !self.is_over() {
            self.wait(chance.millis(500, 3_000)).await;
            let in_a_lull = self.lull.load(Ordering::Relaxed);
            match deck.deal(&mut chance) {
                ShimKilled => self.kill_a_shim(&mut chance),
                PauseKilled => self.kill_a_process(SubjectKind::Sandbox, &mut chance),
                ProcessKilled => self.kill_a_process(SubjectKind::Container, &mut chance),
                PlegStopped if !in_a_lull => {
                    let _disturbance = self.node.record.disturb();
                    self.node.record.lock().fault("pleg SIGSTOP");
                    self.watcher.stop();
                    self.wait(chance.millis(300, 8_000)).await;
                    self.watcher.go_on();
                }
                EventsStolen if !in_a_lull => self.steal_events(&mut chance).await,
                PlegStopped | EventsStolen => {}
            }
        }
    }

    /// Another client of the events, for some seconds. The call that it leaves behind takes one more
    /// event, whenever that comes.
    async fn steal_events(&self, chance: &mut Chance) {
        let _disturbance = self.node.record.disturb();
        self.node.record.lock().fault("second event client");
        let socket = self.bed.socket();
        let thief = tokio::spawn(async move {
            let Ok(mut events) = container_events(&socket).await else {
                return;
            };
            while let Ok(Some(_)) = events.message().await {}
        });
        self.wait(chance.millis(1_000, 5_000)).await;
        thief.abort();
    }

    /// A subject of this kind that runs, as far as the record knows.
    fn running(&self, kind: SubjectKind, chance: &mut Chance) -> Option<String> {
        let record = self.node.record.lock();
        let lives = record.lives.iter();
        let running = lives.filter(|(_, life)| life.kind == kind && life.runs());
        let running: Vec<String> = running.map(|(id, _)| id.clone()).collect();
        chance.pick(&running).cloned()
    }

    fn kill_a_process(&self, kind: SubjectKind, chance: &mut Chance) {
        let Some(id) = self.running(kind, chance) else {
            return;
        };
        let Some(process) = self.first_process(&id) else {
            return;
        };
        let mut record = self.node.record.lock();
        record.may(&id, LifecycleKind::ContainerDied);
        if kill_process(process, Signal::KILL).is_ok() {
            record.fault(match kind {
                SubjectKind::Sandbox => "pause process SIGKILL",
                SubjectKind::Container => "container process SIGKILL",
            });
        }
    }

    fn kill_a_shim(&self, chance: &mut Chance) {
        let Some(id) = self.running(SubjectKind::Sandbox, chance) else {
            return;
        };
        let Some(shim) = shim_of(&self.bed.socket(), &id) else {
            return;
        };
        let mut record = self.node.record.lock();
        record.may(&id, LifecycleKind::ContainerDied);
        if kill_process(shim, Signal::KILL).is_ok() {
            record.fault("shim SIGKILL");
        }
    }

    fn first_process(&self, id: &str) -> Option<Pid> {
        let directory = self.bed.socket().parent().map(Path::to_path_buf)?;
        let bundle = directory.join("state/io.containerd.runtime.v2.task/k8s.io");
        let pid = fs::read_to_string(bundle.join(id).join("init.pid")).ok()?;
        Pid::from_raw(pid.trim().parse().ok()?)
    }
}

/// The shim that serves a sandbox of the runtime behind this socket.
fn shim_of(socket: &Path, sandbox: &str) -> Option<Pid> {
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    let is_it = |path: PathBuf| {
        let command = fs::read_to_string(path.join("cmdline")).ok()?;
        let words: Vec<&str> = command.split('\0').collect();
        let has = |flag: &str, value: &str| words.windows(2).any(|pair| pair == [flag, value]);
        let ours = words.first()?.contains("containerd-shim")
            && has("-id", sandbox)
            && has("-address", socket.to_str()?);
        let pid = path.file_name()?.to_str()?.parse().ok()?;
        ours.then(|| Pid::from_raw(pid)).flatten()
    };
    processes.map(|entry| entry.path()).find_map(is_it)
}

/// Ends what is left of these containers once their runtime is gone: whoever lost its shim may still run.
/// Returns how many processes did.
pub(crate) fn end_what_is_left(ids: impl Iterator<Item = String>) -> usize {
    let mut ended = 0;
    for id in ids {
        for group in groups_of(&id) {
            let processes = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            let processes = processes.lines().filter_map(|pid| pid.parse().ok());
            for process in processes.filter_map(Pid::from_raw) {
                ended += usize::from(kill_process(process, Signal::KILL).is_ok());
            }
            for _ in 0..100 {
                if fs::remove_dir(&group).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    ended
}

/// A container's control groups, in each hierarchy that there is.
fn groups_of(id: &str) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let hierarchies = fs::read_dir(root).into_iter().flatten().flatten();
    let hierarchies = hierarchies.map(|entry| entry.path());
    let groups = hierarchies.chain([root.to_path_buf()]);
    let groups = groups.map(|hierarchy| hierarchy.join("k8s.io").join(id));
    groups.filter(|group| group.is_dir()).collect()
}

/// Ends the faults however the run ends: nothing may stay stopped.
pub(crate) struct OverAtLast(pub(crate) Arc<AtomicBool>);

impl Drop for OverAtLast {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
