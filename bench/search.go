package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/search"
)

// searches measures the catalogue of a storage in Roo's format: how fast text goes
// into it, how large it becomes, and how long a page of hits takes, over a mix of what
// people look for. The yardstick of indexing is reading the same files.
func searches(ctx context.Context, o options) ([]row, error) {
	home := filepath.Join(o.dir, "search")
	storage, cache := filepath.Join(home, "rooveterinaryinc.roo-cline"), filepath.Join(home, "cache")
	messages, each := 40_000, 200
	switch {
	case o.full:
		messages = 200_000
	case o.quick:
		messages, each = 400, 40
	}
	t := newTalk()
	if err := t.storage(storage, messages/each, each); err != nil {
		return nil, err
	}
	s, err := store.Open(store.Options{Root: filepath.Join(home, "roost"), Cache: cache, Sources: []string{storage}, Program: "bench"})
	if err != nil {
		return nil, err
	}
	time.Sleep(100 * time.Millisecond) // what was written just now is not kept
	begun := time.Now()
	for i := range messages / each {
		for _, name := range []string{roofmt.UIName, roofmt.APIName} {
			if err := drain(filepath.Join(taskIn(storage, i), name)); err != nil {
				return nil, err
			}
		}
	}
	reading := time.Since(begun)
	begun = time.Now()
	first, err := search.Run(ctx, s, api.SearchQuery{Text: "begin", Filter: api.TaskFilter{Limit: pageOfHits}})
	if err != nil {
		return nil, err
	}
	took := time.Since(begun)
	size, err := fileSize(filepath.Join(cache, catalog.Name))
	if err != nil {
		return nil, err
	}
	rows := []row{
		{what: fmt.Sprintf("9 index %d messages of %d tasks", messages, first.Tasks), got: fmt.Sprintf("%s, %.1f MB of text/s", ms(took), float64(t.bytes)/(1<<20)/took.Seconds()),
			floor: "read the files " + ms(reading), ratio: over(took, reading), bar: ">= 8 MB/s"},
		{what: "9 size of the catalogue", got: mb(size), floor: "text " + mb(t.bytes), ratio: over(size, t.bytes), bar: "<= 0.80x"},
	}
	return t.queries(ctx, s, o, rows)
}

func taskIn(storage string, i int) string {
	return filepath.Join(storage, "tasks", fmt.Sprintf("task-%04d", i))
}

// storage makes a storage in Roo's format.
func (t *talk) storage(dir string, tasks, each int) error {
	for i := range tasks {
		task := taskIn(dir, i)
		if err := os.MkdirAll(task, 0o700); err != nil {
			return fmt.Errorf("make a storage: %w", err)
		}
		ui, api := t.task(baseTS+int64(i)*3_600_000, each)
		for name, data := range map[string][]byte{roofmt.UIName: ui, roofmt.APIName: api} {
			if err := os.WriteFile(filepath.Join(task, name), data, 0o600); err != nil {
				return fmt.Errorf("make a storage: %w", err)
			}
		}
	}
	return nil
}

// pageOfHits is what a terminal or a page asks for.
const pageOfHits = 50

// kindOfQuery is something that people look for.
type kindOfQuery struct {
	name string
	make func() string
}

func (t *talk) kinds() []kindOfQuery {
	return []kindOfQuery{
		{"common words", func() string { return t.words[t.r.IntN(60)] }},
		{"rare words", func() string { return t.words[len(t.words)/2+t.r.IntN(len(t.words)/2)] }},
		{"two words", func() string { return t.word() + " " + t.word() }},
		{"identifiers", func() string { return t.again("identifier") }},
		{"paths", func() string { return t.again("path") }},
		{"phrases", func() string { return `"` + t.again("phrase") + `"` }},
		{"substrings", func() string { return middle(t.r, t.words[t.r.IntN(len(t.words))]+t.word()) }},
		{"Chinese", func() string { return t.han[t.pick(len(t.han))] }},
		{"what is nowhere", func() string { return t.word() + "q" + t.word() + "zz" }},
	}
}

// queries runs the mix, each query once.
func (t *talk) queries(ctx context.Context, s *store.Store, o options, rows []row) ([]row, error) {
	var whole, inside times // what is asked for whole words, and inside words
	count := 40
	if o.quick {
		count = 2
	}
	for _, kind := range t.kinds() {
		var some times
		hits := 0
		for range count {
			begun := time.Now()
			got, err := search.Run(ctx, s, api.SearchQuery{Text: kind.make(), Filter: api.TaskFilter{Limit: pageOfHits}})
			if err != nil {
				return rows, err
			}
			if got.Read > 0 {
				return rows, fmt.Errorf("%d tasks were read again: %s", got.Read, strings.Join(got.Notes, "; "))
			}
			some = append(some, time.Since(begun))
			if len(got.Items) > 0 {
				hits++
			}
		}
		if kind.name == "substrings" || kind.name == "Chinese" {
			inside = append(inside, some...)
		} else {
			whole = append(whole, some...)
		}
		rows = append(rows, row{what: fmt.Sprintf("9 search, %s, %d of %d found", kind.name, hits, count), got: "median " + ms(some.median()), floor: "p95 " + ms(some.at(0.95))})
	}
	group := func(what string, got times, bar string) row {
		return row{
			what:  fmt.Sprintf("9 search, %s, all %d", what, len(got)),
			got:   "p95 " + ms(got.at(0.95)),
			floor: "median " + ms(got.median()),
			bar:   bar,
		}
	}
	return append(rows, group("words and phrases", whole, "p95 <= 80 ms"), group("parts of words and Chinese", inside, "p95 <= 300 ms")), nil
}

// middle cuts a piece out of the middle of a word.
func middle(r *rand.Rand, w string) string {
	if len(w) < 5 {
		return w
	}
	from := 1 + r.IntN(len(w)-4)
	return w[from:min(len(w), from+3+r.IntN(4))]
}
