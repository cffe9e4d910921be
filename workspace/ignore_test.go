package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// The rules are those of the file as it is, also when its times hide a change.
func TestRulesAreReadWhenTheyMayHaveChanged(t *testing.T) {
	w, root := open(t)
	name := filepath.Join(root, IgnoreFile)
	fixture.WriteFile(t, name, "*.key\n")
	first, err := w.Ignore()
	if err != nil || !first.Hides("a.key", false) {
		t.Fatalf("got %v %v, want no error and first.Hides(\"a.key\", false)", first, err)
	}
	// Changed at once, with the same size, and the time put back.
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	fixture.WriteFile(t, name, "*.kex\n")
	if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	second, err := w.Ignore()
	if err != nil || second.Hides("a.key", false) || !second.Hides("a.kex", false) {
		t.Errorf("old rules after a change: %v", err)
	}
	if again, _ := w.Ignore(); again != second {
		t.Error("equal text was parsed again")
	}
	fixture.WriteFile(t, name, "*.key\n# longer\n")
	if third, err := w.Ignore(); err != nil || !third.Hides("a.key", false) {
		t.Errorf("old rules after another change: %v", err)
	}
}

func TestRulesThatCannotBeReadCloseEverything(t *testing.T) {
	w, root := open(t)
	name := filepath.Join(root, IgnoreFile)
	fixture.WriteFile(t, name, "*.key\n")
	if _, err := w.Resolve("x"); err != nil {
		t.Fatal(err)
	}
	broken := map[string]func() error{
		"many alike":         func() error { fixture.WriteFile(t, name, strings.Repeat("*\n", maxAlike+1)); return nil },
		"a folder":           func() error { return os.Mkdir(name, 0o700) },
		"UTF-16":             func() error { fixture.WriteFile(t, name, "\xff\xfes\x00\n\x00"); return nil },
		"too large":          func() error { fixture.WriteFile(t, name, strings.Repeat("#\n", maxIgnore)); return nil },
		"a link to a folder": func() error { return os.Symlink(root, name) },
		"a link to itself":   func() error { return os.Symlink(name, name) },
	}
	for what, spoil := range broken {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Skip(err)
		}
		_, err := w.Resolve("x")
		if err == nil || !strings.Contains(err.Error(), IgnoreFile) || errors.Is(err, ErrPath) {
			t.Errorf("%s: got %v, want an error and strings.Contains(err.Error(), IgnoreFile) and not errors.Is(err, ErrPath)",
				what, err)
		}
		if _, err := w.BlockedWord("cat x"); err == nil {
			t.Errorf("%s: commands go through", what)
		}
		if _, err := w.Stat(t.Context(), "x"); err == nil {
			t.Errorf("%s: files are looked at", what)
		}
	}
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
	// A dangling link is no file, so there are no rules.
	if err := os.Symlink("nowhere", name); err != nil {
		t.Fatal(err)
	}
	if p, err := w.Resolve("a.key"); err != nil || p.Ignored {
		t.Errorf("a dangling link: %+v, %v", p, err)
	}
}

func TestClasses(t *testing.T) {
	tests := []struct{ rule, hides, shows string }{
		{"[abc]", "a b c", "d ab"},
		{"[!abc]", "d", "a b"},
		{"[^abc]", "d", "a"},
		{"[a-c]x", "ax cx", "dx -x"},
		{"[a-]", "a -", "b"},
		{"[-a]", "a -", "b"},
		{"[]a]", "] a", "b"},
		{"[!]a]", "b", "] a"},
		{`[\]]`, "]", `\`},
		{`[\-a]`, "- a", "b"},
		{"[[:digit:]]", "0 9", "a"},
		{"[[:alpha:][:digit:]_]", "a 5 _ é", "-"},
		{"[[:upper:]]", "A", "a 1"},
		{"[[:space:]]x", "\tx", "ax"},
		{"[[:xdigit:]]", "f 0 A", "g"},
		{"[[:punct:]]", "! ~ $", "a § \u00bf"},
		{"[[:alnum:]]", "a 5 é", "- _"},
		{"[[:lower:]]", "a é", "A 1"},
		{"[[:graph:]]", "a ! é", "\x01"},
		{"[[:print:]]", "a !", "\x01"},
		{"[[:cntrl:]]", "\x01 \x7f", "a"},
		{"x[[:blank:]]y", "x\ty", "xay"},
		{"[a-c-]", "a b - c", "d"},
		{"[é-ü]", "é ö", "e"},
		{"[[:nosuch:]]", "", "a : n"},
		{"[a", "", "a [a"},
		{"[", "", "["},
		{"[]", "", "] []"},
		{`[a\`, "", "a"},
	}
	for _, tt := range tests {
		ig := ParseIgnore(tt.rule+"\n", false)
		for _, name := range strings.Fields(strings.ReplaceAll(tt.hides, "\t", "\\t")) {
			if name = strings.ReplaceAll(name, "\\t", "\t"); !ig.Hides(name, false) {
				t.Errorf("%s does not hide %q", tt.rule, name)
			}
		}
		for _, name := range strings.Fields(tt.shows) {
			if ig.Hides(name, false) {
				t.Errorf("%s hides %q", tt.rule, name)
			}
		}
	}
	if ig := ParseIgnore("[[:upper:]]x\n[b-c]y", true); !ig.Hides("aX", false) || !ig.Hides("By", false) || ig.Hides("1x", false) {
		t.Error("letter case counts though it should not")
	}
}

// What a file hides does not depend on line ends, a byte order mark, remarks or
// blanks at the ends of lines.
func TestFormOfTheRulesFile(t *testing.T) {
	lines := []string{"*.key", "secret/", "!keep.key", "a b"}
	want := ParseIgnore(strings.Join(lines, "\n"), false)
	for _, text := range []string{
		"\ufeff" + strings.Join(lines, "\n"),
		strings.Join(lines, "\r\n") + "\r\n",
		strings.Join(lines, "  \n") + "\t\n",
		"# a remark\n\n" + strings.Join(lines, "\n\n# more\n"),
	} {
		got := ParseIgnore(text, false)
		for _, p := range []string{"x.key", "keep.key", "secret/x", "a b", "a", "b", "# a remark", "secret"} {
			if got.Hides(p, false) != want.Hides(p, false) {
				t.Errorf("%q: %s is hidden: %v", text, p, got.Hides(p, false))
			}
		}
	}
	if ig := ParseIgnore("\\#x\n\\!y\nblank\\ \n", false); !ig.Hides("#x", false) || !ig.Hides("!y", false) || !ig.Hides("blank ", false) {
		t.Error("escapes are not understood")
	}
	var none *Ignore
	if none.Hides("x", false) || none.Decide("x", true) != 0 || none.Any() {
		t.Error("no rules hide something")
	}
}

// Hostile patterns: a file of rules may come with a repository.
func TestMatchingIsNotExponential(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	long := strings.Repeat("a", 4000)
	deep := strings.TrimSuffix(strings.Repeat("a/", 300), "/")
	start := time.Now()
	for _, rule := range []string{strings.Repeat("*a", 50) + "b", strings.Repeat("**/a/", 50) + "b", strings.Repeat("[a-z]*", 60) + "Z", strings.Repeat("?*", 300) + "b"} {
		ig := ParseIgnore(rule+"\n/x/"+rule, false)
		ig.Hides(long, false)
		ig.Hides(deep, false)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}

// A long rule costs a deep path no more than its own length for each folder.
func TestALongRuleAndADeepPath(t *testing.T) {
	rules := ParseIgnore(strings.Repeat("*a*", 100_000)+"b", true)
	begun := time.Now()
	if rules.Hides(strings.Repeat("a/", 200)+"a", false) || time.Since(begun) > 20*time.Second {
		t.Errorf("got an answer after %s, want that nothing is hidden, within 20 s", time.Since(begun))
	}
}

// Rules that end in other names cost a path nothing: a file of many rules may come with a repository.
func TestManyRulesCostAPathLittleMoreThanFew(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	for _, form := range []string{"%05dx", "*%05d", "?[a-z]*.%05d", "/a/%05d/", "**/q/**/%05d"} {
		measure := func(count int) time.Duration {
			var text strings.Builder
			for i := range count {
				fmt.Fprintf(&text, form+"\n", i)
			}
			rules := ParseIgnore(text.String(), true)
			best := time.Hour
			for range 3 {
				begun := time.Now()
				for range 50 {
					if rules.Hides("a/q/source/index.txt", false) {
						t.Fatalf("%s: got a file that is hidden, want one that is not", form)
					}
				}
				best = min(best, time.Since(begun))
			}
			return best
		}
		if few, many := measure(20), measure(20_000); many > 100*few {
			t.Errorf("%s: got %s for 20,000 rules and %s for 20, want at most 100 times as much", form, many, few)
		}
	}
}

// The rule that decides is the last one that names a path, however rules end.
func TestTheLastRuleDecides(t *testing.T) {
	long := strings.Repeat("é", maxTail)
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.SampledFrom([]string{"ab", "aab", "b", "", "a/b", "b/ab", long + "b", "x" + long})
		form := rapid.SampledFrom([]string{"%s", "*%s", "a*%s", "?%s", "[ab]%s", "%s*", "**/%s", "/%s", "%s/", "a/**/%s", `\%s`, "%s/**"})
		lines := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) string {
			return rapid.SampledFrom([]string{"", "!"}).Draw(r, "again") + fmt.Sprintf(form.Draw(r, "form"), name.Draw(r, "name"))
		}), 1, 6).Draw(r, "lines")
		path, dir := name.Draw(r, "path"), rapid.Bool().Draw(r, "dir")
		want := 0
		for _, line := range lines {
			want = cmp.Or(ParseIgnore(line, true).Decide(path, dir), want)
		}
		if got := ParseIgnore(strings.Join(lines, "\n"), true).Decide(path, dir); got != want {
			r.Fatalf("%q of %q: got %d, want %d", path, lines, got, want)
		}
	})
}

// A line of shell is cut into words without losing any: a word that is there in
// plain or in quotes is found wherever it stands behind a program that shows files.
func TestBlockedWordInAnyPlace(t *testing.T) {
	w, root := open(t)
	fixture.WriteFile(t, filepath.Join(root, IgnoreFile), "a.key\n")
	rapid.Check(t, func(r *rapid.T) {
		before := rapid.SampledFrom([]string{"", "true; ", "x && ", "x || ", "(", "echo a.key | ", "x &", "x\n", "$(", "`", "cat ok; ", "A=1; "}).Draw(r, "before")
		program := rapid.SampledFrom([]string{"cat", "/bin/cat", "'cat'", `"head" -n 1`, "GREP x", "tail -f", "<"}).Draw(r, "program")
		word := rapid.SampledFrom([]string{"a.key", "'a.key'", `"a.key"`, `a.k"ey"`, "./a.key", "sub/../a.key", `a\.key`, "A.KEY"}).Draw(r, "word")
		after := rapid.SampledFrom([]string{"", " ok", ";", " | wc", ")", " >out", " 2>&1"}).Draw(r, "after")
		line := before + program + " " + word + after
		if got, err := w.BlockedWord(line); err != nil || got == "" {
			r.Fatalf("%q goes through: %v", line, err)
		}
		harmless := before + program + " ok.txt" + after
		if got, err := w.BlockedWord(harmless); err != nil || got != "" {
			r.Fatalf("%q is blocked for %q: %v", harmless, got, err)
		}
	})
}

func FuzzBlockedWord(f *testing.F) {
	f.Add("cat 'a.key")
	f.Add("<a\\\x00|&\xff`$(")
	f.Fuzz(func(t *testing.T, line string) {
		for _, words := range simpleCommands(line) {
			if len(words) == 0 {
				t.Errorf("%q has a command of no words", line)
			}
		}
	})
}

// Without regard to case a class holds a name's letters in either case, and what lies between its bounds.
func TestIgnoreClassesWithoutCase(t *testing.T) {
	for _, c := range []struct {
		rule, name string
		want       bool
	}{
		{"[A-z]x", "_x", true},
		{"[A-Z]x", "bX", true},
		{"[a-z]x", "BX", true},
		{"[!A-Z]x", "bx", false},
		{"[!a-z]x", "_x", true},
		{"[0-9]x", "ax", false},
		{"\\Äx", "äX", true},
		{"[[:upper:]]x", "bx", true},
	} {
		if got := ParseIgnore(c.rule, true).Hides(c.name, false); got != c.want {
			t.Errorf("%s hides %s: got %v, want %v", c.rule, c.name, got, c.want)
		}
	}
}
