package report

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
)

func TestCauses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want Cause
	}{
		{store.ErrNotFound, Cause{Code: CauseNotFound}},
		{&store.AmbiguousError{Given: "1"}, Cause{Code: CauseAmbiguous, Name: "1"}},
		{&journal.BusyError{}, Cause{Code: CauseBusy}},
		{store.ErrForeignBusy, Cause{Code: CauseForeignBusy}},
		{journal.ErrFenced, Cause{Code: CauseFenced}},
		{journal.ErrUntrustedLocks, Cause{Code: CauseUntrustedLocks}},
		{&store.RootError{Path: "/x", Check: "y", Err: errors.New("z")}, Cause{Code: CauseRoot, Path: "/x", Detail: "y: z"}},
		{&roofmt.UnreadError{Path: "/x", Err: os.ErrPermission}, Cause{Code: CauseUnread, Path: "/x", Detail: roofmt.Reason(os.ErrPermission), Denied: true}},
		{errors.New("x"), Cause{}},
	} {
		got := CauseOf(fmt.Errorf("x: %w", tt.err))
		if len(got.Names) == 0 {
			got.Names = nil
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v: got %s, want diff = \"\"", tt.err, diff)
		}
	}
}
