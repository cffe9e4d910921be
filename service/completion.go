package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mention/complete"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/slash"
)

// CompletionQuery asks for the words that may complete the beginning of one.
type CompletionQuery struct {
	Kind string // mention, file, command, mode, model, profile, provider, effort
	Text string // what was typed, without "@" or "/" before it
	// The folder to search and the mode of the commands; a query about a task uses the task's own.
	Workspace, Mode string
}

// Completions returns the words that fit a query, the best first; id is the task that the query is about, "" = none.
func (s *Service) Completions(ctx context.Context, id string, q CompletionQuery) (api.Page[api.Completion], error) {
	none := api.PageOf([]api.Completion{}, "")
	if err := mayName(ctx, q.Workspace); err != nil {
		return none, err
	}
	if id != "" {
		t, err := s.FindLatest(ctx, id)
		if err != nil {
			return none, err
		}
		row, _, err := t.Document(ctx)
		if err != nil {
			return none, err
		}
		q.Workspace, q.Mode = row.Workspace, row.Mode
	}
	if err := folder("workspace", q.Workspace); err != nil {
		return none, err
	}
	return api.PageOf(append([]api.Completion{}, s.complete(ctx, q)...), ""), nil
}

// complete returns the words of the query's kind.
func (s *Service) complete(ctx context.Context, q CompletionQuery) []api.Completion {
	c := s.engine.Config()
	switch q.Kind {
	case "file":
		return s.files.Find(ctx, q.Workspace, q.Text, s.opt.Now())
	case "mention":
		return s.files.Mentions(ctx, q.Workspace, q.Text, s.opt.Now())
	case "command":
		commands, skills := slash.Set{Home: c.Home}, c.Skills("")
		if w, err := workspace.Open(q.Workspace); q.Workspace != "" && err == nil {
			commands.Workspace, skills = w, c.Skills(w.Root())
		}
		return complete.Commands(ctx, commands, skills, q.Mode, q.Text)
	case "mode":
		return complete.Rank(modes(c, q.Workspace), q.Text, true)
	case "model":
		return complete.Rank(models(c), q.Text, false)
	case "profile":
		return complete.Rank(profiles(c), q.Text, false)
	case "provider":
		return complete.Rank(plain(setup.Providers()), q.Text, false)
	default:
		return complete.Rank(plain(api.Efforts), q.Text, false)
	}
}

// modes returns the modes of a workspace, or, without a workspace, the modes that every workspace has.
func modes(c setup.Config, dir string) (list []api.Completion) {
	set, _ := c.Modes(dir)
	for _, m := range set.All() {
		about := m.Name
		if m.Description != "" {
			about += ": " + m.Description
		}
		list = append(list, api.Completion{Text: m.Slug, About: tool.OneLine(about), From: m.Source})
	}
	return list
}

// models returns all known models, with their windows and prices; models whose provider has a key come first.
func models(c setup.Config) (list []api.Completion) {
	for _, m := range catalogue.Offers() {
		about := []string{m.Provider}
		if m.Context > 0 {
			about = append(about, tokens(m.Context)+" context")
		}
		if p := m.Prices; p.Input != nil && p.Output != nil {
			about = append(about, fmt.Sprintf("$%s in, $%s out a million tokens", *p.Input, *p.Output))
		}
		list = append(list, api.Completion{Text: m.ID, About: strings.Join(about, ", "), From: m.Provider})
	}
	rank := func(w api.Completion) int {
		if c.Keys[w.From] != "" || c.LateKeys[w.From] != nil {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b api.Completion) int { return rank(a) - rank(b) })
	return list
}

// tokens returns a number of tokens as people write it.
func tokens(n int) string {
	if n >= 1_000_000 {
		return strconv.FormatFloat(float64(n/100_000)/10, 'f', -1, 64) + "M"
	}
	return strconv.Itoa(n/1000) + "k"
}

func profiles(c setup.Config) (list []api.Completion) {
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		p := c.Profiles[name]
		list = append(list, api.Completion{Text: name, About: strings.TrimSpace(p.Provider + " " + p.Model)})
	}
	return list
}

// plain are words that need no description.
func plain(words []string) []api.Completion {
	return api.Each(words, func(w string) api.Completion { return api.Completion{Text: w} })
}
