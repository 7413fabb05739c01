//! The small values of the language: times, and names of pods, sandboxes and containers.
//!
//! Each is a string in the file, checked as it is read, so that a slip is told with its place.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// A value and where it stands in the file; 0 and 0 for one that was made in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Its line, from 1.
    pub line: u64,
    /// Its column, from 1.
    pub column: u64,
}

impl<T> From<T> for At<T> {
    fn from(value: T) -> Self {
        Self {
            value,
            line: 0,
            column: 0,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = serde_saphyr::Spanned::<T>::deserialize(deserializer)?;
        Ok(Self {
            line: spanned.referenced.line(),
            column: spanned.referenced.column(),
            value: spanned.value,
        })
    }
}

/// A length of time, or a moment counted from the scenario's beginning: `400ms`, `1.5s`, `5m`,
/// `24h`, `1h30m`. Whole milliseconds, which is what timers tell apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Time(pub Duration);

/// The same, backwards too: `-40s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ClockStep {
    /// Nanoseconds; negative: backwards.
    pub nanos: i64,
}

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let time = parse_time(&text).ok_or_else(|| {
            format!("{text:?} is no time: expected one like 400ms, 1.5s, 5m or 1h30m")
        })?;
        if time > LONGEST {
            return Err(format!("{text:?} is too long: a story may last 744h"));
        }
        Ok(Self(time))
    }
}

impl TryFrom<String> for ClockStep {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(&text)),
        };
        parse_time(rest)
            .and_then(|by| i64::try_from(by.as_nanos()).ok())
            .map(|nanos| Self {
                nanos: sign * nanos,
            })
            .ok_or_else(|| format!("{text:?} is no step: expected one like -40s or 10m"))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0.as_secs(), self.0.subsec_nanos());
        if nanos % 1_000_000 == 0 {
            write!(f, "{seconds}.{:03}s", nanos / 1_000_000)
        } else {
            write!(f, "{seconds}.{nanos:09}s")
        }
    }
}

/// The longest time in a scenario: a month. The player would be at a longer one for hours.
const LONGEST: Duration = Duration::from_secs(744 * 3_600);

fn parse_time(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = 0_u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let unit_end = tail
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        total = total.checked_add(millis(number, unit)?)?;
        rest = tail;
    }
    (!text.is_empty()).then(|| Duration::from_millis(total))
}

/// `number` of `unit` in whole milliseconds.
fn millis(number: &str, unit: &str) -> Option<u64> {
    let unit: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let places = u32::try_from(fraction.len()).ok().filter(|n| *n <= 9)?;
    let scale = 10_u64.pow(places);
    let parts = fraction.parse::<u64>().ok()?.checked_mul(unit)?;
    if parts % scale != 0 {
        return None;
    }
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(unit)?
        .checked_add(parts / scale)
}

/// A pod by its name in the scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct PodName(pub String);

/// A sandbox: `web`, the pod's newest, or `web#0`, its first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct SandboxName {
    /// Its pod.
    pub pod: PodName,
    /// Which of the pod's sandboxes, in the order in which the scenario made them; `None`: the newest.
    pub number: Option<usize>,
}

/// A container: `web/app`, the newest of that name, or `web/app#0`, the first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct ContainerName {
    /// Its pod.
    pub pod: PodName,
    /// Its name in the pod.
    pub name: String,
    /// Which of that name, in the order in which the scenario made them; `None`: the newest.
    pub number: Option<usize>,
}

/// A container or a sandbox: the former has a `/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub enum SubjectName {
    /// A sandbox.
    Sandbox(SandboxName),
    /// A container.
    Container(ContainerName),
}

impl SubjectName {
    /// The pod that it belongs to.
    #[must_use]
    pub fn pod(&self) -> &PodName {
        match self {
            Self::Sandbox(name) => &name.pod,
            Self::Container(name) => &name.pod,
        }
    }
}

impl TryFrom<String> for PodName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if !text.is_empty() && text.chars().all(fits) {
            Ok(Self(text))
        } else {
            Err(format!(
                "{text:?} is no name of a pod: expected letters, digits, dots and dashes"
            ))
        }
    }
}

impl TryFrom<String> for SandboxName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (pod, number) = numbered(&text)?;
        Ok(Self {
            pod: pod.to_owned().try_into()?,
            number,
        })
    }
}

impl TryFrom<String> for ContainerName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let Some((pod, name)) = text.split_once('/') else {
            return Err(format!(
                "{text:?} is no name of a container: expected pod/container, like web/app or web/app#0"
            ));
        };
        let (name, number) = numbered(name)?;
        Ok(Self {
            pod: pod.to_owned().try_into()?,
            name: PodName::try_from(name.to_owned())?.0,
            number,
        })
    }
}

impl TryFrom<String> for SubjectName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.contains('/') {
            text.try_into().map(Self::Container)
        } else {
            text.try_into().map(Self::Sandbox)
        }
    }
}

/// Whether a value is what it is if the file does not say: it need not be written.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn numbered(text: &str) -> Result<(&str, Option<usize>), String> {
    let Some((name, number)) = text.split_once('#') else {
        return Ok((text, None));
    };
    match number.parse() {
        Ok(number) => Ok((name, Some(number))),
        Err(_) => Err(format!("{text:?}: expected a number after the #")),
    }
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Display for SandboxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pod)?;
        self.number.map_or(Ok(()), |number| write!(f, "#{number}"))
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.pod, self.name)?;
        self.number.map_or(Ok(()), |number| write!(f, "#{number}"))
    }
}

impl fmt::Display for SubjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sandbox(name) => name.fmt(f),
            Self::Container(name) => name.fmt(f),
        }
    }
}

/// How many: exactly (`3`), or within bounds (`{atLeast: 1, atMost: 5}`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// At least so many.
    pub least: u64,
    /// At most so many.
    pub most: u64,
}

impl Count {
    /// Whether `number` is within it.
    #[must_use]
    pub fn holds(self, number: u64) -> bool {
        (self.least..=self.most).contains(&number)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.most) {
            (least, most) if least == most => write!(f, "{least}"),
            (0, most) => write!(f, "at most {most}"),
            (least, u64::MAX) => write!(f, "at least {least}"),
            (least, most) => write!(f, "{least} to {most}"),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Bounds {
    #[serde(default)]
    at_least: Option<u64>,
    #[serde(default)]
    at_most: Option<u64>,
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or {atLeast: N, atMost: N}")
            }

            fn visit_u64<E>(self, number: u64) -> Result<Count, E> {
                Ok(Count {
                    least: number,
                    most: number,
                })
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Count, E> {
                u64::try_from(number)
                    .map_err(|_| E::custom("expected a number that is not negative"))
                    .and_then(|number| self.visit_u64(number))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Count, A::Error> {
                let bounds =
                    Bounds::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(Count {
                    least: bounds.at_least.unwrap_or(0),
                    most: bounds.at_most.unwrap_or(u64::MAX),
                })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_the_millisecond_and_nothing_else_is_taken_for_one() {
        for (text, millis) in [
            ("0", 0),
            ("400ms", 400),
            ("1.5s", 1_500),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("10.200s", 10_200),
        ] {
            assert_eq!(
                parse_time(text),
                Some(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for text in [
            "",
            "s",
            "5",
            "1.5ms",
            "-1s",
            "1d",
            "1 s",
            "1..5s",
            ".s",
            "99999999999999999h",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn a_story_lasts_a_month_at_most() {
        assert!(Time::try_from("744h".to_owned()).is_ok());
        let refused = Time::try_from("999999999h".to_owned());
        assert!(refused.is_err_and(|why| why.contains("744h")));
    }

    #[test]
    fn a_name_says_which_one_it_means() {
        let app: SubjectName = "web/app#1".to_owned().try_into().unwrap();
        assert_eq!(app.to_string(), "web/app#1");
        assert!(matches!(app, SubjectName::Container(name) if name.number == Some(1)));
        let web: SubjectName = "web".to_owned().try_into().unwrap();
        assert!(matches!(web, SubjectName::Sandbox(name) if name.number.is_none()));
        for text in ["", "web/", "/app", "web#x", "a b"] {
            assert!(SubjectName::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
