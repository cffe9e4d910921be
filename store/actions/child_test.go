package actions_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/trash"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/store"
)

func TestMain(m *testing.M) {
	if os.Getenv("STORE_TEST_ROLE") == "" {
		goleak.VerifyTestMain(m)
		return
	}
	s, err := store.Open(store.Options{
		Root:    os.Getenv("STORE_TEST_ROOT"),
		Sources: strings.Fields(os.Getenv("STORE_TEST_SOURCES")),
		Program: "second process",
	})
	if err == nil {
		err = organise(context.Background(), s)
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// process starts this test binary again, as a second process.
func process(t testing.TB, role string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	storetest.Check(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "STORE_TEST_ROLE="+role, failpoint.Env+"=")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// organise is what a child process does to tasks: words of STORE_TEST_DO, each a
// verb and a task.
func organise(ctx context.Context, s *store.Store) error {
	for step := range strings.FieldsSeq(os.Getenv("STORE_TEST_DO")) {
		verb, id, _ := strings.Cut(step, "=")
		var err error
		switch verb {
		case "restore":
			_, err = trash.Restore(ctx, s, id)
		case "undo", "redo":
			_, _, err = actions.Undo(ctx, s, id, actions.Options{Redo: verb == "redo"})
		case "purge":
			_, err = trash.Purge(ctx, s, id)
		case "list":
			_, err = s.List(ctx, store.Filter{})
		default:
			var ref store.Ref
			if ref, err = s.Find(ctx, id); err != nil {
				break
			}
			if verb == "delete" {
				_, err = trash.Delete(ctx, s, ref)
			} else {
				_, err = labels.Set(ctx, s, ref, labels.Change{Add: []string{verb}})
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}
