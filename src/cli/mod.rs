//! The `pleg` command: what was typed, what it means, and one file for each subcommand.

mod args;
mod config;
mod discover;
mod follow;
mod output;
mod signals;
mod unreachable;
