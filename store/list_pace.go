package store

import (
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/dirstat"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/projection"
)

// Ten thousand tasks have fifty thousand files. To stat each of them takes 30 to 70 ms,
// nearly all that a list may take, and nothing cheaper shows that a file was written in
// place. The folders alone take 5 ms. So:
//
//   - Of a source with up to pace.few tasks every list compares every file.
//   - Of a larger one every list compares each task's folder, which shows each file that
//     is replaced, made or deleted in it, and its journal, to which we append. Roo, its
//     relatives and classic Cline replace histories by renaming, and we rename what we
//     project.
//   - It compares all files of those tasks whose files may be written in place: when one
//     was written in the last day; when its tool writes that kind of file in place, as
//     Cline does with sessions; all of a source when the tool's own index has changed
//     since, because a tool that continues a task writes that too.
//   - What is left is a file in an old task that another program writes in place, and a
//     damaged blob. A list sees those when every file was last compared pace.every ago.
//     So no row is wrong for longer, and a list after a pause is never wrong.
//
// Rejected: longer pauses, and a part of the files in each list by turns. Both show a
// stale row to a user who waited and looked again. A process that watches: a list, which
// only shows something, would have to start it.
type pace struct {
	few   int
	every time.Duration
	warm  time.Duration // how long after it was written a file may be written in place
}

var usualPace = pace{few: 2000, every: 30 * time.Second, warm: 24 * time.Hour}

// compareClosely reports whether this list compares every file of a source.
func (l *lines) compareClosely(i, tasks int) bool {
	known := l.knownOf(i)
	if l.doctor || known == nil || !dirstat.FoldersShowNames || tasks <= l.s.pace.few {
		return true
	}
	if !l.srcs[i].Own && (l.indexes[i] == 0 || l.indexes[i] != known.Indexes) {
		return true
	}
	since := l.begun.Sub(time.UnixMilli(known.Compared))
	return since < 0 || since >= l.s.pace.every
}

// closely reports whether this list compares all files of a task.
func (l *lines) closely(ln *entry) bool {
	return l.close[ln.src] || ln.row.Folders == 0 || time.Unix(ln.row.Written, 0).Add(l.s.pace.warm).After(l.begun)
}

// comparedAt is when every file of a source was last compared, for the next list.
func (l *lines) comparedAt(i int) int64 {
	known := l.knownOf(i)
	switch {
	case !l.close[i] && known != nil:
		return known.Compared
	case !l.close[i], slices.ContainsFunc(l.of(i), func(ln entry) bool { return ln.stale && ln.sum == nil }):
		return 0
	case known != nil && len(l.of(i)) <= l.s.pace.few:
		return known.Compared // no list asks
	}
	return l.begun.UnixMilli()
}

// renamedFiles are the files that all known writers of today put in place by renaming,
// or, as classic Cline does with the last three, write beside such ones.
var renamedFiles = []string{
	roofmt.UIName, roofmt.APIName, roofmt.ItemName, projection.Name,
	roofmt.MetadataName, "context_history.json", "settings.json",
}

// writtenInPlace reports whether a tool may write one of these files in place.
func writtenInPlace(files string) bool {
	for _, name := range strings.FieldsFunc(files, func(r rune) bool { return r == 0 || r == '/' }) {
		if strings.HasSuffix(name, ".json") && name[0] != '.' && !slices.Contains(renamedFiles, name) {
			return true
		}
	}
	return false
}

// of are the lines of a source.
func (l *lines) of(i int) []entry { return l.all[l.from[i]:l.from[i+1]] }
