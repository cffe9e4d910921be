package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/catalog/postgres"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/search"
)

// sharedCatalog measures lists and searches with a catalogue in PostgreSQL, which several servers can share, turn about with
// the same ones over the file of the cache folder.
func sharedCatalog(ctx context.Context, o options) (rows []row, err error) {
	tasks, rounds := 10_000, 15
	if o.quick {
		tasks, rounds = 40, 2
	}
	const each = 6
	home := filepath.Join(o.dir, "shared")
	storage, cache := filepath.Join(home, "rooveterinaryinc.roo-cline"), filepath.Join(home, "cache")
	t := newTalk()
	if err := t.storage(storage, tasks, each); err != nil {
		return nil, err
	}
	cluster, db, err := emptyDatabase(ctx)
	if errors.Is(err, pgtest.ErrNotInstalled) {
		return []row{{what: "d lists and searches in PostgreSQL", got: "it is not installed", floor: "-", ratio: "-", bar: "-"}}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		db.Close()
		err = errors.Join(err, cluster.Remove())
	}()
	var both [2]*store.Store // the file first
	for i, opt := range []store.Options{{Cache: cache}, {Catalog: postgres.Open(db)}} {
		opt.Root, opt.Sources, opt.Program = filepath.Join(home, "roost"), []string{storage}, "bench"
		if both[i], err = store.Open(opt); err != nil {
			return nil, err
		}
	}
	time.Sleep(100 * time.Millisecond) // what was written just now is not kept
	compare := func(what, bar string, rounds int, f func(i, round int) error) error {
		var took [2]times
		for round := range rounds {
			for i := range both {
				begun := time.Now()
				if err := f(i, round); err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
				took[i] = append(took[i], time.Since(begun))
			}
		}
		got, floor := took[1].median(), took[0].median()
		rows = append(rows, row{what: "d " + what, got: ms(got) + ", p95 " + ms(took[1].at(0.95)), floor: "file " + ms(floor), ratio: over(got, floor), bar: bar})
		return nil
	}
	list := func(i, _ int) error {
		got, err := both[i].List(ctx, store.Filter{TaskFilter: api.TaskFilter{Limit: pageOfHits}})
		if err == nil && len(got.Items) != min(pageOfHits, tasks) {
			err = fmt.Errorf("the list has %d tasks", len(got.Items))
		}
		return err
	}
	err = errors.Join(
		compare(fmt.Sprintf("first list of %d tasks", tasks), "", 1, list),
		compare("the list again, --limit 50", "<= 2.00x", rounds, list),
		compare(fmt.Sprintf("index %s of text", mb(t.bytes)), "", 1, func(i, _ int) error {
			got, err := search.Run(ctx, both[i], api.SearchQuery{Text: "begin", Filter: api.TaskFilter{Limit: pageOfHits}})
			if err == nil && len(got.Notes) > 0 {
				err = errors.New(got.Notes[0])
			}
			return err
		}),
	)
	for _, kind := range t.kinds() {
		if err != nil {
			return rows, err
		}
		queries := make([]string, rounds)
		for i := range queries {
			queries[i] = kind.make()
		}
		var hits [2]int
		err = compare("search, "+kind.name, "<= 2.00x", rounds, func(i, round int) error {
			got, err := search.Run(ctx, both[i], api.SearchQuery{Text: queries[round], Filter: api.TaskFilter{Limit: pageOfHits}})
			if err == nil && got.Read > 0 {
				err = fmt.Errorf("%d tasks were read again", got.Read)
			}
			hits[i] += len(got.Items)
			return err
		})
		if err == nil && hits[0] != hits[1] {
			err = fmt.Errorf("%s: %d hits by the database, %d by the file", kind.name, hits[1], hits[0])
		}
	}
	if err != nil {
		return rows, err
	}
	size, err := fileSize(filepath.Join(cache, catalog.Name))
	if err != nil {
		return rows, err
	}
	var inDatabase int64
	if err := db.QueryRow(ctx, `
SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relname LIKE 'catalog\_%' AND relkind = 'r'`).Scan(&inDatabase); err != nil {
		return rows, fmt.Errorf("measure the tables: %w", err)
	}
	return append(rows, row{what: "d size of the catalogue", got: mb(inDatabase), floor: "file " + mb(size), ratio: over(inDatabase, size)}), nil
}
