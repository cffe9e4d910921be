package service

import (
	"testing"

	"github.com/roost-dev/roost/api"
)

// B-12: an answer is a suggestion's words, its number, or words of one's own.
func TestOlderAnswersSelect(t *testing.T) {
	choices := []api.OlderChoice{{Answer: "two files"}, {Answer: "Red"}, {Answer: "1"}}
	for text, want := range map[string]int{
		"two files": 1, "red": 2, "Red": 2, "2": 2, "1": 3, "3": 3, "0": 0, "4": 0, "-1": 0, "02": 0, "+2": 0,
		"2 files": 0, "something else": 0, "2.0": 0, "２": 0,
	} {
		if got := chosen(text, choices); got != want {
			t.Errorf("%q selects %d, want %d", text, got, want)
		}
	}
}
