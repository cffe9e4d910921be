package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	journals "github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/store/feed"
	"github.com/roost-dev/roost/store/feed/feedtest"
)

func TestSuite(t *testing.T) {
	feedtest.Run(t, func(t *testing.T, small bool) feedtest.Backend {
		url := migrated(t, pgtest.Shared(t))
		return feedtest.Backend{
			Server: func(t testing.TB) feed.Log {
				s := open(t, url)
				if small {
					s.Keep(32)
				}
				return s.Feed
			},
			Delete: func(t testing.TB) {
				execute(t, url, `TRUNCATE roost.feed, roost.feed_state, roost.feed_heads`)
			},
			Child: func(_ testing.TB, task, lines string) *exec.Cmd {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), childURL+"="+url, childTask+"="+task, childLines+"="+lines)
				cmd.Stderr = os.Stderr
				return cmd
			},
		}
	})
}

// own owns a journal and commits to it until it is killed.
func own(ctx context.Context, s server, name string) error {
	o, err := s.journals.Own(ctx, name, journals.OwnOptions{By: "child"})
	if err != nil {
		return err
	}
	for i := range 200 {
		_, err := o.Append(ctx, journal.Draft{At: 1, By: "child", Events: []journal.Event{fmt.Appendf(nil, `{"child":%d}`, i)}})
		if err == nil {
			err = o.Barrier(ctx)
		}
		if err != nil {
			return err
		}
	}
	return errors.New("it was not killed")
}
