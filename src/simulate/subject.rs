//! What lives in a simulated runtime: pods, sandboxes, containers, and the messages about them.
//!
//! Values only. They hold what CRI's lists and statuses can say; the server turns them into messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lifecycle::{ContainerId, EventKind, PodUid, ReportedState, SandboxId, UnixNanos};

/// Labels of a pod or a container, by key.
pub type Labels = BTreeMap<Arc<str>, Arc<str>>;

const POD_NAME_LABEL: &str = "io.kubernetes.pod.name";
const POD_NAMESPACE_LABEL: &str = "io.kubernetes.pod.namespace";
pub(super) const POD_UID_LABEL: &str = "io.kubernetes.pod.uid";
const CONTAINER_NAME_LABEL: &str = "io.kubernetes.container.name";

/// A pod as whoever runs it describes it to the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pod {
    /// Its uid.
    pub uid: PodUid,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Labels of its own, besides those that the kubelet adds.
    pub labels: Labels,
    /// Whether the kubelet runs it, whose `io.kubernetes.*` labels lists are filtered by. Pods made
    /// with crictl carry none.
    pub by_kubelet: bool,
    /// Whether it uses the node's network, and so never has an address of its own.
    pub host_network: bool,
}

impl Pod {
    /// A pod on the pod network, run by the kubelet.
    pub fn new(
        uid: impl Into<PodUid>,
        namespace: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            uid: uid.into(),
            namespace: namespace.into(),
            name: name.into(),
            labels: Labels::new(),
            by_kubelet: true,
            host_network: false,
        }
    }

    /// The same pod on the node's network.
    #[must_use]
    pub fn on_host_network(mut self) -> Self {
        self.host_network = true;
        self
    }

    /// The same pod, made with crictl: without the kubelet's labels.
    #[must_use]
    pub fn by_crictl(mut self) -> Self {
        self.by_kubelet = false;
        self
    }

    /// The same pod with one more label.
    #[must_use]
    pub fn label(mut self, key: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// The labels that its sandboxes show: the kubelet's and its own.
    pub(super) fn each_label(&self, mut each: impl FnMut(&str, &str)) {
        for (key, value) in &self.labels {
            if self.kubelet_label(key).is_none() {
                each(key, value);
            }
        }
        self.each_kubelet_label(each);
    }

    /// One of those labels.
    #[must_use]
    pub fn label_value(&self, key: &str) -> Option<&str> {
        self.kubelet_label(key)
            .or_else(|| self.labels.get(key).map(|value| &**value))
    }

    fn each_kubelet_label(&self, mut each: impl FnMut(&str, &str)) {
        for key in [POD_NAME_LABEL, POD_NAMESPACE_LABEL, POD_UID_LABEL] {
            if let Some(value) = self.kubelet_label(key) {
                each(key, value);
            }
        }
    }

    fn kubelet_label(&self, key: &str) -> Option<&str> {
        if !self.by_kubelet {
            return None;
        }
        match key {
            POD_NAME_LABEL => Some(&self.name),
            POD_NAMESPACE_LABEL => Some(&self.namespace),
            POD_UID_LABEL => Some(self.uid.as_str()),
            _ => None,
        }
    }
}

/// A pod sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sandbox {
    /// Its id: 64 hexadecimal digits.
    pub id: SandboxId,
    /// The pod that it is for.
    pub pod: Arc<Pod>,
    /// Which sandbox of the pod it is, from 0.
    pub attempt: u32,
    /// Whether it is ready.
    pub ready: bool,
    /// When it was made.
    pub created_at: UnixNanos,
    /// Its addresses, primary first.
    pub ips: Vec<Arc<str>>,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Container {
    /// Its id: 64 hexadecimal digits.
    pub id: ContainerId,
    /// The sandbox that it runs in.
    pub sandbox: SandboxId,
    /// The pod that it belongs to.
    pub pod: Arc<Pod>,
    /// Its name in the pod.
    pub name: Arc<str>,
    /// Which container of that name it is, from 0.
    pub attempt: u32,
    /// Its state.
    pub state: ReportedState,
    /// When it was made.
    pub created_at: UnixNanos,
    /// When it was started; `None` until then, and for a start that failed.
    pub started_at: Option<UnixNanos>,
    /// When it ended.
    pub finished_at: Option<UnixNanos>,
    /// How it ended; [`ExitStatus::default`] until then.
    pub exit: ExitStatus,
    /// The image as asked for.
    pub image: Arc<str>,
    /// The image as resolved.
    pub image_ref: Arc<str>,
}

impl Container {
    /// The labels that lists and statuses show: the kubelet's.
    pub(super) fn each_label(&self, mut each: impl FnMut(&str, &str)) {
        if self.pod.by_kubelet {
            each(CONTAINER_NAME_LABEL, &self.name);
        }
        self.pod.each_kubelet_label(each);
    }

    /// One of those labels.
    #[must_use]
    pub fn label_value(&self, key: &str) -> Option<&str> {
        if self.pod.by_kubelet && key == CONTAINER_NAME_LABEL {
            return Some(&self.name);
        }
        self.pod.kubelet_label(key)
    }

    /// Whether it neither runs nor is about to: exited.
    #[must_use]
    pub fn is_exited(&self) -> bool {
        self.state == ReportedState::Exited
    }
}

/// How a container ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitStatus {
    /// The exit code: 128 + n for signal n.
    pub code: i32,
    /// The runtime's reason.
    pub reason: Arc<str>,
    /// More of why.
    pub message: Arc<str>,
}

impl ExitStatus {
    /// The process ended with `code`: `Completed` for 0, else `Error`, as runtimes say it.
    #[must_use]
    pub fn code(code: i32) -> Self {
        let reason = if code == 0 { "Completed" } else { "Error" };
        Self::with_reason(code, reason)
    }

    /// The process ended with `code` for this `reason`.
    pub fn with_reason(code: i32, reason: impl Into<Arc<str>>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: "".into(),
        }
    }

    /// Killed with SIGKILL: 137.
    #[must_use]
    pub fn killed() -> Self {
        Self::code(137)
    }

    /// Killed for want of memory: 137, `OOMKilled`.
    #[must_use]
    pub fn oom_killed() -> Self {
        Self::with_reason(137, "OOMKilled")
    }

    /// The runtime was down when it ended and cannot tell how: 255, `Unknown`.
    #[must_use]
    pub fn lost() -> Self {
        Self::with_reason(255, "Unknown")
    }

    /// A start that failed: 128, `StartError`.
    #[must_use]
    pub fn start_error() -> Self {
        Self {
            message: "exec: \"/bin/does-not-exist\": no such file or directory".into(),
            ..Self::with_reason(128, "StartError")
        }
    }
}

impl From<i32> for ExitStatus {
    fn from(code: i32) -> Self {
        Self::code(code)
    }
}

/// One message of the event stream, with its snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamMessage {
    /// The container or sandbox that it is about.
    pub id: Arc<str>,
    /// What happened to it.
    pub kind: EventKind,
    /// `created_at` as it goes over the wire.
    pub stamp: i64,
    /// The pod that it concerns. It is not sent: a client sees the sandbox's.
    pub pod: Option<PodUid>,
    /// The sandbox as it was when the message was made; `None` goes out as an absent status.
    pub sandbox: Option<Sandbox>,
    /// The containers as they were then, in the order of their ids.
    pub containers: Vec<Container>,
}
