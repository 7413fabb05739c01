//! Who may import whom, held against the code: the rooms of ARCHITECTURE.md's first table, in their order.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Each room's name in code, and its place from the ground up. Rooms of one line share a place.
fn rooms(architecture: &str) -> BTreeMap<String, usize> {
    let table = architecture
        .lines()
        .skip_while(|line| !line.starts_with("| room |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut rooms = BTreeMap::new();
    for (place, line) in table.enumerate() {
        let names = line.split('|').nth(1).unwrap_or_default();
        for path in names.split('`').filter(|text| text.starts_with("src/")) {
            let name = path["src/".len()..]
                .trim_end_matches('/')
                .trim_end_matches(".rs");
            rooms.insert(name.to_owned(), place);
        }
    }
    rooms
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // Tests, models and checked-in generated code reach where they like.
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["tests", "model", "simulation", "breakages", "generated"].contains(&&*name) {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|it| it == "rs")
            && !["tests.rs", "properties.rs", "canonical.rs"].contains(&&*name)
        {
            found.push(path);
        }
    }
}

/// A file without its tests at the end and without its comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = product
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The rooms that code names: `crate::room`, and those of `use crate::{room, …}`.
fn named(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let group = rest.strip_prefix('{').and_then(|it| it.split('}').next());
        let firsts: Vec<&str> = match group {
            Some(group) => group.split(',').map(str::trim).collect(),
            None => vec![rest],
        };
        for first in firsts {
            let end = first.find(|c: char| !c.is_alphanumeric() && c != '_');
            names.push(first[..end.unwrap_or(first.len())].to_owned());
        }
    }
    names
}

#[test]
fn a_room_imports_only_from_those_below_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = rooms(&fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap());
    assert!(
        places.len() >= 10,
        "the table of ARCHITECTURE.md was not understood: {places:?}"
    );
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    let mut broken = Vec::new();
    for file in files {
        let inside = file.strip_prefix(root.join("src")).unwrap();
        let first = inside.iter().next().unwrap().to_string_lossy();
        let room = first.trim_end_matches(".rs");
        if ["lib", "main"].contains(&room) {
            continue;
        }
        let Some(place) = places.get(room) else {
            broken.push(format!("src/{room} is no room of ARCHITECTURE.md"));
            continue;
        };
        for name in named(&code(&file)) {
            // The crate's root gives what `pleg` does: the library's face.
            let other = if name.starts_with(char::is_uppercase) {
                "pleg"
            } else {
                &name
            };
            let allowed = other == room || places.get(other).is_none_or(|below| below <= place);
            if !allowed {
                broken.push(format!(
                    "{} imports crate::{name}, a room above it",
                    inside.display()
                ));
            }
        }
    }
    broken.sort();
    broken.dedup();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn an_import_from_above_would_be_found() {
    let rooms =
        rooms("| room | x |\n|---|---|\n| `src/lifecycle/` | |\n| `src/a.rs` `src/b/` | |\n");
    assert_eq!(rooms["lifecycle"], 0);
    assert_eq!((rooms["a"], rooms["b"]), (1, 1));
    assert_eq!(
        named("use crate::b::X; use crate::{a, lifecycle::Y};\ncrate::Pleg"),
        ["b", "a", "lifecycle", "Pleg"]
    );
}

#[test]
fn the_pure_rooms_know_no_clock_no_executor_and_no_unordered_map() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for room in ["lifecycle", "engine"] {
        let mut files = Vec::new();
        sources(&root.join(room), &mut files);
        for file in files {
            let code = code(&file);
            for word in [
                "tokio",
                "Instant",
                "SystemTime",
                "HashMap",
                "HashSet",
                "rand::",
                "std::thread",
                "std::net",
                "std::fs",
            ] {
                assert!(!code.contains(word), "{} says {word}", file.display());
            }
        }
    }
}
