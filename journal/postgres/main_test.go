package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/postgres"
)

// childURL and childName make the test program own the journal of that name and append to it without an end.
const (
	childURL  = "POSTGRES_TEST_CHILD_URL"
	childName = "POSTGRES_TEST_CHILD_NAME"
)

func TestMain(m *testing.M) {
	if id := os.Getenv(childServer); id != "" {
		os.Exit(serve(os.Getenv(childURL), id))
	}
	if url := os.Getenv(childURL); url != "" {
		os.Exit(child(url, os.Getenv(childName)))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.StopShared()
		os.Exit(code)
	}))
}

// child prints "acked N" for each commit that was acknowledged, and "fenced" when it ends because it lost the lease.
func child(url, name string) int {
	ctx := context.Background()
	connected, err := database.Open(ctx, url)
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	db := postgres.Open(ctx, connected, postgres.Options{})
	o, err := db.Own(ctx, name, postgres.OwnOptions{By: "child"})
	if err != nil {
		fmt.Println("own:", err)
		return 1
	}
	for i := 0; ; i++ {
		if err := o.(postgres.Holder).Held(ctx, 0); errors.Is(err, journal.ErrFenced) {
			fmt.Println("fenced")
			return 0
		}
		seq, err := o.Append(ctx, journal.Draft{At: 1, By: "child", Events: []journal.Event{fmt.Appendf(nil, `{"child":%d}`, i)}})
		if err == nil {
			err = o.Barrier(ctx)
		}
		switch {
		case errors.Is(err, journal.ErrFenced):
			fmt.Println("fenced")
			return 0
		case err != nil:
			fmt.Println("append:", err)
			return 1
		}
		fmt.Println("acked", seq)
	}
}
