package complete

import (
	"slices"
	"testing"

	"github.com/roost-dev/roost/api"
)

func TestFuzzy(t *testing.T) {
	t.Parallel()
	tests := []struct {
		begun string
		words []string // the nearest first
		not   []string
	}{
		{"mo", []string{"mode", "model", "remote"}, []string{"om", "m"}},
		{"md", []string{"mode"}, []string{"dm"}},
		{"rt", []string{"retry", "restore"}, []string{"tr"}},
		{"chat/ed", []string{"cli/chat/editor.go", "cli/chat/keys/ed.go"}, []string{"chat.go"}},
		{"ct", []string{"cli_tasks", "cat"}, nil},
		{"", []string{"a"}, nil},
		{"MAIN", []string{"main.go"}, nil},
		{"ü", []string{"über"}, []string{"uber"}},
	}
	for _, tt := range tests {
		var list []api.Completion
		for _, w := range slices.Backward(tt.words) {
			list = append(list, api.Completion{Text: w})
		}
		for _, w := range tt.not {
			list = append(list, api.Completion{Text: w})
		}
		var got []string
		for _, w := range Rank(list, tt.begun, false) {
			got = append(got, w.Text)
		}
		if tt.begun == "ct" {
			slices.Sort(got)
			slices.Sort(tt.words)
		}
		if !slices.Equal(got, tt.words) {
			t.Errorf("%q: got %q, want %q", tt.begun, got, tt.words)
		}
	}
}

// What is not harmless for a terminal is not offered.
func TestRankedIsHarmless(t *testing.T) {
	t.Parallel()
	if got := Rank([]api.Completion{{Text: "a\x1b[2J"}, {Text: "a\nb"}, {Text: "ab"}}, "a", false); len(got) != 1 || got[0].Text != "ab" {
		t.Errorf("got %q", got)
	}
}
