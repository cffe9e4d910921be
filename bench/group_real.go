package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/postgres"
)

// followed is how many tasks are followed while delays are measured.
func (l *lab) followed() int { return l.owners }

// delays measures what -parts p does, in this database.
func (l *lab) delays(ctx context.Context) error {
	var servers []*sharing
	for range 3 {
		s, err := l.share(ctx, time.Minute)
		if err != nil {
			return err
		}
		defer s.close()
		servers = append(servers, s)
	}
	late, err := sharedDelays(ctx, servers, l.followed(), min(l.singles, 500))
	l.costs.Delay, l.costs.DelayP99 = us(late.median()), us(late.p99())
	return err
}

// takeOver lets a server of three stop renewing the leases of 50 tasks, which is all that others see of its death. They take
// what is lost as cli/hosting does: each looks every second, and tries each lost lease. The run that would continue is left out.
func (l *lab) takeOver(ctx context.Context) error {
	rounds, tasks := 5, 50
	if l.quick {
		rounds, tasks = 1, 5
	}
	var took times
	for round := range rounds {
		list, err := l.takeOnce(ctx, fmt.Sprintf("lost-%d", round), tasks, time.Duration(round*170)*time.Millisecond)
		if err != nil {
			return err
		}
		took = append(took, list...)
	}
	l.costs.TakeOver, l.costs.TakeLast = us(took.median()), us(took.at(1))
	return nil
}

func (l *lab) takeOnce(ctx context.Context, prefix string, tasks int, phase time.Duration) (took times, err error) {
	dies, err := l.share(ctx, 0)
	if err != nil {
		return nil, err
	}
	lost, err := dies.own(ctx, prefix, tasks)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	taken := make(chan time.Time, tasks)
	for i := range 2 {
		s, err := l.share(ctx, 0)
		if err != nil {
			return nil, err
		}
		wait.Go(func() {
			defer s.close()
			time.Sleep(time.Duration(i) * 500 * time.Millisecond)
			var mine []journal.Owner
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					_ = disown(mine)
					return
				case <-tick.C:
				}
				names, _ := s.journals.Lost(ctx) // the next second asks again
				for _, name := range names {
					if o, err := s.journals.Own(ctx, name, postgres.OwnOptions{By: "bench", Existing: true}); err == nil {
						mine = append(mine, o)
						taken <- time.Now()
					}
				}
			}
		})
	}
	time.Sleep(2*time.Second + phase)
	died := time.Now()
	dies.journals.Close()
	for range tasks {
		select {
		case at := <-taken:
			took = append(took, at.Sub(died))
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d tasks were taken over: %w", len(took), tasks, ctx.Err())
		}
	}
	if len(taken) > 0 {
		return nil, errors.New("a task was taken over twice")
	}
	_ = disown(lost) // they are fenced
	dies.db.Close()
	return took, nil
}

// postmasterOf is the process that started the processes of a database.
func postmasterOf(ctx context.Context, db *database.DB) (int, error) {
	var pid int
	if err := db.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		return 0, fmt.Errorf("find the processes of the database: %w", err)
	}
	if parent := parentOf(pid); parent != 0 {
		return parent, nil
	}
	return 0, fmt.Errorf("find the processes of the database: process %d is gone", pid)
}
