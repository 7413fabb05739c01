//! Lifecycle events, one a line.

use serde::Serialize;

use super::style::{Colour, Tone};
use super::table::{Cell, GAP, push_row, shortened, total};
use super::text::{self, NOTHING, shown};
use crate::lifecycle::{EventSubject, LifecycleEvent, LifecycleKind, UnixNanos};

/// What a row may tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    /// The whole stamp.
    Stamp,
    /// The time of day alone.
    Time,
    /// The event's name as the kubelet has it.
    Event,
    /// The same without the word that most have in common.
    Change,
    Pod,
    Subject,
    Id,
    Exit,
    Source,
}

impl Column {
    fn header(self) -> &'static str {
        match self {
            Self::Stamp => "TIME",
            Self::Time => "TIME (UTC)",
            Self::Event | Self::Change => "EVENT",
            Self::Pod => "NAMESPACE/POD",
            Self::Subject => "SUBJECT",
            Self::Id => "ID",
            Self::Exit => "EXIT/REASON",
            Self::Source => "SOURCE",
        }
    }
}

/// Which columns a table of events has, and how wide each is: known in advance, since rows are printed
/// as they come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    shown: Vec<Column>,
    widths: Vec<usize>,
    /// Whether names are shortened to their column: on a terminal, where a row that is too long would
    /// break the table. Whoever keeps the output wants whole names.
    shortens: bool,
}

/// What most clusters' names need.
const POD_WIDTH: usize = 40;
const SUBJECT_WIDTH: usize = 22;

/// What fits 80 columns.
const NARROW: [(Column, usize); 5] = [
    (Column::Time, 12),
    (Column::Change, 7),
    (Column::Pod, 27),
    (Column::Subject, 13),
    (Column::Exit, 13),
];

impl Columns {
    /// Every column, whatever its width: 156 characters of usual names.
    pub(crate) fn all() -> Self {
        let columns = [
            (Column::Stamp, 24),
            (Column::Event, 16),
            (Column::Pod, POD_WIDTH),
            (Column::Subject, SUBJECT_WIDTH),
            (Column::Id, text::ID_SHOWN),
            (Column::Exit, 14),
            (Column::Source, 15),
        ];
        Self::of(&columns, false)
    }

    /// As many as fit a terminal: first what tells what happened to whom, then wider names, then
    /// who told it, then ids, then what was shortened in whole.
    pub(crate) fn fitting(width: usize) -> Self {
        let mut columns = NARROW.to_vec();
        let needed = total(&NARROW.map(|(_, width)| width));
        let mut spare = width.saturating_sub(needed);
        let missing = needed.saturating_sub(width);
        // The third of five is the pod's, the fourth the subject's. Below 65 columns rows are wrapped by
        // the terminal.
        columns[2].1 -= missing.min(15);
        for (at, wanted) in [(2, POD_WIDTH), (3, SUBJECT_WIDTH)] {
            let more = wanted.saturating_sub(columns[at].1).min(spare);
            columns[at].1 += more;
            spare -= more;
        }
        let mut afford = |price: usize| {
            let can = spare >= price;
            spare = if can { spare - price } else { 0 };
            can
        };
        if afford(GAP.len() + 15) {
            columns.push((Column::Source, 15));
        }
        if afford(GAP.len() + text::ID_SHOWN) {
            columns.insert(4, (Column::Id, text::ID_SHOWN));
        }
        if afford(12) {
            columns[0] = (Column::Stamp, 24);
        }
        if afford(9) {
            columns[1] = (Column::Event, 16);
        }
        Self::of(&columns, true)
    }

    fn of(columns: &[(Column, usize)], shortens: bool) -> Self {
        let (shown, widths) = columns.iter().copied().unzip();
        Self {
            shown,
            widths,
            shortens,
        }
    }

    /// Adds the table's header line.
    pub(crate) fn push_header(&self, text: &mut String) {
        let header: Vec<Cell> = self.shown.iter().map(|it| it.header().into()).collect();
        push_row(text, &header, &self.widths, Colour::Never);
    }

    /// Adds one table row.
    pub(crate) fn push_event(&self, text: &mut String, event: &LifecycleEvent, colour: Colour) {
        let cells = self.shown.iter().zip(&self.widths);
        let row: Vec<Cell> = cells
            .map(|(column, width)| {
                let mut cell = cell(*column, event);
                if self.shortens {
                    cell.text = shortened(&cell.text, *width);
                }
                cell
            })
            .collect();
        push_row(text, &row, &self.widths, colour);
    }
}

fn cell(column: Column, event: &LifecycleEvent) -> Cell {
    let nothing = || NOTHING.to_owned();
    match column {
        Column::Stamp => moment(event.seen_at).into(),
        Column::Time => time_of_day(event.seen_at).into(),
        Column::Event => Cell::from(event.kind.to_string()).toned(tone(event)),
        Column::Change => {
            let name = event.kind.to_string();
            let change = name.strip_prefix("Container").unwrap_or(&name);
            Cell::from(change).toned(tone(event))
        }
        Column::Pod => format!("{}/{}", shown(&event.pod.namespace), shown(&event.pod.name)).into(),
        Column::Subject => match &event.subject {
            None => nothing(),
            Some(EventSubject::Sandbox { .. }) => "sandbox".to_owned(),
            Some(EventSubject::Container { name, attempt, .. }) => {
                format!("{}#{attempt}", shown(name))
            }
        }
        .into(),
        Column::Id => match &event.subject {
            None => nothing(),
            Some(EventSubject::Sandbox { id, .. }) => text::id(id.as_str(), true),
            Some(EventSubject::Container { id, .. }) => text::id(id.as_str(), true),
        }
        .into(),
        Column::Exit => {
            let exit = event.exit.as_ref();
            let exit = exit.map_or_else(nothing, |it| exit_and_reason(it.exit_code, &it.reason));
            Cell::from(exit).toned(tone(event).filter(|tone| *tone == Tone::Bad))
        }
        Column::Source if event.initial => format!("{}, initial", event.source).into(),
        Column::Source => event.source.to_string().into(),
    }
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

/// The time of day in UTC, with milliseconds.
pub(crate) fn time_of_day(stamp: UnixNanos) -> String {
    let whole = moment(stamp);
    match whole.split_once('T') {
        Some((_, time)) => time.trim_end_matches('Z').to_owned(),
        None => whole,
    }
}

/// What was there already when the watch began is no news.
fn tone(event: &LifecycleEvent) -> Option<Tone> {
    match event.kind {
        LifecycleKind::ContainerStarted if event.initial => None,
        LifecycleKind::ContainerStarted => Some(Tone::Good),
        LifecycleKind::ContainerDied => match &event.exit {
            Some(exit) if exit.exit_code != 0 => Some(Tone::Bad),
            _ => Some(Tone::Faint),
        },
        LifecycleKind::ContainerRemoved => Some(Tone::Faint),
        LifecycleKind::PodSync => Some(Tone::Notice),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn table(columns: &Columns, colour: Colour) -> String {
        let mut text = String::new();
        columns.push_header(&mut text);
        for event in [samples::started(), samples::died(), samples::pod_sync()] {
            columns.push_event(&mut text, &event, colour);
        }
        text
    }

    #[test]
    fn rows_line_up_under_a_header_that_was_printed_before_them() {
        assert_eq!(
            table(&Columns::all(), Colour::Never),
            "\
TIME                      EVENT             NAMESPACE/POD                             SUBJECT                 ID             EXIT/REASON     SOURCE
2026-11-30T12:00:00.000Z  ContainerStarted  shop/web-1                                sandbox                 5a5a5a5a5a5a5  -               relist, initial
2026-11-30T12:00:04.001Z  ContainerDied     shop/web-1                                app#2                   c0c0c0c0c0c0c  7 Error         event
2026-11-30T12:00:04.001Z  PodSync           shop/web-1                                -                       -              -               inspect
"
        );
    }

    #[test]
    fn on_80_columns_a_row_tells_when_what_whom_and_how_it_ended() {
        assert_eq!(
            table(&Columns::fitting(80), Colour::Never),
            "\
TIME (UTC)    EVENT    NAMESPACE/POD                SUBJECT        EXIT/REASON
12:00:00.000  Started  shop/web-1                   sandbox        -
12:00:04.001  Died     shop/web-1                   app#2          7 Error
12:00:04.001  PodSync  shop/web-1                   -              -
"
        );
    }

    #[test]
    fn no_row_is_longer_than_the_terminal_and_a_wide_one_has_every_column() {
        let mut event = samples::died();
        event.pod.namespace = "a-namespace-of-many-words".into();
        event.pod.name = "a-name-of-many-words-5dd5756b68-x7x2p".into();
        event.subject = Some(EventSubject::Container {
            id: "c0".repeat(32).into(),
            name: "a-container-of-many-words".into(),
            attempt: 12,
        });
        if let Some(exit) = &mut event.exit {
            exit.reason = "ContainerStatusUnknown".into();
        }
        let mut seen = 0;
        for width in 65..200 {
            let columns = Columns::fitting(width);
            assert!(columns.shown.len() >= seen, "{width} columns have fewer");
            seen = columns.shown.len();
            let mut text = String::new();
            columns.push_header(&mut text);
            columns.push_event(&mut text, &event, Colour::Never);
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            assert!(text.contains("x2p "), "the pod's end tells it: {text}");
        }
        assert_eq!(Columns::fitting(200).shown, Columns::all().shown);
        // Nobody can read a row on such a terminal, and nothing breaks.
        assert_eq!(Columns::fitting(0).shown.len(), 5);
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
        Columns::all().push_event(&mut text, &event, Colour::Never);
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
    fn colour_is_for_what_changed_and_for_bad_ends() {
        let plain = table(&Columns::fitting(80), Colour::Never);
        let coloured = table(&Columns::fitting(80), Colour::Ansi);
        assert!(
            coloured.contains("\u{1b}[31mDied\u{1b}[0m   "),
            "{coloured:?}"
        );
        assert!(
            coloured.contains("\u{1b}[31m7 Error\u{1b}[0m\n"),
            "{coloured:?}"
        );
        assert!(
            !coloured.contains("mStarted"),
            "it was there already: {coloured:?}"
        );
        let bare = ["\u{1b}[31m", "\u{1b}[33m", "\u{1b}[0m"]
            .iter()
            .fold(coloured, |text, code| text.replace(code, ""));
        assert_eq!(bare, plain);
    }
}
