// Package server answers HTTP: the API over the tasks of a store and the runs of an
// engine, and the events of tasks as server-sent events. A route calls one method of package service, and decides
// nothing about tasks. Without an engine the server only reads: it refuses changes, and what only an engine knows,
// with 503.
//
// Changing. A body is read whole, within bounds of size and time, and strictly: what is
// wrong with it is reported by JSON pointer, all at once, before anything is done. A POST with
// an Idempotency-Key is done once: its intent and its answer are on disk, and what it makes
// has ids that follow from the key, so that a repeat after a crash finishes what the first
// one began. If-Match wants the task as it was seen.
//
// Who may ask. Every route but /, /healthz, /readyz and /login wants the token, as a bearer
// or as the cookie that the log-in link sets. A request must name a host that the
// server knows (against names that are made to point here), and an unsafe one must not
// come from another site. Pages of other sites may read no answer, except those of Options.Origins.
// Beyond loopback nothing is served without TLS.
//
// Events. A task's journal is its event log, so a follower needs no buffer here: a client that
// reconnects with the last id it saw gets the rest from the journal, the same bytes as
// live, whichever process writes the task and however often this process was restarted. A write deadline
// disconnects a follower that does not read. See stream.go.
//
// Routes. One table (routes.go) gives handlers, the strict reading of parameters and the OpenAPI document, so that none
// knows what another does not. A request passes one gate (guard.go): host, origin, token, path, body. The server reads
// nothing before that.
//
// The older call. One POST starts or continues a task, and its answer is a stream of flat JSON; questions and failures
// have shapes of their own (older.go). The same service does all of it.
//
// Retries. A change of histories or files whose answer a kill lost comes again under its key. Its commits carry the key
// (service.Call), so the log shows what was done. A fork's id follows from the key.
//
// Other processes. The lock file of a task names the socket of the process that works on it (package peer). The server
// passes a change of that task on to it as it came (holder.go), before idempotency keys, which mean the same
// everywhere in a root. It does not pass streams on: it reads durable events from the journal, and fetches only deltas
// (holder.go), once for all followers. So the death of that process costs a follower nothing but deltas. A process
// that ends with its task starts no other one (Options.Guest). A registry of running processes was rejected: the lock
// is the one place that cannot be out of date.
//
// Changes of one task that come at once take turns, and a change behind a run's end waits until the run has released
// the task (change.go). A task's ETag covers its size on disk and its copies; If-Match ignores those, because
// files are written behind a journal that stands still (answer.go).
//
// Ending. The program refuses new runs, finishes working ones while requests are still answered, interrupts the rest,
// ends the streams, closes the engine, and releases its lock. Counters and logs of runs come from their durable events
// (package metrics); labels have values that are known beforehand, because anyone may have made a journal. The token
// lies in the root, so clients come back after a restart. A log-in is a cookie that proves itself with the token; the
// server keeps none, and a new token ends all.
//
// Limits. Headers 32 KB within ten seconds, bodies 32 MB within a minute, a bounded number of connections
// (fewer of those that have not shown the token: the oldest idle one makes room),
// streams and readings at a time, pages and windows of messages bounded by count and
// bytes.
package server
