// Package commandtool is execute_command: the tool that runs a command line.
//
// The command runs through package workspace/shell: no terminal, no stdin, a time
// limit, and nothing left behind when it ends. Two deviations from Roo: a
// time-out ends the command (Roo moves it to the background, where nobody owns
// it after a restart), and a zero time-out means none was asked for.
//
// Memory is bounded whatever the command prints. Output up to the preview size
// becomes the result's text whole. Beyond it all raw bytes go to a file in
// Env.SpoolDir, which the caller takes over as Result.Full, and the text shows
// head and tail, cut at line ends where one is near. The text is cleaned for the
// model: colours and other escape sequences removed, overwritten lines
// resolved. Secrets are masked by the caller, who knows them.
//
// What cannot run (a folder that is gone, a line over the system's limit) or would
// show a file that .rooignore hides is refused when it is planned, before anybody is
// asked; the folder is judged again when the command starts.
//
// A cancelled Run returns both a Result, with what was printed until then, and
// the context's cause as error.
package commandtool
