package view

import "testing"

func TestSpoken(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ body, want string }{
		"a change that went well":        {`{"path":"a.txt","operation":"created","notice":"The file is written."}`, ""},
		"what else it says stays":        {`{"path":"a.txt","operation":"modified","problems":"a.txt:1: oops","notice":"x"}`, "problems: a.txt:1: oops"},
		"an object of another tool":      {`{"path":"a.txt"}`, `{"path":"a.txt"}`},
		"a command":                      {"Command executed in terminal within working directory '/w'. Exit code: 1\n" + commandHint + "\nOutput:\nhello\n", "hello"},
		"a command that printed nothing": {"Command executed in terminal within working directory '/w'. Exit code: 0\n", ""},
		"output that repeats the advice": {"Command executed in terminal within working directory '/w'. Exit code: 0\nOutput:\na\nOutput:\nb", "a\nOutput:\nb"},
		"other text":                     {"File: a.txt\n1 | x", "File: a.txt\n1 | x"},
	} {
		if got := Spoken(Item{Body: tt.body}).Body; got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// The head of a result is no line of the file.
func TestResultLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tool, text string
		want       int
	}{
		{"read_file", "File: main.go\n1 | package main\n2 | \n3 | func main() {\n4 | }\n5 | \n", 4},
		{"read_file", "File: main.go\n 9 | a | b\n10 | c", 2},
		{"read_file", "the file is empty", 1},
		{"search_files", "a\nb\nc\n", 3},
		{"attempt_completion", "a\nb\nc", 0},
	} {
		if got := ResultLines(tt.tool, tt.text); got != tt.want {
			t.Errorf("%s %q: got %d, want %d", tt.tool, tt.text, got, tt.want)
		}
	}
}
