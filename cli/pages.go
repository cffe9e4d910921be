package cli

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
)

// pageMost is how many rows a server gives at a time.
const pageMost = 1000

// listed are the items of a list, each in the bytes that the server sent, and the other members of its answer.
type listed struct {
	items []json.RawMessage
	next  string
	names map[string]string // by SOURCE:ID
	found api.Found
}

// doc is the list as a page.
func (l listed) doc() []byte { return joined(l.items, l.next) }

// pages gets up to limit items of a list that continues at a cursor, all when limit is 0.
func (a *App) pages(ctx context.Context, c *client.Client, path string, query url.Values, limit int) (out listed, err error) {
	ctx, shown := a.watched(ctx)
	defer shown()
	out = listed{items: []json.RawMessage{}, next: query.Get("cursor"), names: map[string]string{}}
	for {
		ask := pageMost
		if c.IsLocal() {
			ask = math.MaxInt32
		}
		if limit > 0 {
			ask = min(limit-len(out.items), ask)
		}
		query.Set("limit", strconv.Itoa(ask))
		set(query, "cursor", out.next)
		var p struct {
			api.Page[json.RawMessage]
			Names map[string]string
			Found *api.Found
		}
		if _, err := c.Do(ctx, "GET", path, query, nil, &p); err != nil {
			return out, err
		}
		out.items = append(out.items, p.Items...)
		maps.Copy(out.names, p.Names)
		if p.Found != nil {
			out.found = *p.Found
		}
		last := out.next
		if out.next = ""; p.Next != nil {
			out.next = *p.Next
		}
		if out.next == "" || out.next == last || limit > 0 && len(out.items) >= limit {
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

// badCursor reports whether a list was refused because of its cursor.
func badCursor(err error) bool {
	var p *client.Problem
	return errors.As(err, &p) && p.Code == "bad_cursor"
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

// depthsOf are how far below its first parent each task of a tree is: parents come
// before their subtasks, and those before the next family.
func depthsOf(items []api.Summary) []int {
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

// keyOf is how names of tasks are found.
func keyOf(t api.Summary) string { return t.Source + ":" + t.ID }

// flat is a tree as a family: each task behind its parent.
func flat(b api.Branch, depth int) (f family) {
	f.tasks, f.depths = append(f.tasks, b.Task), append(f.depths, depth)
	for _, child := range b.Children {
		below := flat(child, depth+1)
		f.tasks, f.depths = append(f.tasks, below.tasks...), append(f.depths, below.depths...)
	}
	return f
}
