//! The node's pods: a table with a row for each sandbox and container, or the statuses as they are.

use std::sync::Arc;

use serde::Serialize;

use super::age::{ago, short};
use super::event::exit_and_reason;
use super::style::{Colour, Screen, Tone};
use super::table::{Cell, GAP, aligned, shortened, total, widths};
use super::text::{self, NOTHING, shown};
use crate::lifecycle::{PodContainer, PodSandbox, PodStatus, ReportedState, UnixNanos};

/// The pods as JSON and YAML: in `items`, as with kubectl and crictl.
#[derive(Serialize)]
pub(crate) struct PodList<'a> {
    /// The pods, in the order given.
    pub(crate) items: &'a [Arc<PodStatus>],
}

/// Puts pods in the order in which people look for them.
pub(crate) fn sort(pods: &mut [Arc<PodStatus>]) {
    pods.sort_by(|a, b| {
        (&a.pod.namespace, &a.pod.name, &a.pod.uid).cmp(&(
            &b.pod.namespace,
            &b.pod.name,
            &b.pod.uid,
        ))
    });
}

/// The pods as a table, folded if the screen is too narrow for it.
pub(crate) fn table(
    pods: &[Arc<PodStatus>],
    now: UnixNanos,
    cut_ids: bool,
    screen: Screen,
) -> String {
    let rows: Vec<[Cell; 6]> = rows(pods, now, cut_ids).map(|row| row.narrow).collect();
    let needed = total(&widths(HEADER, &rows));
    match screen.width {
        // Whoever wants ids in full has chosen long rows.
        Some(width) if needed > width && cut_ids => folded(pods, now, width, screen.colour),
        _ => aligned(HEADER, &rows, screen.colour),
    }
}

const HEADER: [&str; 6] = [
    "NAMESPACE/POD",
    "SUBJECT",
    "STATE",
    "EXIT/REASON",
    "CREATED",
    "ID",
];

/// Names are not shortened below this.
const LEAST_NAME: usize = 20;

/// The same with less beside each other: containers stand under their pod, ages are short, names are
/// shortened.
fn folded(pods: &[Arc<PodStatus>], now: UnixNanos, width: usize, colour: Colour) -> String {
    const HEADER: [&str; 5] = ["NAMESPACE/POD", "STATE", "EXIT/REASON", "AGE", "ID"];
    let mut rows = Vec::new();
    for status in pods {
        let mut name = Some(pod_name(status));
        for sandbox in &status.sandboxes {
            let mut row = sandbox_row(status, sandbox, now, true);
            let subject = name.take().unwrap_or_else(|| format!("  {SANDBOX}"));
            row.narrow[1] = subject.into();
            rows.push(folded_row(row.narrow, sandbox.created_at, now));
        }
        if let Some(name) = name {
            rows.push([name.as_str(), NOTHING, NOTHING, NOTHING, NOTHING].map(Cell::from));
        }
        for container in &status.containers {
            let mut row = container_row(status, container, now, true);
            row.narrow[1].text.insert_str(0, "  ");
            rows.push(folded_row(row.narrow, container.created_at, now));
        }
    }
    let [name, others @ ..] = widths(HEADER, &rows);
    let room = width.saturating_sub(total(&others) + GAP.len());
    for row in &mut rows {
        row[0].text = shortened(&row[0].text, room.clamp(LEAST_NAME, name.max(LEAST_NAME)));
    }
    aligned(HEADER, &rows, colour)
}

fn folded_row(narrow: [Cell; 6], created: Option<UnixNanos>, now: UnixNanos) -> [Cell; 5] {
    let [_, subject, state, exit, _, id] = narrow;
    let age = created.map_or(NOTHING.to_owned(), |moment| short(moment, now));
    [subject, state, exit, age.into(), id]
}

/// The pods as a table with all that is known of them.
pub(crate) fn wide_table(
    pods: &[Arc<PodStatus>],
    now: UnixNanos,
    cut_ids: bool,
    colour: Colour,
) -> String {
    let rows: Vec<[Cell; 11]> = rows(pods, now, cut_ids)
        .map(|row| {
            let [pod, subject, state, exit, created, id] = row.narrow;
            let [attempt, ip, image, sandbox, uid] = row.wide.map(Cell::from);
            [
                pod, subject, state, exit, created, id, attempt, ip, image, sandbox, uid,
            ]
        })
        .collect();
    let [pod, subject, state, exit, created, id] = HEADER;
    aligned(
        [
            pod,
            subject,
            state,
            exit,
            created,
            id,
            "ATTEMPT",
            "IP",
            "IMAGE",
            "SANDBOX ID",
            "POD UID",
        ],
        &rows,
        colour,
    )
}

/// What is to be said beside the table: one line for each pod whose details may be behind.
pub(crate) fn warnings(pods: &[Arc<PodStatus>]) -> String {
    let mut text = String::new();
    for status in pods {
        if let Some(error) = &status.error {
            text += "pleg: ";
            text += &pod_name(status);
            text += ": details may be behind, the last inspection failed: ";
            text += &shown(error);
            text.push('\n');
        }
    }
    text
}

/// What stands for a container's name where a sandbox is meant.
const SANDBOX: &str = "sandbox";

struct Row {
    narrow: [Cell; 6],
    wide: [String; 5],
}

fn rows(pods: &[Arc<PodStatus>], now: UnixNanos, cut_ids: bool) -> impl Iterator<Item = Row> + '_ {
    pods.iter().flat_map(move |status| {
        let sandboxes = status
            .sandboxes
            .iter()
            .map(move |sandbox| sandbox_row(status, sandbox, now, cut_ids));
        let containers = status
            .containers
            .iter()
            .map(move |container| container_row(status, container, now, cut_ids));
        sandboxes.chain(containers)
    })
}

fn sandbox_row(status: &PodStatus, sandbox: &PodSandbox, now: UnixNanos, cut_ids: bool) -> Row {
    let state = match sandbox.state {
        ReportedState::Running => "Ready".to_owned(),
        ReportedState::Exited => "NotReady".to_owned(),
        other @ (ReportedState::Unknown | ReportedState::Created) => other.to_string(),
    };
    let ips = if sandbox.host_network {
        "host".to_owned()
    } else {
        shown(&sandbox.ips.join(","))
    };
    Row {
        narrow: [
            pod_name(status).into(),
            SANDBOX.into(),
            Cell::from(state).toned(tone(sandbox.state, None)),
            NOTHING.into(),
            created(sandbox.created_at, now).into(),
            text::id(sandbox.id.as_str(), cut_ids).into(),
        ],
        wide: [
            sandbox.attempt.to_string(),
            ips,
            NOTHING.to_owned(),
            NOTHING.to_owned(),
            shown(status.pod.uid.as_str()),
        ],
    }
}

fn container_row(
    status: &PodStatus,
    container: &PodContainer,
    now: UnixNanos,
    cut_ids: bool,
) -> Row {
    let tone = tone(container.state, container.exit_code);
    let exit = match container.exit_code {
        Some(code) => exit_and_reason(code, &container.reason),
        None => shown(&container.reason),
    };
    let sandbox = container
        .sandbox_id
        .as_ref()
        .map_or(NOTHING.to_owned(), |id| text::id(id.as_str(), cut_ids));
    Row {
        narrow: [
            pod_name(status).into(),
            format!("{}#{}", shown(&container.name), container.attempt).into(),
            Cell::from(container.state.to_string()).toned(tone),
            Cell::from(exit).toned(tone.filter(|tone| *tone == Tone::Bad)),
            created(container.created_at, now).into(),
            text::id(container.id.as_str(), cut_ids).into(),
        ],
        wide: [
            container.attempt.to_string(),
            NOTHING.to_owned(),
            shown(&container.image),
            sandbox,
            shown(status.pod.uid.as_str()),
        ],
    }
}

/// What runs is as it should be and has no colour.
fn tone(state: ReportedState, exit_code: Option<i32>) -> Option<Tone> {
    match (state, exit_code) {
        (ReportedState::Running, _) => None,
        (ReportedState::Exited, None | Some(0)) => Some(Tone::Faint),
        (ReportedState::Exited, Some(_)) => Some(Tone::Bad),
        (ReportedState::Created | ReportedState::Unknown, _) => Some(Tone::Notice),
    }
}

fn pod_name(status: &PodStatus) -> String {
    format!(
        "{}/{}",
        shown(&status.pod.namespace),
        shown(&status.pod.name)
    )
}

fn created(moment: Option<UnixNanos>, now: UnixNanos) -> String {
    moment.map_or(NOTHING.to_owned(), |moment| ago(moment, now))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, NOON};
    use super::*;

    fn one() -> Vec<Arc<PodStatus>> {
        vec![Arc::new(samples::status())]
    }

    fn screen(width: Option<usize>) -> Screen {
        Screen {
            colour: Colour::Never,
            width,
        }
    }

    #[test]
    fn a_pod_has_a_row_for_each_sandbox_and_container() {
        assert_eq!(
            table(&one(), UnixNanos(NOON), true, screen(None)),
            "\
NAMESPACE/POD  SUBJECT  STATE    EXIT/REASON    CREATED             ID
shop/web-1     sandbox  Ready    -              About an hour ago   5a5a5a5a5a5a5
shop/web-1     app#3    Running  -              17 seconds ago      c0c0c0c0c0c0c
shop/web-1     app#2    Exited   137 OOMKilled  About a minute ago  d1d1d1d1d1d1d
"
        );
    }

    #[test]
    fn on_a_narrow_screen_containers_stand_under_their_pod() {
        assert_eq!(
            table(&one(), UnixNanos(NOON), true, screen(Some(78))),
            "\
NAMESPACE/POD  STATE    EXIT/REASON    AGE  ID
shop/web-1     Ready    -              60m  5a5a5a5a5a5a5
  app#3        Running  -              17s  c0c0c0c0c0c0c
  app#2        Exited   137 OOMKilled  90s  d1d1d1d1d1d1d
"
        );
        let mut long = samples::status();
        long.pod.name = "a-name-of-many-words-5dd5756b68-x7x2p".into();
        long.sandboxes.clear();
        let text = table(&[Arc::new(long)], UnixNanos(NOON), true, screen(Some(70)));
        assert!(
            text.lines().all(|line| line.chars().count() <= 70),
            "{text}"
        );
        let pod = text.lines().nth(1).unwrap();
        assert!(pod.starts_with("shop/") && pod.contains("…"), "{text}");
        let cells: Vec<_> = pod.split_whitespace().skip(1).collect();
        assert_eq!(cells, ["-"; 4], "a pod without sandbox has its line");
    }

    #[test]
    fn colour_is_for_what_does_not_run() {
        let coloured = Screen {
            colour: Colour::Ansi,
            width: None,
        };
        let text = table(&one(), UnixNanos(NOON), true, coloured);
        assert!(text.contains("  Ready "), "{text:?}");
        assert!(
            text.contains("\u{1b}[31m137 OOMKilled\u{1b}[0m"),
            "{text:?}"
        );
    }

    #[test]
    fn wide_adds_addresses_images_and_uids_and_ids_may_be_whole() {
        let text = wide_table(&one(), UnixNanos(NOON), false, Colour::Never);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].ends_with("ATTEMPT  IP                IMAGE                     SANDBOX ID                                                        POD UID"),
            "{text}"
        );
        assert!(
            lines[1].contains("  1        10.0.0.7,fd00::7  -"),
            "{text}"
        );
        assert!(
            lines[2].contains("  registry.example/app:1.2  5a5a"),
            "{text}"
        );
        assert!(lines[2].contains(&"c0".repeat(32)), "{text}");
        assert!(lines[2].ends_with("0d5e3f6a-8f3e-4a55-9a3b-5a1f0d7f2c11"));
    }

    #[test]
    fn an_empty_node_is_a_header() {
        assert_eq!(
            table(&[], UnixNanos(NOON), true, screen(Some(80)))
                .lines()
                .count(),
            1
        );
    }

    #[test]
    fn json_and_yaml_hold_the_same_and_read_back() {
        let pods = one();
        let list = PodList { items: &pods };
        let json = serde_json::to_value(&list).unwrap();
        assert_eq!(json["items"][0]["namespace"], "shop");
        assert_eq!(json["items"][0]["containers"][1]["exitCode"], 137);
        let yaml = serde_saphyr::to_string(&list).unwrap();
        let read: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(read, json, "{yaml}");
    }

    #[test]
    fn text_that_looks_like_yaml_or_like_a_number_stays_text() {
        let mut status = samples::status();
        status.pod.name = "0x1f".into();
        status.pod.namespace = "yes".into();
        status.containers[0].name = "- a: [b\u{1b}\n\u{9b}".into();
        status.containers[1].reason = "137".into();
        let pods = vec![Arc::new(status)];
        let list = PodList { items: &pods };
        let yaml = serde_saphyr::to_string(&list).unwrap();
        let read: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(read, serde_json::to_value(&list).unwrap(), "{yaml}");
        let text = table(&pods, UnixNanos(NOON), true, screen(None));
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{9b}'),
            "{text:?}"
        );
    }

    #[test]
    fn a_pod_whose_inspection_failed_is_named_on_the_side() {
        let mut status = samples::status();
        assert_eq!(warnings(&[Arc::new(status.clone())]), "");
        status.error = Some("DeadlineExceeded\n\u{1b}".into());
        assert_eq!(
            warnings(&[Arc::new(status)]),
            "pleg: shop/web-1: details may be behind, the last inspection failed: \
             DeadlineExceeded\\u{a}\\u{1b}\n"
        );
    }

    #[test]
    fn pods_are_sorted_by_namespace_and_name_whatever_their_uids() {
        let mut pods: Vec<_> = [("b", "z", "1"), ("b", "a", "3"), ("a", "z", "2")]
            .into_iter()
            .map(|(namespace, name, uid)| {
                let mut status = samples::status();
                status.pod.namespace = namespace.into();
                status.pod.name = name.into();
                status.pod.uid = uid.into();
                Arc::new(status)
            })
            .collect();
        sort(&mut pods);
        let uids: Vec<_> = pods.iter().map(|status| status.pod.uid.as_str()).collect();
        assert_eq!(uids, ["2", "3", "1"]);
    }
}
