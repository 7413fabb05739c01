//! Tables as crictl and kubectl draw them: an upper-case header, two spaces between columns, no rules.

/// Between two columns.
pub(crate) const GAP: &str = "  ";

/// A table whose rows are all known: each column is as wide as its widest cell.
pub(crate) fn aligned<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = header.map(width);
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(cell));
        }
    }
    let mut text = String::new();
    push_row(&mut text, header, widths);
    for row in rows {
        push_row(&mut text, row.each_ref().map(String::as_str), widths);
    }
    text
}

/// Adds one row and its line break. A cell wider than its column pushes the rest of its own row; the
/// last cell is not padded.
pub(crate) fn push_row<const N: usize>(text: &mut String, row: [&str; N], widths: [usize; N]) {
    let mut padding = 0;
    for (cell, column) in row.into_iter().zip(widths) {
        text.extend(std::iter::repeat_n(' ', padding));
        text.push_str(cell);
        padding = column.saturating_sub(width(cell)) + GAP.len();
    }
    text.push('\n');
}

/// Characters, not terminal cells: names in Kubernetes are ASCII.
fn width(cell: &str) -> usize {
    cell.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_with_two_spaces_between_and_none_at_the_end() {
        let rows = [
            ["a", "Running", "x"].map(String::from),
            ["longer", "-", "yz"].map(String::from),
        ];
        assert_eq!(
            aligned(["NAME", "STATE", "ID"], &rows),
            "NAME    STATE    ID\n\
             a       Running  x\n\
             longer  -        yz\n"
        );
        assert_eq!(aligned(["NAME", "ID"], &[]), "NAME  ID\n");
    }

    #[test]
    fn a_cell_that_is_too_wide_keeps_its_text_and_its_gap() {
        let mut text = String::new();
        push_row(&mut text, ["too wide", "b", "c"], [3, 4, 1]);
        assert_eq!(text, "too wide  b     c\n");
    }
}
