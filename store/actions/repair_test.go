//go:build unix

package actions_test

import (
	"context"
	"slices"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/overlay"
	"github.com/roost-dev/roost/store/trash"
)

// saysOf is what the overlay says of a task's way into the trash and back, the oldest first.
func saysOf(t *testing.T, s *store.Store, id string) (out []string) {
	t.Helper()
	log, err := s.OpenOverlay(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // it was only read
	err = overlay.Each(t.Context(), log, func(_ journal.Commit, e overlay.Entry) {
		switch {
		case e.ID != id:
		case e.IsPurged(), e.Deleted != nil && *e.Deleted:
			out = append(out, "deleted")
		case e.Deleted != nil:
			out = append(out, "there")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Who was told that a task went, and it did not because of a kill, is told that it is there:
// by whoever changes something next, or by a server that looks after the dead. Once.
func TestADeletionThatWasKilledIsTakenBack(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	for _, c := range []struct {
		point, do string
		before    string // what was done to it: "delete", or "purge" and made again
		want      []string
		redo      string // what is left to be done again
	}{
		{"trash.marked", "delete=moving", "", []string{"deleted", "there"}, ""},
		{"trash.marked", "delete=moving", "purge", []string{"deleted", "deleted", "deleted", "there"}, ""},
		{"trash.moved", "delete=moving", "", []string{"deleted"}, ""},
		{"restore.moved", "restore=moving", "delete", []string{"deleted", "there"}, "delete"},
		{"restore.chosen", "restore=moving", "delete", []string{"deleted"}, ""},
	} {
		for who, next := range map[string]func(*store.Store) error{
			"a server": func(s *store.Store) error { return s.Announce(context.Background(), overlayRef(s)) },
			"a change": func(s *store.Store) error {
				ref, err := s.Find(context.Background(), "other")
				if err == nil {
					_, err = trash.Delete(context.Background(), s, ref)
				}
				return err
			},
		} {
			t.Run(c.before+" "+c.point+" "+c.do+", then "+who, func(t *testing.T) {
				t.Parallel()
				root := t.TempDir()
				s := storetest.Open(t, root)
				for _, id := range []string{"moving", "other"} {
					storetest.Close(t, storetest.Create(t, s, id))
				}
				if c.before != "" {
					storetest.Delete(t, s, "moving")
				}
				if c.before == "purge" {
					storetest.Must[api.DeletedTask](t)(trash.Purge(t.Context(), s, "moving"))
					storetest.Close(t, storetest.Create(t, s, "moving"))
				}
				out, err := process(t, "organise", "STORE_TEST_ROOT="+root, "STORE_TEST_DO="+c.do, "ROOST_FAILPOINT="+c.point).CombinedOutput()
				if err == nil {
					t.Fatalf("not killed: %s", out)
				}
				for range 2 {
					if err := next(s); who == "a server" && err != nil {
						t.Fatal(err)
					}
				}
				if got := saysOf(t, s, "moving"); !slices.Equal(got, c.want) {
					t.Errorf("it says %q, want %q", got, c.want)
				}
				// What it says is true, and goes on being so.
				there := c.want[len(c.want)-1] == "there"
				if _, err := s.Find(context.Background(), "moving"); (err == nil) != there {
					t.Errorf("it is there: %v", err)
				}
				listed, err := actions.Find(context.Background(), s, "moving")
				if err != nil {
					t.Fatal(err)
				}
				redo := ""
				if len(listed.Redo) > 0 {
					redo = listed.Redo[0].Kind
				}
				if redo != c.redo {
					t.Errorf("%q can be done again, want %q", redo, c.redo)
				}
				if there {
					storetest.Delete(t, s, "moving")
					if got := saysOf(t, s, "moving"); !slices.Equal(got, append(c.want, "deleted")) {
						t.Errorf("deleted again: %q", got)
					}
				}
			})
		}
	}
}

func overlayRef(s *store.Store) store.Ref {
	ref, _ := s.LogRef("~", "overlay")
	return ref
}
