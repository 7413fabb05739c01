//! `pleg.v1` over gRPC: the service, its listener and its client.
