package roofmt

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/esjson"
)

// A message of a size that nobody writes is named and left out; the others are there, and
// nothing else is said to be damaged.
func TestAMessageThatIsTooLongIsLeftOut(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 64 MB, and has one goroutine")
	}
	row := `{"ts":1700000000000,"type":"say","say":"text","text":"`
	text := append([]byte("["+row+`first"},`+row), bytes.Repeat([]byte("x"), messageRoom)...)
	text = append(text, `"},`+row+`last"}]`...)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, UIName), text, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Read(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.UI.Len() != 2 || len(f.Losses) != 1 || f.Losses[0].Problem != "a message of 64 MB is left out: one may have 64" {
		t.Fatalf("%d messages, %+v", f.UI.Len(), f.Losses)
	}
	for i, want := range []string{"first", "last"} {
		if raw, err := f.UI.Raw(i); err != nil || string(raw) != row+want+`"}` {
			t.Errorf("message %d: %.100q, %v", i, raw, err)
		}
	}
}

// The longest that may be counts still; what is said of longer ones goes beside what else
// is wrong with a file.
func TestWhatIsSaidOfLongMessages(t *testing.T) {
	for _, c := range []struct {
		sizes []int64
		tail  esjson.Tail
		taken int
		said  string
	}{
		{[]int64{messageRoom}, esjson.Tail{Lead: 3}, 1, "3 foreign bytes before the list"},
		{[]int64{messageRoom + 1}, esjson.Tail{}, 0, "a message of 64 MB is left out: one may have 64"},
		{[]int64{70 << 20, 5, 500 << 20}, esjson.Tail{Lead: 3}, 1, "2 messages of up to 500 MB are left out: one may have 64; 3 foreign bytes before the list"},
		{[]int64{70 << 20}, esjson.Tail{End: esjson.EndTorn, Off: 9}, 0, "cut at byte 9; a message of 70 MB is left out: one may have 64"},
	} {
		s := scan{tail: c.tail}
		for _, n := range c.sizes {
			s.take(esjson.Element{Len: n})
		}
		if got := describe(s); len(s.spans) != c.taken || got != c.said {
			t.Errorf("%v: %d taken, %q", c.sizes, len(s.spans), got)
		}
	}
}

func TestListAt(t *testing.T) {
	for text, want := range map[string]int64{
		`{"m":[]}`:                     5,
		` {"a": {"m": [1]} , "m" : [`:  26,
		"\xEF\xBB\xBF {\"m\":[]}":      9,
		"\n\xEF\xBB\xBF\n{\"m\": [1]}": 11,
		``:                             -1,
		`[]`:                           -1,
		`{}`:                           -1,
		`{"m"`:                         -1,
		`{"m" []}`:                     -1,
		`{"m":1}`:                      -1,
		`{"a":[],"m`:                   -1,
		`{"a":`:                        -1,
		`{"a":1}`:                      -1,
		`{"a":[]]"m":[]}`:              -1,
		"{\"\\ud800\":1,\"m\" 5":       -1,
	} {
		if got := listAt([]byte(text), "m"); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// A list of more elements than a task can have is read up to the limit, so that a small file cannot take all memory.
func TestMessagesBeyondTheLimitAreLeftOut(t *testing.T) {
	for _, more := range []int{0, 3} {
		dir := t.TempDir()
		text := "[" + strings.Repeat("0,", messagesMost+more-1) + "0]"
		if err := os.WriteFile(filepath.Join(dir, UIName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Read(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.UI.Len() != messagesMost || f.Abridged != (more > 0) {
			t.Errorf("%d more: got %d messages, abridged: %t; want %d, %t", more, f.UI.Len(), f.Abridged, messagesMost, more > 0)
		}
		if want := "3 messages are left out: a file may have 262144"; more > 0 && !slices.ContainsFunc(f.Losses, func(l Loss) bool { return l.Problem == want }) {
			t.Errorf("%d more: got losses %+v, want %q", more, f.Losses, want)
		}
	}
}
