//! Text that others wrote, made fit for a terminal.
//!
//! Pod names, reasons and error messages are whatever a runtime sends. Printed as they are they
//! could move the cursor, set the terminal's title or turn a line's direction and so forge output.

use std::fmt::Write;

/// Longer than any name in Kubernetes (253); what follows is cut.
const LONGEST_SHOWN: usize = 256;

/// Stands where there is nothing to show.
pub(crate) const NOTHING: &str = "-";

/// How many characters of an id are shown, as in crictl.
pub(crate) const ID_SHOWN: usize = 13;

/// One cell's worth of foreign text: harmless, on one line, of bounded length, never empty.
pub(crate) fn shown(text: &str) -> String {
    if text.is_empty() {
        return NOTHING.to_owned();
    }
    let mut harmless = String::with_capacity(text.len().min(LONGEST_SHOWN));
    for (position, character) in text.chars().enumerate() {
        if position == LONGEST_SHOWN {
            harmless.push('…');
            break;
        }
        push_harmless(&mut harmless, character);
    }
    harmless
}

/// A message of several lines, harmless; its line breaks stay.
pub(crate) fn message(text: &str) -> String {
    let mut harmless = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '\n' {
            harmless.push('\n');
        } else {
            push_harmless(&mut harmless, character);
        }
    }
    harmless
}

/// All of a text, harmless and on one line.
pub(crate) fn line(text: &str) -> String {
    let mut harmless = String::with_capacity(text.len());
    for character in text.chars() {
        push_harmless(&mut harmless, character);
    }
    harmless
}

/// An id as shown: its first characters, or all of it.
pub(crate) fn id(id: &str, cut: bool) -> String {
    if cut {
        shown(&id.chars().take(ID_SHOWN).collect::<String>())
    } else {
        shown(id)
    }
}

/// Text whose lines are broken between words, so that none is longer than the screen if there is one;
/// what is broken off is indented. A word that is longer than a line stays whole.
pub(crate) fn wrapped(text: &str, indent: usize, width: Option<usize>) -> String {
    let Some(width) = width else {
        return text.to_owned();
    };
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| wrapped_line(line, indent, width))
        .collect();
    lines.join("\n")
}

fn wrapped_line(line: &str, indent: usize, width: usize) -> String {
    let mut text = String::with_capacity(line.len());
    let mut column = 0;
    for (number, word) in line.split(' ').enumerate() {
        let length = word.chars().count();
        if number > 0 && column + 1 + length > width {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if number > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text
}

fn push_harmless(harmless: &mut String, character: char) {
    if character.is_control() || is_invisible_format(character) {
        // Writing to a String cannot fail.
        let _ = write!(harmless, "\\u{{{:x}}}", u32::from(character));
    } else {
        harmless.push(character);
    }
}

/// Characters that reorder, join or hide others: the bidirectional controls, zero-width characters,
/// line and paragraph separators, tags.
fn is_invisible_format(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_of_every_spelling_lose_their_power() {
        for (hostile, harmless) in [
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("a\nb\r\tc\u{8}\u{7f}", "a\\u{a}b\\u{d}\\u{9}c\\u{8}\\u{7f}"),
            ("\u{202e}gpj", "\\u{202e}gpj"),
            ("a\u{2028}b\u{200b}", "a\\u{2028}b\\u{200b}"),
        ] {
            assert_eq!(shown(hostile), harmless);
        }
        assert_eq!(message("one\n\u{1b}two"), "one\n\\u{1b}two");
    }

    #[test]
    fn honest_text_stays_as_it_is() {
        assert_eq!(shown("web-1.Größe 你好"), "web-1.Größe 你好");
        assert_eq!(shown(""), "-");
    }

    #[test]
    fn long_lines_are_broken_between_words_on_a_screen_and_nowhere_else() {
        let text = "  missing: of 38 starts no event came";
        assert_eq!(wrapped(text, 4, None), text);
        assert_eq!(
            wrapped(text, 4, Some(20)),
            "  missing: of 38\n    starts no event\n    came"
        );
        assert_eq!(
            wrapped("one\n  two three\n", 2, Some(9)),
            "one\n  two\n  three\n"
        );
        assert_eq!(
            wrapped("averylongword is", 2, Some(5)),
            "averylongword\n  is"
        );
    }

    #[test]
    fn an_endless_reason_takes_one_cell() {
        let cell = shown(&"x".repeat(1 << 20));
        assert_eq!(cell.chars().count(), LONGEST_SHOWN + 1);
        assert!(cell.ends_with('…'));
    }

    #[test]
    fn ids_are_cut_by_characters_and_only_when_asked() {
        let long = "0123456789abcdef".repeat(4);
        assert_eq!(id(&long, true), "0123456789abc");
        assert_eq!(id(&long, false), long);
        assert_eq!(id("ä", true), "ä");
        assert_eq!(id("\u{1b}[2J", true), "\\u{1b}[2J");
    }
}
