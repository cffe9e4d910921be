// Package server answers HTTP: the reading side of the API, and the events of tasks
// as server-sent events. It asks store, engine and report, and decides nothing about
// tasks. Starting and answering tasks is not part of it yet: those routes do not exist,
// and say so with 404 and 405.
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
// Limits. Headers 32 KB within ten seconds, no bodies, a bounded number of connections,
// streams and readings at a time, pages and windows of messages bounded by count and
// bytes.
package server
