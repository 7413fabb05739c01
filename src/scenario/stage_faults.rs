//! What goes wrong on the node: actions on its event stream and on its answers.

use tonic::Code as GrpcCode;

use super::action::{Action, Calls, Code, Emit, MessageType, Messages, SandboxShown, ShownState};
use super::names::Names;
use super::stage::rpc;
use super::values::{ContainerName, SandboxName, SubjectName};
use crate::clock::Clock;
use crate::lifecycle::EventKind;
use crate::simulate::{
    AsOf, Fault, RawContainer, RawEvent, SimulatedRuntime, StreamEnd, StreamFault,
};

/// Does `action` if it is one of these; gives whether it was.
pub(super) fn perform(
    runtime: &SimulatedRuntime,
    names: &Names,
    clock: &Clock,
    action: &Action,
) -> Result<bool, String> {
    match action {
        Action::Lose(messages) => {
            stream_fault(runtime, names, StreamFault::lose(), messages)?;
        }
        Action::Delay(delayed) => {
            let fault = StreamFault::delay(delayed.by.0);
            stream_fault(runtime, names, fault, &delayed.messages)?;
        }
        Action::Duplicate(duplicated) => {
            let mut fault = StreamFault::duplicate();
            fault.mishap = crate::simulate::Mishap::Duplicate(duplicated.times);
            stream_fault(runtime, names, fault, &duplicated.messages)?;
        }
        Action::Reorder(messages) => {
            stream_fault(runtime, names, StreamFault::behind(1), messages)?;
        }
        Action::Mute => runtime.set_muted(true),
        Action::Unmute => runtime.lift_stream_faults(),
        Action::Emit(emit) => runtime.emit_raw(message(runtime, names, clock, emit)?),
        Action::EmitBytes(hex) => runtime.emit_bytes(bytes(hex)?),
        Action::EndStream => runtime.end_streams(&StreamEnd::Clean),
        Action::BreakStream(code) => {
            let end = StreamEnd::failed(grpc(*code), "simulated fault: the stream broke");
            runtime.break_streams(&end);
        }
        Action::Fail(failing) => {
            let calls = Calls {
                call: failing.call,
                of: failing.of.clone(),
                times: failing.times,
            };
            let fault = Fault::fail(None, grpc(failing.code)).after(failing.after.0);
            runtime.inject(for_calls(names, fault, &calls)?);
        }
        Action::Hang(calls) => {
            runtime.inject(for_calls(names, Fault::hang(None), calls)?);
        }
        Action::Slow(slow) => {
            let calls = Calls {
                call: slow.call,
                of: slow.of.clone(),
                times: slow.times,
            };
            let fault = if slow.read_late {
                Fault::delay(None, slow.by.0)
            } else {
                Fault::slow(None, slow.by.0)
            };
            runtime.inject(for_calls(names, fault, &calls)?);
        }
        Action::Cut(cut) => {
            let mut fault = Fault::cut(rpc(cut.call), cut.after);
            fault.times = cut.times;
            runtime.inject(fault);
        }
        Action::Deny(subject) => {
            let id = names.subject(subject)?;
            runtime.inject(Fault::not_found(None, id.as_str()));
        }
        Action::Remember(name) => runtime.remember(name.as_str()),
        Action::AnswerFrom(from) => {
            let fault = Fault::stale(None, AsOf::Remembered(from.remembered.as_str().into()));
            runtime.inject(for_calls(names, fault, &from.calls)?);
        }
        Action::Heal => runtime.lift_faults(None),
        _ => return Ok(false),
    }
    Ok(true)
}

fn for_calls(names: &Names, mut fault: Fault, calls: &Calls) -> Result<Fault, String> {
    fault.rpc = calls.call.map(rpc);
    fault.times = calls.times;
    if let Some(subject) = &calls.of {
        fault.id = Some(names.subject(subject)?.as_str().into());
    }
    Ok(fault)
}

fn stream_fault(
    runtime: &SimulatedRuntime,
    names: &Names,
    mut fault: StreamFault,
    messages: &Messages,
) -> Result<(), String> {
    fault.times = messages.next;
    fault.one_in = messages.one_in;
    fault.kind = messages.kind.map(event_kind);
    if let Some(subject) = &messages.about {
        fault.id = Some(names.subject(subject)?.as_str().into());
    }
    if let Some(pod) = &messages.pod {
        fault.pod = Some(names.uid(pod)?);
    }
    runtime.inject_stream(fault);
    Ok(())
}

fn event_kind(kind: MessageType) -> EventKind {
    match kind {
        MessageType::Created => EventKind::Created,
        MessageType::Started => EventKind::Started,
        MessageType::Stopped => EventKind::Stopped,
        MessageType::Deleted => EventKind::Deleted,
    }
}

fn grpc(code: Code) -> GrpcCode {
    match code {
        Code::Cancelled => GrpcCode::Cancelled,
        Code::Unavailable => GrpcCode::Unavailable,
        Code::Unknown => GrpcCode::Unknown,
        Code::NotFound => GrpcCode::NotFound,
        Code::DeadlineExceeded => GrpcCode::DeadlineExceeded,
        Code::Unimplemented => GrpcCode::Unimplemented,
        Code::Internal => GrpcCode::Internal,
        Code::ResourceExhausted => GrpcCode::ResourceExhausted,
        Code::PermissionDenied => GrpcCode::PermissionDenied,
        Code::FailedPrecondition => GrpcCode::FailedPrecondition,
    }
}

/// The message that `emit` describes: an honest one, bent.
fn message(
    runtime: &SimulatedRuntime,
    names: &Names,
    clock: &Clock,
    emit: &Emit,
) -> Result<RawEvent, String> {
    let kind = match (emit.kind, emit.type_number) {
        (Some(kind), None) => event_kind(kind),
        (None, Some(number)) => EventKind::Other(number),
        _ => return Err("emit needs type or typeNumber".into()),
    };
    let mut raw = match &emit.about {
        None => RawEvent::default().kind(kind),
        Some(subject) => honest(runtime, names, kind, subject)?,
    };
    let now = clock.now();
    if emit.about.is_none() {
        raw.created_at = now.wall.0;
    }
    if let Some(id) = &emit.id {
        raw.container_id.clone_from(id);
    }
    if let Some(stamp) = emit.stamp {
        let nanos = |nanos: u128| i64::try_from(nanos).unwrap_or(i64::MAX);
        let origin = now.wall.0.saturating_sub(nanos(now.mono.0.into()));
        raw.created_at = origin.saturating_add(nanos(stamp.0.as_nanos()));
    }
    if let Some(stamp) = emit.raw_stamp {
        raw.created_at = stamp;
    }
    match (emit.sandbox, &mut raw.pod_sandbox_status) {
        (None, _) => {}
        (Some(SandboxShown::Missing), status) => *status = None,
        (Some(_), None) => return Err("the sandbox is gone: it cannot be shown".into()),
        (Some(SandboxShown::Ready), Some(status)) => status.state = 0,
        (Some(SandboxShown::NotReady), Some(status)) => {
            status.state = 1;
            status.ips.clear();
        }
        (Some(SandboxShown::WithoutMetadata), Some(status)) => status.metadata = None,
    }
    if let Some(uid) = &emit.uid {
        let metadata = raw
            .pod_sandbox_status
            .as_mut()
            .and_then(|status| status.metadata.as_mut())
            .ok_or("there is no sandbox in this message to give another uid")?;
        metadata.uid.clone_from(uid);
    }
    if let Some(shown) = &emit.containers {
        let all = std::mem::take(&mut raw.containers_statuses);
        for (name, state) in shown {
            let container = shown_container(names, &all, name, now.wall.0, state)?;
            if *state == ShownState::Twice {
                raw.containers_statuses.push(container.clone());
            }
            raw.containers_statuses.push(container);
        }
    }
    Ok(raw)
}

/// What the runtime would say now.
fn honest(
    runtime: &SimulatedRuntime,
    names: &Names,
    kind: EventKind,
    subject: &SubjectName,
) -> Result<RawEvent, String> {
    let id = names.subject(subject)?;
    if let Some(message) = runtime.message_about(kind, id.as_str()) {
        return Ok(RawEvent::from(&message));
    }
    // It is gone; its sandbox may still be there to speak of.
    let sandbox = names.sandbox(&SandboxName {
        pod: subject.pod().clone(),
        number: None,
    })?;
    let mut raw = runtime
        .message_about(kind, sandbox.as_str())
        .map(|message| RawEvent::from(&message))
        .unwrap_or_else(|| RawEvent {
            created_at: runtime.now().0,
            ..RawEvent::default()
        })
        .kind(kind);
    id.as_str().clone_into(&mut raw.container_id);
    Ok(raw)
}

fn shown_container(
    names: &Names,
    all: &[RawContainer],
    name: &ContainerName,
    now: i64,
    state: &ShownState,
) -> Result<RawContainer, String> {
    let id = names.container(name)?;
    let mut shown = all
        .iter()
        .find(|container| container.id == id.as_str())
        .cloned()
        .ok_or_else(|| {
            format!("{name} is not in the sandbox of this message: it cannot be shown")
        })?;
    match state {
        ShownState::AsItIs | ShownState::Twice => {}
        ShownState::Created => {
            (shown.state, shown.started_at, shown.finished_at) = (0, 0, 0);
            (shown.exit_code, shown.reason) = (0, String::new());
        }
        ShownState::Running => {
            (shown.state, shown.finished_at) = (1, 0);
            (shown.exit_code, shown.reason) = (0, String::new());
            if shown.started_at == 0 {
                shown.started_at = now;
            }
        }
        ShownState::Exited(code) => {
            (shown.state, shown.exit_code) = (2, *code);
            shown.reason = if *code == 0 { "Completed" } else { "Error" }.to_owned();
            if shown.finished_at == 0 {
                shown.finished_at = now;
            }
        }
        ShownState::Unknown => shown.state = 3,
    }
    Ok(shown)
}

fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = hex
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let wrong = || format!("{hex:?} are no bytes in hexadecimal: expected two digits for each");
    if digits.len() % 2 != 0 {
        return Err(wrong());
    }
    digits
        .chunks(2)
        .map(|pair| {
            std::str::from_utf8(pair)
                .ok()
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                .ok_or_else(wrong)
        })
        .collect()
}
