//! How things are printed: tables for people, JSON and YAML for programs.
//!
//! Everything here turns values into text and writes nothing; text that came from the runtime goes
//! through [`text::shown`] before a terminal sees it.

pub(crate) mod age;
pub(crate) mod audit;
pub(crate) mod event;
pub(crate) mod mode;
pub(crate) mod pods;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod text;
