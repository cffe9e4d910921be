package search

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// listEntry is one line of a listing.
type listEntry struct {
	path      string // relative to the listed folder, "/" between names, folders end in "/"
	ignored   bool
	protected bool
}

const (
	lockMark   = "\U0001F512 "
	shieldMark = "\U0001F6E1\ufe0f "
)

// formatListing sorts entries and writes them one a line. Hidden entries get a lock or,
// without showIgnored, no line. marks reports whether there are rules at all: without
// rules formatListing marks nothing.
func formatListing(entries []listEntry, limited, showIgnored, marks bool) string {
	sortEntries(entries)
	var lines []string
	for _, e := range entries {
		name := tool.SafeName(e.path)
		switch {
		case !marks:
			lines = append(lines, name)
		case e.ignored && !showIgnored:
		case e.ignored:
			lines = append(lines, lockMark+name)
		case e.protected:
			lines = append(lines, shieldMark+name)
		default:
			lines = append(lines, name)
		}
	}
	text := strings.Join(lines, "\n")
	switch {
	case limited:
		return text + "\n\n(File list truncated. Use list_files on specific subdirectories if you need to explore further.)"
	case text == "":
		return "No files found."
	}
	return text
}

// sortEntries puts a folder's files before its folders' content. Names that differ only by case or accents count as
// equal, so this is no strict order and the result depends on the algorithm: that of a JavaScript engine for short
// lists, one run from the left and then binary insertion. Lists are short by the limit on entries.
func sortEntries(entries []listEntry) {
	less := func(a, b listEntry) bool { return comparePaths(a.path, b.path) < 0 }
	run := min(1, len(entries))
	if len(entries) > 1 {
		falling := less(entries[1], entries[0])
		for run = 2; run < len(entries) && less(entries[run], entries[run-1]) == falling; run++ {
		}
		if falling {
			slices.Reverse(entries[:run])
		}
	}
	for ; run < len(entries); run++ {
		e := entries[run]
		at := sort.Search(run, func(i int) bool { return less(e, entries[i]) })
		copy(entries[at+1:run+1], entries[at:run])
		entries[at] = e
	}
}

func comparePaths(pathA, pathB string) int {
	a, b := strings.Split(pathA, "/"), strings.Split(pathB, "/")
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		if last := len(a) - len(b); last != 0 && i+1 == min(len(a), len(b)) {
			return last
		}
		return compareNames(a[i], b[i])
	}
	return len(a) - len(b)
}

// newEntry judges an absolute path below base.
func newEntry(ws *workspace.Workspace, rules *workspace.Ignore, base, abs string, dir bool) listEntry {
	e := listEntry{path: slashRel(base, abs)}
	if dir && e.path != "" {
		e.path += "/"
	}
	if rel, ok := insideRel(ws.Root(), abs); ok {
		e.ignored = rules.Hides(rel, dir)
		e.protected = workspace.Protected(rel)
	}
	return e
}

func slashRel(base, abs string) string {
	rel, err := filepath.Rel(base, abs)
	switch {
	case err != nil:
		return filepath.ToSlash(abs)
	case rel == ".":
		return ""
	}
	return filepath.ToSlash(rel)
}

func insideRel(root, abs string) (string, bool) {
	rel, inside := workspace.Within(root, abs)
	return filepath.ToSlash(rel), inside && rel != "."
}

// maxEntries is the number of names that a listing shows at most.
const maxEntries = 200

// List returns the names in a folder, or in all folders below it, as list_files shows them.
// Of a home or root folder that is not the workspace it names only the folder itself.
func List(ctx context.Context, ws *workspace.Workspace, base string, recursive bool) (string, error) {
	if tooWide(base) && base != ws.Root() {
		// Name the folder alone: the model hardly meant its content.
		return formatListing([]listEntry{{path: base}}, false, false, false), nil
	}
	rules, err := ws.Ignore()
	if err != nil {
		return "", err
	}
	w := walker{
		ws: ws, base: base, breadth: true,
		shallow: !recursive || tooWide(base),
		enter:   func(name string) bool { return !heavy[name] && name[0] != '.' },
	}
	var entries []listEntry
	limited := false
	err = w.walk(ctx, func(abs string, d fs.DirEntry) bool {
		if e := newEntry(ws, rules, base, abs, d.IsDir()); !e.ignored {
			if len(entries) == maxEntries {
				limited = true
				return false
			}
			entries = append(entries, e)
		}
		return true
	})
	if err != nil {
		return "", err
	}
	return formatListing(entries, limited, false, rules.Any()), nil
}

// Names lists files and folders below a workspace by their paths, those near the root first, at most most names.
// Folders end in "/". It leaves out what .rooignore or a .gitignore hides; of a home or root folder it names only the
// top level. When ctx ends, it returns what it has found, with an error.
func Names(ctx context.Context, ws *workspace.Workspace, most int) (list []string, err error) {
	rules, err := ws.Ignore()
	if err != nil {
		return nil, err // it is not known what is hidden
	}
	w := walker{
		ws: ws, base: ws.Root(), breadth: true, shallow: tooWide(ws.Root()), enter: func(string) bool { return true },
	}
	err = w.walk(ctx, func(abs string, d fs.DirEntry) bool {
		if rel := slashRel(ws.Root(), abs); !rules.Hides(rel, d.IsDir()) {
			if d.IsDir() {
				rel += "/"
			}
			list = append(list, rel)
		}
		return len(list) < most
	})
	return list, err
}

// compareNames orders names as people expect: digits by value, case and accents ignored, blanks before punctuation
// before symbols before digits before letters. It follows the root collation of Unicode for Latin names; other
// scripts come after Latin in that collation's order, and within a script by code point.
//
// golang.org/x/text/collate gives the same order and was rejected: its tables add 1.5 MB to the program.
func compareNames(a, b string) int {
	return slices.CompareFunc(elements(a), elements(b), element.compare)
}

// element is a character or a number in a name.
type element struct {
	rank   int
	number string // digits without leading zeros
}

func (e element) compare(o element) int {
	return cmp.Or(cmp.Compare(e.rank, o.rank), len(e.number)-len(o.number), strings.Compare(e.number, o.number))
}

// asciiOrder is the root collation's order of characters that are neither digit nor letter.
const asciiOrder = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"

// The first rank of each group.
const (
	otherMarks = 1 << 8
	digitRank  = 1 << 22
	letterRank = 1<<22 + 1
)

func elements(s string) []element {
	var out []element
	rs := []rune(s)
	for i := 0; i < len(rs); i++ {
		r := rs[i]
		if d := digitOf(r); d >= 0 {
			var num strings.Builder
			for ; i < len(rs) && digitOf(rs[i]) >= 0; i++ {
				if d := digitOf(rs[i]); d > 0 || num.Len() > 0 {
					num.WriteByte(byte('0' + d))
				}
			}
			i--
			out = append(out, element{rank: digitRank, number: num.String()})
			continue
		}
		if unicode.Is(unicode.Mn, r) || unicode.IsControl(r) && !strings.ContainsRune(asciiOrder, r) || unicode.Is(unicode.Cf, r) {
			continue // accents written apart, and what is not seen
		}
		if p := strings.IndexRune(asciiOrder, r); p >= 0 {
			out = append(out, element{rank: 1 + p})
			continue
		}
		base, ok := bases()[unicode.ToLower(r)]
		if !ok {
			base = string(unicode.ToLower(r))
		}
		for _, b := range base {
			rank := otherMarks + int(b)
			if unicode.IsLetter(b) && b != 'ー' && b != '々' { // the signs of a long vowel and of repetition are no letters
				rank = letterRank + script(b)<<21 + int(b)
			}
			out = append(out, element{rank: rank})
		}
	}
	return out
}

// scripts is the root collation's order of scripts.
var scripts = []*unicode.RangeTable{
	unicode.Latin, unicode.Greek, unicode.Coptic, unicode.Cyrillic, unicode.Glagolitic, unicode.Georgian, unicode.Armenian, unicode.Hebrew,
	unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Tifinagh, unicode.Ethiopic, unicode.Devanagari, unicode.Bengali,
	unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala,
	unicode.Thai, unicode.Lao, unicode.Tibetan, unicode.Myanmar, unicode.Khmer, unicode.Mongolian, unicode.Cherokee,
	unicode.Canadian_Aboriginal, unicode.Hangul, unicode.Hiragana, unicode.Bopomofo, unicode.Yi, unicode.Han,
}

// script returns the rank of a letter's script. Unknown scripts come last.
func script(r rune) int {
	if r < 0x250 {
		return 0
	}
	for i, s := range scripts {
		if unicode.Is(s, r) {
			return i
		}
	}
	return len(scripts)
}

func digitOf(r rune) int {
	switch {
	case r >= '0' && r <= '9':
		return int(r - '0')
	case r >= 0xFF10 && r <= 0xFF19:
		return int(r - 0xFF10)
	}
	return -1
}

// bases returns the plain letters of accented ones, by groups.
var bases = sync.OnceValue(func() map[rune]string {
	m := map[rune]string{}
	for base, accented := range map[string]string{
		"a": "àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặª", "ae": "æǣǽ", "b": "ḃḅḇ", "c": "çćĉċčḉ", "d": "ďđḋḍḏḑḓ",
		"e": "èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ", "f": "ḟ", "g": "ĝğġģǧǵḡ", "h": "ĥħȟḣḥḧḩḫ", "i": "ìíîïĩīĭįǐȉȋḭḯỉị",
		"j": "ĵǰ", "k": "ķǩḱḳḵ", "l": "ĺļľłḷḹḻḽ", "m": "ḿṁṃ", "n": "ñńņňǹṅṇṉṋ",
		"o": "òóôõöøōŏőơǒǫǭǿȍȏȫȭȯȱọỏốồổỗộớờởỡợº", "oe": "œ", "p": "ṕṗ", "r": "ŕŗřȑȓṙṛṝṟ", "s": "śŝşšșṡṣṥṧṩ", "ss": "ß",
		"t": "ţťțṫṭṯṱ", "u": "ùúûüũūŭůűųưǔǖǘǚǜȕȗụủứừửữự", "v": "ṽṿ", "w": "ŵẁẃẅẇẉ", "x": "ẋẍ", "y": "ýÿŷȳẏỳỵỷỹ", "z": "źżžẑẓẕ",
		"α": "ά", "ε": "έ", "η": "ή", "ι": "ίϊΐ", "ο": "ό", "υ": "ύϋΰ", "ω": "ώ", "σ": "ς", "е": "ё",
	} {
		for _, r := range accented {
			m[r] = base
		}
	}
	// A base and its small and voiced forms; Katakana is Hiragana in other shapes.
	for _, kana := range strings.Fields("あぁ いぃ うぅゔ えぇ おぉ かがゕ きぎ くぐ けげゖ こご さざ しじ すず せぜ そぞ ただ ちぢ つっづ てで とど はばぱ ひびぴ ふぶぷ へべぺ ほぼぽ やゃ ゆゅ よょ わゎ") {
		base, _ := utf8.DecodeRuneInString(kana)
		for _, r := range kana {
			m[r] = string(base)
		}
	}
	for r := 'ァ'; r <= 'ヶ'; r++ {
		same := r - 'ァ' + 'ぁ'
		m[r] = cmp.Or(m[same], string(same))
	}
	return m
})

// heavy are folders of build products and packages. They are listed, and entered only if the call names them.
var heavy = map[string]bool{
	"node_modules": true, "__pycache__": true, "venv": true, "env": true, "target": true, "dist": true, "out": true,
	"bundle": true, "vendor": true, "tmp": true, "temp": true, "deps": true, "Pods": true,
}

// walker walks through a folder in name order, breadth first if asked, and obeys .gitignore files on the way. It
// never follows links to folders, so it ends and stays below its base.
type walker struct {
	ws      *workspace.Workspace // .gitignore files count from its root down
	base    string               // absolute, links followed
	enter   func(name string) bool
	shallow bool // do not enter folders
	breadth bool // a folder's own entries first, then the content of its folders
	rules   int  // bytes of rules that were read
}

type ignoreLayer struct {
	dir   string
	rules *workspace.Ignore
}

// walk calls visit for every entry; false ends the walk.
func (w *walker) walk(ctx context.Context, visit func(abs string, d fs.DirEntry) bool) error {
	type folder struct {
		abs    string
		layers []ignoreLayer
	}
	queue := []folder{{w.base, w.outerLayers()}}
	for len(queue) > 0 {
		var f folder
		if w.breadth {
			f, queue = queue[0], queue[1:]
		} else {
			f, queue = queue[len(queue)-1], queue[:len(queue)-1]
		}
		entries, err := w.ws.ReadDir(f.abs, maxFolder)
		if err != nil {
			if f.abs == w.base || tool.ContextError(err) != nil {
				return err
			}
			continue // a folder that may not be read hides its content, no more
		}
		own := f.layers
		if slices.ContainsFunc(entries, func(d fs.DirEntry) bool { return d.Name() == ".gitignore" }) {
			own = w.withLayer(own, f.abs)
		}
		var sub []folder
		for _, d := range entries {
			if err := ctx.Err(); err != nil {
				return err // here, because a repository may have very many rules
			}
			abs := filepath.Join(f.abs, d.Name())
			if d.Name() == ".git" || hiddenByGit(own, abs, d.IsDir()) {
				continue
			}
			if !visit(abs, d) {
				return nil
			}
			if d.IsDir() && !w.shallow && w.enter(d.Name()) {
				sub = append(sub, folder{abs, own})
			}
		}
		if !w.breadth {
			slices.Reverse(sub)
		}
		queue = append(queue, sub...)
	}
	return nil
}

// outerLayers returns the .gitignore files from the root down to the base's parent.
func (w *walker) outerLayers() []ignoreLayer {
	rel, ok := insideRel(w.ws.Root(), w.base)
	if !ok {
		return nil
	}
	var layers []ignoreLayer
	at := w.ws.Root()
	for _, part := range strings.Split(rel, "/") {
		layers = w.withLayer(layers, at)
		at = filepath.Join(at, part)
	}
	return layers
}

// Bounds of .gitignore files in bytes: of one, and of all that one walk reads. One that exceeds them is ignored.
const (
	maxIgnore    = 1 << 20
	maxAllIgnore = 4 << 20
)

// withLayer adds the rules of a folder's .gitignore file. Like git, it ignores a link of that name.
func (w *walker) withLayer(layers []ignoreLayer, folder string) []ignoreLayer {
	dir, err := w.ws.OpenDir(folder)
	if err != nil {
		return layers
	}
	defer func() { _ = dir.Close() }() // it was only read from
	f, _, err := workspace.OpenIn(dir, ".gitignore")
	if err != nil {
		return layers
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnore+1))
	if err != nil || len(text) > min(maxIgnore, maxAllIgnore-w.rules) {
		return layers
	}
	w.rules += len(text)
	// A new slice: siblings share the one before.
	return append(layers[:len(layers):len(layers)], ignoreLayer{folder, workspace.ParseIgnore(string(text), false)})
}

// hiddenByGit checks the nearest file first; parents were judged on the way down.
func hiddenByGit(layers []ignoreLayer, abs string, dir bool) bool {
	for _, l := range slices.Backward(layers) {
		if rel, ok := insideRel(l.dir, abs); ok {
			if v := l.rules.Decide(rel, dir); v != 0 {
				return v > 0
			}
		}
	}
	return false
}

// tooWide reports whether a folder is a home directory or a root. Those are never walked: that would show files that
// the model did not ask for, and take too long.
func tooWide(abs string) bool {
	if filepath.Dir(abs) == abs {
		return true
	}
	home, err := os.UserHomeDir()
	return err == nil && abs == inputfile.Resolved(home)
}

// maxFolder bounds the names that are read from one folder: sorting needs them all in memory, and no person works in
// a larger folder.
const maxFolder = 200_000

// CompileGlob makes a test of paths relative to the searched folder. A glob without "/" matches the name at any
// depth; {a,b} means a or b.
func CompileGlob(glob string) (func(string) bool, error) {
	glob = filepath.ToSlash(strings.TrimSpace(glob))
	if glob == "" || glob == "*" {
		return func(string) bool { return true }, nil
	}
	exclude := strings.HasPrefix(glob, "!")
	var text strings.Builder
	alternatives := expandBraces(strings.TrimPrefix(glob, "!"), 256)
	if alternatives == nil {
		return nil, fmt.Errorf("the file_pattern %q has too many alternatives", glob)
	}
	for _, g := range alternatives {
		if g = strings.TrimPrefix(g, "./"); g != "" && (g[0] == '#' || g[0] == '!') {
			g = `\` + g
		}
		text.WriteString(g + "\n")
	}
	rules := workspace.ParseIgnore(text.String(), false)
	return func(rel string) bool { return rules.Hides(rel, false) != exclude }, nil
}

// expandBraces returns the texts that {a,b} stands for, nil if there are more than most.
func expandBraces(s string, most int) []string {
	open := strings.IndexByte(s, '{')
	if open < 0 {
		return []string{s}
	}
	depth, start := 0, open+1
	var parts []string
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case ',':
			if depth == 1 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		case '}':
			if depth--; depth > 0 {
				continue
			}
			parts = append(parts, s[start:i])
			var out []string
			for _, p := range parts {
				rest := expandBraces(s[:open]+p+s[i+1:], most-len(out))
				if rest == nil || len(out)+len(rest) > most {
					return nil
				}
				out = append(out, rest...)
			}
			return out
		}
	}
	return []string{s} // never closed: literal
}
