// Package client speaks the HTTP API of Roost: over http and https, over the unix
// socket of a process that runs tasks, and to a server of this very process, without a
// network. Its types are those of packages report and store, so that what came over a
// network and what was made here look the same to a caller.
//
// Every POST carries an Idempotency-Key. A POST whose answer was lost is sent again
// under the same key, and only then: it takes effect once. Other requests that change
// something are sent once, unless they say that they are repeatable. A read is sent again.
//
// Events follows tasks over any cut of the connection, and gives each durable event
// once and in order.
//
// Errors are *Problem, when a server answered and refused, and *Unreachable, when none
// answered, or something that is no server of Roost.
package client
