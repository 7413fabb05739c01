//! Values for the golden texts of the tests beside this.

use std::sync::Arc;

use crate::lifecycle::{
    EventSubject, Exit, LifecycleEvent, LifecycleKind, PodContainer, PodIdentity, PodSandbox,
    PodStatus, ReportedState, Revision, Source, UnixNanos,
};

/// 2026-11-30T12:00:00Z.
pub(crate) const NOON: i64 = 1_796_040_000_000_000_000;
const SECOND: i64 = 1_000_000_000;

pub(crate) fn pod() -> PodIdentity {
    PodIdentity {
        uid: "0d5e3f6a-8f3e-4a55-9a3b-5a1f0d7f2c11".into(),
        namespace: "shop".into(),
        name: "web-1".into(),
    }
}

pub(crate) fn started() -> LifecycleEvent {
    LifecycleEvent {
        kind: LifecycleKind::ContainerStarted,
        revision: Revision(4),
        pod: pod(),
        subject: Some(EventSubject::Sandbox {
            id: "5a".repeat(32).into(),
            attempt: 0,
        }),
        exit: None,
        source: Source::Relist,
        initial: true,
        runtime_stamp: None,
        seen_at: UnixNanos(NOON),
        born: Revision(4),
    }
}

pub(crate) fn died() -> LifecycleEvent {
    LifecycleEvent {
        kind: LifecycleKind::ContainerDied,
        revision: Revision(9),
        pod: pod(),
        subject: Some(EventSubject::Container {
            id: "c0".repeat(32).into(),
            name: "app".into(),
            attempt: 2,
        }),
        exit: Some(Exit {
            exit_code: 7,
            reason: "Error".into(),
            finished_at: Some(UnixNanos(NOON + 4 * SECOND)),
        }),
        source: Source::Event,
        initial: false,
        runtime_stamp: Some(UnixNanos(NOON + 4 * SECOND + 1)),
        seen_at: UnixNanos(NOON + 4 * SECOND + 1_234_567),
        born: Revision(5),
    }
}

pub(crate) fn pod_sync() -> LifecycleEvent {
    LifecycleEvent {
        kind: LifecycleKind::PodSync,
        subject: None,
        exit: None,
        source: Source::Inspect,
        ..died()
    }
}

/// A pod with a ready sandbox, a running container and one that died.
pub(crate) fn status() -> PodStatus {
    let sandbox = PodSandbox {
        id: "5a".repeat(32).into(),
        attempt: 1,
        state: ReportedState::Running,
        created_at: Some(UnixNanos(NOON - 3_600 * SECOND)),
        ips: vec!["10.0.0.7".into(), "fd00::7".into()],
        host_network: false,
    };
    let running = PodContainer {
        id: "c0".repeat(32).into(),
        name: "app".into(),
        attempt: 3,
        sandbox_id: Some(sandbox.id.clone()),
        state: ReportedState::Running,
        created_at: Some(UnixNanos(NOON - 17 * SECOND)),
        started_at: Some(UnixNanos(NOON - 16 * SECOND)),
        finished_at: None,
        exit_code: None,
        reason: Arc::from(""),
        message: Arc::from(""),
        image: "registry.example/app:1.2".into(),
        image_ref: "sha256:aa".into(),
    };
    let dead = PodContainer {
        id: "d1".repeat(32).into(),
        attempt: 2,
        state: ReportedState::Exited,
        created_at: Some(UnixNanos(NOON - 90 * SECOND)),
        finished_at: Some(UnixNanos(NOON - 18 * SECOND)),
        exit_code: Some(137),
        reason: "OOMKilled".into(),
        ..running.clone()
    };
    PodStatus {
        pod: pod(),
        ips: sandbox.ips.clone(),
        error: None,
        sandboxes: vec![sandbox],
        containers: vec![running, dead],
        revision: Revision(12),
    }
}
