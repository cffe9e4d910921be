package store

import (
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/projection"
)

// How closely a list looks. Ten thousand tasks have fifty thousand files, and to ask for
// the times of each takes 30 to 40 ms, on one core as on two; nothing cheaper tells that a
// file was written in place. (io_uring hands each such question to a thread, statx and
// an open folder for each task take longer.) The folders alone take 5 ms. So:
//
//   - Of up to pace.few tasks every file is looked at in every list.
//   - Of more, every list looks at every task's folder, which tells of each file that
//     is replaced, made or deleted in it, and at its journal, to which we append.
//     Roo, its relatives and classic Cline replace histories by renaming, Roo makes and
//     removes a lock beside them as well, and what we project we rename.
//   - It looks at all files of those tasks that somebody may write in place: when one of
//     them was written in the last day; when it is of a kind that its tool writes in
//     place, as sessions of Cline's are, or of a time when tools did; all of a storage
//     when the tool's own index has changed since, for a tool that goes on with a task
//     writes that too.
//   - What is left is a file in an old task that somebody writes in place, without its
//     tool, and a damaged blob, which bears the digest of what was in it. A list sees that when the last look at everything was pace.every ago. So
//     no row is wrong for longer, and a list after a pause is never wrong.
//
// Rejected: longer pauses, and a part of the files in each list by turns. Both show what
// is stale to somebody who waited and looked again. A process that watches: it would
// have to be started by a list that is asked to show something.
//
// Doctor, which compares rows with tasks, looks at everything.
type pace struct {
	few   int
	every time.Duration
	warm  time.Duration // how long after it was written a file may be written in place
}

var usualPace = pace{few: 2000, every: 30 * time.Second, warm: 24 * time.Hour}

// closeness is how closely one list looks.
type closeness struct {
	closely bool      // at everything
	note    bool      // and when that is done, so that the next ones need not
	begun   time.Time // when it was decided
	old     []int     // places of lines that had to be read
}

// decide is how closely to look, before the first look.
func (l *lines) decide() {
	l.begun = time.Now()
	if l.known == nil || !foldersTell || len(l.all) <= l.s.pace.few {
		l.closely = true
		return
	}
	since := l.begun.Sub(l.known.rows.Looked(l.s.opt.Cache, l.which()))
	if since < 0 || since >= l.s.pace.every {
		l.closely = true
	}
	l.note = l.closely
}

// which is a digest of the storages that are looked into.
func (l *lines) which() uint64 {
	digest := l.known.build
	for i, src := range l.srcs {
		if l.ground[i] != nil {
			digest = catalog.MixText(catalog.MixText(digest, src.Name), src.Tasks)
		}
	}
	return digest
}

// closelyAt reports whether all files of a task are to be looked at.
func (l *lines) closelyAt(row *catalog.Row, indexes bool) bool {
	return l.closely || !indexes || row.Near == 0 || time.Unix(row.Wrote, 0).Add(l.s.pace.warm).After(l.begun)
}

// seenAll reports whether everything was looked at and what had changed was read.
func (l *lines) seenAll() bool {
	return l.note && !slices.ContainsFunc(l.old, func(i int) bool { return l.all[i].sum == nil })
}

// replaced are the files that all known writers of today put in place by renaming, or,
// as classic Cline does with the last three, write beside such ones.
var replaced = []string{
	roofmt.UIName, roofmt.APIName, roofmt.ItemName, projection.Name,
	roofmt.MetadataName, "context_history.json", "settings.json",
}

// rewritten reports whether there is a file among those watched that its tool writes in
// place, or of which we do not know how it is written.
func rewritten(watch string) bool {
	for _, name := range strings.FieldsFunc(watch, func(r rune) bool { return r == 0 || r == '/' }) {
		if strings.HasSuffix(name, ".json") && name[0] != '.' && !slices.Contains(replaced, name) {
			return true
		}
	}
	return false
}
