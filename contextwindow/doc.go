// Package contextwindow decides what of a task's stored API history a model gets
// to see, and makes a valid request of it.
//
// Three layers, all pure functions over raw JSON messages:
//
//   - Effective, SinceLastSummary, Cleanup, MergeUsers, Shape and Truncate read and
//     write the tags by which Roo hides messages (condense, sliding window).
//   - RepairResults and Append mend the tool results of a message as it is stored.
//   - Build and Builder turn whatever is stored into messages that the Anthropic
//     Messages API accepts. The stored history is never changed.
//
// The same history gives the same bytes, and a longer history gives the same
// bytes in front, so that provider caches keep hitting: blocks that need no
// mending are spliced in raw. What was left out or changed is told in Notes.
//
// What a provider takes (images by number, bytes and sides; names; ids) stands in
// For, from its documentation. Images are judged by their headers and never made
// smaller: a text stands in for one that is too large, and when there are too many
// the oldest go, in steps.
//
// Limits: the bytes of a request as a whole are not bounded, and EstimateTokens is
// a guess that has to be calibrated. A thinking block is sent as it was stored:
// whether its signature belongs to the model that is asked cannot be seen here, so
// Options.DropThinking is for the caller who changed the model.
package contextwindow
