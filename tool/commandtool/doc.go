// Package commandtool is execute_command: the tool that runs a command line.
//
// The command runs through package workspace/shell: no terminal, no stdin, a time limit, and nothing left behind when
// it ends. Two deviations from Roo: a time-out ends the command (Roo moves it to the background, where no process
// owns it after a restart), and a zero time-out means that there is none.
//
// Memory is bounded for any output. Output up to the preview size becomes the result's text whole. Beyond it all raw
// bytes go to a file in Env.SpoolDir, which the caller takes over as Result.Full, and the text shows head and tail,
// cut at line ends where one is near. The text is cleaned for the model: colours and other escape sequences removed,
// overwritten lines resolved. The caller, who knows the secrets, masks them.
//
// The plan refuses a command that cannot run (a missing folder, a line over the system's limit) or would show a file
// that .rooignore hides, so that the user gets no question about it; Run judges the folder again when the command
// starts.
//
// A cancelled Run returns both a Result, with the output so far, and the context's cause as error.
package commandtool
