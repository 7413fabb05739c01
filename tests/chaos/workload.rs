//! Pods that come and go at a high rate, and the lists that keep the record honest.
//!
//! Nothing here expects a call to succeed: the runtime is killed under it. What a call did not answer,
//! the next list does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pleg::lifecycle::{ContainerId, LifecycleKind, PodIdentity, SandboxId, SubjectKind};
use tokio::time::{sleep, timeout};
use tonic::Status;

use crate::chance::Chance;
use crate::driver::{Driver, Sandbox, Span, wall_clock};
use crate::record::SharedRecord;
use crate::wire::ContainerState;

/// A call that takes longer than the longest fault has failed.
const CALL_LIMIT: Duration = Duration::from_secs(45);

/// How often the node is listed for the record.
const LIST_PERIOD: Duration = Duration::from_millis(300);

/// Pods that live at one time, besides those that are left over.
pub(crate) const WORKERS: u64 = 6;

/// A node under load: what drives it, and its record.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) driver: Driver,
    pub(crate) record: SharedRecord,
    pods: Arc<std::sync::atomic::AtomicU64>,
}

/// What a container does.
#[derive(Clone, Copy, Debug)]
enum Program {
    Forever,
    Sleeps(u64),
    Exits(i32),
    True,
    Missing,
}

impl Program {
    fn draw(chance: &mut Chance) -> Self {
        match chance.below(10) {
            0..4 => Self::Forever,
            4..6 => Self::Sleeps(50 + chance.below(2_000)),
            6 => Self::Exits(0),
            7 => Self::Exits(7),
            8 => Self::True,
            _ => Self::Missing,
        }
    }

    fn command(self) -> Vec<String> {
        let shell = |script: String| vec!["/bin/sh".to_owned(), "-c".to_owned(), script];
        match self {
            Self::Forever => shell("trap 'exit 143' TERM; sleep 3600 & wait $!".to_owned()),
            Self::Sleeps(millis) => shell(format!("usleep {}; exit 3", millis * 1_000)),
            Self::Exits(code) => shell(format!("exit {code}")),
            Self::True => vec!["/bin/true".to_owned()],
            Self::Missing => vec!["/no/such/program".to_owned()],
        }
    }

    fn ends_by_itself(self) -> bool {
        !matches!(self, Self::Forever)
    }
}

impl Node {
    pub(crate) fn new(driver: Driver) -> Self {
        Self {
            driver,
            record: SharedRecord::default(),
            pods: Arc::default(),
        }
    }

    /// Pods one after the other, until it is over.
    pub(crate) async fn work(&self, mut chance: Chance, over: Arc<AtomicBool>) {
        while !over.load(Ordering::Relaxed) {
            let rests = match self.life(&mut chance).await {
                Some(()) => chance.millis(0, 100),
                // The runtime may be down: trying at once again would only fail faster.
                None => chance.millis(200, 500),
            };
            sleep(rests).await;
        }
    }

    /// One pod, from its first sandbox to its removal, or as far as it comes. What is left over is the
    /// janitor's.
    pub(crate) async fn life(&self, chance: &mut Chance) -> Option<()> {
        let pod = self.new_pod();
        for attempt in 0..=u32::from(chance.percent(15)) {
            let sandbox = self.run_sandbox(&pod, attempt).await?;
            for number in 0..=chance.below(3) {
                let name = format!("app-{number}");
                for attempt in 0..=u32::from(chance.percent(30)) {
                    let id = self
                        .run_container(&pod, &sandbox, &name, attempt, chance)
                        .await?;
                    if chance.percent(25) {
                        self.remove(&id).await?;
                    }
                }
            }
            // Now and then long enough that nobody may miss it.
            let rests = if chance.percent(20) {
                chance.millis(12_000, 20_000)
            } else {
                chance.millis(0, 2_000)
            };
            sleep(rests).await;
            self.stop_sandbox(&sandbox.id).await?;
            if chance.percent(20) {
                sleep(chance.millis(0, 12_000)).await;
            }
            self.remove_sandbox(&sandbox.id).await?;
        }
        Some(())
    }

    /// A pod that stays: one container runs, one has ended.
    pub(crate) async fn stay(&self, chance: &mut Chance) -> Option<()> {
        let pod = self.new_pod();
        let sandbox = self.run_sandbox(&pod, 0).await?;
        for (name, program) in [("runs", Program::Forever), ("ended", Program::Exits(7))] {
            self.start_program(&pod, &sandbox, name, 0, program, chance)
                .await?;
        }
        Some(())
    }

    async fn run_container(
        &self,
        pod: &PodIdentity,
        sandbox: &Sandbox,
        name: &str,
        attempt: u32,
        chance: &mut Chance,
    ) -> Option<ContainerId> {
        let program = Program::draw(chance);
        let id = self
            .start_program(pod, sandbox, name, attempt, program, chance)
            .await?;
        if !program.ends_by_itself() && chance.percent(40) {
            sleep(chance.millis(0, 1_500)).await;
            self.stop(&id, Duration::from_secs(chance.below(2))).await?;
        }
        Some(id)
    }

    async fn start_program(
        &self,
        pod: &PodIdentity,
        sandbox: &Sandbox,
        name: &str,
        attempt: u32,
        program: Program,
        chance: &mut Chance,
    ) -> Option<ContainerId> {
        let command = program.command();
        let create = self.driver.create(sandbox, name, attempt, &command);
        let (id, span) = self.call(pod.uid.as_str(), create).await?;
        self.record.lock().exists(
            SubjectKind::Container,
            id.as_str(),
            pod.uid.as_str(),
            sandbox.id.as_str(),
            span.ended,
        );
        if chance.percent(5) {
            return Some(id);
        }
        {
            let mut record = self.record.lock();
            if !matches!(program, Program::Missing) {
                record.may(id.as_str(), LifecycleKind::ContainerStarted);
            }
            if program.ends_by_itself() {
                record.may(id.as_str(), LifecycleKind::ContainerDied);
            }
        }
        let begun = wall_clock();
        let started = self.call("", self.driver.start(&id)).await;
        match (started, program) {
            (Some(span), _) => {
                let started = LifecycleKind::ContainerStarted;
                self.record.lock().did(id.as_str(), started, span);
            }
            (None, Program::Missing) => {}
            (None, _) => return None,
        }
        if program.ends_by_itself() && chance.percent(70) {
            self.exits(&id, begun).await?;
        }
        Some(id)
    }

    /// Waits until a container's status says that it has ended.
    async fn exits(&self, id: &ContainerId, begun: pleg::lifecycle::UnixNanos) -> Option<()> {
        for _ in 0..400 {
            let status = self.call("", self.driver.status(id)).await?;
            if status.state() == ContainerState::ContainerExited {
                let span = Span {
                    begun,
                    ended: wall_clock(),
                };
                self.record
                    .lock()
                    .exited(id.as_str(), status.exit_code, span);
                return Some(());
            }
            sleep(Duration::from_millis(15)).await;
        }
        None
    }

    async fn run_sandbox(&self, pod: &PodIdentity, attempt: u32) -> Option<Sandbox> {
        let begun = wall_clock();
        {
            let mut record = self.record.lock();
            let asked = &mut record.asked_for;
            asked.entry(pod.uid.to_string()).or_insert(begun);
        }
        let run = self.driver.run_sandbox(pod, attempt);
        let (sandbox, span) = self.call(pod.uid.as_str(), run).await?;
        let id = sandbox.id.as_str();
        let mut record = self.record.lock();
        let started = LifecycleKind::ContainerStarted;
        let life = record.exists(SubjectKind::Sandbox, id, pod.uid.as_str(), id, span.ended);
        life.may.insert(started, begun);
        record.did(id, started, span);
        drop(record);
        Some(sandbox)
    }

    async fn stop(&self, id: &ContainerId, grace: Duration) -> Option<()> {
        self.record
            .lock()
            .may(id.as_str(), LifecycleKind::ContainerDied);
        let begun = wall_clock();
        self.call("", self.driver.stop(id, grace)).await?;
        self.exits(id, begun).await
    }

    async fn remove(&self, id: &ContainerId) -> Option<()> {
        let removed = LifecycleKind::ContainerRemoved;
        self.record.lock().may(id.as_str(), removed);
        let span = self.call("", self.driver.remove(id)).await?;
        self.record.lock().did(id.as_str(), removed, span);
        Some(())
    }

    async fn stop_sandbox(&self, id: &SandboxId) -> Option<()> {
        self.record
            .lock()
            .may(id.as_str(), LifecycleKind::ContainerDied);
        self.call("", self.driver.stop_sandbox(id)).await?;
        Some(())
    }

    async fn remove_sandbox(&self, id: &SandboxId) -> Option<()> {
        let removed = LifecycleKind::ContainerRemoved;
        self.record.lock().may(id.as_str(), removed);
        let span = self.call("", self.driver.remove_sandbox(id)).await?;
        let mut record = self.record.lock();
        record.did(id.as_str(), removed, span);
        let inside = record.lives.iter();
        let inside = inside.filter(|(_, life)| life.sandbox == id.as_str() && !life.is_gone());
        let inside: Vec<String> = inside.map(|(id, _)| id.clone()).collect();
        for id in inside {
            record.did(&id, removed, span);
        }
        Some(())
    }

    /// The answer, if it is one; the pod that the call would have made something of is uncertain else.
    async fn call<T>(
        &self,
        makes_for: &str,
        call: impl Future<Output = Result<T, Status>>,
    ) -> Option<T> {
        let answer = timeout(CALL_LIMIT, call).await;
        let mut record = self.record.lock();
        if let Ok(Ok(answer)) = answer {
            record.calls.0 += 1;
            return Some(answer);
        }
        record.calls.1 += 1;
        if !makes_for.is_empty() {
            record.uncertain_pods.insert(makes_for.to_owned());
        }
        None
    }

    fn new_pod(&self) -> PodIdentity {
        let number = self.pods.fetch_add(1, Ordering::Relaxed);
        let unique = format!("{:x}-{number}", wall_clock().0);
        PodIdentity {
            uid: unique.as_str().into(),
            namespace: "chaos".into(),
            name: format!("pod-{number}").as_str().into(),
        }
    }

    /// Lists the node for the record, again and again.
    pub(crate) async fn keep_listing(&self) {
        loop {
            self.list().await;
            sleep(LIST_PERIOD).await;
        }
    }

    /// Lists the node for the record; says whether it was answered.
    pub(crate) async fn list(&self) -> bool {
        let begun = wall_clock();
        let Ok(Ok((sandboxes, containers))) = timeout(CALL_LIMIT, self.driver.list_node()).await
        else {
            return false;
        };
        let span = Span {
            begun,
            ended: wall_clock(),
        };
        self.record.lock().listed(span, &sandboxes, &containers);
        true
    }

    /// Removes what is older than any pod gets, until it is aborted.
    pub(crate) async fn keep_clean(&self) {
        loop {
            sleep(Duration::from_secs(5)).await;
            self.clean(Duration::from_secs(100)).await;
        }
    }

    /// Removes every sandbox that is older than this.
    pub(crate) async fn clean(&self, older_than: Duration) {
        let age = i64::try_from(older_than.as_nanos()).expect("short durations");
        let old: Vec<String> = {
            let record = self.record.lock();
            let now = wall_clock().0;
            let is_old = |life: &crate::record::Life| {
                life.kind == SubjectKind::Sandbox && !life.is_gone() && now - life.known.0 > age
            };
            let lives = record.lives.iter().filter(|(_, life)| is_old(life));
            lives.map(|(id, _)| id.clone()).collect()
        };
        for id in old {
            let id = SandboxId::from(id);
            // A sandbox whose network cannot be taken down is removed all the same, or stays.
            self.stop_sandbox(&id).await;
            self.remove_sandbox(&id).await;
        }
    }
}
