package filelog_test

import (
	"context"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/journal/journaltest"
)

func TestMain(m *testing.M) {
	childMain()
	refusedMain()
	goleak.VerifyTestMain(m)
}

func TestSuite(t *testing.T) { suite(t, nil) }

func TestSuiteSigned(t *testing.T) { suite(t, seal("root/task", "00000001")) }

func suite(t *testing.T, s *journal.Seal) {
	journaltest.Run(t, func(t *testing.T) journaltest.Backend {
		dir := filepath.Join(t.TempDir(), "task")
		return journaltest.Backend{
			Own: func(ctx context.Context) (journal.Owner, error) {
				return filelog.Own(ctx, dir, filelog.Options{By: "test", Seal: s})
			},
			Open: func(context.Context) (journal.Reader, error) { return filelog.OpenKnowing(dir, s, 0) },
		}
	})
}
