//! The table: what was measured, the least it can cost, the reference's figure, the goal, a verdict.

use std::fmt::Write;

use crate::spread::{Spread, brief};
use crate::task::Figures;

/// One line of a section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    what: String,
    figure: String,
    unit: &'static str,
    limits: Vec<(&'static str, &'static str)>,
    reference: String,
    at_most: Option<f64>,
}

/// A line about one figure.
pub(crate) fn line(what: impl Into<String>, figure: impl Into<String>, unit: &'static str) -> Line {
    Line {
        what: what.into(),
        figure: figure.into(),
        unit,
        ..Line::default()
    }
}

impl Line {
    /// A figure of the same run beside which it stands, with what that is.
    pub(crate) fn limit(mut self, name: &'static str, figure: &'static str) -> Self {
        self.limits.push((name, figure));
        self
    }

    /// What the kubelet's code takes for the same work.
    pub(crate) fn reference(self, reference: impl Into<String>) -> Self {
        Self {
            reference: reference.into(),
            ..self
        }
    }

    /// The goal.
    pub(crate) fn at_most(self, goal: f64) -> Self {
        Self {
            at_most: Some(goal),
            ..self
        }
    }
}

/// A part of the table.
#[derive(Debug)]
pub(crate) struct Section {
    title: String,
    text: String,
    missed: usize,
}

impl Section {
    /// Begins one. `conditions` is a sentence or two.
    pub(crate) fn new(title: &str, conditions: &str) -> Self {
        let text = format!(
            "### {title}\n\n{conditions}\n\n\
            | what | measured | at the least | reference | goal | |\n\
            |---|---|---|---|---|---|\n"
        );
        Self {
            title: title.to_owned(),
            text,
            missed: 0,
        }
    }

    /// Adds a line. What was not measured is said to be missing, and counts as missed.
    pub(crate) fn add(&mut self, runs: &[Figures], line: &Line) {
        let spread =
            |figure: &str| Spread::of(runs.iter().filter_map(|run| run.get(figure).copied()));
        let unit = match line.unit {
            "" => String::new(),
            unit => format!(" {unit}"),
        };
        let measured = spread(&line.figure);
        let cell = match &measured {
            Some(spread) => format!("{}{unit}", spread.cell()),
            None => "not measured".to_owned(),
        };
        let limits: Vec<String> = line
            .limits
            .iter()
            .filter_map(|(name, figure)| {
                let median = spread(figure)?.median();
                Some(format!("{name} {}{unit}", brief(median)))
            })
            .collect();
        let goal = line
            .at_most
            .map_or_else(String::new, |goal| format!("≤ {}{unit}", brief(goal)));
        let verdict = match (line.at_most, &measured) {
            (None, _) => String::new(),
            (Some(goal), Some(spread)) if spread.median() <= goal => "met".to_owned(),
            (Some(goal), Some(spread)) => {
                self.missed += 1;
                format!("**missed** ({} ×)", brief(spread.median() / goal))
            }
            (Some(_), None) => {
                self.missed += 1;
                "**missing**".to_owned()
            }
        };
        let _ = writeln!(
            self.text,
            "| {} | {cell} | {} | {} | {goal} | {verdict} |",
            line.what,
            limits.join(", "),
            line.reference,
        );
    }

    /// Adds a line, if its figure was anything but zero in some run.
    pub(crate) fn add_if_any(&mut self, runs: &[Figures], line: &Line) {
        let any = |run: &Figures| run.get(&line.figure).is_some_and(|figure| *figure != 0.0);
        if runs.iter().any(any) {
            self.add(runs, line);
        }
    }

    /// Prints it, and gives how many goals were missed.
    pub(crate) fn print(&self) -> usize {
        println!("{}", self.text);
        if self.missed > 0 {
            eprintln!("{}: {} missed", self.title, self.missed);
        }
        self.missed
    }
}
