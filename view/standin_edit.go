package view

import (
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// editRow is the row of a call that changes files by replacing text or by a patch: the change as a diff. ok is false for
// other calls.
func editRow(name string, input []byte) (row, path, content string, ok bool) {
	switch name {
	case "edit", "edit_file", "search_replace":
		row = "appliedDiff"
	case "search_and_replace":
		row = rowTools[name]
	case "apply_patch":
		path, created := patched(str(input, "patch") + str(input, "input"))
		if row = "appliedDiff"; created {
			row = "newFileCreated"
		}
		return row, path, str(input, "patch") + str(input, "input"), true
	default:
		return "", "", "", false
	}
	path = str(input, "file_path")
	if path == "" {
		path = str(input, "path")
	}
	steps := [][]byte{input}
	if list, has := esjson.Get(input, "operations"); has && esjson.TypeOf(list) == esjson.TypeArray {
		steps = nil
		for step := range esjson.Array(list) {
			if esjson.TypeOf(step) == esjson.TypeObject {
				steps = append(steps, step)
			}
		}
	}
	var parts []string
	for _, step := range steps {
		before, after := "", ""
		for _, names := range [][2]string{{"old_string", "new_string"}, {"old_str", "new_str"}, {"search", "replace"}} {
			before, after = before+str(step, names[0]), after+str(step, names[1])
		}
		if name == "edit_file" && before == "" {
			return "newFileCreated", path, after, true
		}
		if diff := replaced(before, after); diff != "" {
			parts = append(parts, "@@ @@\n"+diff)
		}
	}
	return row, path, strings.Join(parts, ""), true
}

// patched are the files that a patch names, and whether it only creates one file.
func patched(patch string) (paths string, created bool) {
	var names []string
	made := 0
	for line := range strings.SplitSeq(unixEnds(patch), "\n") {
		for _, head := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(line, head); ok {
				names = append(names, strings.TrimSpace(path))
				if strings.Contains(head, "Add") {
					made++
				}
			}
		}
	}
	return strings.Join(names, ", "), made == 1 && len(names) == 1
}
