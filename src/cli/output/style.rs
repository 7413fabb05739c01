//! What a stream is shown on: a terminal with its width and its colours, or a pipe with neither.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

/// What a stream is shown on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Screen {
    /// Whether it shows colours.
    pub(crate) colour: Colour,
    /// How wide it is; `None` if it has no width, as a pipe has none.
    pub(crate) width: Option<usize>,
}

impl Screen {
    /// What a stream of this process is shown on.
    pub(crate) fn of(
        stream: &(impl IsTerminal + AsFd),
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        Self {
            colour: Colour::suiting(stream, variable),
            width: width(stream),
        }
    }
}

/// How wide the terminal is that a stream is shown on, if it is one.
pub(crate) fn width(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    let size = stream.is_terminal().then(|| tcgetwinsize(stream).ok());
    let width = size.flatten().map(|size| usize::from(size.ws_col));
    // A terminal that does not know its size says 0.
    width.filter(|width| *width > 0)
}

/// Whether a stream is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Plain text.
    Never,
    /// ANSI colours.
    Ansi,
}

/// A colour that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Something began.
    Good,
    /// Something ended badly.
    Bad,
    /// Something ended as it should, or is of less interest.
    Faint,
    /// Something to look at.
    Notice,
}

impl Colour {
    /// What suits a stream: colour on a terminal that is not dumb, unless `NO_COLOR` is set to
    /// anything.
    pub(crate) fn suiting(
        stream: &impl IsTerminal,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        Self::decided(stream.is_terminal(), variable)
    }

    fn decided(is_terminal: bool, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = variable("TERM").is_none_or(|term| term == "dumb");
        if is_terminal && !refused && !dumb {
            Self::Ansi
        } else {
            Self::Never
        }
    }

    /// Wraps text. The text itself must be harmless already.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Faint => "2",
            Tone::Notice => "33",
        };
        match self {
            Self::Never => text.to_owned(),
            Self::Ansi => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(is_terminal: bool, variables: &[(&str, &str)]) -> Colour {
        Colour::decided(is_terminal, &|name| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn only_a_willing_terminal_is_coloured() {
        let xterm = ("TERM", "xterm-256color");
        assert_eq!(decided(true, &[xterm]), Colour::Ansi);
        assert_eq!(decided(true, &[xterm, ("NO_COLOR", "")]), Colour::Ansi);
        assert_eq!(decided(false, &[xterm]), Colour::Never);
        assert_eq!(decided(true, &[xterm, ("NO_COLOR", "1")]), Colour::Never);
        assert_eq!(decided(true, &[("TERM", "dumb")]), Colour::Never);
        assert_eq!(decided(true, &[]), Colour::Never);
    }

    #[test]
    fn paint_is_undone_at_its_end() {
        assert_eq!(Colour::Never.paint(Tone::Bad, "x"), "x");
        assert_eq!(Colour::Ansi.paint(Tone::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
