package tasks

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
)

// grown is a family with these depths.
func grown(tasks string) api.Family {
	var f api.Family
	for line := range strings.Lines(tasks) {
		name := strings.TrimSpace(line)
		f.Depths = append(f.Depths, len(line)-len(strings.TrimLeft(line, " ")))
		f.Tasks = append(f.Tasks, api.Summary{ID: name, Path: name})
	}
	return f
}

func TestTheDrawingOfATree(t *testing.T) {
	f := grown("a\n b\n  c\n   d\n  ?\n f\n  g\n")
	var got strings.Builder
	for i, task := range f.Tasks {
		got.WriteString(app.Lead(f.Depths, i) + task.ID + "\n")
	}
	want := "a\n├─ b\n│  ├─ c\n│  │  └─ d\n│  └─ ?\n└─ f\n   └─ g\n"
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}
