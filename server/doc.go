// Package server answers HTTP: the API for the tasks of a store and the runs of an engine, and the events of tasks as
// server-sent events. A route calls one method of package service, and decides nothing about tasks. Without an engine the
// server only reads: it answers 503 to changes, and to questions that only an engine can answer.
//
// Changing. The server reads a body whole, within bounds of size and time, and strictly: it reports every fault of the
// body by its JSON pointer, before it changes anything. A POST with an Idempotency-Key takes effect once: its intent and
// its answer are on disk, and the ids of what it makes are derived from the key, so that a repeat after a crash finishes
// the first attempt. With If-Match, a task changes only if it is as the client saw it.
//
// Who may ask. Every route but /, /healthz, /readyz and /login needs the token, as a bearer token or as the cookie that the
// log-in link sets. A request must name a host that the server knows, because anyone can make a name that resolves to this
// address. An unsafe request must not come from another site. Pages of other sites may read no answer, except pages of
// Options.Origins. On addresses other than loopback, the server answers only over TLS.
//
// Events. A task's journal is its event log, so the server buffers nothing for a follower: a client that reconnects with
// the id of the last event that it saw gets the following events from the journal. These are the same bytes as live ones,
// whichever process writes the task, and after every restart of this process. A write deadline disconnects a follower that
// does not read. See stream.go.
//
// Routes. One table (routes.go) gives the handlers, the strict reading of parameters and the OpenAPI document, so that the
// three always agree. A request passes one gate (guard.go), which checks host, origin, token, path and body. The server
// reads nothing of a task before that.
//
// The older call. One POST starts or continues a task, and answers with a stream of flat JSON. Its questions and failures
// have shapes of their own (older.go). The same service carries it out.
//
// Retries. If a kill loses the answer to a change of histories or files, the client repeats the request with its key. The
// commits of the change carry the key (service.Call), so the log shows what the first attempt did. A fork's id is derived
// from the key.
//
// Other processes. The lock file of a task names the socket of the process that works on the task (package peer). The
// server passes a change of that task on to that process unchanged (holder.go), before it looks at the idempotency key,
// which means the same everywhere in a root. It does not pass streams on: it reads durable events from the journal, and
// gets only deltas from the other process (holder.go), once for all followers. So when that process dies, a follower loses
// nothing but deltas. A process that ends with its task works on no other one (Options.Guest). A registry of running
// processes was rejected: the lock is the one place that cannot be out of date.
//
// Concurrent changes of one task take turns, and a change after a run's end waits until the run has released the task
// (change.go). A task's ETag covers its size on disk and its copies. If-Match ignores those two, because Roo's files are
// written after the journal's last commit (answer.go).
//
// Ending. The program refuses new runs, finishes working runs while it still answers requests, interrupts the remaining
// ones, ends the streams, closes the engine, and releases its lock. Counters and logs of runs are made from their durable
// events (package metrics). Labels have a fixed set of values, because anyone may have made a journal. The token is in
// the root, so that clients can continue after a restart. The cookie of a log-in contains a proof that is made with the
// token, so that a new token ends all log-ins (package devices).
//
// Limits. Headers have at most 32 KB and ten seconds, bodies 32 MB and a minute. The numbers of connections, streams,
// readings and exports are bounded. One caller, an account or an address, gets at most three quarters of the readings, the
// exports and the large bodies, so that its slow clients do not block the others. Connections without the token have a
// smaller bound; at that bound the oldest idle one is closed.
// Pages of lists and windows of messages are bounded by count and bytes.
package server
