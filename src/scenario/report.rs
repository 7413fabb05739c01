//! A report: what runs told, as one HTML file that needs nothing else.
//!
//! It owns the page (`report/page.html`) and what is said of a run; a [`Section`] is a run. The same
//! traces give the same file, to the byte: it holds no time of making and no name of a machine. Whatever
//! comes from a runtime or a scenario is escaped, and the page forbids itself to load anything.

mod draw;
mod escape;
mod history;
mod lane;
mod scale;
#[cfg(test)]
mod tests;
mod words;

use std::fmt::Write as _;
use std::io;

use self::draw::chart;
use self::escape::escape;
use self::history::History;
use self::lane::Gravity;
use self::scale::{Scale, exactly};
use super::names::Names;
use super::trace::Trace;
use crate::lifecycle::Mono;

/// The page, with `{{…}}` where its parts go.
const PAGE: &str = include_str!("report/page.html");

/// A run, for a report.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// What was played: a file.
    pub title: &'a str,
    /// Whether it was as expected.
    pub is_good: bool,
    /// What else there is to say of it, in a few words.
    pub remark: &'a str,
    /// What was not as expected: when, if that is known, and what.
    pub failures: Vec<(Option<Mono>, String)>,
    /// All that went into the engine and came out of it.
    pub trace: &'a Trace,
    /// Who is who in it.
    pub names: &'a Names,
    /// Where the axis begins.
    pub began: Mono,
    /// Where it ends, if the trace does not go on beyond.
    pub ended: Mono,
}

/// A report in the making.
#[derive(Clone, Debug, Default)]
pub struct Report {
    sections: Vec<String>,
    bad: usize,
}

impl Report {
    /// Adds a run.
    pub fn add(&mut self, section: &Section<'_>) {
        let last = section.trace.entries.last().map(|entry| entry.now.mono);
        let ended = section.ended.max(last.unwrap_or_default());
        let history = History::new(section.trace, section.names, ended);
        let scale = Scale::new(section.began, ended);
        let mut facts = vec![
            counted(history.delivered, "event"),
            counted(history.lanes.len(), "pod"),
            exactly(ended.since(section.began)),
        ];
        for (gravity, (what, class)) in [
            (Gravity::Miss, ("missed", "miss")),
            (Gravity::Contradiction, ("contradicted", "contra")),
        ] {
            match history.count(gravity) {
                0 => {}
                count => facts.push(format!("<i class=\"{class}\">{count} {what}</i>")),
            }
        }
        if !section.remark.is_empty() {
            facts.push(escape(section.remark));
        }
        let mut body = String::new();
        write_failures(&mut body, &section.failures, scale);
        let moments: Vec<_> = section
            .failures
            .iter()
            .filter_map(|(at, what)| at.map(|at| (at, what.clone())))
            .collect();
        body.push_str(&chart(&history, scale, &moments));
        let verdict = if section.is_good { "passed" } else { "failed" };
        self.push(section.title, verdict, &facts.join(" · "), &body);
    }

    /// Adds what could not be played.
    pub fn add_unplayed(&mut self, title: &str, why: &str) {
        let body = format!("<pre class=\"failures\">{}</pre>", escape(why));
        self.push(title, "error", "could not be played", &body);
    }

    /// `facts` and `body` are HTML already.
    fn push(&mut self, title: &str, verdict: &str, facts: &str, body: &str) {
        self.bad += usize::from(verdict != "passed");
        let open = if verdict == "passed" { "" } else { " open" };
        self.sections.push(format!(
            "<details class=\"run\"{open}><summary><span class=\"verdict {verdict}\">{verdict}</span> \
             <b>{}</b> <span class=\"facts\">{facts}</span></summary>{body}</details>\n",
            escape(title)
        ));
    }

    /// Writes the page.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        let total = self.sections.len();
        let mut sentence = counted(total, "replay");
        // A String never fails.
        let _ = match self.bad {
            0 => write!(sentence, ", as expected"),
            bad => write!(sentence, ", {bad} not as expected"),
        };
        let mut rest = PAGE;
        while let Some((before, after)) = rest.split_once("{{") {
            out.write_all(before.as_bytes())?;
            let (part, after) = after.split_once("}}").unwrap_or((after, ""));
            match part {
                "summary" => out.write_all(sentence.as_bytes())?,
                // A page of one run shows it; one of many is a table of contents first.
                "sections" if total == 1 => {
                    for section in &self.sections {
                        let opened = section.replacen("class=\"run\">", "class=\"run\" open>", 1);
                        out.write_all(opened.as_bytes())?;
                    }
                }
                "sections" => {
                    for section in &self.sections {
                        out.write_all(section.as_bytes())?;
                    }
                }
                _ => {}
            }
            rest = after;
        }
        out.write_all(rest.as_bytes())
    }
}

fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

fn write_failures(html: &mut String, failures: &[(Option<Mono>, String)], scale: Scale) {
    if failures.is_empty() {
        return;
    }
    html.push_str("<pre class=\"failures\">");
    for (at, what) in failures {
        if let Some(at) = at {
            let _ = write!(html, "at {}: ", scale.time(*at));
        }
        let _ = writeln!(html, "{}", escape(what));
    }
    html.push_str("</pre>");
}
