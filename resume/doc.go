// Package resume plans how the rows of an interrupted task go on: a pure function from
// the stored UI history to what is hidden, marked and asked. Nothing is read or written
// here. The model's side stays as it is stored; what is sent of it is made valid by
// package contextwindow, and what became of cut calls is told by the agent.
//
// The plan follows Roo's where Roo is right, so that a task that changes hands
// looks the same. It differs where Roo loses something:
//
//   - a request row that cannot be read stays, and does not stop the resume;
//   - a task without API history starts again from its first UI row;
//   - older questions are not marked as answered by the answer to this one.
//
// What is hidden stays in the caller's lists.
package resume
