// Package search walks the folders of a workspace: it finds the lines that match a regular
// expression, as search_files shows them, and lists files and folders, as list_files does.
//
// A walk never follows a link to a folder, so it ends and stays below its base. It obeys
// .rooignore and the .gitignore files on its way. Answers are the same however many
// goroutines search.
//
// Limits: files are searched as UTF-8; a file with a zero byte gives nothing; of a line
// the first megabyte is searched.
package search
