package patch

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/tool/linetext"
)

// TestVectorsApplyDiff compares with Roo's own result. By choice: a block without a line
// that fits at several places fails, and the result is Roo's without that block; blank lines
// of a replacement stay blank, and the blanks at the ends of its lines stay.
func TestVectorsApplyDiff(t *testing.T) {
	conformance.Run(t, "apply_diff", func(t *testing.T, c conformance.Case) (choice bool) {
		file, diff := c.Input.Str("file"), c.Input.Str("diff")
		got, bad, err := ApplyDiff(context.Background(), file, diff, c.Input.Float("threshold"))
		if err != nil {
			t.Fatal(err)
		}
		rejected := ""
		if bad != nil {
			rejected = bad.Kind
		}
		if want := c.Want.Str("rejected"); rejected != want {
			t.Fatalf("rejected %q, wanted %q", rejected, want)
		}
		if rejected != "" {
			return false
		}
		var reasons []string
		for _, f := range got.Failures {
			reasons = append(reasons, f.Reason)
		}
		blocks, wantReasons := ownBlocks(diff), c.Want.Get("fail_reasons").Strings()
		applied := len(blocks) - len(wantReasons)
		if (applied > 0) != c.Want.Bool("success", false) {
			t.Fatalf("the test takes the diff for %d blocks; Roo failed %d", len(blocks), len(wantReasons))
		}
		contents := []string{c.Want.Str("content")}
		for _, b := range blocks {
			if places := b.places(file); len(places) > 1 {
				applied--
				wantReasons = append(wantReasons, failAmbiguous)
				contents = b.undone(contents, file, places)
				choice = true
			}
		}
		if choice { // the order is that of work
			slices.Sort(reasons)
			slices.Sort(wantReasons)
		}
		if got.Applied != applied || !cmp.Equal(reasons, wantReasons) {
			t.Errorf("applied %d, wanted %d; reasons %v, wanted %v", got.Applied, applied, reasons, wantReasons)
		}
		if applied == 0 {
			contents = []string{""}
		}
		if !slices.ContainsFunc(contents, func(want string) bool { return sameButBlanks(got.Content, want, file, blocks) }) {
			t.Errorf("%d contents are wanted; Roo's differs: %s", len(contents), cmp.Diff(c.Want.Str("content"), got.Content))
		}
		return choice || got.Content != c.Want.Str("content")
	})
}

// ownBlock is a block of a diff as its lines say.
type ownBlock struct {
	hint            bool
	search, replace []string
}

var numberAndBar = regexp.MustCompile(`^\s*\d+\s+\|(\s|$)`)

func ownBlocks(diff string) (all []ownBlock) {
	var b ownBlock
	part := 0 // 1 in front of the search lines, 2 in them, 3 in the replacement
	for _, l := range strings.Split(diff, "\n") {
		bare := strings.TrimRight(l, " \t\r")
		switch {
		case part == 0 && strings.HasPrefix(bare, "<<<<<<< SEARCH"):
			b, part = ownBlock{}, 1
			continue
		case part == 1 && strings.HasPrefix(bare, ":start_line:"):
			b.hint = strings.TrimSpace(bare[12:]) != "0"
			continue
		case part == 1 && strings.HasPrefix(bare, ":end_line:"):
			continue
		case strings.TrimSpace(bare) == "" && (part < 3 && len(b.search) == 0 || part == 3 && len(b.replace) == 0):
			continue // it belongs to the marker
		case part == 1 && bare == "-------":
			part = 2
			continue
		case (part == 1 || part == 2) && bare == "=======":
			part = 3
			continue
		case part == 3 && bare == ">>>>>>> REPLACE":
			if numbered := func(l string) bool { return numberAndBar.MatchString(l) }; len(b.search) > 0 &&
				!slices.ContainsFunc(slices.Concat(b.search, b.replace), func(l string) bool { return !numbered(l) }) {
				for _, lines := range [][]string{b.search, b.replace} {
					for i := range lines {
						lines[i] = numberAndBar.ReplaceAllString(lines[i], "")
					}
				}
				b.hint = true
			}
			all, part = append(all, b), 0
			continue
		}
		if strings.HasPrefix(l, `\`) && slices.ContainsFunc(escaped, func(m string) bool { return strings.HasPrefix(l[1:], m) }) {
			l = l[1:]
		}
		switch {
		case part == 1 || part == 2:
			b.search, part = append(b.search, l), 2
		case part == 3:
			b.replace = append(b.replace, l)
		}
	}
	return all
}

// places are those of the file, as lines, that the block means equally well: equal ones,
// else those equal but for blanks and typography. A block with a line means that one.
func (b ownBlock) places(file string) (fit [][]string) {
	if b.hint || strings.Join(b.search, "") == "" || slices.Equal(b.search, b.replace) {
		return nil
	}
	plain := func(lines []string) string {
		return strings.Join(strings.Fields(linetext.PlainTypography.Replace(strings.Join(lines, "\n"))), " ")
	}
	var exact [][]string
	lines := strings.Split(strings.ReplaceAll(file, "\r\n", "\n"), "\n")
	for i := 0; i+len(b.search) <= len(lines); i++ {
		at := lines[i : i+len(b.search)]
		if slices.Equal(at, b.search) {
			exact = append(exact, at)
		}
		if plain(at) == plain(b.search) {
			fit = append(fit, at)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return fit
}

// undone gives results without what the block did to one of its places.
func (b ownBlock) undone(contents []string, file string, places [][]string) (all []string) {
	end := "\n"
	if strings.Contains(file, "\r\n") {
		end = "\r\n"
	}
	for _, text := range contents {
		lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
		for i := 0; i+len(b.replace) <= len(lines); i++ {
			if !sameTrimmed(lines[i:i+len(b.replace)], b.replace) {
				continue
			}
			for _, old := range places {
				all = append(all, strings.Join(slices.Concat(lines[:i], old, lines[i+len(b.replace):]), end))
			}
		}
	}
	return all
}

func sameTrimmed(a, b []string) bool {
	return slices.EqualFunc(a, b, func(x, y string) bool { return strings.TrimSpace(x) == strings.TrimSpace(y) })
}

// sameButBlanks reports whether got is Roo's result with the blanks at the ends of
// replacement lines as the blocks have them. Where the file holds the same lines, they
// may be those of the file.
func sameButBlanks(got, roos, file string, blocks []ownBlock) bool {
	split := func(s string) []string { return strings.Split(s, "\n") }
	lines, wants := split(got), split(roos)
	if len(lines) != len(wants) {
		return false
	}
	may := make([][]string, len(wants))
	for _, b := range blocks {
		n := len(b.replace)
		for i := 0; n > 0 && i+n <= len(wants); i++ {
			if !sameTrimmed(wants[i:i+n], b.replace) {
				continue
			}
			inFile := false
			for k, old := 0, split(file); k+n <= len(old); k++ {
				inFile = inFile || sameTrimmed(old[k:k+n], b.replace)
			}
			for k, l := range b.replace {
				roo := strings.TrimSuffix(wants[i+k], "\r")
				own := strings.TrimRight(roo, " \t") + l[len(strings.TrimRight(l, " \t")):]
				if strings.TrimSpace(l) == "" {
					own = ""
				}
				if may[i+k] = append(may[i+k], own+wants[i+k][len(roo):]); inFile {
					may[i+k] = append(may[i+k], wants[i+k])
				}
			}
		}
	}
	// Of a replacement that a later block has changed, a blank line stands by its neighbour.
	for _, b := range blocks {
		for k := 1; k < len(b.replace); k++ {
			for i := 1; i < len(wants); i++ {
				if len(may[i]) == 0 && strings.TrimSpace(b.replace[k]) == "" && sameTrimmed(wants[i-1:i+1], b.replace[k-1:k+1]) {
					may[i] = []string{wants[i], ""}
				}
			}
		}
	}
	for i, l := range lines {
		if len(may[i]) == 0 && l != wants[i] || len(may[i]) > 0 && !slices.Contains(may[i], l) {
			return false
		}
	}
	return true
}
