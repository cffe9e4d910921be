// Package resume plans how an interrupted task goes on: a pure function from
// both stored histories and the person's answer to what is hidden, asked, added
// and sent. Nothing is read or written here, and the clock is passed in.
//
// The plan follows Roo's where Roo is right, so that a task that changes hands
// looks the same. It differs where Roo loses something:
//
//   - text and images that come with the Resume button count as a message;
//   - a request row that cannot be read stays, and does not stop the resume;
//   - a task without API history starts again from its first UI row;
//   - a last API message of an unknown role is left alone;
//   - results for cut tool calls stand in front of the message, where models
//     want them;
//   - older questions are not marked as answered by the answer to this one;
//   - the last user message is replaced in one step, never first removed.
//
// Limits: rows keep the time they are given; making times strictly increasing is
// the caller's. What is hidden stays in the caller's lists.
package resume
