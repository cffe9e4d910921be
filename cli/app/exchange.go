package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/roost-dev/roost/client"
)

// PathOf is the path of something of a task.
func PathOf(id string, rest ...string) string {
	return "/v1/tasks/" + strings.Join(append([]string{url.PathEscape(id)}, rest...), "/")
}

// SetQuery puts a parameter into a query, unless it is empty.
func SetQuery(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

// DocumentOf gets a document from a server: with --json it prints the server's bytes, else it
// calls show.
func DocumentOf[T any](ctx context.Context, a *App, c *client.Client, path string, query url.Values, show func(T) error) error {
	return Exchange(ctx, a, c, client.Request{Method: http.MethodGet, Path: path, Query: query}, show)
}

// Exchange is documentOf for any request.
func Exchange[T any](ctx context.Context, a *App, c *client.Client, r client.Request, show func(T) error) error {
	var doc json.RawMessage
	watched, shown := a.Watched(ctx)
	_, err := c.Ask(watched, r, &doc)
	shown()
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintRaw(doc)
	}
	var v T
	if err := json.Unmarshal(doc, &v); err != nil {
		return fmt.Errorf("read the answer of the server %s: %w", c.Base(), err)
	}
	return show(v)
}

// PrintRaw prints a document as it came.
func (a *App) PrintRaw(doc []byte) error {
	if n := len(doc); n == 0 || doc[n-1] != '\n' {
		doc = append(doc, '\n')
	}
	if _, err := a.Out.Write(doc); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}
