package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/testing/crashtest/job"
)

// killsAJob is how often one job is killed on its way.
const killsAJob = 50

// jobs plays the job in every provider's dialect until about n processes were killed,
// and holds each workspace against that of a job that nobody killed.
func jobs(ctx context.Context, j job.Job, n int, seed uint64, parallel int) (int, error) {
	dir, program, err := scratch(ctx)
	if err != nil {
		return 1, err
	}
	fmt.Printf("crashloop: %d kills of the job (%s), %d at once, seed %d\n", n, j, parallel, seed)
	begun := time.Now()
	t := &tally{}
	whole := ride(ctx, t, j, program, filepath.Join(dir, "whole"), job.Providers[0], nil, 0, seed)
	turn := make(chan int)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for k := range turn {
				place := filepath.Join(dir, fmt.Sprintf("job-%d", k))
				before := t.count()
				provider, flags := job.Providers[k%len(job.Providers)], []string(nil)
				if k/len(job.Providers)%2 == 1 { // each second time what is too long is summarised
					flags = []string{"--condense-at", "90"}
				}
				got := ride(ctx, t, j, program, place, provider, flags, min(killsAJob, n), seed+uint64(k))
				if t.count() == before && ctx.Err() == nil && got != whole {
					t.trouble("%s: the workspace is another one than without kills:\n%s\nand not\n%s", place, got, whole)
				}
				if t.count() == before {
					_ = os.RemoveAll(place)
				}
			}
		})
	}
	for k := 0; k*killsAJob < n && ctx.Err() == nil; k++ {
		select {
		case turn <- k:
		case <-ctx.Done():
		}
	}
	close(turn)
	workers.Wait()
	fmt.Printf("crashloop: %d jobs completed, %d processes, %d of them killed, %d durable events printed and found, %d unknown outcomes, seed %d, %s: %d troubles\n",
		t.tasks, t.kills+t.ends, t.kills, t.durable, t.unknowns, seed, time.Since(begun).Round(time.Second), len(t.troubles))
	if len(t.troubles) > 0 {
		fmt.Println("kept:", dir)
		return 1, nil
	}
	return 0, os.RemoveAll(dir)
}

// ride plays one job to its end and gives the workspace then.
func ride(ctx context.Context, t *tally, j job.Job, program, dir, provider string, flags []string, kills int, seed uint64) string {
	r, err := job.NewRide(program, dir, provider, j, seed)
	if err != nil {
		t.trouble("%s: %v", dir, err)
		return ""
	}
	defer r.Close()
	if flags != nil {
		r.Flags = flags
	}
	if err := r.Run(ctx, kills); err != nil {
		if !errors.Is(err, context.Canceled) {
			t.trouble("%s, %s, seed %d: %v", dir, provider, seed, err)
		}
		return ""
	}
	if err := r.JudgeTasks(ctx); err != nil {
		t.trouble("%s, %s, seed %d: %v", dir, provider, seed, err)
	}
	tree, err := job.Tree(r.Bench.Workspace)
	if err != nil {
		t.trouble("%s: %v", dir, err)
	}
	unknown := 0
	for _, n := range r.Unknown() {
		unknown += n
	}
	t.add(func() {
		t.tasks++
		t.kills, t.ends = t.kills+r.Kills, t.ends+r.Rounds-r.Kills
		t.durable, t.unknowns = t.durable+r.Durable, t.unknowns+unknown
	})
	return tree
}
