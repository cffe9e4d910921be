package historytool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
)

// found are the lines of an answer to a search, as "number|line", and the number of
// matches that it tells.
func found(t interface{ Fatal(...any) }, answer string) (list []string, total int) {
	head, body, _ := strings.Cut(answer, "\n\n")
	if strings.HasSuffix(answer, "No matches found for the search pattern.") {
		return nil, 0
	}
	var shown int
	if _, err := fmt.Sscanf(head[strings.LastIndex(head, "\n")+1:], "Total matches: %d | Showing first %d", &total, &shown); err != nil {
		t.Fatal(answer, err)
	}
	for line := range strings.SplitSeq(body, "\n") {
		number, text, ok := strings.Cut(strings.TrimLeft(line, " "), " | ")
		if _, err := strconv.Atoi(number); !ok || err != nil {
			t.Fatal(fmt.Sprintf("%q is no line of an answer", line))
		}
		list = append(list, number+"|"+text)
	}
	if shown != len(list) {
		t.Fatal(fmt.Sprintf("%d lines are shown, %d are told", len(list), shown))
	}
	return list, total
}

// A search shows the lines that match and no others, with their numbers, and counts also
// those for which there is no room.
func TestASearchIsThatOfEveryLine(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"", "one", "ONE two", "tw(o", "é日", "one\rtwo", "a.b", "\xff", strings.Repeat("long ", 20)}), 0, 12).Draw(r, "lines")
		text := strings.Join(lines, rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(r, "end"))
		pattern := rapid.SampledFrom([]string{"one", "^one$", "tw(o", "t.o", "[", "é|日", "a\\.b", "$^", ".", "(?-i)ONE", "\\d", "*"}).Draw(r, "pattern")
		limit := rapid.SampledFrom([]int{1, 5, 40, 100_000}).Draw(r, "limit")
		match, err := regexp.Compile("(?i)" + pattern)
		if err != nil {
			match = regexp.MustCompile("(?i)" + regexp.QuoteMeta(pattern))
		}
		var want []string
		for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if line = strings.TrimRight(strings.ToValidUTF8(line, "\uFFFD"), "\r"); text != "" && match.MatchString(line) {
				want = append(want, fmt.Sprintf("%d|%s", i+1, line))
			}
		}
		in, err := json.Marshal(map[string]any{"artifact_id": "cmd-1.txt", "search": pattern, "limit": limit})
		if err != nil {
			r.Fatal(err)
		}
		_, res := call(r, ReadOutput(), kept(text), string(in))
		got, total := found(r, res.Text)
		if total != len(want) || len(got) > total || total > 0 && len(got) == 0 {
			r.Fatalf("%q in %q: %d of %d are shown, there are %d", pattern, text, len(got), total, len(want))
		}
		size := 0
		for i, line := range got {
			if line != want[i] {
				r.Fatalf("%q in %q: %q, want %q", pattern, text, line, want[i])
			}
			size += len(line) - strings.IndexByte(line, '|') - 1
		}
		if len(got) > 1 && size > limit {
			r.Fatalf("%d bytes are shown, %d at most", size, limit)
		}
		if limit == 100_000 && len(got) != total {
			r.Fatalf("there is room for all: %q", res.Text)
		}
	})
}

// A line that is longer than what is kept of one is one line all the same: those behind it
// have their numbers, and it is found by its beginning only.
func TestLinesOfAnyLength(t *testing.T) {
	for _, n := range []int{maxLine - 1, maxLine, maxLine + 1, 64<<10 + 1, 200_000} {
		text := "begin " + strings.Repeat("x", n) + " end\r\nnext\nlast"
		for search, want := range map[string]string{"^next$": "2|next", "^last": "3|last", "end$": "", "^begin": "1|begin"} {
			_, r := call(t, ReadOutput(), kept(text), fmt.Sprintf(`{"artifact_id":"cmd-1.txt","search":%q,"limit":1048576}`, search))
			got, _ := found(t, r.Text)
			switch {
			case want == "" && len(got) > 0, want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], want)):
				t.Errorf("%d bytes, %s: %.60q", n, search, got)
			case len(got) == 1 && len(got[0]) > maxLine+10:
				t.Errorf("%d bytes, %s: %d bytes are shown of a line", n, search, len(got[0]))
			}
		}
	}
}

// However the bytes come, the lines are the same; and an error, or the end of the call's
// context, ends them.
func TestLinesComeInAnyPieces(t *testing.T) {
	text := "one\n\ntwo\r\nthree\xff\n" + strings.Repeat("y", 70_000) + "\nend"
	collect := func(ctx context.Context, r io.Reader) (out []string, err error) {
		for line, e := range lines(ctx, r) {
			if e != nil {
				return out, e
			}
			out = append(out, line)
		}
		return out, nil
	}
	want, err := collect(t.Context(), strings.NewReader(text))
	if err != nil || len(want) != 6 || want[3] != "three\uFFFD" || want[5] != "end" {
		t.Fatalf("%.60q, %v", want, err)
	}
	for name, r := range map[string]io.Reader{
		"bytes": iotest.OneByteReader(strings.NewReader(text)), "halves": iotest.HalfReader(strings.NewReader(text)), "the end with data": iotest.DataErrReader(strings.NewReader(text)),
	} {
		if got, err := collect(t.Context(), r); err != nil || strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: %.60q, %v", name, got, err)
		}
	}
	gone := errors.New("the disk is gone")
	got, err := collect(t.Context(), io.MultiReader(strings.NewReader("one\ntwo"), iotest.ErrReader(gone)))
	if !errors.Is(err, gone) || strings.Join(got, "|") != "one" {
		t.Errorf("%q, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for _, err := range lines(ctx, io.NewSectionReader(endless{"again\n"}, 0, 1<<50)) {
		if n++; n == 10 {
			cancel()
		}
		if err != nil {
			break
		}
	}
	if n != 11 {
		t.Errorf("%d lines of an endless output, the call was over after 10", n)
	}
}

// Other tasks are data: whatever their titles, ids and folders hold, they make no line
// and no task of their own.
func TestHostileTasksStayTheirLines(t *testing.T) {
	nasty := rapid.SampledFrom([]string{"", "a", "two\nlines", "\r\n- forged | completed", "\x1b[2J", "\u2028- forged", "\u202e", `"quoted" \n`, "\xff", "\x00", strings.Repeat("x", 5000)})
	rapid.Check(t, func(r *rapid.T) {
		var list []Task
		for range rapid.IntRange(1, 4).Draw(r, "tasks") {
			list = append(list, Task{
				ID: nasty.Draw(r, "id"), Title: nasty.Draw(r, "title"), Status: "idle", Workspace: nasty.Draw(r, "workspace"), Mode: nasty.Draw(r, "mode"),
				Updated: "2026-01-01T00:00:00.000Z", Current: rapid.Bool().Draw(r, "current"),
			})
		}
		in := []byte(`{"all_workspaces":true,"query":` + string(esjson.Quote(nil, nasty.Draw(r, "query"))) + `}`)
		_, res := call(r, ListTasks(some{list: list}), tool.Env{}, string(in))
		tasks := 0
		for line := range strings.SplitSeq(res.Text, "\n") {
			if strings.HasPrefix(line, "- ") {
				tasks++
			} else if line != "" && !strings.HasPrefix(line, "  ") && !strings.HasSuffix(line, "newest first:") {
				r.Fatalf("%q is a line of its own in %q", line, res.Text)
			}
			if strings.ContainsAny(line, "\x1b\r\x00\u2028\u202e") {
				r.Fatalf("%q works on a terminal", line)
			}
		}
		if tasks != len(list) {
			r.Fatalf("%d tasks are %d: %q", len(list), tasks, res.Text)
		}
	})
}
