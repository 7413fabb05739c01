//! What a report says of a phase, an event and a relist when it is asked: plain text, escaped where
//! it is written.

use crate::lifecycle::{EventSubject, LifecycleEvent, PodContainer, ReportedState};
use crate::scenario::names::kind_in_words;
use crate::scenario::text::word;
use crate::scenario::trace::ListingChange;

pub(super) fn container_in_words(container: &PodContainer) -> String {
    let state = word(container.state);
    let end = container
        .exit_code
        .filter(|_| container.state == ReportedState::Exited)
        .map(|code| format!(" {code} {}", container.reason));
    let words = format!(
        "{}#{} {state}{}",
        container.name,
        container.attempt,
        end.unwrap_or_default()
    );
    words.trim_end().to_owned()
}

pub(super) fn event_in_words(event: &LifecycleEvent) -> String {
    let kind = kind_in_words(event.kind);
    let subject = match &event.subject {
        Some(EventSubject::Sandbox { attempt, .. }) => format!("sandbox#{attempt}"),
        Some(EventSubject::Container { name, attempt, .. }) => format!("{name}#{attempt}"),
        None => "the pod".to_owned(),
    };
    let end = event.exit.as_ref().map(|exit| {
        let words = format!(", exit code {} {}", exit.exit_code, exit.reason);
        words.trim_end().to_owned()
    });
    let initial = if event.initial { ", initial" } else { "" };
    let end = end.unwrap_or_default();
    format!("{kind} {subject}{end}\nby {}{initial}", event.source)
}

pub(super) fn shown(change: &ListingChange) -> String {
    let changed = change.changed.sandboxes.items.len() + change.changed.containers.items.len();
    let gone = change.gone_sandboxes.len() + change.gone_containers.len();
    format!(
        "{} sandboxes, {} containers: {changed} new or changed, {gone} gone",
        change.sandboxes, change.containers
    )
}
