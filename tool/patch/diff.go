package patch

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/tool/linetext"
	"github.com/roost-dev/roost/workspace/terminal"
)

// The reasons why a block fails.
const (
	failIdentical = "identical"
	failEmpty     = "empty_search"
	failNoMatch   = "no_match"
	failAmbiguous = "ambiguous"
)

// margin is the number of lines before and after its line hint in which a block is searched.
const margin = 40

// workBudget bounds the search for the nearest texts to the blocks of a diff that have no match, in words of distance
// tables. The search only serves the error messages.
const workBudget = 128 << 20

// BlockFailure is a block that was not applied: its reason, and a message for the model.
type BlockFailure struct {
	Reason  string
	Message string
}

// DiffResult is a text after a diff. Content is empty when no block was applied.
type DiffResult struct {
	Content  string
	Applied  int
	Failures []BlockFailure // in the order of work
}

// ApplyDiff changes a text by SEARCH/REPLACE blocks. threshold is the similarity that a place must have; 1 means
// equal except for blanks and typography. The *DiffError refuses the diff as a whole; the other error is the
// context's.
//
// Where it differs from Roo: an empty replacement line stays empty, the blanks at
// the end of replacement lines stay, among equally similar places one that
// is equal byte for byte goes first, and without a line hint several equal places
// are a failure instead of a pick by their distance from the middle of the file;
// in a file with both kinds of line ends each line keeps its own, and new lines
// get that of the first one they replace.
func ApplyDiff(ctx context.Context, text, diff string, threshold float64) (DiffResult, *DiffError, error) {
	blocks, bad := ParseDiff(diff)
	if bad != nil {
		return DiffResult{}, bad, nil
	}
	res := DiffResult{}
	d := newDocument(linetext.SplitLines(text))
	d.ends = lineEnds(text)
	if threshold == Exact {
		d.budget = workBudget
	}
	for _, b := range blocks {
		fail, err := d.apply(ctx, b, threshold)
		if err != nil {
			return DiffResult{}, nil, err
		}
		if fail != nil {
			res.Failures = append(res.Failures, *fail)
			continue
		}
		res.Applied++
	}
	if res.Applied > 0 {
		res.Content = d.text()
	}
	return res, nil, nil
}

// document is the text while it is changed, together with its normal form.
type document struct {
	lines  []string
	normal []uint16 // the lines in their normal form, each with a blank after it, without those that are blank
	begins []int    // of each line in normal, and the end of the last one
	ends   []string // of each line: "\n", "\r\n", "" for the last; nil for a document that is only searched
	moves  []move   // of the lines below each block that was applied, in the order of work
	budget int64    // what is left for similarityAt
}

// move is the number of lines that a block adds at a line.
type move struct{ at, by int }

func newDocument(lines []string) *document {
	d := &document{lines: lines, begins: make([]int, 1, len(lines)+1), budget: math.MaxInt64}
	for _, l := range lines {
		if l = linetext.NormalLine(l); l != "" {
			d.normal = append(d.normal, terminal.UTF16(l+" ")...)
		}
		d.begins = append(d.begins, len(d.normal))
	}
	return d
}

func (d *document) apply(ctx context.Context, b Block, threshold float64) (_ *BlockFailure, err error) {
	start := b.start
	for _, m := range d.moves {
		if start > m.at {
			start = max(start+m.by, 1)
		}
	}
	search, replace := unescape(b.search), unescape(b.replace)
	// Numbers that are in the file itself, as in a table, are no line numbers.
	if allNumbered(search) && (allNumbered(replace) || linetext.Trim(replace) == "") && !d.holds(linetext.SplitLines(search)) {
		if start == 0 {
			start = bounded(numberedLine().FindStringSubmatch(linetext.SplitLines(search)[0])[1])
		}
		search, replace = terminal.StripNumbers(search, false), terminal.StripNumbers(replace, false)
	}
	if search == replace {
		return &BlockFailure{failIdentical, "The search and replacement parts are identical, so nothing would change."}, nil
	}
	if search == "" {
		return &BlockFailure{failEmpty, "The search part is empty. To insert, search for a neighbouring line and repeat it " +
			"in the replacement."}, nil
	}
	searchLines := linetext.SplitLines(search)
	replaceLines := linesOf(replace)

	lo, hi := 0, len(d.lines)
	at, score, ties := -1, 0.0, 0
	if start != 0 {
		if i := start - 1; i >= 0 && i < len(d.lines) {
			if s := d.similarityAt(i, newNeedle(searchLines), 0); s >= threshold {
				at, score = i, s
			}
		}
		if at < 0 {
			lo = max(0, start-(margin+1))
			hi = min(len(d.lines), start+len(searchLines)+margin)
		}
	}
	if at < 0 {
		if at, score, ties, err = d.find(ctx, searchLines, start, lo, hi); err != nil {
			return nil, err
		}
	}
	if at < 0 || score < threshold {
		bare := terminal.StripNumbers(search, true)
		bareLines := linesOf(bare)
		bareAt, bareScore := -1, 0.0
		if bare != search && len(bareLines) > 0 {
			if bareAt, bareScore, ties, err = d.find(ctx, bareLines, start, lo, hi); err != nil {
				return nil, err
			}
		}
		if bareAt < 0 || bareScore < threshold {
			return d.noMatch(start, searchLines, at, score, threshold), nil
		}
		at, searchLines, replaceLines = bareAt, bareLines, linesOf(terminal.StripNumbers(replace, true))
	}
	if start == 0 && ties > 1 {
		return &BlockFailure{failAmbiguous, fmt.Sprintf("The search part fits at %d places. Add :start_line: with the line "+
			"of the one that is meant, or more of the lines around it.\n\nSearch part:\n%s", ties, search)}, nil
	}
	n := min(len(searchLines), len(d.lines)-at)
	fresh := reindent(replaceLines, indentOf(d.lines[at]), len(indentOf(searchLines[0])))
	d.splice(at, n, fresh)
	return nil, nil
}

func linesOf(s string) []string {
	if s == "" {
		return nil
	}
	return linetext.SplitLines(s)
}

// lineEnds returns the end of each line that SplitLines returns.
func lineEnds(text string) (ends []string) {
	for l := range strings.SplitAfterSeq(text, "\n") {
		ends = append(ends, cutEnd(l).end)
	}
	return ends
}

func (d *document) text() string {
	var b strings.Builder
	for i, l := range d.lines {
		b.WriteString(l)
		b.WriteString(d.ends[i])
	}
	return b.String()
}

// splice replaces n lines by the lines fresh.
func (d *document) splice(at, n int, fresh []string) {
	end := cmp.Or(d.ends[at], d.ends[max(at-1, 0)], "\n")
	ends := slices.Concat(d.ends[:at], slices.Repeat([]string{end}, len(fresh)), d.ends[at+n:])
	if len(ends) > 0 {
		ends[len(ends)-1] = ""
	}
	f := newDocument(fresh)
	from, to := d.begins[at], d.begins[at+n]
	d.normal = slices.Concat(d.normal[:from], f.normal, d.normal[to:])
	shift := func(begins []int, by int) []int { return api.Each(begins, func(i int) int { return i + by }) }
	d.begins = slices.Concat(d.begins[:at], shift(f.begins[:len(fresh)], from), shift(d.begins[at+n:], from+len(f.normal)-to))
	d.lines = slices.Concat(d.lines[:at], fresh, d.lines[at+n:])
	d.ends, d.moves = ends, append(d.moves, move{at, len(fresh) - n})
}

// needle is the searched text, prepared once.
type needle struct {
	lines  []string
	normal []uint16
	masks  map[uint16][]uint64 // of distance: the places of each unit in normal, as bits
}

func newNeedle(lines []string) *needle {
	return &needle{lines: lines, normal: newDocument(lines).normalText(0, len(lines))}
}

// find looks for an equal place in [lo, hi), otherwise for the most similar one, outwards from line start, or from the
// middle for 0. ties counts the places that fit equally well among those with a full score.
func (d *document) find(ctx context.Context, lines []string, start, lo, hi int) (at int, score float64, ties int, err error) {
	n := newNeedle(lines)
	middle := cmp.Or(start, (lo+hi)/2+1) - 1
	outwards := func(try func(i int)) error {
		for left, right := middle, middle+1; left >= lo || right <= hi-len(lines); left, right = left-1, right+1 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if left >= lo && left < len(d.lines) {
				try(left)
			}
			if right <= hi-len(lines) {
				try(right)
			}
		}
		return nil
	}
	var equal, exact []int
	if err := outwards(func(i int) {
		if d.equalAt(i, n) {
			equal = append(equal, i)
			if i+len(lines) <= len(d.lines) && slices.Equal(d.lines[i:i+len(lines)], lines) {
				exact = append(exact, i)
			}
		}
	}); err != nil {
		return -1, 0, 0, err
	}
	if len(exact) > 0 {
		equal = exact
	}
	if len(equal) > 0 {
		return equal[0], 1, len(equal), nil
	}
	at = -1
	err = outwards(func(i int) {
		if s := d.similarityAt(i, n, score); s > score {
			at, score = i, s
		}
	})
	return at, score, 0, err
}

// normalText returns the normal text of n lines from line i on, or of fewer at the end of the document.
func (d *document) normalText(i, n int) []uint16 {
	from, to := d.begins[i], d.begins[min(i+n, len(d.lines))]
	return d.normal[from:max(from, to-1)]
}

func (d *document) equalAt(i int, n *needle) bool {
	return slices.Equal(d.normalText(i, len(n.lines)), n.normal)
}

// similarityAt returns 1 for a place with an equal text and less, down to 0, for others. If the value cannot exceed
// atLeast, or the budget is too small, it returns 0 without computing it.
func (d *document) similarityAt(i int, n *needle, atLeast float64) float64 {
	if d.equalAt(i, n) {
		return 1
	}
	text := d.normalText(i, len(n.lines))
	shorter, longer := min(len(text), len(n.normal)), max(len(text), len(n.normal))
	cost := int64(longer) * int64(len(n.normal)/64+24) // a unit costs about 24 words by itself
	if float64(shorter)/float64(longer) <= atLeast || cost > d.budget {
		return 0
	}
	d.budget -= cost
	return 1 - float64(n.distance(text))/float64(longer)
}

func indentOf(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "\t "))] }

// reindent moves replacement lines to the indentation of the matched place: base is the indentation of its first
// line, own the length of that of the first search line.
func reindent(lines []string, base string, own int) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		body := linetext.TrimLeft(l)
		if body == "" {
			continue
		}
		indent := indentOf(l)
		if extra := len(indent) - own; extra < 0 {
			indent = base[:max(0, len(base)+extra)]
		} else {
			indent = base + indent[own:]
		}
		out[i] = indent + body
	}
	return out
}

func (d *document) noMatch(start int, search []string, at int, score, threshold float64) *BlockFailure {
	where := ""
	if start != 0 {
		where = fmt.Sprintf(" near line %d", start)
	}
	var msg strings.Builder
	place := ""
	if at >= 0 {
		where += fmt.Sprintf(" (best place is %d%% similar, %d%% is needed)", int(score*100), int(threshold*100))
		place = fmt.Sprintf("\nMost similar place:\n%s\n", linetext.Numbered(d.lines[at:min(at+len(search), len(d.lines))], at+1))
	}
	fmt.Fprintf(&msg, "The search part was not found%s. Read the file again and copy its lines exactly.\n\nSearch part:\n%s\n%s",
		where, strings.Join(search, "\n"), place)
	if start > 0 && start <= len(d.lines) {
		lo, hi := max(0, start-6), min(len(d.lines), start+len(search)+5)
		fmt.Fprintf(&msg, "\nThe file around line %d:\n%s\n", start, linetext.Numbered(d.lines[lo:hi], lo+1))
	}
	return &BlockFailure{failNoMatch, strings.TrimSuffix(msg.String(), "\n")}
}

// Exact is the similarity that apply_diff asks for: equal except for blanks and typography.
const Exact = 1.0

// wanted returns the lines of a block as a file holds them before and after the block is applied: without line
// numbers, unless the file itself has them.
func (d *document) wanted(b Block) (search, replace []string) {
	from, to := unescape(b.search), unescape(b.replace)
	search, replace = linesOf(from), linesOf(to)
	if allNumbered(from) && (allNumbered(to) || linetext.Trim(to) == "") && !d.holds(search) && !d.holds(replace) {
		search, replace = linesOf(terminal.StripNumbers(from, false)), linesOf(terminal.StripNumbers(to, false))
	}
	return search, replace
}

// holds reports whether the document holds lines, ignoring blanks and typography.
func (d *document) holds(lines []string) bool {
	if len(lines) == 0 {
		return false
	}
	n := newNeedle(lines)
	for i := range d.lines {
		if d.equalAt(i, n) {
			return true
		}
	}
	return false
}

// DiffState counts the blocks whose lines a text holds as they are before the diff is applied (olds) and as they are
// after it (news). A block with both sides in the text counts for neither, unless its replacement repeats the
// searched lines.
func DiffState(text string, blocks []Block) (olds, news int) {
	d := newDocument(linetext.SplitLines(text))
	for _, b := range blocks {
		search, replace := d.wanted(b)
		hasOld, hasNew := d.holds(search), len(replace) > 0 && d.holds(replace)
		switch {
		case hasNew && (!hasOld || newDocument(replace).holds(search)): // new lines with the old ones in them keep those in the file
			news++
		case len(replace) == 0 && !hasOld:
			news++ // a deletion leaves nothing but the gap
		case hasOld && !hasNew:
			olds++
		}
	}
	return olds, news
}

// Block is one SEARCH/REPLACE pair of a diff.
type Block struct {
	start           int // line hint, 1-based, 0 = none
	search, replace string
}

// The reasons why a whole diff is refused.
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

// marks are the lines that structure a block, in their order.
var marks = []string{searchMark, middleMark, replaceMark}

// markOf returns the place in marks of a line without its blanks, -1 for any other line.
func markOf(line string) int {
	if line == searchMark+">" {
		return 0
	}
	return slices.Index(marks, line)
}

// checkMarkers refuses a diff with markers out of order, so that a file's own conflict markers never count as the
// diff's.
func checkMarkers(diff string) *DiffError {
	lines := api.Each(strings.Split(diff, "\n"), linetext.Trim)
	const search, middle, replace = 0, 1, 2 // in marks
	var count [3]int
	for _, l := range lines {
		if n := markOf(l); n >= 0 {
			count[n]++
		}
	}
	// When the counts do not add up, a "=======" is a slip of the block itself
	// rather than a line of the file that ought to be escaped.
	middleKind := unescapedMarker
	if count[search] != count[replace] || count[middle] < count[search] {
		middleKind = malformed
	}
	next := search // the marker that is expected
	for i, l := range lines {
		refuse := func(kind string) *DiffError {
			reason := fmt.Sprintf("The diff is malformed: line %d is %q where %q was expected. %s", i+1, l, marks[next], BlockForm)
			if kind == unescapedMarker {
				reason = fmt.Sprintf("Line %d of the diff is the marker %q. If it belongs to the file's text, escape it with "+
					"a backslash: %q. Otherwise mend the order of the markers. %s", i+1, l, `\`+l, BlockForm)
			}
			return &DiffError{kind, reason}
		}
		if next == replace && (strings.HasPrefix(l, ":start_line:") || strings.HasPrefix(l, ":end_line:")) {
			return &DiffError{lineMarker, fmt.Sprintf("Line %d of the diff holds the line marker %q in a replacement. Line "+
				"markers belong right after %q; escape it with a backslash if it is text of the file.", i+1, l, searchMark)}
		}
		switch n := markOf(l); {
		case n < 0 && (strings.HasPrefix(l, "<<<<<<<") || strings.HasPrefix(l, ">>>>>>>")):
			return refuse(unescapedMarker)
		case n < 0: // text
		case n == next:
			next = (next + 1) % len(marks)
		case n == middle:
			return refuse(middleKind)
		default:
			return refuse(malformed)
		}
	}
	if next != search {
		return &DiffError{unterminated, fmt.Sprintf("The diff ends before %q. %s", marks[next], BlockForm)}
	}
	return nil
}

// blockPattern cuts blocks out of a diff. Markers count only at the very start
// of a line. Blank lines right after a marker belong to the marker.
var blockPattern = lazyregexp.New(`(?:^|\n)<<<<<<< SEARCH>?` + terminal.Space + `*\n` +
	`(?::start_line:` + terminal.Space + `*(\d+)` + terminal.Space + `*\n)?` +
	`(?::end_line:` + terminal.Space + `*\d+` + terminal.Space + `*\n)?` +
	`(?:-------` + terminal.Space + `*\n)?` +
	`(?:|((?s:.)*?)\n)=======` + terminal.Space + `*\n` +
	`(?:|((?s:.)*?)\n)>>>>>>> REPLACE(?:\n|$)`)

// ParseDiff returns the blocks in the order of their line hints, those without a hint first.
func ParseDiff(diff string) ([]Block, *DiffError) {
	if err := checkMarkers(diff); err != nil {
		return nil, err
	}
	var blocks []Block
	for pos := 0; pos < len(diff); {
		m := blockPattern().FindStringSubmatchIndex(diff[pos:])
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
			b.start = bounded(hint)
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

// unescape removes the backslash from escaped markers at line starts, where a line may also start after \r, U+2028
// and U+2029.
func unescape(s string) string {
	var b strings.Builder
	start := true
	for i := 0; i < len(s); {
		r, size := terminal.DecodeRune(s[i:])
		if start && r == '\\' {
			for _, m := range escaped {
				if strings.HasPrefix(s[i+1:], m) {
					i++
					r, size = terminal.DecodeRune(s[i:])
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

// numberedLine is a line such as "12 | x".
var numberedLine = lazyregexp.New(`^` + terminal.Space + `*([0-9]+)` + terminal.Space + `+\|(?:$|[^|])`)

// bounded parses decimal digits; a larger number than the largest of 32 bits becomes that one.
func bounded(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil || n > math.MaxInt32 {
		return math.MaxInt32
	}
	return n
}

func allNumbered(s string) bool {
	return !slices.ContainsFunc(linetext.SplitLines(s), func(l string) bool { return !numberedLine().MatchString(l) })
}

// distance returns the Levenshtein distance in UTF-16 code units, by Myers' bit vectors in blocks of 64: a column of
// the table costs one machine word per 64 units instead of 64 cells.
func (n *needle) distance(text []uint16) int {
	if len(n.normal) == 0 {
		return len(text)
	}
	words := (len(n.normal) + 63) / 64
	if n.masks == nil {
		n.masks = map[uint16][]uint64{}
		for i, c := range n.normal {
			if n.masks[c] == nil {
				n.masks[c] = make([]uint64, words)
			}
			n.masks[c][i/64] |= 1 << (i % 64)
		}
	}
	none, vp, vn := make([]uint64, words), slices.Repeat([]uint64{math.MaxUint64}, words), make([]uint64, words)
	score := len(n.normal)
	last := uint64(1) << ((len(n.normal) - 1) % 64)
	for _, c := range text {
		m := n.masks[c]
		if m == nil {
			m = none
		}
		// Going one column on adds one at the top.
		inP, inN := uint64(1), uint64(0)
		for w := range words {
			p, n := vp[w], vn[w]
			eq := m[w]
			xv := eq | n
			eq |= inN
			xh := (((eq & p) + p) ^ p) | eq
			hp := n | ^(xh | p)
			hn := p & xh
			if w == words-1 {
				if hp&last != 0 {
					score++
				}
				if hn&last != 0 {
					score--
				}
			}
			outP, outN := hp>>63, hn>>63
			hp = hp<<1 | inP
			hn = hn<<1 | inN
			vp[w] = hn | ^(xv | hp)
			vn[w] = hp & xv
			inP, inN = outP, outN
		}
	}
	return score
}
