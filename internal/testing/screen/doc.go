// Package screen runs a program on a pseudo-terminal and sees what a person would see: the text of the screen, its
// cells with their colours, and pictures of it.
//
// A Terminal feeds keys to a program and keeps its screen with an emulator that answers a program's questions (which
// colours, which modes) as a terminal of today does. Nothing sleeps: Wait returns when the screen fulfils a condition.
// A Script is a session in a file: tests play it and compare its shots with files (Golden), and the program record
// plays the same file and draws it as SVG.
//
// Limits: pseudo-terminals exist here on Linux and macOS; elsewhere Open returns ErrNone. No mouse, no scrollback.
package screen
