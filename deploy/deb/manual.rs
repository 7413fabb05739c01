//! Writes what is made from the command line's own definition: manual pages and completions.
//!
//!     cargo run --example manual -- FOLDER       FOLDER/man1/*.1, FOLDER/completions/*
//!
//! An example and no subcommand, so that the binary carries none of it and the library's tree no crate
//! for it: who packages runs it once.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;

use clap_complete::{Shell, generate};
use clap_mangen::Man;

/// What belongs to every page, after what is the subcommand's own.
const FILES: &str = "\
/etc/pleg/config.yaml        the daemon's settings; PLEG_CONFIG names another
/run/pleg/pleg.sock          where the daemon answers; PLEG_DAEMON names another
/etc/crictl.yaml             where the runtime is, if nobody says otherwise;
                             CRI_CONFIG_FILE names another
";
const ENVIRONMENT: &str = "\
CONTAINER_RUNTIME_ENDPOINT   the runtime's socket; --runtime-endpoint outranks it
PLEG_LOG                     what is logged to stderr; --log-level outranks it
NO_COLOR                     turns colours off
";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1);
    let folder = folder.ok_or("usage: cargo run --example manual -- FOLDER")?;
    write_to(Path::new(&folder))
}

fn write_to(folder: &Path) -> Result<(), Box<dyn Error>> {
    let pages = folder.join("man1");
    fs::create_dir_all(&pages)?;
    let mut command = pleg::cli::command();
    command.build();
    let subcommands = command.get_subcommands();
    for it in std::iter::once(&command).chain(subcommands) {
        let name = it.get_display_name().unwrap_or(it.get_name());
        fs::write(pages.join(format!("{name}.1")), page(name, it)?)?;
    }

    let completions = folder.join("completions");
    fs::create_dir_all(&completions)?;
    for (shell, name) in [
        (Shell::Bash, "pleg"),
        (Shell::Zsh, "_pleg"),
        (Shell::Fish, "pleg.fish"),
    ] {
        let mut file = File::create(completions.join(name))?;
        generate(shell, &mut pleg::cli::command(), "pleg", &mut file);
    }
    Ok(())
}

/// A page of the manual: the parts that clap knows, and the notes and examples line by line as they
/// stand in the help.
fn page(name: &str, command: &clap::Command) -> Result<Vec<u8>, Box<dyn Error>> {
    let man = Man::new(command.clone())
        .title(name)
        .source(concat!("pleg ", env!("CARGO_PKG_VERSION")))
        .manual("Pod lifecycle event generator");
    let mut roff = Vec::new();
    man.render_title(&mut roff)?;
    man.render_name_section(&mut roff)?;
    man.render_synopsis_section(&mut roff)?;
    man.render_description_section(&mut roff)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut roff)?;
    }
    man.render_options_section(&mut roff)?;
    let mut rest = String::new();
    if let Some(notes) = command.get_after_help() {
        as_it_stands(&mut rest, "NOTES AND EXAMPLES", &notes.to_string());
    }
    as_it_stands(&mut rest, "FILES", FILES);
    as_it_stands(&mut rest, "ENVIRONMENT", ENVIRONMENT);
    as_it_stands(
        &mut rest,
        "SEE ALSO",
        "pleg(1), crictl(1), https://kubernetes.io/docs/concepts/architecture/cri/\n",
    );
    roff.extend(rest.into_bytes());
    Ok(roff)
}

/// A section whose lines are not to be filled.
fn as_it_stands(roff: &mut String, title: &str, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(roff, ".SH \"{title}\"\n.nf");
    for line in text.lines() {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        // A line that begins with one of these would be a request.
        let guard = if line.starts_with(['.', '\'']) {
            "\\&"
        } else {
            ""
        };
        let _ = writeln!(roff, "{guard}{line}");
    }
    roff.push_str(".fi\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_has_a_page_with_each_of_its_flags_and_every_shell_completes_them() {
        let folder = tempfile::TempDir::new().unwrap();
        write_to(folder.path()).unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let shells =
            ["pleg", "_pleg", "pleg.fish"].map(|name| read(&format!("completions/{name}")));
        let command = pleg::cli::command();
        let mut flags = 0;
        for it in command.get_subcommands() {
            let page = read(&format!("man1/pleg-{}.1", it.get_name()));
            assert!(page.contains(".SH \"NOTES AND EXAMPLES\"\n.nf\n"), "{page}");
            for flag in it.get_arguments().filter_map(clap::Arg::get_long) {
                flags += 1;
                let written = flag.replace('-', "\\-");
                assert!(page.contains(&format!("\\-\\-{written}")), "{flag}: {page}");
                let [bash, zsh, fish] = &shells;
                assert!(bash.contains(&format!("--{flag}")), "{flag}");
                assert!(zsh.contains(&format!("--{flag}")), "{flag}");
                assert!(fish.contains(&format!("-l {flag}")), "{flag}");
            }
        }
        // The daemon's settings are flags too, which its help leaves out.
        assert!(flags > 60, "{flags}");
        assert!(read("man1/pleg-run.1").contains("watchdog\\-timeout"));
        let page = read("man1/pleg.1");
        assert!(page.contains("pleg\\-watch(1)"), "{page}");
    }

    #[test]
    fn a_line_that_looks_like_a_request_is_text() {
        let mut roff = String::new();
        as_it_stands(&mut roff, "X", ".so /etc/passwd\n'x \\ -y\n");
        assert_eq!(
            roff,
            ".SH \"X\"\n.nf\n\\&.so /etc/passwd\n\\&'x \\e \\-y\n.fi\n"
        );
    }
}
