// Package usage reads tokens, cost, the history row and the todo list out of a
// task's UI messages, as Roo does.
//
// A message is the raw JSON it is stored with. Input that is not a JSON object
// counts as nothing; no function here fails on hostile messages.
//
// Where Roo's own metrics go wrong, this package does not follow:
//   - a row that shares the ts of a command or of an MCP question keeps its cost;
//   - token fields that are not numbers (or beyond a double's range) count as 0 and are never
//     concatenated;
//   - an MCP row whose text is not an object does not stop the whole list.
//
// Sums in doubles run in list order, because addition of doubles depends on the
// order and the history row must equal Roo's to the last digit.
package usage
