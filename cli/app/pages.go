package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"strconv"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/local"
)

// pageMost is how many rows a server gives at a time.
const pageMost = 1000

// Listed are the items of a list, each in the bytes that the server sent, and the other members of its answer.
type Listed struct {
	Items []json.RawMessage
	Next  string
	Names map[string]string // by SOURCE:ID
	Found api.Found
}

// Doc is the list as a page.
func (l Listed) Doc() []byte { return joined(l.Items, l.Next) }

// Pages gets up to limit items of a list that continues at a cursor, all when limit is 0.
func (a *App) Pages(ctx context.Context, c *client.Client, path string, query url.Values, limit int) (out Listed, err error) {
	ctx, shown := a.Watched(ctx)
	defer shown()
	out = Listed{Items: []json.RawMessage{}, Next: query.Get("cursor"), Names: map[string]string{}}
	for {
		ask := pageMost
		if c.IsLocal() {
			ask = math.MaxInt32
		}
		if limit > 0 {
			ask = min(limit-len(out.Items), ask)
		}
		query.Set("limit", strconv.Itoa(ask))
		SetQuery(query, "cursor", out.Next)
		var p struct {
			api.Page[json.RawMessage]
			Names map[string]string
			Found *api.Found
		}
		if _, err := c.Ask(ctx, client.Request{Path: path, Query: query}, &p); err != nil {
			return out, err
		}
		out.Items = append(out.Items, p.Items...)
		maps.Copy(out.Names, p.Names)
		if p.Found != nil {
			out.Found = *p.Found
		}
		last := out.Next
		if out.Next = ""; p.Next != nil {
			out.Next = *p.Next
		}
		if out.Next == "" || out.Next == last || limit > 0 && len(out.Items) >= limit {
			return out, nil
		}
	}
}

func joined(items []json.RawMessage, next string) []byte {
	var b bytes.Buffer
	b.WriteString(`{"items":[`)
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(item)
	}
	cursor := []byte("null")
	if next != "" {
		cursor, _ = json.Marshal(next) // a text
	}
	b.WriteString(`],"next_cursor":` + string(cursor) + "}\n")
	return b.Bytes()
}

// BadCursor reports whether a list was refused because of its cursor.
func BadCursor(err error) bool {
	var p *client.Problem
	return errors.As(err, &p) && p.Code == "bad_cursor"
}

// Decoded decodes the items of a page.
func Decoded[T any](items []json.RawMessage) ([]T, error) {
	out := make([]T, len(items))
	for i, raw := range items {
		if err := json.Unmarshal(raw, &out[i]); err != nil {
			return nil, fmt.Errorf("read the server's list: %w", err)
		}
	}
	return out, nil
}

// DepthsOf are how far below its first parent each task of a tree is: parents come
// before their subtasks, and those before the next family.
func DepthsOf(items []api.Summary) []int {
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

// KeyOf is how names of tasks are found.
func KeyOf(t api.Summary) string { return t.Source + ":" + t.ID }

// Flat is a tree as a family: each task behind its parent.
func Flat(b api.Branch, depth int) (f Family) {
	f.Tasks, f.Depths = append(f.Tasks, b.Task), append(f.Depths, depth)
	for _, child := range b.Children {
		below := Flat(child, depth+1)
		f.Tasks, f.Depths = append(f.Tasks, below.Tasks...), append(f.Depths, below.Depths...)
	}
	return f
}

// Newest are the newest tasks, of one folder unless it is "", and what was found in all.
func Newest(ctx context.Context, s *local.Roost, folder string, limit int) ([]api.Summary, api.Found, error) {
	all := s.Service()
	defer all.Close()
	page, found, err := all.List(ctx, api.TaskFilter{Workspace: folder, Sort: "newest", Limit: limit})
	return page.Items, found, err
}
