// Package mention turns what a person types into what a model is sent: "@/path",
// "@problems", "@git-changes", "@terminal", commit hashes, addresses and slash
// commands are found in the words and replaced, and what they stand for is put
// beside them in Roo's shapes.
//
// Scan and Commands are pure. Expand asks a World for content and never fails: what
// cannot be had is said in its place, to the model and in Notes to the person. Ground
// is the World on disk. It shows what lies in the workspace and .rooignore does not
// hide, the beginning of long files and the names of binary ones, and asks git with
// everything off that a repository's own settings could run.
//
// Differences from Roo on purpose: an escaped path loses its backslashes everywhere,
// a slash command keeps the blank before it and is none inside a mention, and files
// outside the workspace are refused.
package mention
