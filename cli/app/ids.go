package app

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
)

// shortestID is the least length of a shortened id: the next tasks would make shorter ones ambiguous.
const shortestID = 6

// ShortIDs shortens ids of tasks for people: to the shortest end that no other id ends or begins with. It returns whole
// ids when the tasks cannot be listed.
func (a *App) ShortIDs(ctx context.Context, c *client.Client) func(id string) string {
	names, err := client.Get[api.Names](ctx, c, "/v1/names", nil)
	if err != nil {
		return func(id string) string { return id }
	}
	return func(id string) string { return shortID(names.Items, id) }
}

func shortID(names []api.Name, id string) string {
	for n := shortestID; n < len(id); n++ {
		end := id[len(id)-n:]
		if end[0] != '-' && utf8.RuneStart(end[0]) && !slices.ContainsFunc(names, func(other api.Name) bool {
			return other.ID != id && (strings.HasSuffix(other.ID, end) || strings.HasPrefix(other.ID, end))
		}) {
			return end
		}
	}
	return id
}
