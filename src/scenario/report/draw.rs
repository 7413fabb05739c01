//! A history as SVG and the little HTML around it: one row of the page for each pod.
//!
//! Everything lies at a percentage of its row, so that the browser alone decides how wide a second is.
//! Every text goes through [`escape`].

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::escape::escape;
use super::history::History;
use super::lane::{Gravity, Lane, Row, RowKey, Trouble};
use super::scale::{Scale, exactly, roughly};
use crate::engine::Mode;
use crate::lifecycle::{LifecycleKind, Mono, ReportedState, Source};

const SANDBOX_ROW: u32 = 12;
const CONTAINER_ROW: u32 = 15;
/// Above the first row and below the last.
const MARGIN: u32 = 3;

/// How close two marks lie that would hide each other, in thousandths of a per cent, and how many are
/// moved aside.
const TOO_CLOSE: u64 = 500;
const ASIDE: u32 = 4;
const ASIDE_PIXELS: u32 = 8;

/// How many more than the first are told of troubles that are drawn as one.
const SHOWN_OF_A_GROUP: usize = 5;

/// Relists that begin closer to each other, in thousandths of a per cent, are drawn as one.
const SAME_TICK: u64 = 60;

/// How wide a letter of a band's label is, in thousandths of a per cent, and how many of them must be seen
/// for the label to be worth showing.
const LETTER: u64 = 560;
const MOST_LETTERS: u64 = 7;

/// The chart of a history. `failures` are moments at which something was not as expected.
pub(super) fn chart(history: &History, scale: Scale, failures: &[(Mono, String)]) -> String {
    let mut html = String::new();
    html.push_str("<div class=\"chart\" tabindex=\"0\"><div class=\"sheet\">");
    head(&mut html, history, scale);
    html.push_str("<div class=\"lanes\">");
    behind(&mut html, history, scale, failures);
    for lane in &history.lanes {
        draw_lane(&mut html, lane, scale);
    }
    html.push_str("</div></div></div>");
    html
}

/// What concerns the whole node: time, mode, relists, troubles.
fn head(html: &mut String, history: &History, scale: Scale) {
    html.push_str(
        "<div class=\"head\"><div class=\"who\"><span>time</span><span>mode</span>\
         <span class=\"two\">audit period, relists</span><span>troubles</span></div>\
         <svg class=\"track\" height=\"78\" role=\"img\" aria-label=\"the node\">",
    );
    for (at, label) in scale.ticks() {
        let x = scale.x(at);
        let anchor = match scale.place(at) {
            ..=1_000 => "start",
            98_000.. => "end",
            _ => "middle",
        };
        let _ = write!(
            html,
            "<text x=\"{x}\" y=\"12\" text-anchor=\"{anchor}\">{label}</text>"
        );
    }
    for band in &history.modes {
        let mode = band
            .mode
            .map_or_else(|| "Connecting".to_owned(), |mode| mode.to_string());
        let title = format!(
            "{mode}\nfrom {} to {}\n{}",
            scale.time(band.from),
            scale.time(band.until),
            band.cause
        );
        let class = mode_class(band.mode);
        let span = (band.from, band.until);
        label_band(html, scale, span, (18, 16), class, (&mode, &title));
    }
    for period in &history.periods {
        let each = roughly(period.each());
        let title = format!(
            "a relist every {}\nfrom {} to {}",
            exactly(period.each()),
            scale.time(period.from),
            scale.time(period.until)
        );
        let span = (period.from, period.until);
        label_band(html, scale, span, (37, 14), "period", (&each, &title));
    }
    relists(html, history, scale);
    all_troubles(html, history, scale, 70);
    html.push_str("</svg></div>");
}

/// A rectangle with a label that is cut where the rectangle ends.
fn label_band(
    html: &mut String,
    scale: Scale,
    (from, until): (Mono, Mono),
    (y, height): (u32, u32),
    class: &str,
    (label, title): (&str, &str),
) {
    let room = scale.place(until).saturating_sub(scale.place(from));
    let letters = u64::try_from(label.len()).unwrap_or(MOST_LETTERS);
    let tight = if room < LETTER * (1 + letters.min(MOST_LETTERS)) {
        " class=\"tight\""
    } else {
        ""
    };
    let _ = write!(
        html,
        "<svg x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{height}\" class=\"band {class}\"><title>{}</title>\
         <rect width=\"100%\" height=\"100%\"/><text x=\"4\" y=\"{}\"{tight}>{}</text></svg>",
        scale.x(from),
        scale.width(from, until),
        escape(title),
        height - 4,
        escape(label)
    );
}

fn relists(html: &mut String, history: &History, scale: Scale) {
    let mut drawn: Option<u64> = None;
    for relist in &history.relists {
        let place = scale.place(relist.asked);
        let is_close = drawn.is_some_and(|drawn| place.saturating_sub(drawn) < SAME_TICK);
        if is_close && relist.outcome.is_ok() {
            continue;
        }
        drawn = Some(place);
        let took = exactly(relist.ended.since(relist.asked));
        let (class, words) = match &relist.outcome {
            Ok(words) => ("relist", words.clone()),
            Err(why) => ("relist failed", format!("failed: {why}")),
        };
        let title = format!(
            "relist at {}, took {took}\n{words}",
            scale.time(relist.asked)
        );
        let _ = write!(
            html,
            "<rect x=\"{}\" y=\"52\" width=\"{}\" height=\"7\" class=\"{class}\"><title>{}</title></rect>",
            scale.x(relist.asked),
            scale.width(relist.asked, relist.ended),
            escape(&title)
        );
    }
}

/// The troubles of all pods; those of one kind that would hide each other are drawn as one, with their
/// number.
fn all_troubles(html: &mut String, history: &History, scale: Scale, y: u32) {
    let mut aside = Aside::default();
    for gravity in [Gravity::Other, Gravity::Contradiction, Gravity::Miss] {
        let mut group: Vec<&Trouble> = Vec::new();
        for trouble in history.troubles.iter().filter(|one| one.gravity == gravity) {
            let is_far = group.first().is_some_and(|first| {
                scale.place(trouble.at) >= scale.place(first.at) + 2 * TOO_CLOSE
            });
            if is_far {
                draw_group(html, &group, scale, &mut aside, y);
                group.clear();
            }
            group.push(trouble);
        }
        draw_group(html, &group, scale, &mut aside, y);
        aside = Aside::default();
    }
}

fn draw_group(html: &mut String, group: &[&Trouble], scale: Scale, aside: &mut Aside, y: u32) {
    let [first, rest @ ..] = group else { return };
    if rest.is_empty() {
        return draw_trouble(html, first, scale, aside, y);
    }
    let mut words = format!("{} in all\n{}", group.len(), first.words);
    for trouble in rest.iter().take(SHOWN_OF_A_GROUP) {
        words.push('\n');
        words.push_str(&trouble.words);
    }
    if rest.len() > SHOWN_OF_A_GROUP {
        words.push_str("\n…");
    }
    let whole = Trouble {
        at: first.at,
        gravity: first.gravity,
        words,
    };
    draw_trouble(html, &whole, scale, aside, y);
    if first.gravity != Gravity::Other {
        let _ = write!(
            html,
            "<text x=\"{}\" y=\"{}\" dx=\"9\" class=\"number\">{}</text>",
            scale.x(first.at),
            y + 4,
            group.len()
        );
    }
}

/// The grid, and the modes and failures again, faintly, behind all pods.
fn behind(html: &mut String, history: &History, scale: Scale, failures: &[(Mono, String)]) {
    html.push_str("<svg class=\"behind\">");
    for band in &history.modes {
        let class = mode_class(band.mode);
        if class != "evented" {
            let _ = write!(
                html,
                "<rect x=\"{}\" width=\"{}\" height=\"100%\" class=\"{class}\"/>",
                scale.x(band.from),
                scale.width(band.from, band.until)
            );
        }
    }
    for (at, _) in scale.ticks() {
        let x = scale.x(at);
        let _ = write!(html, "<line x1=\"{x}\" x2=\"{x}\" y2=\"100%\"/>");
    }
    for (at, words) in failures {
        let x = scale.x(*at);
        let _ = write!(
            html,
            "<line x1=\"{x}\" x2=\"{x}\" y2=\"100%\" class=\"failure\"><title>{}</title></line>",
            escape(&format!("not as expected at {}: {words}", scale.time(*at)))
        );
    }
    html.push_str("</svg>");
}

fn draw_lane(html: &mut String, lane: &Lane, scale: Scale) {
    let whole = format!(
        "{} {}/{} {}",
        lane.name,
        lane.pod.namespace,
        lane.pod.name,
        lane.pod.uid.as_str()
    );
    let (misses, contradictions) = (
        lane.count(Gravity::Miss),
        lane.count(Gravity::Contradiction),
    );
    let _ = write!(
        html,
        "<div class=\"lane\" data-pod=\"{}\"{}><div class=\"who\"><div class=\"pod\"><b title=\"{}\">{}</b>",
        escape(&whole),
        if misses + contradictions > 0 {
            " data-troubled"
        } else {
            ""
        },
        escape(&whole),
        escape(lane.short_name())
    );
    if lane.short_name() != lane.name {
        let _ = write!(html, "<small>{}</small>", escape(&lane.pod.namespace));
    }
    if misses > 0 {
        let _ = write!(html, "<i class=\"miss\">{misses} missed</i>");
    }
    if contradictions > 0 {
        let _ = write!(
            html,
            "<i class=\"contra\">{contradictions} contradicted</i>"
        );
    }
    html.push_str("</div><div class=\"rows\">");
    for key in lane.rows.keys() {
        match key {
            RowKey::Sandboxes => html.push_str("<span class=\"s\">sandbox</span>"),
            RowKey::Container(name) => {
                let _ = write!(html, "<span>{}</span>", escape(name));
            }
        }
    }
    let height = lane.rows.keys().map(row_height).sum::<u32>() + 2 * MARGIN;
    let _ = write!(
        html,
        "</div></div><svg class=\"track\" height=\"{height}\">"
    );
    let mut y = MARGIN;
    for (key, row) in &lane.rows {
        draw_row(html, &lane.name, key, row, scale, y);
        y += row_height(key);
    }
    html.push_str("</svg></div>\n");
}

fn row_height(key: &RowKey) -> u32 {
    match key {
        RowKey::Sandboxes => SANDBOX_ROW,
        RowKey::Container(_) => CONTAINER_ROW,
    }
}

fn draw_row(html: &mut String, pod: &str, key: &RowKey, row: &Row, scale: Scale, y: u32) {
    let middle = y + row_height(key) / 2;
    let is_sandbox = *key == RowKey::Sandboxes;
    for bar in &row.bars {
        let (class, thick) = match bar.state {
            ReportedState::Running if is_sandbox => ("ready", 4),
            ReportedState::Running => ("running", 10),
            ReportedState::Created => ("created", 6),
            ReportedState::Unknown => ("unknown", 6),
            ReportedState::Exited if is_sandbox => ("exited", 2),
            ReportedState::Exited if bar.is_failure => ("exited bad", 4),
            ReportedState::Exited => ("exited", 4),
        };
        let title = format!(
            "{pod}: {}\nfrom {} to {} ({})",
            bar.words,
            scale.time(bar.from),
            scale.time(bar.until),
            exactly(bar.until.since(bar.from))
        );
        let _ = write!(
            html,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{thick}\" class=\"{class}\"><title>{}</title></rect>",
            scale.x(bar.from),
            middle - thick / 2,
            scale.width(bar.from, bar.until),
            escape(&title)
        );
    }
    // Troubles and events in the order of time, so that neither hides the other.
    let mut aside = Aside::default();
    let mut troubles: BTreeMap<Mono, Vec<&Trouble>> = BTreeMap::new();
    for trouble in &row.troubles {
        troubles.entry(trouble.at).or_default().push(trouble);
    }
    for mark in &row.marks {
        let later = troubles.split_off(&Mono(mark.at.0.saturating_add(1)));
        for trouble in std::mem::replace(&mut troubles, later)
            .into_values()
            .flatten()
        {
            draw_trouble(html, trouble, scale, &mut aside, middle);
        }
        let shape = match mark.kind {
            LifecycleKind::ContainerStarted => "started",
            LifecycleKind::ContainerDied => "died",
            LifecycleKind::ContainerRemoved => "removed",
            LifecycleKind::PodSync => "sync",
        };
        let source = match mark.source {
            Source::Event => "event",
            Source::Relist => "relist",
            Source::Inspect => "inspect",
        };
        let initial = if mark.initial { " initial" } else { "" };
        let _ = write!(
            html,
            "<use href=\"#k-{shape}\" x=\"{}\" y=\"{middle}\" class=\"mark {source}{initial}\"{}><title>{}</title></use>",
            scale.x(mark.at),
            aside.shift(scale.place(mark.at)),
            escape(&format!("{}  {pod}: {}", scale.time(mark.at), mark.words))
        );
    }
    for trouble in troubles.into_values().flatten() {
        draw_trouble(html, trouble, scale, &mut aside, middle);
    }
}

fn draw_trouble(html: &mut String, trouble: &Trouble, scale: Scale, aside: &mut Aside, y: u32) {
    let class = match trouble.gravity {
        Gravity::Miss => "miss",
        Gravity::Contradiction => "contra",
        Gravity::Other => "other",
    };
    let _ = write!(
        html,
        "<use href=\"#k-{class}\" x=\"{}\" y=\"{y}\" class=\"trouble {class}\"{}><title>{}</title></use>",
        scale.x(trouble.at),
        aside.shift(scale.place(trouble.at)),
        escape(&format!("{}  {}", scale.time(trouble.at), trouble.words))
    );
}

fn mode_class(mode: Option<Mode>) -> &'static str {
    match mode {
        None | Some(Mode::Connecting) => "connecting",
        Some(Mode::Evented { .. }) => "evented",
        Some(Mode::Polling { .. }) => "polling",
    }
}

/// Moves a mark aside that would lie on the one before it.
#[derive(Debug, Default)]
struct Aside {
    last: Option<u64>,
    steps: u32,
}

impl Aside {
    fn shift(&mut self, place: u64) -> String {
        let is_close = self
            .last
            .is_some_and(|last| place.saturating_sub(last) < TOO_CLOSE);
        if is_close {
            self.steps = (self.steps + 1) % (ASIDE + 1);
        } else {
            self.steps = 0;
            self.last = Some(place);
        }
        match self.steps {
            0 => String::new(),
            steps => format!(" transform=\"translate({} 0)\"", steps * ASIDE_PIXELS),
        }
    }
}
