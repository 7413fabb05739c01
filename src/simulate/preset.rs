//! The runtimes that there are, by the names under which files and command lines know them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Character;

/// A runtime that a [`Character`] is ready for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Preset {
    /// [`Character::containerd_1_6`].
    #[serde(rename = "containerd-1.6")]
    Containerd16,
    /// [`Character::containerd_1_7`].
    #[serde(rename = "containerd-1.7")]
    Containerd17,
    /// [`Character::containerd_2`].
    #[default]
    #[serde(rename = "containerd-2")]
    Containerd2,
    /// [`Character::cri_o`].
    #[serde(rename = "cri-o")]
    CriO,
    /// [`Character::cri_o_events_off`].
    #[serde(rename = "cri-o-events-off")]
    CriOEventsOff,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 5] = [
        Self::Containerd16,
        Self::Containerd17,
        Self::Containerd2,
        Self::CriO,
        Self::CriOEventsOff,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Containerd16 => "containerd-1.6",
            Self::Containerd17 => "containerd-1.7",
            Self::Containerd2 => "containerd-2",
            Self::CriO => "cri-o",
            Self::CriOEventsOff => "cri-o-events-off",
        }
    }

    /// The character.
    #[must_use]
    pub fn character(self) -> Character {
        match self {
            Self::Containerd16 => Character::containerd_1_6(),
            Self::Containerd17 => Character::containerd_1_7(),
            Self::Containerd2 => Character::containerd_2(),
            Self::CriO => Character::cri_o(),
            Self::CriOEventsOff => Character::cri_o_events_off(),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no runtime has here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the runtimes are {}", Preset::ALL.map(Preset::name).join(", "))]
#[non_exhaustive]
pub struct UnknownPreset {
    /// What was given.
    pub given: String,
}

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Self, UnknownPreset> {
        let found = Self::ALL.into_iter().find(|preset| preset.name() == name);
        found.ok_or_else(|| UnknownPreset {
            given: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_is_found_by_its_name_and_others_are_refused_with_all_names() {
        for preset in Preset::ALL {
            assert_eq!(preset.name().parse(), Ok(preset));
            let written = serde_json::to_value(preset).unwrap();
            assert_eq!(written, preset.name());
        }
        let refused = "docker".parse::<Preset>().unwrap_err();
        assert_eq!(refused.given, "docker");
        assert!(refused.to_string().contains("cri-o"), "{refused}");
    }
}
