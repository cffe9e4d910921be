// Package filetool holds the tools that read, write, list and search files:
// read_file, write_to_file, apply_diff, apply_patch, list_files and search_files, and
// the three that histories of other programs call: edit, edit_file and search_replace.
//
// Names, parameters and result texts are Roo's, older names and input shapes are
// understood. Reading tools may run again after a crash. Writing tools replace a
// file in one step and can find out afterwards whether they did (see tool.Inspector). A
// patch of several files replaces all or none; only a kill leaves a part, and then it
// is known which.
//
// Line ends, a byte order mark, the encoding and mode of a file, and the bytes of lines
// that stay are the file's and not the model's: they survive, also where the model gives
// others. A file that is not UTF-8 is UTF-16 by its byte order mark, or one byte a
// character, taken for Windows-1252. A character that this cannot hold turns a file that
// is written whole into UTF-8, which the question and the result mention; a change of some
// of its lines is refused.
//
// A plan to write remembers the content it was made for. If the file is another
// one when the plan runs, nothing is written and the result gives the reason.
//
// Names that hold line ends, control characters or bytes that are no UTF-8 are
// quoted wherever they are shown; one answer of read_file holds at most a megabyte
// of a file and names the line to continue from.
//
// Limits: files of more than MaxEdit bytes are not edited, indentation mode does
// not read files over MaxEdit, images over MaxImage are only named. Text in yet other
// encodings (UTF-8 with stray bytes, UTF-16 without its mark or over MaxEdit) is shown
// with replacement characters or not at all, and not changed by lines. search_files
// looks for UTF-8. Notebooks are shown as the text of their cells.
package filetool

import "github.com/roost-dev/roost/tool"

// Sizes in bytes.
const (
	MaxEdit  = 32 << 20 // largest file that is changed or read as a whole
	MaxImage = 5 << 20  // largest image that is shown
)

// All gives every tool of this package, in the order they are offered.
func All() []tool.Tool {
	return []tool.Tool{ApplyDiff(), ApplyPatch(), ListFiles(), ReadFile(), SearchFiles(), WriteToFile(), Edit(), EditFile(),
		SearchReplace()}
}

// What a touch is recorded as.
const (
	readSource   = "read_tool"
	editedSource = "roo_edited"
	otherSource  = "user_edited"
)
