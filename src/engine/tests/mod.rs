//! The engine driven through stories.

mod lawcheck;
