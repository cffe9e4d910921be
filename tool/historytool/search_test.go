package historytool

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
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
