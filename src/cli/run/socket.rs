//! Who may use the daemon's socket: its permissions, owner and group.
//!
//! Names are looked up in `/etc/passwd` and `/etc/group` themselves. A static binary has no other
//! name service, and in a container there is no other to ask.

use std::fs;
use std::path::Path;

use super::keys::Key;
use super::layers::{Layers, Refused, Written};

/// Permissions, owner and group of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketAccess {
    /// The permission bits, without any beyond read, write and execute.
    pub(crate) mode: u32,
    /// The owner's number, if it is to change.
    pub(crate) owner: Option<u32>,
    /// The group's number, if it is to change.
    pub(crate) group: Option<u32>,
}

impl SocketAccess {
    /// Understands the three settings.
    pub(super) fn read(layers: &Layers) -> Result<Self, Refused> {
        let mode = layers.written(Key::GrpcSocketMode);
        let bits = u32::from_str_radix(&mode.text, 8)
            .ok()
            .filter(|bits| *bits <= 0o777)
            .ok_or_else(|| {
                mode.refused(format_args!(
                    "{:?}: must be octal permissions from 0 to 0777, like 0660",
                    mode.text
                ))
            })?;
        Ok(Self {
            mode: bits,
            owner: id_of(
                layers.written(Key::GrpcSocketOwner),
                Path::new("/etc/passwd"),
            )?,
            group: id_of(
                layers.written(Key::GrpcSocketGroup),
                Path::new("/etc/group"),
            )?,
        })
    }
}

/// A number as it is, a name by its line in a file.
fn id_of(written: &Written, file: &Path) -> Result<Option<u32>, Refused> {
    let name = written.text.as_str();
    if name.is_empty() {
        return Ok(None);
    }
    if let Ok(id) = name.parse() {
        return Ok(Some(id));
    }
    let text = fs::read_to_string(file).map_err(|error| {
        written.refused(format_args!(
            "cannot look up {name:?} in {}: {error}; write its number",
            file.display()
        ))
    })?;
    listed(&text, name).map(Some).ok_or_else(|| {
        written.refused(format_args!(
            "{name:?} is neither a number nor a name in {}",
            file.display()
        ))
    })
}

/// The number beside a name: both files have name, password and number first.
fn listed(text: &str, name: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_by_its_line() {
        let text = "root:x:0:\npleg-readers:x:977:prometheus\nbroken\nodd:x:many:\n";
        assert_eq!(listed(text, "root"), Some(0));
        assert_eq!(listed(text, "pleg-readers"), Some(977));
        assert_eq!(listed(text, "pleg"), None);
        assert_eq!(listed(text, "broken"), None);
        assert_eq!(listed(text, "odd"), None);
    }
}
