package picker

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/cli/term"
)

// question is the question on the last line. On a narrow terminal it gets shorter: the keys that answer it are never
// cut off.
func (m *Model) question() string {
	a := &m.act
	switch a.ask {
	case askDelete:
		return m.fitted(
			fmt.Sprintf("Delete %q? It goes to the trash.  y yes · n no", name(a.of)),
			fmt.Sprintf("Delete %q?  y yes · n no", name(a.of)),
			"Delete it?  y yes · n no", "Delete it?  y · n", "Delete?  y · n")
	case askForm:
		var keys, names []string
		for _, f := range Forms {
			keys, names = append(keys, f.Key), append(names, f.Key+" "+f.Name)
		}
		return m.fitted(
			"Export as "+strings.Join(names, " · ")+" · esc no",
			strings.Join(names, " · ")+" · esc no",
			"Export  "+strings.Join(keys, " ")+" · esc no",
			strings.Join(keys, " ")+" · esc")
	case askImport:
		return m.fitted(
			"Import verified copies of "+term.Plural(a.foreign, "task")+" of other tools into Roost?  y yes · n no (asked once)",
			"Import copies of "+term.Plural(a.foreign, "task")+"?  y yes · n no", "Import copies?  y yes · n no",
			"Import?  y yes · n no", "Import?  y · n")
	}
	return ""
}

// fitted is the first of several spellings that has room, else the last.
func (m *Model) fitted(spellings ...string) string {
	for _, s := range spellings {
		if width(s) <= m.width {
			return s
		}
	}
	return spellings[len(spellings)-1]
}

// said is the line that shows the present action or question, "" when there is none.
func (m *Model) said() string {
	a := &m.act
	switch {
	case a.ask == askDelete, a.ask == askForm:
		return m.question()
	case a.doing != "":
		text := a.doing
		if a.progress != nil {
			if more := a.progress.read(); more != "" {
				text += ": " + more
			}
		}
		return text + " ...  esc stops it"
	case a.note != "":
		return a.note
	case a.ask == askImport:
		return m.question()
	}
	return ""
}
