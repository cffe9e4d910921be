// Command mutate breaks pure packages on purpose, one change at a time, and counts the changes that no test notices.
// A change is for example `<` where the code has `<=`, a condition that is always true, or an assignment that is left
// out. Nothing in the checkout changes: the compiler reads the changed file in place of the original (go test -overlay).
//
//	go run ./internal/testing/mutate [-n 100] [-seed 1] [PACKAGE...]
//
// Each change runs the tests of its package, and of the package that this one is a part of (task for task/rewind), with
// ROOST_VECTORS and ROOST_CORPUS as they are set. The command
// prints every change that survives, with its place. Changes that keep the meaning are listed in explained.txt with a
// reason; they are counted apart. The command ends with 1 if a survivor is not explained.
//
// Limits: a change that makes a package loop is ended after two minutes and counts as noticed. Changes that do not
// compile are drawn again. The same seed draws the same changes from the same code.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
)

// pure are the packages without disk, network and clock: their tests alone can prove them.
var pure = []string{
	"approval", "contextwindow", "esjson", "mode", "money", "redact", "resume", "roofmt", "task",
	"task/codec", "task/facts", "task/foreign", "task/rewind", "tool/linetext", "tool/patch", "usage", "view",
	"workspace/outline", "workspace/terminal",
}

//go:embed explained.txt
var explainedText string

func main() {
	n := flag.Int("n", 100, "how many changes to try")
	seed := flag.Uint64("seed", 1, "which changes are drawn")
	parallel := flag.Int("parallel", 2, "how many changes at once")
	flag.Parse()
	packages := flag.Args()
	if len(packages) == 0 {
		packages = pure
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := mutate(ctx, packages, *n, *seed, *parallel); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// mutate tries n changes of the packages and prints what survives.
func mutate(ctx context.Context, packages []string, n int, seed uint64, parallel int) error {
	var all []Mutation
	for _, pkg := range packages {
		found, err := Find(strings.TrimPrefix(pkg, "./"))
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // draws changes, no secrets
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	explained, err := parseExplained(explainedText)
	if err != nil {
		return err
	}

	var mu sync.Mutex
	var workers sync.WaitGroup
	next, counts := 0, map[Result]int{}
	take := func() (Mutation, bool) { // a change that does not compile is replaced by the next one
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil || next == len(all) || next-counts[NotBuilt] >= n {
			return Mutation{}, false
		}
		next++
		return all[next-1], true
	}
	var failed error
	for range parallel {
		workers.Go(func() {
			for m, ok := take(); ok; m, ok = take() {
				got, err := m.Test(ctx)
				mu.Lock()
				switch {
				case err != nil:
					failed = err
				case got == Survived && explained[m.Key()] != "":
					counts[Explained]++
				default:
					counts[got]++
				}
				if got == Survived && err == nil {
					fmt.Printf("%s: %s: %s\n", m.Place(), m.What, explained[m.Key()])
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if failed != nil {
		return failed
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Printf("mutate: %d changes of %d possible ones: %d noticed, %d explained, %d not noticed (seed %d)\n",
		counts[Noticed]+counts[Explained]+counts[Survived], len(all), counts[Noticed], counts[Explained], counts[Survived], seed)
	if counts[Survived] > 0 {
		return fmt.Errorf("no test notices %d of the changes above", counts[Survived])
	}
	return nil
}

// parseExplained reads lines `KEY: reason`, where the key is that of a mutation: file, function, change.
func parseExplained(text string) (map[string]string, error) {
	out := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, reason, ok := strings.Cut(line, " :: ")
		if !ok || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("explained.txt:%d: want `FILE FUNCTION CHANGE :: reason`", i+1)
		}
		out[key] = reason
	}
	return out, nil
}
