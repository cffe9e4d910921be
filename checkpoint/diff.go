package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/workspace"
)

// DiffOptions bound a diff. Zero values mean the defaults.
type DiffOptions struct {
	Paths []string // only these files and the contents of these folders; none = all

	// Stat: only lines are counted, and there are no patches.
	Stat bool
	// Now: the second state is the current workspace, so contents that the store does not have are read from there.
	Now bool

	MaxFile  int64 // bytes of one file that is compared by lines: 4 MiB
	MaxPatch int   // bytes of all patches together: 16 MiB; later files get no patch

	before bool   // the first state is the current workspace
	made   []byte // the content of the second state, if no store holds it; nil = a store does
}

// Diff compares two states of files, by path. It leaves out a path that only one of them holds: the other state does
// not show what was there.
func (k *Keeper) Diff(ctx context.Context, from, to map[string]api.FileVersion, o DiffOptions) ([]api.FileDiff, error) {
	o.MaxFile, o.MaxPatch = cmp.Or(o.MaxFile, maxMerge), cmp.Or(o.MaxPatch, 16<<20)
	var out []api.FileDiff
	room := o.MaxPatch
	for _, p := range slices.Sorted(maps.Keys(from)) {
		a := from[p]
		b, ok := to[p]
		if !ok || !asked(p, o.Paths) || a.Same(b) || !present(a) && !present(b) {
			continue
		}
		d := api.FileDiff{Path: p, From: a, To: b, Change: changeOf(a, b)}
		if err := k.fill(ctx, &d, o, &room); err != nil {
			return nil, fmt.Errorf("compare %s: %w", p, err)
		}
		out = append(out, d)
	}
	return out, nil
}

// asked reports whether a list of paths and folders covers a path.
func asked(path string, list []string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(p string) bool {
		p = strings.TrimSuffix(p, "/")
		return p == "." || p == path || strings.HasPrefix(path, p+"/")
	})
}

func changeOf(a, b api.FileVersion) string {
	switch {
	case !present(a):
		return api.FileAdded
	case !present(b):
		return api.FileDeleted
	case a.Kind == b.Kind && a.Hash == b.Hash && a.Hash != "":
		return api.FileMode
	}
	return api.FileChanged
}

func present(v api.FileVersion) bool { return v.Kind == api.KindFile || v.Kind == api.KindLink }

// fill compares the contents of one path, and adds the result to d.
func (k *Keeper) fill(ctx context.Context, d *api.FileDiff, o DiffOptions, room *int) error {
	var out bytes.Buffer
	if d.Change == api.FileMode {
		headers(&out, *d)
	} else {
		a, why, err := k.side(ctx, d.Path, d.From, o.MaxFile, o.before)
		if err != nil {
			return err
		}
		b, whyNew := o.made, ""
		if b == nil {
			if b, whyNew, err = k.side(ctx, d.Path, d.To, o.MaxFile, o.Now); err != nil {
				return err
			}
		}
		if why = cmp.Or(why, whyNew); why == "" && (!isText(a) || !isText(b)) {
			why = "binary"
		}
		d.Why = why
		if gone := (api.FileVersion{Kind: api.KindGone}); present(d.From) && present(d.To) && d.From.Kind != d.To.Kind {
			err = errors.Join(
				diffBody(&out, d, api.FileDiff{Path: d.Path, Change: api.FileDeleted, From: d.From, To: gone}, a, nil),
				diffBody(&out, d, api.FileDiff{Path: d.Path, Change: api.FileAdded, From: gone, To: d.To}, nil, b),
			)
		} else {
			err = diffBody(&out, d, *d, a, b)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case o.Stat:
	case out.Len() > *room:
		*room = 0 // the patches end here, even if smaller ones would fit: a list with gaps misleads
		d.Why = "the patches are too large together"
	default:
		*room -= out.Len()
		d.Patch = out.String()
		d.Hash, d.Hunks = hashShown(*d, ""), hunksOf(*d, d.Patch)
	}
	return nil
}

// diffBody writes one part of the patch. The patch of a link that became a file has two parts.
func diffBody(out *bytes.Buffer, d *api.FileDiff, part api.FileDiff, a, b []byte) error {
	headers(out, part)
	old, made := named("a/", d.Path), named("b/", d.Path)
	if !present(part.From) {
		old = "/dev/null"
	}
	if !present(part.To) {
		made = "/dev/null"
	}
	if d.Why != "" {
		fmt.Fprintf(out, "Binary files %s and %s differ\n", old, made)
		return nil
	}
	return diffText(out, d, a, b, old, made)
}

func diffText(out *bytes.Buffer, d *api.FileDiff, a, b []byte, old, made string) error {
	x, y := splitLines(a), splitLines(b)
	edits := diffLines(x, y)
	for _, e := range edits {
		d.Added += e.newTo - e.newFrom
		d.Removed += e.to - e.from
	}
	text, err := patch(old+tab(old), made+tab(made), x, y, edits)
	out.WriteString(text)
	return err
}

// tab returns what must follow a name in a patch: a tab if the name contains a blank, since its end would be
// ambiguous.
func tab(name string) string {
	if strings.Contains(name, " ") {
		return "\t"
	}
	return ""
}

// headers writes git's headers, for properties that the lines of a patch do not show.
func headers(out *bytes.Buffer, d api.FileDiff) {
	a, b := gitMode(d.From), gitMode(d.To)
	finer := d.From.Kind == api.KindFile && d.To.Kind == api.KindFile && a == b && d.From.Mode != d.To.Mode
	if finer {
		// Git knows two file modes only. Programs that apply a patch skip text before a header.
		fmt.Fprintf(out, "permissions of %s: %03o before, %03o after\n", named("", d.Path), d.From.Mode, d.To.Mode)
	}
	if finer && d.Change == api.FileMode {
		return
	}
	fmt.Fprintf(out, "diff --git %s %s\n", named("a/", d.Path), named("b/", d.Path))
	switch {
	case d.Change == api.FileAdded:
		fmt.Fprintf(out, "new file mode %s\n", b)
	case d.Change == api.FileDeleted:
		fmt.Fprintf(out, "deleted file mode %s\n", a)
	case a != b:
		fmt.Fprintf(out, "old mode %s\nnew mode %s\n", a, b)
	}
}

func gitMode(v api.FileVersion) string {
	switch {
	case v.Kind == api.KindLink:
		return "120000"
	case v.Mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// side returns the content of one version; empty if there is no file. why is the reason for a missing content.
func (k *Keeper) side(ctx context.Context, p string, v api.FileVersion, limit int64, disk bool) (data []byte, why string, err error) {
	switch {
	case !present(v):
		return nil, "", nil
	case v.Size > limit:
		return nil, fmt.Sprintf("too large (%d bytes)", v.Size), nil
	}
	if v.Blob != "" {
		data, err = k.Content(ctx, v, limit)
	}
	if v.Blob == "" || errors.Is(err, ErrUnkept) {
		if !disk {
			return nil, "its content was not kept", nil
		}
		data, err = k.readNow(ctx, p, v, limit)
	}
	var large *workspace.TooLargeError
	switch {
	case err == nil:
		return data, "", nil
	case ctx.Err() != nil:
		return nil, "", err
	case errors.As(err, &large), errors.Is(err, content.ErrTooLarge):
		return nil, "too large", nil
	case errors.Is(err, content.ErrDamaged), errors.Is(err, fs.ErrPermission), errors.Is(err, workspace.ErrChanged),
		errors.Is(err, fs.ErrNotExist):
		return nil, err.Error(), nil
	}
	return nil, "", err
}

// readNow reads the current content of a recorded path. The error is workspace.ErrChanged when it differs from the
// version.
func (k *Keeper) readNow(ctx context.Context, p string, v api.FileVersion, limit int64) ([]byte, error) {
	if !plain(p) {
		return nil, workspace.ErrChanged
	}
	data, err := k.w.ReadEntry(ctx, OnDisk(p), limit)
	if err == nil && workspace.HashOf(data) != v.Hash {
		return nil, workspace.ErrChanged
	}
	return data, err
}

// edit replaces lines from..to of a text by lines newFrom..newTo of another one.
type edit struct{ from, to, newFrom, newTo int }

// splitLines splits a text into lines, each with its line end. If the text lacks a line end at its end, the last line
// has none, and differs from the same line with one.
func splitLines(text []byte) [][]byte { return slices.Collect(bytes.Lines(text)) }

// diffEffort bounds the work of a diff, and with four bytes for each unit its memory: what takes more becomes one
// replacement. For texts with so little in common, a list of changed lines helps no reader.
const diffEffort = 4 << 20

// diffLines returns the fewest edits that turn one text into another, in order, with equal lines between them, by
// Myers' algorithm. The search of go-udiff was rejected: it stops after 100 edits and replaces the rest as a whole, which
// a merge would call a conflict.
func diffLines(a, b [][]byte) []edit {
	ids := map[string]int{}
	x, y := number(a, ids), number(b, ids)
	head, tail := 0, 0
	for head < min(len(x), len(y)) && x[head] == y[head] {
		head++
	}
	x, y = x[head:], y[head:]
	for tail < min(len(x), len(y)) && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	x, y = x[:len(x)-tail], y[:len(y)-tail]
	var out []edit
	if rows := furthest(x, y); rows != nil {
		out = editsOf(rows, len(x), len(y))
	} else {
		out = []edit{{0, len(x), 0, len(y)}}
	}
	for i := range out {
		e := &out[i]
		e.from, e.to, e.newFrom, e.newTo = e.from+head, e.to+head, e.newFrom+head, e.newTo+head
	}
	return out
}

// number gives each line a number, equal lines the same one.
func number(lines [][]byte, ids map[string]int) []int {
	return api.Each(lines, func(l []byte) int {
		n, ok := ids[string(l)]
		if !ok {
			n = len(ids)
			ids[string(l)] = n
		}
		return n
	})
}

// furthest returns, for each number of steps until both texts are at their ends, how many lines of a those steps pass at
// most: row d has the diagonals -d, -d+2 ... d, where a diagonal is the lines of a less those of b. A step removes a line
// of a or adds one of b; equal lines cost none. nil: the search takes too long.
func furthest(a, b []int) (rows [][]int32) {
	effort := diffEffort
	for d, before := 0, []int32{0}; ; d++ {
		row := make([]int32, d+1)
		for i := range row {
			x := int(before[min(i, len(before)-1)])
			if d > 0 && !adds(before, i) {
				x = int(before[i-1]) + 1
			}
			y := x - (2*i - d)
			for effort--; x < len(a) && y < len(b) && a[x] == b[y]; effort-- {
				x, y = x+1, y+1
			}
			if row[i] = int32(x); x >= len(a) && y >= len(b) {
				return append(rows, row)
			}
		}
		if effort < 0 {
			return nil
		}
		rows, before = append(rows, row), row
	}
}

// adds reports whether the best last step to a place i of the row after before adds a line of b. Otherwise it removes one
// of a.
func adds(before []int32, i int) bool {
	return i == 0 || i < len(before) && before[i-1] < before[i]
}

// editsOf follows the steps from the end of both texts back to the beginning.
func editsOf(rows [][]int32, x, y int) (out []edit) {
	for d := len(rows) - 1; d > 0; d-- {
		i := (x - y + d) / 2
		before := rows[d-1]
		var e edit
		if adds(before, i) {
			x = int(before[i])
			y = x - (2*i - d + 1)
			e = edit{x, x, y, y + 1}
		} else {
			x = int(before[i-1])
			y = x - (2*i - d - 1)
			e = edit{x, x + 1, y, y}
		}
		if n := len(out); n > 0 && e.to == out[n-1].from && e.newTo == out[n-1].newFrom {
			out[n-1].from, out[n-1].newFrom = e.from, e.newFrom
		} else {
			out = append(out, e)
		}
	}
	slices.Reverse(out)
	return out
}

// patch returns a unified diff of two texts, which begins with the two header lines.
func patch(old, made string, a, b [][]byte, edits []edit) (string, error) {
	offsets := make([]int, len(a)+1)
	for i, l := range a {
		offsets[i+1] = offsets[i] + len(l)
	}
	list := api.Each(edits, func(e edit) udiff.Edit {
		return udiff.Edit{Start: offsets[e.from], End: offsets[e.to], New: string(bytes.Join(b[e.newFrom:e.newTo], nil))}
	})
	text, err := udiff.ToUnified(old, made, string(bytes.Join(a, nil)), list, udiff.DefaultContextLines)
	return text, api.Failed(err, "write the patch")
}

// named returns a path in the form for a patch: quoted, as git does, where a character would break the line or a
// terminal.
func named(prefix, p string) string {
	p = prefix + filepath.ToSlash(OnDisk(p))
	if !strings.ContainsFunc(p, func(r rune) bool {
		return r == '"' || r == '\\' || r == utf8.RuneError || !unicode.IsPrint(r)
	}) {
		return p
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(p) {
		switch c := p[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// maxMerge bounds the bytes of each text of a merge. People do not check larger texts line by line.
const maxMerge = 4 << 20

// MergeText merges two changes of one text, line by line: the changes from base to mine and from base to theirs. ok
// is false if they change the same or touching lines differently, or if one of the texts is not text or is too large:
// then there is no result. The same change on both sides is no conflict.
//
// Touching lines count as the same: two adjacent changes are seldom independent, and no person checks this merge before
// it is written.
func MergeText(base, mine, theirs []byte) (result []byte, ok bool) {
	switch {
	case bytes.Equal(mine, theirs), bytes.Equal(base, theirs):
		return mine, true
	case bytes.Equal(base, mine):
		return theirs, true
	}
	for _, t := range [][]byte{base, mine, theirs} {
		if !isText(t) || len(t) > maxMerge {
			return nil, false
		}
	}
	b, m, t := splitLines(base), splitLines(mine), splitLines(theirs)
	left, right := diffLines(b, m), diffLines(b, t)
	var merged [][]byte
	at := 0 // in base
	for len(left) > 0 || len(right) > 0 {
		var next edit
		from := m
		switch {
		case len(right) == 0 || len(left) > 0 && left[0].before(right[0]):
			next, left = left[0], left[1:]
		case len(left) == 0 || right[0].before(left[0]):
			next, right, from = right[0], right[1:], t
		case left[0].same(right[0], m, t):
			next, left, right = left[0], left[1:], right[1:]
		default:
			return nil, false
		}
		merged = append(append(merged, b[at:next.from]...), from[next.newFrom:next.newTo]...)
		at = next.to
	}
	return bytes.Join(append(merged, b[at:]...), nil), true
}

// before reports whether the edit ends before the other one begins, with a line between them.
func (e edit) before(o edit) bool { return e.to < o.from }

// same reports whether two edits make the same change.
func (e edit) same(o edit, mine, theirs [][]byte) bool {
	return e.from == o.from && e.to == o.to &&
		slices.EqualFunc(mine[e.newFrom:e.newTo], theirs[o.newFrom:o.newTo], bytes.Equal)
}

// isText reports whether data is text, and not binary.
func isText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }
