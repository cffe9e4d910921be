// Package client is the one interface to Roost: over http and https, over the unix socket of a process that runs
// tasks, and to a server in the same process without a network. A caller cannot see the difference. It has one method
// for each act; Do, Ask and Open serve routes that have none, and callers that want the bytes of an answer. Documents
// are those of package api.
//
// Every POST carries an Idempotency-Key. When the answer to a POST is lost, the client sends it again under the same
// key, and it takes effect once. It sends other changes once, unless the request is Repeatable. It sends a read again.
//
// Events follows tasks. It connects again when the connection breaks, and yields each durable event once and in
// order.
//
// Errors are *Problem, when a server refused, and *Unreachable, when no server of Roost answered.
package client
