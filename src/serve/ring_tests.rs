//! Whatever the writer and the watchers do, a watcher has exactly what followed or is told to list.
