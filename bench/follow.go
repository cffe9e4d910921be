package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// followed measures what a crowd of followers of one log costs: how late each gets
// a commit after its sync, and what the owner pays for them. Some are stuck and
// never come back for more; the yardstick is the same owner without any.
func followed(ctx context.Context, o options) ([]row, error) {
	crowd, steps := 1000, 100
	if o.quick {
		crowd, steps = 100, 20
	}
	alone, _, err := crowded(ctx, filepath.Join(o.dir, "alone"), 0, 0, steps)
	if err != nil {
		return nil, err
	}
	step, late, err := crowded(ctx, filepath.Join(o.dir, "crowd"), crowd, crowd/10, steps)
	if err != nil {
		return nil, err
	}
	return []row{
		{
			what: fmt.Sprintf("6 delay to %d followers, %d stuck, p99", crowd, crowd/10),
			got:  ms(late.p99()) + ", median " + ms(late.median()), floor: "-", ratio: "-", bar: "< 50 ms",
		},
		{
			what: "6 the owner's step beside them",
			got:  ms(step.median()) + ", p99 " + ms(step.p99()), floor: ms(alone.median()) + ", p99 " + ms(alone.p99()),
			ratio: over(step.median(), alone.median()), bar: "slows nobody",
		},
	}, nil
}

// crowded runs an owner that saves a step every few milliseconds, with followers.
func crowded(ctx context.Context, dir string, followers, stuck, steps int) (taken, late times, err error) {
	log, err := filelog.Own(ctx, dir, filelog.Options{By: "bench"})
	if err != nil {
		return nil, nil, fmt.Errorf("own a log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	reader, err := filelog.OpenReader(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("follow a log: %w", err)
	}
	defer reader.Close()
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	synced := make([]time.Time, steps+2) // by sequence
	came := make([][]time.Time, followers)
	ready := make(chan struct{}, followers+stuck)
	done := make(chan struct{}, followers)
	for i := range followers + stuck {
		wait.Go(func() {
			for c, err := range reader.Follow(ctx, 1) {
				switch {
				case err != nil:
					return
				case c.Seq == 1:
					ready <- struct{}{}
				case i >= followers:
					<-ctx.Done()
					return
				default:
					came[i] = append(came[i], time.Now())
					if int(c.Seq) == steps+1 {
						done <- struct{}{}
						return
					}
				}
			}
		})
	}
	for range followers + stuck {
		<-ready
	}
	block := uiMessage(1, 5<<10)
	for i := range steps {
		begun := time.Now()
		if _, err := log.Append(ctx, journal.Draft{At: 1, By: "bench", Events: []journal.Event{block}}); err != nil {
			return nil, nil, err
		}
		if err := log.Barrier(ctx); err != nil {
			return nil, nil, err
		}
		synced[i+2] = time.Now()
		taken = append(taken, synced[i+2].Sub(begun))
		time.Sleep(5 * time.Millisecond)
	}
	for range followers {
		<-done
	}
	for _, list := range came {
		for i, at := range list {
			late = append(late, max(0, at.Sub(synced[i+2])))
		}
	}
	return taken, late, nil
}
