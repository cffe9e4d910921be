// Package server answers HTTP: the API over the tasks of a store and the runs of an
// engine, and the events of tasks as server-sent events. It asks store, engine and report,
// and decides nothing about tasks. Without an engine it only reads, and refuses changes with 503.
//
// Changing. A body is read whole, within bounds of size and time, and strictly: what is
// wrong with it is told by JSON pointer, all at once, before anything is done. A POST with
// an Idempotency-Key is done once: its intent and its answer are on disk, and what it makes
// has ids that follow from the key, so that a repeat after a crash finishes what the first
// one began. If-Match wants the task as it was seen.
//
// Who may ask. Every route but /healthz, /readyz and /login wants the token, as a bearer
// or as the cookie that the log-in link sets. A request must name a host that the
// server knows (against names that are made to point here), and an unsafe one must not
// come from another site. No answer may be read by other sites: there is no CORS.
// Beyond loopback nothing is served without TLS.
//
// Events. A task's journal is its event log, so a follower needs no buffer here: who
// reconnects with the last id it saw gets the rest from the journal, the same bytes as
// live, whoever writes the task and however often this process was restarted. A
// follower that does not read is cut off by a write deadline. See feed.go.
//
// Limits. Headers 32 KB within ten seconds, bodies 32 MB within a minute, a bounded number of connections
// (fewer of those that have not shown the token: the oldest idle one makes room),
// streams and readings at a time, pages and windows of messages bounded by count and
// bytes.
package server
