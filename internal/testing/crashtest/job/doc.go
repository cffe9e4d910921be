// Package job is a job of 60 turns that uses every tool, asks, hands work to two
// subtasks and meets what providers do to a client: a 429, a used-up quota, streams
// that are cut and that end in an error, a request that is too long. It is played
// by a loopback server in the dialect of any provider, and its client, a real roost
// process, is killed on the way as often as wanted.
//
// The server keeps no place in the job. What it answers follows from the request:
// the newest reply that the request brings back says, by the ids of its calls, which
// step of which plan it was, and the results of these calls say whether the step is
// done. So a client that is killed and asks again gets the same reply, a truncated
// history is as good as a whole one, and a subtask is a plan of its own. Only the
// faults are counted: the first request for a step gets its fault, the next one does
// not.
//
// Why the workspace ends with the same bytes, whatever is killed:
//
//   - A step whose calls have results is never asked for again, and a call that has a
//     result never runs again. A read that was cut runs again, and changes nothing.
//   - A write that was cut is decided by Roost, by looking at the file: it is done, or
//     it is made once. Of a patch of several files a part may be done; Roost says
//     which part, and the model does the rest.
//   - A command that was cut is not run again. The model is told that its outcome is
//     unknown, and does what a careful one would: it looks, and then makes sure of each
//     effect by itself, with a command that changes nothing where the effect is there
//     already (Step.Mend). That one may be cut as well, and is followed by another.
//   - An effect is never half there for the model to see: a line is appended with one
//     write, a file of Roost's is replaced as a whole.
//   - What a person said is in the log before anything is done about it.
//
// Each command line first notes its call's id in a file beside the workspace. That
// file is the witness that no call's command ever ran twice.
package job
