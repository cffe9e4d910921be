package cli

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
)

// grown is a family with these depths.
func grown(tasks string) family {
	var f family
	for line := range strings.Lines(tasks) {
		name := strings.TrimSpace(line)
		f.depths = append(f.depths, len(line)-len(strings.TrimLeft(line, " ")))
		f.tasks = append(f.tasks, api.Summary{ID: name, Path: name})
	}
	return f
}

func TestTheDrawingOfATree(t *testing.T) {
	f := grown("a\n b\n  c\n   d\n  ?\n f\n  g\n")
	var got strings.Builder
	for i, task := range f.tasks {
		got.WriteString(f.lead(i) + task.ID + "\n")
	}
	want := "a\n├─ b\n│  ├─ c\n│  │  └─ d\n│  └─ ?\n└─ f\n   └─ g\n"
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}
