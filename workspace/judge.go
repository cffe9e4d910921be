package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// Verdict says what became of a file since it was recorded.
type Verdict string

// The verdicts.
const (
	Fresh   Verdict = "fresh"   // the same content, or still no file
	Changed Verdict = "changed" // another content, or what stands there is no file
	Missing Verdict = "missing"
)

// settled is how far a file's times must lie before the moment of recording for its
// stat to be trusted, in milliseconds: file systems keep times as coarse as two seconds,
// and a second change within one step would leave no trace in them.
const settled = 2000

// Sight is a look at a file. State.Hash is empty when the content was not looked at,
// or there is no file.
type Sight struct {
	Verdict Verdict
	State   FileState
	Data    []byte // the content, if it was read and is not larger than Look.Keep
	Read    bool   // the content was looked at
}

// Look says how a file is looked at.
type Look struct {
	Was   FileState // as it was recorded; the zero times and hash mean that there was no file
	At    int64     // when that was, Unix milliseconds
	Limit int64     // a file of more bytes is judged by its size alone; 0 = none is
	Keep  int64     // Data is given up to that many bytes; 0 = never
	Whole bool      // read it even where its stat says that it is the same, for Data
	Calm  bool      // the content was looked at since the file's times, and is looked at again when they are settled: trust its stat until then
}

// lookedAt is called between the look at a file's stat and the one at its content: tests
// change it there.
var lookedAt func(path string)

// Judge looks whether the file at p is the one that was recorded, by its content. Stat
// is the fast path, and trusted only to say that nothing changed. A touch, another
// mode, another inode with the same bytes are no change. A file recorded without a hash
// is judged by its size, which is all that is known of its content.
//
// The limits are those of stat: a program that keeps a file mapped and writes to it
// again before the system took notice of the first write is seen a little later.
func (w *Workspace) Judge(ctx context.Context, p Path, l Look) (Sight, error) {
	was := l.Was
	existed := was.Hash != "" || was.MTime != 0
	info, err := os.Lstat(p.Real)
	missing := errors.Is(err, fs.ErrNotExist) || err != nil && isNotDir(err)
	switch {
	case missing:
		return noFile(p, existed, Missing), nil
	case err != nil:
		return Sight{}, err
	case !info.Mode().IsRegular():
		return noFile(p, existed, Changed), nil
	}
	now := stateOf(p.Readable, info, "")
	s := Sight{Verdict: Changed, State: now}
	known := was.Hash != ""
	if l.Limit > 0 && now.Size > l.Limit || existed && !known {
		if existed && now.Size == was.Size {
			s.Verdict = Fresh
		}
		return s, nil
	}
	sure := known && was.SameStat(now) && (l.Calm || max(was.MTime, was.CTime)/1e6 <= l.At-settled)
	small := now.Size <= l.Keep && l.Keep > 0
	if sure && (!l.Whole || !small) {
		return Sight{Verdict: Fresh, State: was}, nil
	}
	s.Read = true
	if lookedAt != nil {
		lookedAt(p.Real)
	}
	if small {
		s.Data, s.State, err = w.Read(ctx, p, l.Keep)
		var grown *TooLargeError
		if errors.As(err, &grown) {
			s.State, err = w.StatPath(ctx, p)
		}
	} else {
		s.State, err = w.StatPath(ctx, p)
	}
	switch {
	case err != nil && (errors.Is(err, fs.ErrNotExist) || isNotDir(err)), err == nil && !s.State.Exists(): // since the look
		return noFile(p, existed, Missing), nil
	case errors.Is(err, ErrNotRegular):
		return noFile(p, existed, Changed), nil
	case err != nil:
		return Sight{}, err
	}
	if known && s.State.Hash == was.Hash {
		s.Verdict = Fresh
	}
	return s, nil
}

// noFile is the look at a path where no file stands. It is no change where there was none.
func noFile(p Path, existed bool, v Verdict) Sight {
	if !existed {
		v = Fresh
	}
	return Sight{Verdict: v, State: FileState{Path: p.Readable}}
}

// Unsettled reports whether a file's times lie so little before now, in Unix
// milliseconds, that its stat alone does not say that it is unchanged; past says that
// they are at least over, in steps as file systems on a disk of one's own keep them.
func (s FileState) Unsettled(now int64) (unsettled, past bool) {
	age := now - max(s.MTime, s.CTime)/1e6
	return age < settled, age >= 50
}

// Dated judges a file of which only a date is known, in Unix milliseconds: it is
// changed when it was written to later than that. Two seconds are allowed for file
// systems that keep coarse times, and for whoever recorded the date a little early. It
// is a guess: a checkout writes the same bytes at a new time, and a copy may keep an
// old one. State.Path is empty when there is no file.
func (w *Workspace) Dated(p Path, date int64) (Verdict, FileState) {
	info, err := os.Lstat(p.Real)
	if err != nil {
		return Missing, FileState{}
	}
	s := stateOf(p.Readable, info, "")
	if !info.Mode().IsRegular() {
		return Changed, FileState{}
	}
	if s.MTime/1e6-settled > date { // dates of others may be any number
		return Changed, s
	}
	return Fresh, s
}
