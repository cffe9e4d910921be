package report

import (
	"errors"
	"os"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
)

// Cause is what an error of the packages below means to a front door that words its own messages. Code is "" for an
// error that none of these is.
type Cause struct {
	Code string // see the constants below

	Name   string   // of the task in the trash, or the words that fit several tasks
	Names  []string // of the tasks that the words fit
	Path   string   // of the root or the file
	Detail string   // what is wrong with the root or the file
	Denied bool     // the file may not be read
}

// Codes of causes.
const (
	CauseNotFound       = "not_found"
	CauseTrashed        = "trashed"
	CauseAmbiguous      = "ambiguous"
	CauseBusy           = "busy"         // another process works on the task
	CauseForeignBusy    = "foreign_busy" // another program writes the task's files
	CauseFenced         = "fenced"       // another process took the task over
	CauseRoot           = "root"
	CauseUntrustedLocks = "untrusted_locks"
	CauseUnread         = "unread"
)

// CauseOf is the cause of an error. Errors that say more go before those that say less.
func CauseOf(err error) Cause {
	var (
		trashed   *store.TrashedError
		ambiguous *store.AmbiguousError
		busy      *journal.BusyError
		root      *store.RootError
		unread    *roofmt.UnreadError
	)
	switch {
	case errors.As(err, &trashed):
		return Cause{Code: CauseTrashed, Name: trashed.Name, Detail: trashed.Error()}
	case errors.As(err, &ambiguous):
		return Cause{Code: CauseAmbiguous, Name: ambiguous.Given, Names: ambiguous.Names()}
	case errors.Is(err, store.ErrNotFound):
		return Cause{Code: CauseNotFound}
	case errors.As(err, &busy):
		return Cause{Code: CauseBusy}
	case errors.Is(err, store.ErrForeignBusy):
		return Cause{Code: CauseForeignBusy}
	case errors.Is(err, journal.ErrFenced):
		return Cause{Code: CauseFenced}
	case errors.As(err, &root):
		c := Cause{Code: CauseRoot, Path: root.Path, Detail: root.Check}
		if root.Err != nil {
			c.Detail += ": " + root.Err.Error()
		}
		return c
	case errors.Is(err, journal.ErrUntrustedLocks):
		return Cause{Code: CauseUntrustedLocks}
	case errors.As(err, &unread):
		return Cause{
			Code:   CauseUnread,
			Path:   unread.Path,
			Detail: roofmt.Reason(unread.Err),
			Denied: errors.Is(unread.Err, os.ErrPermission),
		}
	}
	return Cause{}
}
