// Package contextwindow decides what of a task's stored API history a model gets, and makes a valid request from it.
//
// All of it is pure functions over raw JSON messages, in three layers:
//
//   - Effective, CutOldest and PlanCondense read and write the tags by which Roo hides messages (condense, sliding
//     window).
//   - Withhold and Transcript give other forms of messages that a provider refuses as they are.
//   - Build and Builder turn any stored history into messages that the Anthropic Messages API accepts. The stored
//     history is never changed.
//
// The same history gives the same bytes, and a longer history begins with the same bytes, so that provider caches keep
// hitting: blocks that need no repair are copied raw. Notes describe what was left out or changed.
//
// For holds what a provider accepts (images by number, bytes and sides; names; ids), from its documentation. Images are
// judged by their headers and never made smaller: a text replaces one that is too large, and when there are too many
// the oldest are left out, in steps.
//
// Limits: the bytes of a request as a whole are not bounded, and EstimateTokens is an estimate that needs calibration.
// A thinking block is sent as it was stored: whether its signature belongs to the current model cannot be seen here, so
// Options.DropThinking is for the caller who changed the model.
package contextwindow
