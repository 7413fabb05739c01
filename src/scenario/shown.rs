//! What a pod's status shows against what is expected of it, and against what the runtime has.

use super::expect::{ContainerState, PodExpect, PodShows, SandboxState};
use super::names::Names;
use super::text::{pod_status, sandbox_word, word};
use super::values::{ContainerName, PodName};
use crate::cache::Cache;
use crate::lifecycle::{PodContainer, PodSandbox, PodStatus, PodUid, ReportedState};
use crate::simulate::World;

/// The part that differs, what was expected of it and what it is.
type Difference = (String, String, String);

/// How a status differs from what is expected. Container names are those of `pod`; without one, of
/// the status's own.
pub(super) fn pod_differs(
    expected: &PodExpect,
    status: Option<&PodStatus>,
    pod: Option<&PodName>,
    names: &Names,
) -> Option<Difference> {
    let whole = |status: &PodStatus| pod_status(status, names);
    match (expected, status) {
        (PodExpect::Absent, None) => None,
        (PodExpect::Absent, Some(status)) => Some((String::new(), "absent".into(), whole(status))),
        (PodExpect::Shows(_), None) => Some((String::new(), "present".into(), "absent".into())),
        (PodExpect::Shows(shows), Some(status)) => {
            let own = PodName(names.of_pod(&status.pod.uid));
            let pod = pod.unwrap_or(&own);
            shows_differ(shows, status, pod, names)
                .unwrap_or_else(|why| Some((String::new(), "what can be found".into(), why)))
        }
    }
}

fn shows_differ(
    shows: &PodShows,
    status: &PodStatus,
    pod: &PodName,
    names: &Names,
) -> Result<Option<Difference>, String> {
    if let Some(ips) = &shows.ips
        && !status
            .ips
            .iter()
            .map(|ip| &**ip)
            .eq(ips.iter().map(String::as_str))
    {
        let got = status.ips.join(" ");
        return Ok(Some((
            " ips".into(),
            format!("[{}]", ips.join(" ")),
            format!("[{got}]"),
        )));
    }
    if let Some(error) = &shows.error {
        let got = status.error.as_deref().unwrap_or_default();
        if error.is_empty() != got.is_empty() || !got.contains(&**error) {
            let or_none = |text: &str| {
                if text.is_empty() {
                    "none".into()
                } else {
                    text.to_owned()
                }
            };
            return Ok(Some((" error".into(), or_none(error), or_none(got))));
        }
    }
    for (name, expected) in &shows.sandboxes {
        let id = names.sandbox(name)?;
        let found = status.sandboxes.iter().find(|sandbox| sandbox.id == id);
        let got = found.map_or("absent", |sandbox| sandbox_word(sandbox.state));
        let wanted = match expected {
            SandboxState::Ready => "ready",
            SandboxState::NotReady => "notReady",
            SandboxState::Absent => "absent",
        };
        if got != wanted {
            return Ok(Some((
                format!(" sandbox {name}"),
                wanted.into(),
                got.into(),
            )));
        }
    }
    if let Some(name) = &shows.newest_sandbox {
        let id = names.sandbox(name)?;
        let first = status.sandboxes.first();
        if first.is_none_or(|sandbox| sandbox.id != id) {
            let got = first.map_or_else(|| "none".into(), |sandbox| names.of(sandbox.id.as_str()));
            return Ok(Some((" newest sandbox".into(), name.to_string(), got)));
        }
    }
    for (name, expected) in &shows.containers {
        let id = names.container(&in_pod(pod, name)?)?;
        let found = status
            .containers
            .iter()
            .find(|container| container.id == id);
        if !is_shown(expected, found) {
            let got = found.map_or_else(|| "absent".into(), container_in_words);
            return Ok(Some((
                format!(" container {name}"),
                expected.to_string(),
                got,
            )));
        }
    }
    for (name, expected) in &shows.newest {
        let id = names.container(&in_pod(pod, expected)?)?;
        let found = status.container(name);
        if found.is_none_or(|container| container.id != id) {
            let got = found.map_or_else(|| "none".into(), |found| names.of(found.id.as_str()));
            return Ok(Some((format!(" newest {name}"), expected.clone(), got)));
        }
    }
    Ok(None)
}

fn in_pod(pod: &PodName, name: &str) -> Result<ContainerName, String> {
    format!("{pod}/{name}").try_into()
}

fn is_shown(expected: &ContainerState, found: Option<&PodContainer>) -> bool {
    let Some(found) = found else {
        return expected.state == "absent";
    };
    word(found.state) == expected.state
        && expected
            .code
            .is_none_or(|code| found.exit_code == Some(code))
        && expected
            .reason
            .as_ref()
            .is_none_or(|reason| *found.reason == **reason)
}

fn container_in_words(container: &PodContainer) -> String {
    let mut words = word(container.state).to_owned();
    if let Some(code) = container.exit_code {
        words.push_str(&format!(" {code} {}", container.reason));
    }
    words
}

/// Where the cache shows something else than the runtime has: what it has, and what is shown.
pub(super) fn converged(world: &World, cache: &Cache, names: &Names) -> Option<(String, String)> {
    let cached = cache.list();
    let mut uids: Vec<&PodUid> = world.sandboxes().map(|sandbox| &sandbox.pod.uid).collect();
    uids.extend(cached.iter().map(|pod| &pod.status.pod.uid));
    uids.sort();
    uids.dedup();
    for uid in uids {
        let status = cached.iter().find(|pod| pod.status.pod.uid == *uid);
        let status = status.map(|pod| &*pod.status);
        let truth = truth(world, uid);
        let shown = status.map_or_else(Vec::new, shown);
        if truth != shown {
            let in_words = |all: &[(&str, String)]| {
                let words: Vec<_> = all
                    .iter()
                    .map(|(id, state)| format!("{} {state}", names.of(id)))
                    .collect();
                if words.is_empty() {
                    format!("{} absent", names.of_pod(uid))
                } else {
                    words.join(", ")
                }
            };
            return Some((in_words(&truth), in_words(&shown)));
        }
    }
    None
}

/// Each subject of a pod and its state, in order of id, as the runtime has it.
fn truth<'a>(world: &'a World, uid: &PodUid) -> Vec<(&'a str, String)> {
    let mut all: Vec<_> = world
        .sandboxes()
        .filter(|sandbox| sandbox.pod.uid == *uid)
        .map(|sandbox| {
            let ready = if sandbox.ready {
                ReportedState::Running
            } else {
                ReportedState::Exited
            };
            let ips = if sandbox.ready {
                sandbox.ips.join(" ")
            } else {
                String::new()
            };
            (sandbox.id.as_str(), in_words(ready, &ips))
        })
        .collect();
    all.extend(world.containers_of_pod(uid).map(|container| {
        let end = if container.is_exited() {
            format!("{} {}", container.exit.code, container.exit.reason)
        } else {
            String::new()
        };
        (container.id.as_str(), in_words(container.state, &end))
    }));
    all.sort();
    all
}

/// The same as the cache shows it.
fn shown(status: &PodStatus) -> Vec<(&str, String)> {
    let mut all: Vec<_> = status.sandboxes.iter().map(shown_sandbox).collect();
    all.extend(status.containers.iter().map(|container| {
        let end = container
            .exit_code
            .map(|code| format!("{code} {}", container.reason))
            .unwrap_or_default();
        (container.id.as_str(), in_words(container.state, &end))
    }));
    all.sort();
    all
}

fn shown_sandbox(sandbox: &PodSandbox) -> (&str, String) {
    let ready = sandbox.state == ReportedState::Running;
    let ips = if ready {
        sandbox.ips.join(" ")
    } else {
        String::new()
    };
    (sandbox.id.as_str(), in_words(sandbox.state, &ips))
}

fn in_words(state: ReportedState, more: &str) -> String {
    format!("{} {more}", word(state)).trim_end().to_owned()
}
