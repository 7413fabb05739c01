//! Tables as crictl and kubectl draw them: an upper-case header, two spaces between columns, no rules.

use super::style::{Colour, Tone};

/// Between two columns.
pub(crate) const GAP: &str = "  ";

/// What stands where a row meets a column. The text is harmless already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Option<Tone>,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, tone: None }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Cell {
    /// The same in a colour, if it is to have one.
    pub(crate) fn toned(self, tone: Option<Tone>) -> Self {
        Self { tone, ..self }
    }
}

/// A table whose rows are all known: each column is as wide as its widest cell.
pub(crate) fn aligned<const N: usize>(
    header: [&str; N],
    rows: &[[Cell; N]],
    colour: Colour,
) -> String {
    let widths = widths(header, rows);
    let mut text = String::new();
    push_row(&mut text, &header.map(Cell::from), &widths, colour);
    for row in rows {
        push_row(&mut text, row, &widths, colour);
    }
    text
}

/// How wide the columns of such a table are.
pub(crate) fn widths<const N: usize>(header: [&str; N], rows: &[[Cell; N]]) -> [usize; N] {
    let mut widths = header.map(width);
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(&cell.text));
        }
    }
    widths
}

/// How wide a row of such columns is.
pub(crate) fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

/// Adds one row and its line break. A cell wider than its column pushes the rest of its own row; the
/// last cell is not padded.
pub(crate) fn push_row(text: &mut String, row: &[Cell], widths: &[usize], colour: Colour) {
    let mut padding = 0;
    for (cell, column) in row.iter().zip(widths) {
        text.extend(std::iter::repeat_n(' ', padding));
        match cell.tone {
            Some(tone) => text.push_str(&colour.paint(tone, &cell.text)),
            None => text.push_str(&cell.text),
        }
        padding = column.saturating_sub(width(&cell.text)) + GAP.len();
    }
    text.push('\n');
}

/// Text in no more than so many characters: what does not fit is left out of its middle, since names
/// in Kubernetes differ at their ends.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    let length = width(text);
    if length <= limit {
        return text.to_owned();
    }
    let tail = limit / 3;
    let head = limit.saturating_sub(tail + 1);
    let mut short: String = text.chars().take(head).collect();
    short.push('…');
    short.extend(text.chars().skip(length - tail));
    short
}

/// Characters, not terminal cells: names in Kubernetes are ASCII.
pub(crate) fn width(cell: &str) -> usize {
    cell.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_with_two_spaces_between_and_none_at_the_end() {
        let rows = [
            ["a", "Running", "x"].map(Cell::from),
            ["longer", "-", "yz"].map(Cell::from),
        ];
        let header = ["NAME", "STATE", "ID"];
        assert_eq!(
            aligned(header, &rows, Colour::Never),
            "NAME    STATE    ID\n\
             a       Running  x\n\
             longer  -        yz\n"
        );
        assert_eq!(total(&widths(header, &rows)), 19);
        assert_eq!(aligned(["NAME", "ID"], &[], Colour::Never), "NAME  ID\n");
    }

    #[test]
    fn a_cell_that_is_too_wide_keeps_its_text_and_its_gap() {
        let mut text = String::new();
        let row = ["too wide", "b", "c"].map(Cell::from);
        push_row(&mut text, &row, &[3, 4, 1], Colour::Never);
        assert_eq!(text, "too wide  b     c\n");
    }

    #[test]
    fn colour_takes_no_room() {
        let mut text = String::new();
        let row = [Cell::from("a").toned(Some(Tone::Bad)), Cell::from("b")];
        push_row(&mut text, &row, &[3, 1], Colour::Ansi);
        assert_eq!(text, "\u{1b}[31ma\u{1b}[0m    b\n");
    }

    #[test]
    fn a_name_that_is_too_long_keeps_its_beginning_and_its_end() {
        assert_eq!(
            shortened("default/web-4xngc995g4-swv95", 27),
            "default/web-4xngc…5g4-swv95"
        );
        assert_eq!(shortened("node-exporter#0", 13), "node-exp…er#0");
        assert_eq!(shortened("short", 5), "short");
        for limit in 1..9 {
            assert_eq!(width(&shortened("größer als das", limit)), limit);
        }
    }
}
