//! `pleg run`.
mod config;
mod file;
mod keys;
mod layers;
mod socket;
