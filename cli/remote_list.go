package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

// namer gives tasks that are shown the shortest names that find them.
type namer func(context.Context, []store.Summary) (map[string]string, error)

// namesOf names tasks of this machine.
func namesOf(s *store.Store) namer {
	return func(ctx context.Context, items []store.Summary) (map[string]string, error) {
		return shortNames(ctx, s, items)
	}
}

// farNames names a server's tasks.
func farNames(c *client.Client) namer {
	return func(ctx context.Context, items []store.Summary) (map[string]string, error) {
		var all struct {
			Items []struct{ ID, Source, Path string }
		}
		if _, err := c.Do(ctx, "GET", "/v1/names", nil, nil, &all); err != nil {
			return nil, err
		}
		refs := make([]store.Ref, len(all.Items))
		for i, r := range all.Items {
			refs[i] = store.Ref{ID: r.ID, Source: r.Source, Dir: r.Path}
		}
		return namesAmong(refs, items), nil
	}
}

// pageMost is how many rows a server gives at a time.
const pageMost = 1000

// pages gets so many items of a list that goes on at a cursor, all when limit is 0, as
// one page: each item stays the server's own bytes.
func pages(ctx context.Context, c *client.Client, path string, query url.Values, limit int) (items []json.RawMessage, next string, doc []byte, err error) {
	items, next = []json.RawMessage{}, query.Get("cursor")
	for n := 0; ; n++ {
		ask := pageMost
		if limit > 0 {
			ask = min(limit-len(items), pageMost)
		}
		query.Set("limit", strconv.Itoa(ask))
		set(query, "cursor", next)
		var one json.RawMessage
		if _, err := c.Do(ctx, "GET", path, query, nil, &one); err != nil {
			return nil, "", nil, err
		}
		var p report.Page[json.RawMessage]
		if err := json.Unmarshal(one, &p); err != nil {
			return nil, "", nil, fmt.Errorf("read the answer of the server %s: %w", c.Base(), err)
		}
		items = append(items, p.Items...)
		last := next
		if next = ""; p.Next != nil {
			next = *p.Next
		}
		if next == "" || next == last || limit > 0 && len(items) >= limit {
			if doc = one; n > 0 { // else it is the page itself
				doc = joined(items, p.Next)
			}
			return items, next, doc, nil
		}
	}
}

func joined(items []json.RawMessage, next *string) []byte {
	var b bytes.Buffer
	b.WriteString(`{"items":[`)
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(item)
	}
	cursor, _ := json.Marshal(next) // a text, or null
	b.WriteString(`],"next_cursor":` + string(cursor) + "}\n")
	return b.Bytes()
}

func decoded[T any](items []json.RawMessage) ([]T, error) {
	out := make([]T, len(items))
	for i, raw := range items {
		if err := json.Unmarshal(raw, &out[i]); err != nil {
			return nil, fmt.Errorf("read the server's list: %w", err)
		}
	}
	return out, nil
}

// filterQuery is a filter as the parameters of a list.
func filterQuery(f store.Filter) url.Values {
	q := url.Values{}
	for name, text := range map[string]string{
		"workspace": f.Workspace, "status": f.Status, "source": f.Source, "tag": f.Tag, "query": f.Query, "model": f.Model, "sort": f.Sort, "cursor": f.Cursor,
		"min_cost": costText(f.MinCost), "max_cost": costText(f.MaxCost), "since": momentText(f.Since), "until": momentText(f.Until),
	} {
		set(q, name, text)
	}
	for name, on := range map[string]bool{"tree": f.Tree, "damaged": f.Damaged, "empty": f.Empty} {
		if on {
			q.Set(name, "true")
		}
	}
	return q
}

func costText(usd *money.USD) string {
	if usd == nil {
		return ""
	}
	return usd.String()
}

// momentText is a time as parameters have it, "" for none.
func momentText(ms int64) string {
	if ms == 0 {
		return ""
	}
	return report.Stamp(ms)
}

// farList lists a server's tasks.
func (a *App) farList(cmd *cobra.Command, c *client.Client, f store.Filter, group bool) error {
	ctx := cmd.Context()
	items, next, doc, err := pages(ctx, c, "/v1/tasks", filterQuery(f), f.Limit)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printRaw(doc)
	}
	got := store.Listing{NextCursor: next}
	if got.Items, err = decoded[store.Summary](items); err != nil {
		return err
	}
	if f.Tree {
		got.Depths = depthsOf(got.Items)
	}
	var sources struct{ Items []store.SourceState }
	if _, err := c.Do(ctx, "GET", "/v1/sources", nil, nil, &sources); err != nil {
		return err
	}
	got.Sources = sources.Items
	return a.showList(cmd, got, f, group, farNames(c))
}

// depthsOf says how far below its first parent each task of a tree stands: parents come
// before their subtasks, and those before the next family.
func depthsOf(items []store.Summary) []int {
	out := make([]int, len(items))
	var above []string // the ids of the task before and those above it
	for i, t := range items {
		for len(above) > 0 && above[len(above)-1] != t.ParentID {
			above = above[:len(above)-1]
		}
		out[i] = len(above)
		above = append(above, t.ID)
	}
	return out
}

// farSearch searches a server's tasks.
func (a *App) farSearch(cmd *cobra.Command, c *client.Client, q store.SearchQuery) error {
	ctx := cmd.Context()
	query := filterQuery(q.Filter)
	query.Set("q", q.Text)
	set(query, "in", strings.Join(q.In, ","))
	set(query, "tool", q.Tool)
	set(query, "file", q.File)
	items, next, doc, err := pages(ctx, c, "/v1/search", query, q.Filter.Limit)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printRaw(doc)
	}
	got := store.SearchResult{NextCursor: next}
	if got.Items, err = decoded[store.Hit](items); err != nil {
		return err
	}
	var sources struct{ Items []store.SourceState }
	if _, err := c.Do(ctx, "GET", "/v1/sources", nil, nil, &sources); err != nil {
		return err
	}
	for _, src := range sources.Items {
		got.Tasks += src.Tasks
	}
	if len(got.Items) == 0 {
		a.noSource(q.Filter.Source, sources.Items)
	}
	for i := range got.Items { // a hit says no path; one id may stand in two sources
		t := &got.Items[i].Task
		t.Path = t.Source + ":" + t.ID
	}
	return a.showHits(cmd, got, farNames(c))
}

// flat is a tree as a family: each task behind its parent.
func flat(b report.Branch, depth int) (f family) {
	f.tasks, f.depths = append(f.tasks, b.Task), append(f.depths, depth)
	for _, child := range b.Children {
		below := flat(child, depth+1)
		f.tasks, f.depths = append(f.tasks, below.tasks...), append(f.depths, below.depths...)
	}
	return f
}
