//! The trace in words: one line for each input, one, indented, for each thing that followed.
//!
//! Stable, because it is compared; in the scenario's names, because it is read.

use std::fmt::Write as _;

use super::names::Names;
use super::trace::{ListingChange, Trace, TraceEntry, TracedInput};
use crate::engine::{Answer, Input, Inspection, Note, Output, Question, StreamEnd};
use crate::lifecycle::{
    ContainerStatus, EventKind, NodeList, PodStatus, ReportedState, RuntimeEvent, SandboxStatus,
};

impl Trace {
    /// The whole trace in words.
    #[must_use]
    pub fn text(&self, names: &Names) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            entry.write(names, &mut text);
        }
        text
    }
}

impl TraceEntry {
    /// Whether nothing is in it but a heartbeat, a timer or a relist without news.
    #[must_use]
    pub fn is_routine(&self) -> bool {
        let input = match &self.input {
            TracedInput::Input(Input::Wake) => true,
            TracedInput::Input(Input::Answered { answer, .. }) => {
                matches!(answer, Answer::Version(Ok(_)))
            }
            TracedInput::Input(_) => false,
            TracedInput::Relisted { change, .. } => change.is_none(),
        };
        let is_routine = |output: &Output| match output {
            Output::Ask { question, .. } => {
                matches!(question, Question::Version | Question::FullRelist)
            }
            Output::ObservedAll { except, .. } => except.is_empty(),
            _ => false,
        };
        input && self.outputs.iter().all(is_routine)
    }

    /// Writes the entry in words, each line ended.
    pub fn write(&self, names: &Names, text: &mut String) {
        let seconds = self.now.mono.0 / 1_000_000_000;
        let millis = self.now.mono.0 / 1_000_000 % 1_000;
        // A String never fails.
        let _ = write!(text, "{seconds:>7}.{millis:03}  <- ");
        match &self.input {
            TracedInput::Input(input) => write_input(input, names, text),
            TracedInput::Relisted { request, change } => {
                let _ = write!(text, "#{} relist: ", request.0);
                write_change(change, names, text);
            }
        }
        text.push('\n');
        for output in &self.outputs {
            text.push_str("             -> ");
            write_output(output, names, text);
            text.push('\n');
        }
    }
}

fn write_input(input: &Input, names: &Names, text: &mut String) {
    let _ = match input {
        Input::Start => write!(text, "start"),
        Input::Wake => write!(text, "timer"),
        Input::Answered { request, answer } => {
            let _ = write!(text, "#{} ", request.0);
            write_answer(answer, names, text);
            Ok(())
        }
        Input::StreamMessage { session, event } => {
            let _ = write!(text, "stream {}: ", session.0);
            write_message(event, names, text);
            Ok(())
        }
        Input::StreamGarbage { session, refusal } => {
            write!(text, "stream {}: no message ({refusal:?})", session.0)
        }
        Input::StreamOverflow {
            session,
            pods,
            dropped,
        } => write!(
            text,
            "stream {}: {dropped} messages dropped, of {} pods",
            session.0,
            pods.len()
        ),
        Input::StreamEnded { session, end } => match end {
            StreamEnd::Unimplemented => write!(text, "stream {} ended: Unimplemented", session.0),
            StreamEnd::Clean => write!(text, "stream {} ended without an error", session.0),
            StreamEnd::Broken(failure) => {
                write!(
                    text,
                    "stream {} broke: {:?}: {failure}",
                    session.0, failure.kind
                )
            }
        },
        Input::Read {
            reader,
            uid,
            newer_than,
            freshness,
        } => write!(
            text,
            "reader {} asks for {} ({freshness:?}, newer than {}/{})",
            reader.0,
            names.of_pod(uid),
            newer_than.0.at.0 / 1_000_000,
            newer_than.0.count
        ),
        Input::CancelRead { reader } => write!(text, "reader {} gives up", reader.0),
        Input::RequestRelist { uid: None } => write!(text, "relist wanted"),
        Input::RequestRelist { uid: Some(uid) } => {
            write!(text, "relist of {} wanted", names.of_pod(uid))
        }
        Input::RequestReinspect { uid } => {
            write!(text, "reinspection of {} wanted", names.of_pod(uid))
        }
        Input::Shutdown => write!(text, "shutdown"),
    };
}

fn write_answer(answer: &Answer, names: &Names, text: &mut String) {
    let _ = match answer {
        Answer::Version(Ok(version)) => {
            write!(text, "version: {} {}", version.name, version.version)
        }
        Answer::Version(Err(failure)) => {
            write!(text, "version failed: {:?}: {failure}", failure.kind)
        }
        Answer::Listed(Err(failure)) => write!(text, "list failed: {:?}: {failure}", failure.kind),
        Answer::Listed(Ok(list)) => {
            text.push_str("list: ");
            write_list(list, names, text);
            Ok(())
        }
        Answer::Inspected(inspection) => {
            text.push_str("inspected: ");
            write_inspection(inspection, names, text);
            Ok(())
        }
    };
}

fn write_change(change: &ListingChange, names: &Names, text: &mut String) {
    let _ = write!(
        text,
        "{} sandboxes, {} containers",
        change.sandboxes, change.containers
    );
    let changed = &change.changed;
    if !changed.sandboxes.items.is_empty() || !changed.containers.items.is_empty() {
        text.push_str("; ");
        write_list(changed, names, text);
    }
    let gone: Vec<_> = change
        .gone_sandboxes
        .iter()
        .map(|id| names.of(id.as_str()))
        .chain(
            change
                .gone_containers
                .iter()
                .map(|id| names.of(id.as_str())),
        )
        .collect();
    if !gone.is_empty() {
        let _ = write!(text, "; gone: {}", gone.join(", "));
    }
}

fn write_list(list: &NodeList, names: &Names, text: &mut String) {
    let sandboxes = list.sandboxes.items.iter().map(|item| {
        format!(
            "{} {}",
            names.of(item.id.as_str()),
            sandbox_word(item.state)
        )
    });
    let containers = list
        .containers
        .items
        .iter()
        .map(|item| format!("{} {}", names.of(item.id.as_str()), word(item.state)));
    let refused = list
        .sandboxes
        .refused
        .iter()
        .chain(&list.containers.refused)
        .map(|refusal| format!("refused: {refusal:?}"));
    let all: Vec<_> = sandboxes.chain(containers).chain(refused).collect();
    text.push_str(if all.is_empty() { "nothing" } else { "" });
    text.push_str(&all.join(", "));
}

fn write_inspection(inspection: &Inspection, names: &Names, text: &mut String) {
    let sandboxes = inspection
        .sandboxes
        .iter()
        .map(|(id, status)| match status {
            Ok(status) => sandbox_status(status, names),
            Err(failure) => format!("{} failed: {:?}", names.of(id.as_str()), failure.kind),
        });
    let containers = inspection
        .containers
        .iter()
        .map(|(id, status)| match status {
            Ok(status) => container_status(status, names),
            Err(failure) => format!("{} failed: {:?}", names.of(id.as_str()), failure.kind),
        });
    let all: Vec<_> = sandboxes.chain(containers).collect();
    text.push_str(&all.join(", "));
}

fn write_message(event: &RuntimeEvent, names: &Names, text: &mut String) {
    let kind = match event.kind {
        EventKind::Created => "CREATED".to_owned(),
        EventKind::Started => "STARTED".to_owned(),
        EventKind::Stopped => "STOPPED".to_owned(),
        EventKind::Deleted => "DELETED".to_owned(),
        EventKind::Other(number) => format!("type {number}"),
    };
    let _ = write!(
        text,
        "{kind} {} (stamp {})",
        names.of(&event.id),
        event.stamp
    );
    let shown: Vec<_> = event
        .sandbox
        .iter()
        .map(|status| sandbox_status(status, names))
        .chain(
            event
                .containers
                .iter()
                .map(|status| container_status(status, names)),
        )
        .chain(
            event
                .refused
                .iter()
                .map(|refusal| format!("refused: {refusal:?}")),
        )
        .collect();
    if shown.is_empty() {
        text.push_str(" shows nothing");
    } else {
        let _ = write!(text, " shows {}", shown.join(", "));
    }
}

fn sandbox_status(status: &SandboxStatus, names: &Names) -> String {
    let mut words = format!(
        "{} {}",
        names.of(status.id.as_str()),
        sandbox_word(status.state)
    );
    if !status.ips.is_empty() {
        let _ = write!(words, " [{}]", status.ips.join(" "));
    }
    words
}

fn container_status(status: &ContainerStatus, names: &Names) -> String {
    let mut words = format!("{} {}", names.of(status.id.as_str()), word(status.state));
    if status.state == ReportedState::Exited {
        let _ = write!(words, " {} {}", status.exit_code, status.reason);
    }
    words
}

fn write_output(output: &Output, names: &Names, text: &mut String) {
    let _ = match output {
        Output::Ask { request, question } => {
            let _ = write!(text, "ask #{} ", request.0);
            match question {
                Question::Version => write!(text, "version"),
                Question::FullRelist => write!(text, "relist"),
                Question::PodRelist { uid } => write!(text, "relist of {}", names.of_pod(uid)),
                Question::Inspect {
                    uid,
                    sandboxes,
                    containers,
                } => {
                    let ids: Vec<_> = sandboxes
                        .iter()
                        .map(|id| names.of(id.as_str()))
                        .chain(containers.iter().map(|id| names.of(id.as_str())))
                        .collect();
                    write!(text, "inspect {}: {}", names.of_pod(uid), ids.join(", "))
                }
            }
        }
        Output::OpenStream { session } => write!(text, "open stream {}", session.0),
        Output::CloseStream { session } => write!(text, "close stream {}", session.0),
        Output::Publish {
            uid,
            revision,
            status,
        } => {
            let _ = write!(text, "publish {} r{revision}: ", names.of_pod(uid));
            match status {
                None => write!(text, "absent"),
                Some(status) => write!(text, "{}", pod_status(status, names)),
            }
        }
        Output::Observed { uid, .. } => write!(text, "vouched for {}", names.of_pod(uid)),
        Output::ObservedAll { except, .. } if except.is_empty() => write!(text, "vouched for all"),
        Output::ObservedAll { except, .. } => {
            let except: Vec<_> = except.iter().map(|uid| names.of_pod(uid)).collect();
            write!(text, "vouched for all but {}", except.join(", "))
        }
        Output::Deliver(event) => write!(text, "deliver {}", names.event(event)),
        Output::Answer { reader, reading } => {
            let _ = write!(text, "answer reader {}: ", reader.0);
            match &reading.status {
                None => write!(text, "absent"),
                Some(status) => write!(text, "{}", pod_status(status, names)),
            }
        }
        Output::ModeChanged(change) => {
            write!(
                text,
                "mode {} -> {}: {}",
                change.from, change.to, change.cause
            )
        }
        Output::Note(note) => {
            text.push_str("note ");
            write_note(note, names, text);
            Ok(())
        }
    };
}

fn write_note(note: &Note, names: &Names, text: &mut String) {
    let _ = match note {
        Note::Refused(refusal) => write!(text, "refused: {refusal:?}"),
        Note::Ignored { why, id } => write!(text, "ignored: {why:?}: {}", names.of(id)),
        Note::Contradicted { how, id } => write!(text, "contradicted: {how:?}: {}", names.of(id)),
        Note::Missed {
            event,
            id,
            known_gap,
            ..
        } => {
            let gap = if *known_gap { " (a known gap)" } else { "" };
            write!(text, "missed: {event:?} of {}{gap}", names.of(id))
        }
        Note::SteppedBack { id } => write!(text, "stepped back: {}", names.of(id)),
        Note::CallFailed { call, uid, failure } => {
            let uid = uid
                .as_ref()
                .map(|uid| names.of_pod(uid))
                .unwrap_or_default();
            write!(text, "call failed: {call:?} {uid}: {failure}")
        }
        Note::RuntimeChanged { to } => write!(text, "the runtime is now {to}"),
        Note::StreamEnded { how, retry_in_ms } => {
            write!(text, "stream ended: {how}; next try in {retry_in_ms} ms")
        }
    };
}

/// A pod's status in words.
pub(super) fn pod_status(status: &PodStatus, names: &Names) -> String {
    let mut parts: Vec<String> = Vec::new();
    for sandbox in &status.sandboxes {
        parts.push(format!(
            "{} {}",
            names.of(sandbox.id.as_str()),
            sandbox_word(sandbox.state)
        ));
    }
    for container in &status.containers {
        let mut words = format!(
            "{} {}",
            names.of(container.id.as_str()),
            word(container.state)
        );
        if let Some(code) = container.exit_code {
            let _ = write!(words, " {code} {}", container.reason);
        }
        parts.push(words.trim_end().to_owned());
    }
    if !status.ips.is_empty() {
        parts.push(format!("[{}]", status.ips.join(" ")));
    }
    if let Some(error) = &status.error {
        parts.push(format!("error: {error}"));
    }
    parts.join(", ")
}

pub(super) fn word(state: ReportedState) -> &'static str {
    match state {
        ReportedState::Unknown => "unknown",
        ReportedState::Created => "created",
        ReportedState::Running => "running",
        ReportedState::Exited => "exited",
    }
}

pub(super) fn sandbox_word(state: ReportedState) -> &'static str {
    match state {
        ReportedState::Running => "ready",
        ReportedState::Exited => "notReady",
        other => word(other),
    }
}
