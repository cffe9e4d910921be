// Package legacy speaks the older restart call, for programs that were written for it: one POST starts a task or
// continues one, and its answer is a stream of flat JSON; questions and answers have shapes of their own. Everything
// that the call does is done by the same service as all other routes: this package translates.
//
// The stream shows only durable events. Its end, whatever ends it, touches no run.
package legacy
