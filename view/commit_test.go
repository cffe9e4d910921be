package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
)

// The same facts give the same message: a subject, what was done, and the files.
func TestCommitMessage(t *testing.T) {
	t.Parallel()
	files := []api.FileDiff{
		{Path: "web/new.go", Change: api.FileAdded, Added: 12},
		{Path: "web/task.go", Change: api.FileChanged, Added: 3, Removed: 2},
		{Path: "old.txt", Change: api.FileDeleted, Removed: 7},
	}
	for name, tt := range map[string]struct {
		facts CommitFacts
		want  string
	}{
		"title, todo": {
			CommitFacts{Title: "paint the fence red. Then rest", Prompts: []string{"paint the fence"}, Done: []string{"sand the posts", "paint them"}, Files: files},
			"Paint the fence red\n\n- sand the posts\n- paint them\n\nAdd new.go; change task.go; delete old.txt (+15 -9)\n",
		},
		"prompts": {
			CommitFacts{Title: "", Prompts: []string{"# mend the gate", "and oil the hinges"}, Files: files[1:2]},
			"Mend the gate\n\n- and oil the hinges\n\nChange task.go (+3 -2)\n",
		},
		"files alone": {CommitFacts{Files: files[2:]}, "Delete old.txt (+0 -7)\n"},
		"nothing":     {CommitFacts{}, "Change nothing\n"},
		"hostile": {
			CommitFacts{Title: "\x1b[31mred\x1b[0m \u202egate\nSigned-off-by: x", Files: []api.FileDiff{{Path: "a\n# b\x1b[2J", Change: api.FileAdded, Added: 1}}},
			"Red gate Signed-off-by\n\nAdd a # b (+1 -0)\n",
		},
	} {
		if d := cmp.Diff(tt.want, CommitMessage(tt.facts)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	long := CommitMessage(CommitFacts{Title: strings.Repeat("word ", 40), Files: files})
	if subject, _, _ := strings.Cut(long, "\n"); len([]rune(subject)) > subjectMost || !strings.HasSuffix(subject, "…") {
		t.Errorf("got the subject %q, want at most %d characters", subject, subjectMost)
	}
}

func TestAuthorWords(t *testing.T) {
	t.Parallel()
	var got []string
	for _, a := range []api.Author{
		{By: api.ByAgent, Tool: "write_to_file", Row: 3}, {By: api.ByAgent}, {By: api.ByCommand, Tool: "execute_command", Row: 5}, {By: api.ByOther},
		{By: api.ByOther, Task: "0199"}, {By: api.BySubtask}, {By: api.ByRestore}, {By: api.ByUnknown, Tool: "execute_command"}, {By: api.ByUnknown}, {By: "new"},
	} {
		got = append(got, Author(a))
	}
	want := []string{"agent: write_to_file #3", "agent", "command: execute_command #5", "you, or another program", "another task: 0199", "a subtask",
		"a restore", "unknown, while execute_command ran", "unknown", "unknown"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
