//! The status.

use super::super::messages::{self, Verdict as WireVerdict};
use super::{Unreadable, from_word, narrow, wide, word};
use crate::engine::RuntimeVersion;
use crate::lifecycle::UnixNanos;
use crate::serve::status::{
    DriverReport, HealthReport, MissReport, ModeReport, PendingReport, RingReport, Status,
    SubscriberReport, Verdict,
};

/// A status for the wire.
#[must_use]
pub fn status(status: &Status) -> messages::GetStatusResponse {
    let verdict = match status.health.verdict {
        Verdict::Healthy => WireVerdict::Healthy,
        Verdict::Unhealthy => WireVerdict::Unhealthy,
        Verdict::NotYetRelisted => WireVerdict::NotYetRelisted,
        Verdict::Unknown => WireVerdict::Unknown,
    };
    messages::GetStatusResponse {
        words: status.words.clone(),
        verdict: verdict.into(),
        health_words: status.health.words.clone(),
        mode: Some(mode(&status.mode)),
        runtime: status
            .runtime
            .as_ref()
            .map(|runtime| messages::RuntimeVersion {
                name: runtime.name.to_string(),
                version: runtime.version.to_string(),
                api_version: runtime.api_version.to_string(),
            }),
        last_relist_seconds_ago: status.last_relist_seconds_ago,
        last_event_seconds_ago: status.last_event_seconds_ago,
        pending_call: status.pending_call.as_ref().map(pending),
        pods: wide(status.pods),
        relists: status.relists,
        misses: status.misses.iter().map(miss).collect(),
        last_missed_at: status.last_missed_at.map(|at| at.0),
        subscribers: status.subscribers.iter().map(subscriber).collect(),
        ring: Some(messages::Ring {
            events: wide(status.ring.events),
            bytes: wide(status.ring.bytes),
            gaps: status.ring.gaps,
        }),
        driver_answers: status.driver.answers,
        driver_answered_seconds_ago: status.driver.answered_seconds_ago,
        epoch: status.epoch.to_string(),
        started_at: status.started_at.0,
        at: status.at.0,
        version: status.version.clone(),
    }
}

fn mode(mode: &ModeReport) -> messages::ModeReport {
    messages::ModeReport {
        name: mode.name.clone(),
        reason: mode
            .reason
            .map(|reason| reason.to_string())
            .unwrap_or_default(),
        cause: mode.cause.clone(),
        since: mode.since.0,
        since_seconds: mode.since_seconds,
        audit_period_seconds: mode.audit_period_seconds,
        relist_period_seconds: mode.relist_period_seconds,
        next_attempt_in_seconds: mode.next_attempt_in_seconds,
    }
}

fn pending(pending: &PendingReport) -> messages::PendingCall {
    messages::PendingCall {
        call: word(&pending.call),
        uid: pending.uid.as_ref().map(ToString::to_string),
        seconds: pending.seconds,
    }
}

fn miss(miss: &MissReport) -> messages::Miss {
    messages::Miss {
        subject: word(&miss.subject),
        event: word(&miss.event),
        count: miss.count,
        in_known_gap: miss.in_known_gap,
    }
}

fn subscriber(subscriber: &SubscriberReport) -> messages::Subscriber {
    messages::Subscriber {
        id: subscriber.id,
        transport: subscriber.transport.clone(),
        client: subscriber.client.clone(),
        since: subscriber.since.0,
        delivered: subscriber.delivered,
        lag: subscriber.lag.map(wide),
    }
}

/// A status from the wire.
///
/// # Errors
///
/// If a part is missing or has a word that is unknown.
pub fn status_from(status: messages::GetStatusResponse) -> Result<Status, Unreadable> {
    let verdict = match status.verdict() {
        WireVerdict::Healthy => Verdict::Healthy,
        WireVerdict::Unhealthy => Verdict::Unhealthy,
        WireVerdict::NotYetRelisted => Verdict::NotYetRelisted,
        WireVerdict::Unknown => Verdict::Unknown,
    };
    let ring = status.ring.unwrap_or_default();
    Ok(Status {
        words: status.words,
        health: HealthReport {
            verdict,
            words: status.health_words,
        },
        mode: mode_from(status.mode.ok_or(Unreadable("mode"))?)?,
        runtime: status.runtime.map(|runtime| RuntimeVersion {
            name: runtime.name.into(),
            version: runtime.version.into(),
            api_version: runtime.api_version.into(),
        }),
        last_relist_seconds_ago: status.last_relist_seconds_ago,
        last_event_seconds_ago: status.last_event_seconds_ago,
        pending_call: status.pending_call.map(pending_from).transpose()?,
        pods: narrow(status.pods),
        relists: status.relists,
        misses: status
            .misses
            .iter()
            .map(miss_from)
            .collect::<Result<_, _>>()?,
        last_missed_at: status.last_missed_at.map(UnixNanos),
        subscribers: status
            .subscribers
            .into_iter()
            .map(subscriber_from)
            .collect(),
        ring: RingReport {
            events: narrow(ring.events),
            bytes: narrow(ring.bytes),
            gaps: ring.gaps,
        },
        driver: DriverReport {
            answers: status.driver_answers,
            answered_seconds_ago: status.driver_answered_seconds_ago,
        },
        epoch: status.epoch.parse().map_err(|_| Unreadable("epoch"))?,
        started_at: UnixNanos(status.started_at),
        at: UnixNanos(status.at),
        version: status.version,
    })
}

fn mode_from(mode: messages::ModeReport) -> Result<ModeReport, Unreadable> {
    let reason = match mode.reason.as_str() {
        "" => None,
        reason => Some(from_word(reason, "reason to poll")?),
    };
    Ok(ModeReport {
        name: mode.name,
        reason,
        cause: mode.cause,
        since: UnixNanos(mode.since),
        since_seconds: mode.since_seconds,
        audit_period_seconds: mode.audit_period_seconds,
        relist_period_seconds: mode.relist_period_seconds,
        next_attempt_in_seconds: mode.next_attempt_in_seconds,
    })
}

fn pending_from(pending: messages::PendingCall) -> Result<PendingReport, Unreadable> {
    Ok(PendingReport {
        call: from_word(&pending.call, "call")?,
        uid: pending.uid.map(Into::into),
        seconds: pending.seconds,
    })
}

fn miss_from(miss: &messages::Miss) -> Result<MissReport, Unreadable> {
    Ok(MissReport {
        subject: from_word(&miss.subject, "subject of a miss")?,
        event: from_word(&miss.event, "event of a miss")?,
        count: miss.count,
        in_known_gap: miss.in_known_gap,
    })
}

fn subscriber_from(subscriber: messages::Subscriber) -> SubscriberReport {
    SubscriberReport {
        id: subscriber.id,
        transport: subscriber.transport,
        client: subscriber.client,
        since: UnixNanos(subscriber.since),
        delivered: subscriber.delivered,
        lag: subscriber.lag.map(narrow),
    }
}
