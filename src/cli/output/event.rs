//! Lifecycle events, one a line.

use serde::Serialize;

use super::style::{Colour, Tone};
use super::table::push_row;
use super::text::{self, NOTHING, shown};
use crate::lifecycle::{EventSubject, LifecycleEvent, LifecycleKind, UnixNanos};

const HEADER: [&str; 7] = [
    "TIME",
    "EVENT",
    "NAMESPACE/POD",
    "SUBJECT",
    "ID",
    "EXIT/REASON",
    "SOURCE",
];

/// Known in advance, since rows are printed as they come: a stamp with milliseconds, the longest
/// event, and what most clusters' names need.
const WIDTHS: [usize; 7] = [24, 16, 40, 22, text::ID_SHOWN, 14, 0];

/// Adds the table's header line.
pub(crate) fn push_header(text: &mut String) {
    push_row(text, HEADER, WIDTHS);
}

/// Adds one table row.
pub(crate) fn push_event(text: &mut String, event: &LifecycleEvent, colour: Colour) {
    let kind = event.kind.to_string();
    let pod = format!("{}/{}", shown(&event.pod.namespace), shown(&event.pod.name));
    let (subject, id) = match &event.subject {
        None => (NOTHING.to_owned(), NOTHING.to_owned()),
        Some(EventSubject::Sandbox { id, .. }) => {
            ("sandbox".to_owned(), text::id(id.as_str(), true))
        }
        Some(EventSubject::Container { id, name, attempt }) => (
            format!("{}#{attempt}", shown(name)),
            text::id(id.as_str(), true),
        ),
    };
    let exit = event.exit.as_ref().map_or(NOTHING.to_owned(), |exit| {
        exit_and_reason(exit.exit_code, &exit.reason)
    });
    let source = if event.initial {
        format!("{}, initial", event.source)
    } else {
        event.source.to_string()
    };
    let mut row = String::with_capacity(160);
    push_row(
        &mut row,
        [
            &moment(event.seen_at),
            &kind,
            &pod,
            &subject,
            &id,
            &exit,
            &source,
        ],
        WIDTHS,
    );
    text.push_str(&colour.paint(tone(event), row.trim_end_matches('\n')));
    text.push('\n');
}

/// Adds one JSON line.
///
/// # Errors
///
/// None that these types can cause; the writer of JSON has the last word.
pub(crate) fn push_event_json(
    text: &mut String,
    event: &LifecycleEvent,
) -> Result<(), serde_json::Error> {
    text.push_str(&serde_json::to_string(event)?);
    text.push('\n');
    Ok(())
}

/// Adds the line that tells a gap: whatever was told before it and is not told again is gone.
///
/// # Errors
///
/// None that these types can cause; the writer of JSON has the last word.
pub(crate) fn push_list_again(text: &mut String, why: &str) -> Result<(), serde_json::Error> {
    #[derive(Serialize)]
    struct ListAgain<'a> {
        #[serde(rename = "type")]
        kind: &'static str,
        cause: &'a str,
    }
    let kind = "ListAgain";
    text.push_str(&serde_json::to_string(&ListAgain { kind, cause: why })?);
    text.push('\n');
    Ok(())
}

/// `7 Error`, `137 OOMKilled`, or the code alone.
pub(crate) fn exit_and_reason(exit_code: i32, reason: &str) -> String {
    if reason.is_empty() {
        exit_code.to_string()
    } else {
        format!("{exit_code} {}", shown(reason))
    }
}

/// RFC 3339 in UTC, with milliseconds.
pub(crate) fn moment(stamp: UnixNanos) -> String {
    match jiff::Timestamp::from_nanosecond(i128::from(stamp.0)) {
        Ok(stamp) => format!("{stamp:.3}"),
        Err(_) => stamp.to_string(),
    }
}

fn tone(event: &LifecycleEvent) -> Tone {
    match event.kind {
        LifecycleKind::ContainerStarted => Tone::Good,
        LifecycleKind::ContainerDied => match &event.exit {
            Some(exit) if exit.exit_code != 0 => Tone::Bad,
            _ => Tone::Faint,
        },
        LifecycleKind::ContainerRemoved => Tone::Faint,
        LifecycleKind::PodSync => Tone::Notice,
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn rows_line_up_under_a_header_that_was_printed_before_them() {
        let mut text = String::new();
        push_header(&mut text);
        for event in [samples::started(), samples::died(), samples::pod_sync()] {
            push_event(&mut text, &event, Colour::Never);
        }
        assert_eq!(
            text,
            "\
TIME                      EVENT             NAMESPACE/POD                             SUBJECT                 ID             EXIT/REASON     SOURCE
2026-11-30T12:00:00.000Z  ContainerStarted  shop/web-1                                sandbox                 5a5a5a5a5a5a5  -               relist, initial
2026-11-30T12:00:04.001Z  ContainerDied     shop/web-1                                app#2                   c0c0c0c0c0c0c  7 Error         event
2026-11-30T12:00:04.001Z  PodSync           shop/web-1                                -                       -              -               inspect
"
        );
    }

    #[test]
    fn a_line_of_json_has_the_fields_names_full_ids_and_stamps() {
        let mut text = String::new();
        push_event_json(&mut text, &samples::died()).unwrap();
        let id = "c0".repeat(32);
        assert_eq!(
            text,
            format!(
                "{{\"type\":\"ContainerDied\",\"revision\":9,\
                 \"pod\":{{\"uid\":\"0d5e3f6a-8f3e-4a55-9a3b-5a1f0d7f2c11\",\
                 \"namespace\":\"shop\",\"name\":\"web-1\"}},\
                 \"container\":{{\"id\":\"{id}\",\"name\":\"app\",\"attempt\":2}},\
                 \"exitCode\":7,\"reason\":\"Error\",\"finishedAt\":\"2026-11-30T12:00:04.000000000Z\",\
                 \"source\":\"event\",\"initial\":false,\
                 \"runtimeStamp\":\"2026-11-30T12:00:04.000000001Z\",\
                 \"seenAt\":\"2026-11-30T12:00:04.001234567Z\"}}\n"
            )
        );
    }

    #[test]
    fn a_hostile_runtime_cannot_speak_to_the_terminal() {
        let mut event = samples::died();
        event.pod.name = "\u{1b}]0;owned\u{7}".into();
        event.pod.namespace = "a\nb".into();
        event.subject = Some(EventSubject::Container {
            id: "\u{9b}2J".into(),
            name: "\u{202e}evil".into(),
            attempt: 0,
        });
        if let Some(exit) = &mut event.exit {
            exit.reason = "\r\u{1b}[31mError".into();
        }
        let mut text = String::new();
        push_event(&mut text, &event, Colour::Never);
        assert_eq!(text.lines().count(), 1);
        assert!(
            text.trim_end_matches('\n')
                .chars()
                .all(|c| !c.is_control() && c != '\u{202e}'),
            "{text:?}"
        );
        assert!(text.contains("\\u{1b}]0;owned"), "{text}");
    }

    #[test]
    fn colour_wraps_a_row_and_leaves_its_columns_alone() {
        let mut plain = String::new();
        let mut coloured = String::new();
        push_event(&mut plain, &samples::died(), Colour::Never);
        push_event(&mut coloured, &samples::died(), Colour::Ansi);
        assert_eq!(
            coloured,
            format!("\u{1b}[31m{}\u{1b}[0m\n", plain.trim_end())
        );
    }
}
