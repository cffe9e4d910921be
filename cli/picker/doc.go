// Package picker is the screen on which a person looks through all tasks and
// chooses one: a list that fills while it is read, a preview of the task under the
// cursor, and search while one types.
//
// Model is pure: a message goes in, a screen comes out, and what takes time is a
// command that runs beside it. It knows nothing of stores and files; what it needs
// of them is the interface Backend. Run puts it on a terminal and gives the terminal
// back as it was, whichever way it ends.
//
// Limits: no mouse. Below 70 columns there is no preview, below 20 columns or 5
// lines no more than a request for room. What the Backend gives of titles and texts is
// made harmless here; the order of right-to-left text is the terminal's business.
package picker
