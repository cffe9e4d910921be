package patch

import (
	"fmt"
	"math"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/tool/linetext"
)

// Block is one SEARCH/REPLACE pair of a diff.
type Block struct {
	start           int // line hint, 1-based, 0 = none
	search, replace string
}

// Why a whole diff is refused.
const (
	unescapedMarker = "unescaped_marker"
	malformed       = "malformed"
	unterminated    = "unterminated"
	lineMarker      = "line_marker_in_replace"
	noBlocks        = "no_blocks"
)

// DiffError refuses a whole diff.
type DiffError struct {
	Kind   string
	Reason string
}

const (
	searchMark  = "<<<<<<< SEARCH"
	middleMark  = "======="
	replaceMark = ">>>>>>> REPLACE"
)

// BlockForm shows the model how a block of a diff is written.
const BlockForm = "Each block must be:\n" + searchMark +
	"\n:start_line:N\n-------\n(exact lines of the file)\n" + middleMark + "\n(new lines)\n" + replaceMark

// checkMarkers walks the lines of a diff and refuses markers out of order, so
// that a file's own conflict markers are never taken for the diff's.
func checkMarkers(diff string) *DiffError {
	lines := strings.Split(diff, "\n")
	var searches, middles, replaces int
	for _, l := range lines {
		switch m := linetext.Trim(l); {
		case isSearchMark(m):
			searches++
		case m == middleMark:
			middles++
		case m == replaceMark:
			replaces++
		}
	}
	// When the counts do not add up, a "=======" is a slip of the block itself
	// rather than a line of the file that ought to be escaped.
	middleKind := unescapedMarker
	if searches != replaces || middles < searches {
		middleKind = malformed
	}
	const (
		outside = iota
		inSearch
		inReplace
	)
	wants := [...]string{searchMark, middleMark, replaceMark}
	state := outside
	for i, l := range lines {
		m := linetext.Trim(l)
		refuse := func(kind string) *DiffError {
			reason := fmt.Sprintf("The diff is malformed: line %d is %q where %q was expected. %s", i+1, m, wants[state], BlockForm)
			if kind == unescapedMarker {
				reason = fmt.Sprintf("Line %d of the diff is the marker %q. If it belongs to the file's text, escape it with "+
					"a backslash: %q. Otherwise mend the order of the markers. %s", i+1, m, `\`+m, BlockForm)
			}
			return &DiffError{kind, reason}
		}
		if state == inReplace && (strings.HasPrefix(m, ":start_line:") || strings.HasPrefix(m, ":end_line:")) {
			return &DiffError{lineMarker, fmt.Sprintf("Line %d of the diff holds the line marker %q in a replacement. Line "+
				"markers belong right after %q; escape it with a backslash if it is text of the file.", i+1, m, searchMark)}
		}
		switch {
		case isSearchMark(m):
			if state != outside {
				return refuse(malformed)
			}
			state = inSearch
		case strings.HasPrefix(m, "<<<<<<<"):
			return refuse(unescapedMarker)
		case m == replaceMark:
			if state != inReplace {
				return refuse(malformed)
			}
			state = outside
		case strings.HasPrefix(m, ">>>>>>>"):
			return refuse(unescapedMarker)
		case m == middleMark:
			if state != inSearch {
				return refuse(middleKind)
			}
			state = inReplace
		}
	}
	if state != outside {
		return &DiffError{unterminated, fmt.Sprintf("The diff ends before %q. %s", wants[state], BlockForm)}
	}
	return nil
}

func isSearchMark(m string) bool { return m == searchMark || m == searchMark+">" }

// blank is \s of ECMAScript as a class.
const blank = `[\t\n\v\f\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}]`

// blockPattern cuts blocks out of a diff. Markers count only at the very start
// of a line. Blank lines right after a marker belong to the marker.
var blockPattern = regexp.MustCompile(`(?:^|\n)<<<<<<< SEARCH>?` + blank + `*\n` +
	`(?::start_line:` + blank + `*(\d+)` + blank + `*\n)?` +
	`(?::end_line:` + blank + `*\d+` + blank + `*\n)?` +
	`(?:-------` + blank + `*\n)?` +
	`(?:|((?s:.)*?)\n)=======` + blank + `*\n` +
	`(?:|((?s:.)*?)\n)>>>>>>> REPLACE(?:\n|$)`)

// ParseDiff gives the blocks by line hint, those without a hint first.
func ParseDiff(diff string) ([]Block, *DiffError) {
	if err := checkMarkers(diff); err != nil {
		return nil, err
	}
	var blocks []Block
	for pos := 0; pos < len(diff); {
		m := blockPattern.FindStringSubmatchIndex(diff[pos:])
		if m == nil {
			break
		}
		group := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return diff[pos+m[2*n] : pos+m[2*n+1]]
		}
		b := Block{search: group(2), replace: group(3)}
		if hint := group(1); hint != "" {
			n, err := strconv.Atoi(hint)
			if err != nil || n > math.MaxInt32 {
				n = math.MaxInt32
			}
			b.start = n
		}
		blocks = append(blocks, b)
		end := pos + m[1]
		if diff[end-1] == '\n' {
			end-- // the line end also opens the next block
		}
		pos = end
	}
	if len(blocks) == 0 {
		return nil, &DiffError{noBlocks, "The diff has no complete block, with every marker at the start of its line. " + BlockForm}
	}
	sort.SliceStable(blocks, func(i, j int) bool { return blocks[i].start < blocks[j].start })
	return blocks, nil
}

var escaped = []string{"<<<<<<<", "=======", ">>>>>>>", "-------", ":end_line:", ":start_line:"}

// unescape takes the backslash from escaped markers at line starts, where a
// line may also start after \r, U+2028 and U+2029.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	start := true
	for i := 0; i < len(s); {
		r, size := linetext.DecodeRune(s[i:])
		if start && r == '\\' {
			for _, m := range escaped {
				if strings.HasPrefix(s[i+1:], m) {
					i++
					r, size = linetext.DecodeRune(s[i:])
					break
				}
			}
		}
		b.WriteString(s[i : i+size])
		i += size
		start = r == '\n' || r == '\r' || r == 0x2028 || r == 0x2029
	}
	return b.String()
}

// numberPrefix returns the number and the rest of a line such as "12 | x".
func numberPrefix(line string) (int, string, bool) {
	s := linetext.TrimLeft(line)
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	rest := linetext.TrimLeft(s[n:])
	if n == 0 || len(rest) == len(s)-n || !strings.HasPrefix(rest, "|") || strings.HasPrefix(rest, "||") {
		return 0, "", false
	}
	num, err := strconv.Atoi(s[:n])
	if err != nil || num > math.MaxInt32 {
		num = math.MaxInt32
	}
	rest = rest[1:]
	if r, size := linetext.DecodeRune(rest); size > 0 && linetext.IsSpace(r) {
		rest = rest[size:]
	}
	return num, rest, true
}

func allNumbered(s string) bool {
	for _, l := range linetext.SplitLines(s) {
		if _, _, ok := numberPrefix(l); !ok {
			return false
		}
	}
	return true
}
