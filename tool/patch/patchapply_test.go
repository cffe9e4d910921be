package patch

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// patchText applies the chunks of one section to a text.
func patchText(t *testing.T, old string, lines ...string) string {
	t.Helper()
	sections, bad := ParsePatch(patchOf(update("f", lines...)))
	if bad != nil {
		t.Fatal(bad)
	}
	got, fail, _ := ApplyChunks(context.Background(), old, sections[0].Chunks)
	if fail != nil {
		return "!" + fail.Reason("f")
	}
	return got
}

func TestWhatAPatchKeeps(t *testing.T) {
	for name, tt := range map[string]struct {
		old   string
		lines []string
		want  string
	}{
		"CRLF":                                {"a\r\nb\r\nc\r\n", []string{" a", "-b", "+B", "+B2"}, "a\r\nB\r\nB2\r\nc\r\n"},
		"CRLF in the patch":                   {"a\nb\nc\n", []string{" a\r", "-b\r", "+B\r"}, "a\nB\nc\n"},
		"CRLF in both":                        {"a\r\nb\r\n", []string{"@@\r", "-b\r", "+B\r"}, "a\r\nB\r\n"},
		"mixed line ends":                     {"a\r\nb\nc\r\nd\n", []string{" a", "-b", "+B", " c", "+C", " d", "+D"}, "a\r\nB\nc\r\nC\r\nd\nD\n"},
		"no last line end":                    {"a\nb", []string{"-b", "+B"}, "a\nB"},
		"no last line end, lines come behind": {"a\r\nb", []string{" b", "+c", "+d"}, "a\r\nb\r\nc\r\nd"},
		"no last line end, the last one goes": {"a\nb", []string{" a", "-b"}, "a"},
		"blank last line":                     {"a\n\n", []string{"-a", "+A"}, "A\n\n"},
		"blanks of lines that stay":           {"a  \n\tb\nc\n", []string{" a", " b", "-c", "+C"}, "a  \n\tb\nC\n"},
		"typography of lines that stay":       {"“a” – b\u00a0c\nx\n", []string{` "a" - b c`, "-x", "+y"}, "“a” – b\u00a0c\ny\n"},
		"a lone carriage return":              {"a\rb\nc\n", []string{" a\rb", "-c", "+C"}, "a\rb\nC\n"},
		"an empty file":                       {"", []string{"+a"}, "a\n"},
		"nothing is left":                     {"a\nb\n", []string{"-a", "-b"}, ""},
		"at the end":                          {"x\na\nx\n", []string{"-x", "+y", endOfFile}, "x\na\ny\n"},
		"the second of two":                   {"a\nx\nb\nx\n", []string{"@@ b", "-x", "+y"}, "a\nx\nb\ny\n"},
		"added behind its context":            {"f {\n}\ng {\n}\n", []string{"@@ f {", "+  1"}, "f {\n  1\n}\ng {\n}\n"},
		"added at the end":                    {"a\n", []string{"@@", "+b"}, "a\nb\n"},
		"two places":                          {"a\nb\nc\n", []string{"@@", "-a", "+1", "@@", "-c", "+3"}, "1\nb\n3\n"},
		"an @@ with a blank":                  {"a\nb\n", []string{"@@ ", "-a", "+1"}, "1\nb\n"},
		"a blank line at the end of a place":  {"a\nb\n", []string{"-a", "+1", ""}, "1\nb\n"},
		"a blank line that is not there":      {"a\nb\n", []string{" a", " ", "+x"}, "a\n\nx\nb\n"},
		"a blank line to go that is not":      {"a\nb\n", []string{" a", "-", "+x"}, "a\nx\nb\n"},
		"blank lines at both ends":            {"a\nb\n", []string{" a", " ", "+x", "+"}, "a\n\nx\nb\n"},
		"blank lines at both ends, one goes":  {"a\nb\n", []string{" a", "-", "+x", "+"}, "a\nx\nb\n"},
		"a blank line that is there":          {"a\n\nb\n", []string{" a", " ", "+x", "+"}, "a\n\nx\n\nb\n"},
		"exact before loose":                  {"x \nx\n", []string{"-x", "+y"}, "x \ny\n"},
		"added among lines that go later":     {"a\nb\n\n", []string{"@@", "+n", "@@", "-b", "-", "+c"}, "a\nc\nn\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := patchText(t, tt.old, tt.lines...); got != tt.want {
				t.Errorf("%q became %q, want %q", tt.old, got, tt.want)
			}
		})
	}
}

// What does not fit is told with the lines that were sought, and changes nothing.
func TestWhatDoesNotFit(t *testing.T) {
	for _, tt := range []struct {
		old   string
		lines []string
		want  string
	}{
		{"a\nb\n", []string{"-c", "+d"}, "!these lines were not found in f from the place of the change before it on:\nc\n"},
		{"a\nb\n", []string{"@@ func x", "-a", "+d"}, "!this context line was not found in f from the place of the change before it on:\nfunc x\n"},
		{"a\nb\n", []string{"@@", "-b", "+B", "@@", "-a", "+A"}, "!these lines were not found in f from the place of the change before it on:\na\n"},
		{"a\nb\n", []string{"-a", "-b", "+c", "@@", "-b", "+B", endOfFile}, "!these lines"},
		{"a\n", []string{"-a", "-b", "-c"}, "!these lines"},
		{"a\nb\nc\n", []string{"-b", "+B", endOfFile}, "!these lines"},
	} {
		if got := patchText(t, tt.old, tt.lines...); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%q with %q: %q, want %q", tt.old, tt.lines, got, tt.want)
		}
	}
}

func TestPatchesThatCannotBeRead(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "first line must be",
		"x\n" + endPatch:                         "first line must be",
		beginPatch:                               "last line must be",
		beginPatch + "\n*** Delete File":         "last line must be",
		patchOf("hello"):                         `line 2: "hello" does not begin a section`,
		patchOf("*** Add File: a", "+x", "y"):    `line 4: "y" does not begin a section`,
		patchOf("*** Update File: a"):            `line 2: the section for "a" changes nothing`,
		patchOf("*** Update File: a", "@@"):      "line 4: no lines are given",
		patchOf(update("a", "@@", "what")):       `line 4: "what" begins with none of`,
		patchOf(update("a", " x", "what", "+y")): `line 4: a line that begins with @@ is expected here, not "what"`,
		patchOf(update("a", "@@", endOfFile)):    "line 4: no lines are given",
		patchOf("*** Update File: a", "*** Move to: b", "*** End"): `line 2: the section for "a" changes nothing`,
	} {
		if sections, bad := ParsePatch(text); bad == nil || !strings.Contains(bad.Error(), want) {
			t.Errorf("%q: %v (%+v), want %q", text, bad, sections, want)
		}
	}
}

// A patch that is written for a change makes that change, wherever it is.
func TestAPatchMakesTheChangeItWasWrittenFor(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		// Every line occurs once, so that no place can be meant but the one.
		lines := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{2,6}`), 1, 20, rapid.ID[string]).Draw(r, "lines")
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(r, "line end")
		last := rapid.SampledFrom([]string{"", end}).Draw(r, "last line end")
		var patch, want []string
		around := rapid.IntRange(1, 3).Draw(r, "lines around")
		hole := around + 1 // lines since the last one that the patch tells of
		for i, l := range lines {
			change := rapid.SampledFrom([]string{"", "", "", "gone", "new", "more"}).Draw(r, "change")
			if change == "" {
				want = append(want, l)
				if hole < around {
					patch = append(patch, " "+l)
				}
				hole++
				continue
			}
			if hole >= around {
				patch = append(patch, "@@")
				for j := max(0, i-min(around, hole-around)); j < i; j++ {
					patch = append(patch, " "+lines[j])
				}
			}
			hole = 0
			switch change {
			case "gone":
				patch = append(patch, "-"+l)
			case "new":
				patch = append(patch, "-"+l, "+X"+l)
				want = append(want, "X"+l)
			case "more":
				patch = append(patch, " "+l, "+Y"+l)
				want = append(want, l, "Y"+l)
			}
		}
		if len(patch) == 0 {
			return
		}
		old := strings.Join(lines, end) + last
		text := strings.Join(want, end)
		if len(want) > 0 {
			text += last
		}
		sections, bad := ParsePatch(patchOf(update("f", patch...)))
		if bad != nil {
			r.Fatal(bad)
		}
		if len(lines) == 1 && last == "" {
			text = strings.ReplaceAll(text, "\r\n", "\n") // nothing in the file says otherwise
		}
		if got, fail, _ := ApplyChunks(context.Background(), old, sections[0].Chunks); fail != nil || got != text {
			r.Fatalf("%q became %q, want %q; %+v\n%s", old, got, text, fail, strings.Join(patch, "\n"))
		}
	})
}

// FuzzPatch: nothing that a model writes, for whatever a file holds, breaks more than
// the call; and lines that no chunk takes away are still there.
func FuzzPatch(f *testing.F) {
	f.Add("a\nb\n", patchOf(update("f", "@@ a", "-b", "+c")))
	f.Add("a\r\n\r\n", patchOf(update("f", "@@", "+n", "@@", "-a", "-", "+c", endOfFile)))
	f.Add("", "<<EOF\n"+patchOf("*** Add File: x", "+y")+"\nEOF")
	f.Add("x\ny\n\n", patchOf(update("f", " x", "", "@@ ", "-y", "", "")))
	f.Fuzz(func(t *testing.T, old, patch string) {
		sections, bad := ParsePatch(patch)
		if bad != nil {
			return
		}
		for _, s := range sections {
			got, fail, _ := ApplyChunks(context.Background(), old, s.Chunks)
			if fail != nil {
				continue
			}
			gone := 0
			for _, c := range s.Chunks {
				for _, l := range c.ops {
					if l.op == '-' {
						gone++
					}
				}
			}
			if !strings.HasSuffix(old, "\n") {
				continue // a blank line that comes last there looks like a line end
			}
			if before, after := len(cutLines(old)), len(cutLines(got)); after < before-gone {
				t.Errorf("%d lines became %d, and %d were to go: %q, %q", before, after, gone, old, got)
			}
			if got != "" && !strings.HasSuffix(got, "\n") {
				t.Errorf("the last line lost its end: %q, %q", old, got)
			}
		}
	})
}

// However large the file and the patch, a call ends when it is told to, and soon.
func TestALargePatchEnds(t *testing.T) {
	old := strings.Repeat("}\n", 200_000) + "x \n"
	var chunks []Chunk
	for range 200 {
		chunks = append(chunks, Chunk{ops: []patchLine{{' ', "} "}, {' ', "}"}}})
	}
	chunks = append(chunks, Chunk{ops: []patchLine{{'-', "x"}}})
	if got, fail, err := ApplyChunks(t.Context(), old, chunks); err != nil || fail != nil || got != strings.TrimSuffix(old, "x \n") {
		t.Errorf("%+v, %v, %d bytes", fail, err, len(got))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := ApplyChunks(ctx, old, chunks); err == nil {
		t.Error("it went on")
	}
}

// A search among lines that repeat takes time in proportion to them, not to their square.
func TestALongChunkOfRepeatedLinesEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	measure := func(n int) time.Duration {
		old := strings.Repeat("x\n", 5*n)
		ops := append(slices.Repeat([]patchLine{{' ', "x"}}, n), patchLine{'-', "nowhere"})
		best := time.Hour
		for range 3 {
			begun := time.Now()
			if _, fail, err := ApplyChunks(t.Context(), old, []Chunk{{ops: ops}}); fail == nil || err != nil {
				t.Fatalf("got %+v, %v, want lines that were not found", fail, err)
			}
			best = min(best, time.Since(begun))
		}
		return best
	}
	if short, long := measure(10_000), measure(80_000); long > 32*short {
		t.Errorf("got %s for 8 times as many lines as took %s, want at most 32 times as much", long, short)
	}
}

func TestPlacesOfLines(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		line := rapid.SampledFrom([]string{"a", "b"})
		lines, want := rapid.SliceOfN(line, 0, 20).Draw(r, "lines"), rapid.SliceOfN(line, 1, 6).Draw(r, "want")
		place := 0
		for place+len(want) <= len(lines) && !slices.Equal(lines[place:place+len(want)], want) {
			place++
		}
		if place+len(want) > len(lines) {
			place = -1
		}
		if got := indexOf(lines, want); got != place {
			r.Fatalf("%q in %q: got %d, want %d", want, lines, got, place)
		}
	})
}

// patchOf writes a patch around sections.
func patchOf(sections ...string) string {
	return beginPatch + "\n" + strings.Join(sections, "\n") + "\n" + endPatch
}

func update(path string, lines ...string) string {
	return "*** Update File: " + path + "\n" + strings.Join(lines, "\n")
}

// A replacement has the line ends of what it replaces, or of the file, and counts its places.
func TestReplacementsOfText(t *testing.T) {
	for name, tt := range map[string]struct {
		text      string
		r         Replacement
		want, why string
	}{
		"line feeds":                 {"a\nb\nc\n", Replacement{Old: "a\nb", New: "x\ny"}, "x\ny\nc\n", ""},
		"CRLF":                       {"a\r\nb\r\nc\r\n", Replacement{Old: "a\nb", New: "x\ny"}, "x\r\ny\r\nc\r\n", ""},
		"CRLF in the file alone":     {"a\r\nb\r\n", Replacement{Old: "a", New: "x\ny"}, "x\r\ny\r\nb\r\n", ""},
		"line feeds in a CRLF file":  {"a\nb\nc\r\nd\r\n", Replacement{Old: "a\nb", New: "x\ny"}, "x\ny\nc\r\nd\r\n", ""},
		"as many places as expected": {"a b a\n", Replacement{Old: "a", New: "x", Times: 2}, "x b x\n", ""},
		"one place too many":         {"a a a\n", Replacement{Old: "a", New: "x", Times: 2}, "", "occurs 3 times in f and not 2 times"},
		"other blanks":               {"if x {\n\ty  = 1\n}\n", Replacement{Old: "if x {\n  y = 1", New: "z {", Times: 1, Tolerant: true}, "z {\n}\n", ""},
		"other blanks, text around":  {"a\nif  x {\n\tb\n}\nif\tx {\n\tc\n}\nd\n", Replacement{Old: "if x {", New: "if y {", Times: 2, Tolerant: true}, "a\nif y {\n\tb\n}\nif y {\n\tc\n}\nd\n", ""},
		"one place too few":          {"a a\n", Replacement{Old: "a", New: "x", Times: 3}, "", "occurs 2 times in f and not 3 times"},
	} {
		got, why := tt.r.Apply(tt.text, "f")
		if got != tt.want || !strings.Contains(why, tt.why) || tt.why == "" && why != "" {
			t.Errorf("%s: got %q (%s), want %q (%s)", name, got, why, tt.want, tt.why)
		}
	}
}
