package chat

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestHistoryIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "chat_history")
	h, err := OpenHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two\nlines", "two\nlines", " a secret", "\tanother", "", "  ", "three \x00"} {
		if err := h.Add(text); err != nil {
			t.Fatal(err)
		}
	}
	if runtime.GOOS != "windows" {
		for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: got %v, %v, want no error and info.Mode().Perm() = %v", name, info.Mode(), err, want)
			}
		}
	}
	other, err := OpenHistory(path) // another chat adds to it, too
	if err != nil || other.Add("four") != nil {
		t.Fatal(err)
	}
	if err := h.Add("five"); err != nil {
		t.Fatal(err)
	}
	again, err := OpenHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range again.Len() {
		got = append(got, again.At(i))
	}
	if want := "one|two\nlines|three \x00|four|five"; strings.Join(got, "|") != want {
		t.Errorf("the history is %q", got)
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), "secret") {
		t.Errorf("the file: %q, %v", data, err)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chat_history")
	var all strings.Builder
	for i := range 2*historyEntries + 10 {
		fmt.Fprintf(&all, "%q\n", fmt.Sprint("line ", i))
	}
	all.WriteString("{broken\n" + strings.Repeat("\x00", 1<<20) + "\n\"the last\"\n")
	if err := os.WriteFile(path, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := OpenHistory(path)
	if err != nil || h.Len() != historyEntries || h.At(0) != "line 1011" || h.At(historyEntries-1) != "the last" {
		t.Fatalf("got %d entries from %q to %q, %v, want %d from \"line 1011\" to \"the last\"", h.Len(), h.At(0), h.At(h.Len()-1), err, historyEntries)
	}
	data, err := os.ReadFile(path)
	if n := strings.Count(string(data), "\n"); err != nil || n != historyEntries {
		t.Errorf("the file has %d lines, %v", n, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".chat-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if err := h.Add(strings.Repeat("x", historyEntry+1)); err != nil || h.Len() != historyEntries {
		t.Error("a line that is too long was kept")
	}
}

func TestHistoryThatCannotBeKept(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h, _ := OpenHistory(filepath.Join(dir, "file", "history"))
	if err := h.Add("one"); err == nil {
		t.Error("nobody is told")
	}
	if h.Len() != 1 || h.At(0) != "one" {
		t.Error("it is not there in memory either")
	}
}

func TestHistorySearch(t *testing.T) {
	h := &History{all: []string{"fix the Fence", "paint the shed", "fix the roof"}}
	for _, tt := range []struct {
		words  string
		before int
		want   int
	}{{"fix", 3, 2}, {"fix", 2, 0}, {"fix", 0, -1}, {"FENCE", 9, 0}, {"door", 3, -1}, {"", 3, 2}} {
		if got := h.Search(tt.words, tt.before); got != tt.want {
			t.Errorf("%q before %d: %d, want %d", tt.words, tt.before, got, tt.want)
		}
	}
}
