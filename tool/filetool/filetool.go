// Package filetool holds the tools that read, write, list and search files:
// read_file, write_to_file, apply_diff, apply_patch, list_files and search_files, and
// the three that histories of other programs call: edit, edit_file and search_replace.
//
// Names, parameters and result texts are Roo's, older names and input shapes are understood. Reading tools may run
// again after a crash. Writing tools replace a file in one step and can find out afterwards whether they did (see
// tool.Inspector). A patch of several files replaces all or none; only a kill leaves a part done, and then the tool
// can tell which files.
//
// Line ends, the byte order mark, the encoding and the mode of a file, and the bytes of unchanged lines stay as they
// are in the file, even when the model sends others. A file that is not UTF-8 is read as UTF-16 if it has that byte
// order mark, and otherwise as Windows-1252, one byte per character. If a character does not fit that encoding, a
// file that is written whole becomes UTF-8, and the question and the result mention it; a change of some lines is
// refused.
//
// A plan to write remembers the content that it was made for. If the content differs when the plan runs, nothing is
// written and the result gives the reason.
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

// All returns every tool of this package, in the order in which they are offered.
func All() []tool.Tool {
	return []tool.Tool{ApplyDiff(), ApplyPatch(), ListFiles(), ReadFile(), SearchFiles(), WriteToFile(), Edit(), EditFile(),
		SearchReplace()}
}

// The sources that a FileTouch records.
const (
	readSource   = "read_tool"
	editedSource = "roo_edited"
	otherSource  = "user_edited"
)
