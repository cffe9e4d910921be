package mention

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/tool/linetext"
)

func TestScan(t *testing.T) {
	for text, want := range map[string]string{
		"@/a":                              "file /a",
		"see @/a.go, @/b.go; @/c!":         "file /a.go|file /b.go|file /c",
		"@/dir/":                           "file /dir/",
		`@/with\ a\ blank.txt.`:            `file /with\ a\ blank.txt`,
		`@/a\b`:                            "",
		`@/ends\`:                          "",
		`@/a\ @/b\x @/c\ @/d`:              `file /c\ @/d`,
		`@/a\\ @/b @c\ @/d`:                "file /b|file /d",
		"(@/a)":                            "",
		"mail me@example.org":              "",
		"@@/a":                             "",
		"@":                                "",
		"@/":                               "",
		"@/.":                              "file /.",
		"@/a?! @/b?":                       "file /a?|file /b",
		"@http://e.org/x?y=1#z, @ftp://h/": "address http://e.org/x?y=1#z|address ftp://h/",
		"@http://":                         "",
		"@problems. @problem @problems-x":  "problems problems",
		"@terminal\n@git-changes":          "terminal terminal|changes git-changes",
		"@0123456 @012345 @0123456g":       "commit 0123456",
		"@0123456789abcdef0123456789abcdef01234567":  "commit 0123456789abcdef0123456789abcdef01234567",
		"@0123456789abcdef0123456789abcdef012345678": "",
		"@ABCDEF0 @abcdef0:x":                        "",
		"a\u00a0@/nbsp\u3000@/wide":                  "file /nbsp|file /wide",
		"a\u0085@/next-line":                         "",
		"@/日本.txt。":                                  "file /日本.txt。",
	} {
		var got []string
		for _, m := range Scan(text) {
			got = append(got, string(m.Kind)+" "+m.Name)
		}
		if d := cmp.Diff(want, strings.Join(got, "|")); d != "" {
			t.Errorf("%q: got %s, want d = \"\"", text, d)
		}
	}
}

// A text of paths that have no end is scanned in time in proportion to its length.
func TestManyPathsWithoutAnEndAreScannedSoon(t *testing.T) {
	measure := func(count int) time.Duration {
		text := strings.Repeat(`@/a\ `, count) + `\x`
		best := time.Hour
		for range 3 {
			begun := time.Now()
			if got := Scan(text); len(got) > 0 {
				t.Fatalf("got %+v, want no mention", got)
			}
			best = min(best, time.Since(begun))
		}
		return best
	}
	if short, long := measure(1_000), measure(8_000); long > 60*short {
		t.Errorf("got %s for 8 times as many paths as took %s, want at most 60 times as much", long, short)
	}
}

func TestAPathLosesItsEscapes(t *testing.T) {
	m := Scan(`look at @/my\ dir/a\ b.txt and`)[0]
	if m.Path != "my dir/a b.txt" {
		t.Errorf("got %+v", m)
	}
	if m := Scan(`@/my\ dir/`)[0]; m.Path != "my dir/" {
		t.Errorf("got %+v", m)
	}
}

func TestCommands(t *testing.T) {
	for text, want := range map[string]string{
		"/a": "a", "/a b": "a", " /a\t/b\n/c": "a b c", "x/a": "", "/a/b": "", "/a, /b.": "b.", "/": "", "//a": "", "/é": "", "/a-b_c.d": "a-b_c.d", "\u00a0/a": "a", "@/a": "",
	} {
		var got []string
		for _, c := range Commands(text) {
			if text[c.At:c.End] != "/"+c.Name {
				t.Errorf("%q: got %+v, want text[c.At:c.End] = \"/\"+c.Name", text, c)
			}
			got = append(got, c.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// The grammar as one pattern, for an engine that can look behind: what it finds must
// be what the scanner finds.
var (
	mentionPattern = regexp2.MustCompile(`(?<=^|\s)(?<!\\)@((?:\/|\w+:\/\/)(?:[^\s\\]|\\ )+?|[a-f0-9]{7,40}\b|problems\b|git-changes\b|terminal\b)(?=[.,;:!?]?(?=\s|$))`, regexp2.ECMAScript)
	commandPattern = regexp2.MustCompile(`(?:^|\s)\/([a-zA-Z0-9_.-]+)(?=\s|$)`, regexp2.ECMAScript)
)

func matches(t interface{ Fatal(...any) }, p *regexp2.Regexp, text string) []string {
	var out []string
	m, err := p.FindStringMatch(text)
	for ; m != nil && err == nil; m, err = p.FindNextMatch(m) {
		out = append(out, m.GroupByNumber(1).String())
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestScannersFollowTheGrammar(t *testing.T) {
	parts := []string{
		"@", "/", "a", "b.go", " ", "\n", "\t", `\`, `\ `, ".", ",", "?", "://", "http", "problems", "git-changes", "terminal", "abcdef0", "0123456789", "-", "_", "é", "\u00a0", "\ufeff", "😀", "x",
	}
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 14).Draw(r, "parts"), "")
		var mentions, commands []string
		for _, m := range Scan(text) {
			mentions = append(mentions, m.Name)
		}
		for _, c := range Commands(text) {
			commands = append(commands, c.Name)
		}
		if d := cmp.Diff(matches(r, mentionPattern, text), mentions); d != "" {
			r.Fatalf("mentions of %q: %s", text, d)
		}
		if d := cmp.Diff(matches(r, commandPattern, text), commands); d != "" {
			r.Fatalf("commands of %q: %s", text, d)
		}
	})
}

func FuzzScan(f *testing.F) {
	f.Add(`a @/b\ c, @http://x @abcdef1 /d`)
	f.Add("\xff@/\xff \xff/a")
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		for _, m := range Scan(text) {
			if m.At < end || text[m.At] != '@' || text[m.At+1:m.End] != m.Name || m.Name == "" {
				t.Fatalf("%q: %+v behind %d", text, m, end)
			}
			if r, _ := utf8.DecodeLastRuneInString(text[:m.At]); m.At > 0 && !linetext.IsSpace(r) {
				t.Fatalf("%q: %+v begins inside a word", text, m)
			}
			end = m.End
		}
	})
}

func TestALongTextIsScannedInNoTime(t *testing.T) {
	for _, part := range []string{"@", "@/", "@a://", "/", "@abcdef0", `@/\ `, " @/a", "@/a."} {
		text := strings.Repeat(part, 200_000/len(part))
		if n := len(Scan(text)) + len(Commands(text)); n > len(text) {
			t.Errorf("%q: got %d, want n <= len(text)", part, n)
		}
	}
}

func ExampleScan() {
	for _, m := range Scan(`compare @/a.go with @0f3c9ab, and see @https://example.org.`) {
		fmt.Println(m.Kind, m.Name)
	}
	// Output:
	// file /a.go
	// commit 0f3c9ab
	// address https://example.org
}
