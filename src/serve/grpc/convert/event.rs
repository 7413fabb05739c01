//! Events, and changes of mode.

use std::time::Duration;

use super::super::messages::{
    self, LifecycleKind as WireKind, Source as WireSource, lifecycle_event::Subject,
};
use super::{Unreadable, from_word, identity, identity_from, nanos};
use crate::engine::{Mode, ModeChange};
use crate::lifecycle::{
    EventSubject, Exit, LifecycleEvent, LifecycleKind, Revision, Source, UnixNanos,
};

/// An event for the wire.
#[must_use]
pub fn event(event: &LifecycleEvent) -> messages::LifecycleEvent {
    let kind = match event.kind {
        LifecycleKind::ContainerStarted => WireKind::ContainerStarted,
        LifecycleKind::ContainerDied => WireKind::ContainerDied,
        LifecycleKind::ContainerRemoved => WireKind::ContainerRemoved,
        LifecycleKind::PodSync => WireKind::PodSync,
    };
    let source = match event.source {
        Source::Event => WireSource::Event,
        Source::Relist => WireSource::Relist,
        Source::Inspect => WireSource::Inspect,
    };
    messages::LifecycleEvent {
        r#type: kind.into(),
        revision: event.revision.0,
        pod: Some(identity(&event.pod)),
        exit: event.exit.as_ref().map(|exit| messages::Exit {
            exit_code: exit.exit_code,
            reason: exit.reason.to_string(),
            finished_at: nanos(exit.finished_at),
        }),
        source: source.into(),
        initial: event.initial,
        runtime_stamp: nanos(event.runtime_stamp),
        seen_at: event.seen_at.0,
        subject: event.subject.as_ref().map(subject),
    }
}

fn subject(subject: &EventSubject) -> Subject {
    match subject {
        EventSubject::Sandbox { id, attempt } => Subject::Sandbox(messages::SandboxSubject {
            id: id.to_string(),
            attempt: *attempt,
        }),
        EventSubject::Container { id, name, attempt } => {
            Subject::Container(messages::ContainerSubject {
                id: id.to_string(),
                name: name.to_string(),
                attempt: *attempt,
            })
        }
    }
}

/// An event from the wire.
///
/// # Errors
///
/// If it has no word for what happened.
pub fn event_from(event: messages::LifecycleEvent) -> Result<LifecycleEvent, Unreadable> {
    let kind = match event.r#type() {
        WireKind::ContainerStarted => LifecycleKind::ContainerStarted,
        WireKind::ContainerDied => LifecycleKind::ContainerDied,
        WireKind::ContainerRemoved => LifecycleKind::ContainerRemoved,
        WireKind::PodSync => LifecycleKind::PodSync,
        WireKind::Unspecified => return Err(Unreadable("type of event")),
    };
    let source = match event.source() {
        WireSource::Event => Source::Event,
        WireSource::Relist => Source::Relist,
        WireSource::Inspect => Source::Inspect,
        WireSource::Unspecified => return Err(Unreadable("source of an event")),
    };
    let revision = Revision(event.revision);
    Ok(LifecycleEvent {
        kind,
        revision,
        pod: identity_from(event.pod)?,
        subject: event.subject.map(|subject| match subject {
            Subject::Sandbox(sandbox) => EventSubject::Sandbox {
                id: sandbox.id.into(),
                attempt: sandbox.attempt,
            },
            Subject::Container(container) => EventSubject::Container {
                id: container.id.into(),
                name: container.name.into(),
                attempt: container.attempt,
            },
        }),
        exit: event.exit.map(|exit| Exit {
            exit_code: exit.exit_code,
            reason: exit.reason.into(),
            finished_at: exit.finished_at.map(UnixNanos),
        }),
        source,
        initial: event.initial,
        runtime_stamp: event.runtime_stamp.map(UnixNanos),
        seen_at: UnixNanos(event.seen_at),
        born: revision,
    })
}

/// A change of mode for the wire.
#[must_use]
pub fn mode_change(change: &ModeChange) -> messages::ModeChange {
    let audit_period = match change.to {
        Mode::Evented { audit_period } => Some(audit_period),
        Mode::Connecting | Mode::Polling { .. } => None,
    };
    messages::ModeChange {
        from: change.from.to_string(),
        to: change.to.to_string(),
        audit_period_seconds: audit_period.map(|period| period.as_secs_f64()),
        cause: change.cause.to_string(),
        at: change.at.0,
    }
}

/// A change of mode from the wire. The audit period before it is not told, and reads as zero.
///
/// # Errors
///
/// If a mode is unknown.
pub fn mode_change_from(change: messages::ModeChange) -> Result<ModeChange, Unreadable> {
    let period = change.audit_period_seconds.unwrap_or(0.0);
    let period = Duration::try_from_secs_f64(period).map_err(|_| Unreadable("audit period"))?;
    Ok(ModeChange {
        from: mode(&change.from, Duration::ZERO)?,
        to: mode(&change.to, period)?,
        cause: change.cause.into(),
        at: UnixNanos(change.at),
    })
}

fn mode(text: &str, audit_period: Duration) -> Result<Mode, Unreadable> {
    let reason = text
        .strip_prefix("Polling(")
        .and_then(|rest| rest.strip_suffix(')'));
    match (text, reason) {
        ("Connecting", _) => Ok(Mode::Connecting),
        ("Evented", _) => Ok(Mode::Evented { audit_period }),
        (_, Some(reason)) => from_word(reason, "mode").map(|reason| Mode::Polling { reason }),
        _ => Err(Unreadable("mode")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::PollingReason;

    fn died() -> LifecycleEvent {
        LifecycleEvent {
            kind: LifecycleKind::ContainerDied,
            revision: Revision(9),
            pod: crate::lifecycle::PodIdentity {
                uid: "u".into(),
                namespace: "shop".into(),
                name: "web-1".into(),
            },
            subject: Some(EventSubject::Container {
                id: "c0".into(),
                name: "app".into(),
                attempt: 2,
            }),
            exit: Some(Exit {
                exit_code: -7,
                reason: "Error".into(),
                finished_at: Some(UnixNanos(5)),
            }),
            source: Source::Event,
            initial: false,
            runtime_stamp: Some(UnixNanos(-1)),
            seen_at: UnixNanos(8),
            born: Revision(9),
        }
    }

    #[test]
    fn events_survive_the_wire() {
        let sandbox = LifecycleEvent {
            kind: LifecycleKind::ContainerStarted,
            subject: Some(EventSubject::Sandbox {
                id: "s".into(),
                attempt: 1,
            }),
            exit: None,
            source: Source::Relist,
            initial: true,
            runtime_stamp: None,
            ..died()
        };
        let sync = LifecycleEvent {
            kind: LifecycleKind::PodSync,
            subject: None,
            exit: None,
            source: Source::Inspect,
            ..died()
        };
        for told in [died(), sandbox, sync] {
            assert_eq!(event_from(event(&told)), Ok(told));
        }
    }

    #[test]
    fn an_event_of_a_type_from_the_future_is_an_error_and_no_guess() {
        let mut future = event(&died());
        future.r#type = 99;
        assert_eq!(event_from(future), Err(Unreadable("type of event")));
    }

    #[test]
    fn changes_of_mode_survive_the_wire() {
        let modes = [
            Mode::Connecting,
            Mode::Evented {
                audit_period: Duration::from_secs(64),
            },
            Mode::Polling {
                reason: PollingReason::Untrusted,
            },
        ];
        for to in modes {
            let change = ModeChange {
                from: Mode::Polling {
                    reason: PollingReason::StreamBroken,
                },
                to,
                cause: "because".into(),
                at: UnixNanos(3),
            };
            assert_eq!(mode_change_from(mode_change(&change)), Ok(change));
        }
        assert!(mode("Polling(Bored)", Duration::ZERO).is_err());
    }
}
