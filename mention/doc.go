// Package mention turns a person's words into what a model is sent: it finds "@/path", "@problems", "@git-changes",
// "@terminal", commit hashes, addresses and slash commands in the words, replaces them, and adds their content in Roo's
// shapes.
//
// Scan and Commands are pure. Expand asks a World for content and never fails: where content is missing, the reason
// takes its place, for the model and in Notes for the person. Disk is the World on disk. It shows files of the
// workspace that .rooignore does not hide, the beginning of long files and the names of binary ones, and asks git with
// everything disabled that a repository's own settings could run.
//
// Differences from Roo on purpose: an escaped path loses its backslashes everywhere, a slash command keeps the blank
// before it and is none inside a mention, and files outside the workspace are refused.
package mention
