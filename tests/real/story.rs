//! A story drives one pod and writes down the truth as it goes.
//!
//! Each step panics if the runtime does not do what the step says: an observer is only ever held
//! against things that happened. Steps wait for nothing but the runtime.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pleg::lifecycle::{
    ContainerId, EventSubject, LifecycleKind, PodIdentity, SandboxId, SubjectId, UnixNanos,
};
use tokio::time::{sleep, timeout};

use crate::driver::{Driver, Sandbox, Span, wall_clock};
use crate::truth::{Change, Life, Truth};
use crate::wire::ContainerState;

/// What a container runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program {
    /// Runs until it is stopped; exits 143 on SIGTERM.
    Forever,
    /// Exits with this code as soon as it can.
    Exits(i32),
    /// The shortest life there is: no shell, exit code 0.
    True,
    /// Cannot be started: the file does not exist.
    Missing,
}

impl Program {
    fn command(self) -> Vec<String> {
        let shell = |script: String| vec!["/bin/sh".to_owned(), "-c".to_owned(), script];
        match self {
            Self::Forever => shell("trap 'exit 143' TERM; sleep 3600 & wait $!".to_owned()),
            Self::Exits(code) => shell(format!("exit {code}")),
            Self::True => vec!["/bin/true".to_owned()],
            Self::Missing => vec!["/no/such/program".to_owned()],
        }
    }
}

/// One pod, what is done to it and what has become of it.
pub(crate) struct Story {
    driver: Driver,
    truth: Truth,
    /// The spans of successful starts: a program may have ended from then on.
    starts: BTreeMap<ContainerId, Span>,
}

impl Story {
    /// A story of a new pod; the title becomes the pod's name.
    pub(crate) fn new(driver: &Driver, title: &str) -> Self {
        static PODS: AtomicU32 = AtomicU32::new(0);
        let number = PODS.fetch_add(1, Ordering::Relaxed);
        let unique = format!("{:x}-{:x}-{number}", wall_clock().0, std::process::id());
        let pod = PodIdentity {
            uid: unique.as_str().into(),
            namespace: "real".into(),
            name: title.into(),
        };
        Self {
            driver: driver.clone(),
            truth: Truth {
                pod,
                lives: Vec::new(),
            },
            starts: BTreeMap::new(),
        }
    }

    pub(crate) fn pod(&self) -> &PodIdentity {
        &self.truth.pod
    }

    pub(crate) fn truth(&self) -> &Truth {
        &self.truth
    }

    /// Runs the pod's next sandbox.
    pub(crate) async fn run_sandbox(&mut self) -> Sandbox {
        let attempt = self.attempts(|subject| matches!(subject, EventSubject::Sandbox { .. }));
        let (sandbox, span) = self
            .driver
            .run_sandbox(&self.truth.pod, attempt)
            .await
            .expect("a sandbox is run");
        self.begin(
            EventSubject::Sandbox {
                id: sandbox.id.clone(),
                attempt,
            },
            &sandbox.id,
            span,
        );
        self.change(
            &SubjectId::Sandbox(sandbox.id.clone()),
            LifecycleKind::ContainerStarted,
            None,
            span,
        );
        sandbox
    }

    /// Creates a container, the next of its name.
    pub(crate) async fn create(
        &mut self,
        sandbox: &Sandbox,
        name: &str,
        program: Program,
    ) -> ContainerId {
        let attempt = self.attempts(
            |subject| matches!(subject, EventSubject::Container { name: its, .. } if **its == *name),
        );
        let (id, span) = self
            .driver
            .create(sandbox, name, attempt, &program.command())
            .await
            .expect("a container is created");
        self.begin(
            EventSubject::Container {
                id: id.clone(),
                name: name.into(),
                attempt,
            },
            &sandbox.id,
            span,
        );
        id
    }

    pub(crate) async fn start(&mut self, id: &ContainerId) {
        let span = self.driver.start(id).await.expect("a container starts");
        self.starts.insert(id.clone(), span);
        self.change(
            &SubjectId::Container(id.clone()),
            LifecycleKind::ContainerStarted,
            None,
            span,
        );
    }

    /// Tries to start a container whose program is missing: the runtime has it exited, with 128.
    pub(crate) async fn start_fails(&mut self, id: &ContainerId) {
        let begun = wall_clock();
        self.driver
            .start(id)
            .await
            .expect_err("there is nothing to start");
        self.exited(id, begun, 128).await;
    }

    /// Waits until a started container has ended by itself.
    pub(crate) async fn exits(&mut self, id: &ContainerId, code: i32) {
        let begun = self.starts[id].begun;
        self.exited(id, begun, code).await;
    }

    /// Creates and starts a container and waits for its end.
    pub(crate) async fn run(
        &mut self,
        sandbox: &Sandbox,
        name: &str,
        program: Program,
        code: i32,
    ) -> ContainerId {
        let id = self.create(sandbox, name, program).await;
        self.start(&id).await;
        self.exits(&id, code).await;
        id
    }

    /// Stops a running container; without grace that is SIGKILL.
    pub(crate) async fn stop(&mut self, id: &ContainerId, grace: Duration, code: i32) {
        let begun = wall_clock();
        self.driver
            .stop(id, grace)
            .await
            .expect("a container stops");
        self.exited(id, begun, code).await;
    }

    /// Says that the container was ended in this span by other means than the driver.
    pub(crate) async fn ended(&mut self, id: &ContainerId, span: Span, code: i32) {
        self.exited(id, span.begun, code).await;
    }

    pub(crate) async fn remove(&mut self, id: &ContainerId) {
        let span = self
            .driver
            .remove(id)
            .await
            .expect("a container is removed");
        self.change(
            &SubjectId::Container(id.clone()),
            LifecycleKind::ContainerRemoved,
            None,
            span,
        );
    }

    /// Stops a sandbox, which kills what still runs in it.
    pub(crate) async fn stop_sandbox(&mut self, sandbox: &Sandbox) {
        let span = self
            .driver
            .stop_sandbox(&sandbox.id)
            .await
            .expect("a sandbox stops");
        for subject in self.inside(sandbox, LifecycleKind::ContainerDied) {
            if !self.has_started(&subject) {
                continue;
            }
            let code = matches!(subject, SubjectId::Container(_)).then_some(137);
            self.change(&subject, LifecycleKind::ContainerDied, code, span);
        }
    }

    /// Removes a stopped sandbox and all that is in it, and sees that it is gone.
    pub(crate) async fn remove_sandbox(&mut self, sandbox: &Sandbox) {
        let span = self
            .driver
            .remove_sandbox(&sandbox.id)
            .await
            .expect("a sandbox is removed");
        for subject in self.inside(sandbox, LifecycleKind::ContainerRemoved) {
            self.change(&subject, LifecycleKind::ContainerRemoved, None, span);
        }
        let (sandboxes, containers) = self
            .driver
            .list(self.pod())
            .await
            .expect("the node is listed");
        assert!(
            sandboxes
                .iter()
                .all(|listed| listed.id != sandbox.id.as_str())
        );
        assert!(
            containers
                .iter()
                .all(|listed| listed.pod_sandbox_id != sandbox.id.as_str())
        );
    }

    fn attempts(&self, same: impl Fn(&EventSubject) -> bool) -> u32 {
        let before = self
            .truth
            .lives
            .iter()
            .filter(|life| same(&life.subject))
            .count();
        u32::try_from(before).expect("few attempts")
    }

    fn has_started(&self, subject: &SubjectId) -> bool {
        let life = |life: &&Life| life.subject.id() == *subject;
        let life = self.truth.lives.iter().find(life);
        life.is_some_and(|life| life.is_past(LifecycleKind::ContainerStarted))
    }

    fn inside(&self, sandbox: &Sandbox, not_yet: LifecycleKind) -> Vec<SubjectId> {
        self.truth
            .lives
            .iter()
            .filter(|life| life.sandbox == sandbox.id && !life.is_past(not_yet))
            .map(|life| life.subject.id())
            .collect()
    }

    async fn exited(&mut self, id: &ContainerId, begun: UnixNanos, code: i32) {
        let wait = async {
            loop {
                let status = self
                    .driver
                    .status(id)
                    .await
                    .expect("the container is there");
                if status.state() == ContainerState::ContainerExited {
                    return status;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        let status = timeout(Duration::from_secs(30), wait)
            .await
            .expect("the container exits in time");
        assert_eq!(
            status.exit_code, code,
            "of {}: {}",
            self.truth.pod.name, status.reason
        );
        let span = Span {
            begun,
            ended: wall_clock(),
        };
        self.change(
            &SubjectId::Container(id.clone()),
            LifecycleKind::ContainerDied,
            Some(code),
            span,
        );
    }

    fn begin(&mut self, subject: EventSubject, sandbox: &SandboxId, created: Span) {
        self.truth.lives.push(Life {
            subject,
            sandbox: sandbox.clone(),
            created,
            changes: Vec::new(),
        });
    }

    fn change(
        &mut self,
        subject: &SubjectId,
        kind: LifecycleKind,
        exit_code: Option<i32>,
        span: Span,
    ) {
        let life = self
            .truth
            .lives
            .iter_mut()
            .find(|life| life.subject.id() == *subject)
            .expect("a change is of a known subject");
        assert!(!life.is_past(kind), "{kind} comes too late for {life:?}");
        life.changes.push(Change {
            kind,
            exit_code,
            span,
        });
    }
}
