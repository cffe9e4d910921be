package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store/actions"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// lookRoutes are the routes by which the command line shows tasks.
func lookRoutes() []route {
	const id = "/v1/tasks/{id}"
	return []route{
		{path: "/v1/names", summary: "The ids of all tasks and their folders, from which short names follow",
			answer: names{}, document: (*Server).names},
		{path: "/v1/undo", summary: "What can be taken back of all tasks, the newest first",
			answer: api.Page[api.TaskActions]{}, document: (*Server).allActions,
			params: []param{{name: "limit", kind: "number", doc: "at most this many tasks; 0 = all", most: 1000, deflt: 0}}},
		{path: id + "/lines", summary: "Messages as lines of text: a window of them, the newest when none is named",
			answer: api.Lines{}, document: (*Server).lines,
			params: with(windowParams,
				param{name: "view", kind: "word", words: []string{"ui", "api", "effective"},
					doc: "what the person saw (the default), what the model saw, or what would be sent"},
				param{name: "whole", kind: "flag", doc: "thinking unfolded, and output not cut"})},
		{path: id + "/journal", summary: "The commits of the task's journal: a window of them, the newest when none is " +
			"named", answer: api.Commits{}, document: (*Server).journal, params: windowParams},
		{path: id + "/context", summary: "What the next request is made of, in tokens", answer: api.ContextUse{},
			fails: []int{503}, document: (*Server).context, params: []param{
				{name: "workspace", kind: "text", doc: "the folder to look from, for a task that records none"},
			}},
	}
}

type names struct {
	Items []nameRow `json:"items"`
}

type nameRow struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	Path   string `json:"path"`

	Journal string `json:"journal,omitempty"` // the folder of its journal, if it is another one
}

func (s *Server) names(a *asked) (any, error) {
	refs, err := s.opt.Store.Refs(a.Context())
	out := names{Items: make([]nameRow, len(refs))}
	for i, r := range refs {
		out.Items[i] = nameRow{ID: r.ID, Source: r.Source, Path: r.Dir}
		if r.Log != r.Dir {
			out.Items[i].Journal = r.Log
		}
	}
	return out, err
}

func (s *Server) allActions(a *asked) (any, error) {
	all, err := actions.FindAll(a.Context(), s.opt.Store, a.number["limit"])
	return api.PageOf(all, ""), err
}

func (s *Server) context(a *asked) (any, error) {
	if s.opt.Engine == nil {
		return nil, problem(http.StatusServiceUnavailable, "read_only", "This server runs no tasks",
			"a server that runs tasks knows what would be sent", "roost show "+a.id+" --context")
	}
	ref, err := s.opt.Store.Find(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	req := engine.Request{Task: ref.Source + ":" + ref.ID, Choice: setup.Choice{Workspace: a.text["workspace"]}}
	use, who, err := s.opt.Engine.ContextAs(a.Context(), req)
	if err != nil {
		return nil, err
	}
	out := report.ContextUseOf(ref.ID, use, who)
	var unknown *setup.UnknownProfileError
	if who == "" {
		return out, nil
	}
	if _, err := s.opt.Engine.Context(a.Context(), req); errors.As(err, &unknown) {
		out.Unknown = &api.UnknownProfile{Name: unknown.Profile, Source: unknown.Source}
	}
	return out, nil
}

func (s *Server) journal(a *asked) (any, error) {
	span, err := a.span()
	if err != nil {
		return nil, err
	}
	return s.read(a, func(v *store.View) (any, error) {
		all, err := report.CommitsOf(a.Context(), v)
		if errors.Is(err, journal.ErrNotFound) {
			return nil, problem(http.StatusNotFound, "no_journal", "The task has no journal",
				"no program with a journal has changed it", "roost show "+v.Ref.ID+" --ui")
		}
		if err != nil {
			return nil, err
		}
		out := api.Commits{Task: v.Ref.ID, Total: len(all), Items: []api.Commit{}}
		places, forward := span.places(len(all))
		if !forward {
			slices.Reverse(places)
		}
		for _, i := range places {
			out.Items = append(out.Items, all[i])
		}
		out.Before, out.After = edges(places, span, len(all))
		return out, nil
	})
}

// edges are where a window of n messages continues; places are in order.
func edges(places []int, s span, n int) (before, after *int) {
	low, high := 0, 0
	switch {
	case len(places) > 0:
		low, high = places[0], places[len(places)-1]+1
	case s.after > 0:
		low, high = min(s.after-1, n), min(s.after-1, n)
	case s.before > 0:
		low, high = min(s.before-1, n), min(s.before-1, n)
	}
	if low > 0 {
		low++
		before = &low
	}
	if high < n {
		after = &high
	}
	return before, after
}

// lines are messages as a terminal shows them.
func (s *Server) lines(a *asked) (any, error) {
	span, err := a.span()
	if err != nil {
		return nil, err
	}
	o := export.LinesOptions{API: a.text["view"] == "api", Effective: a.text["view"] == "effective", Whole: a.flag["whole"]}
	return s.read(a, func(v *store.View) (any, error) { return linesOf(a.Context(), v, o, span) })
}

// linesBytes bounds the messages that are rendered at a time, and the text of an answer that goes forward. One
// message may have more.
const linesBytes = 1 << 20

func linesOf(ctx context.Context, v *store.View, o export.LinesOptions, span span) (api.Lines, error) {
	out := api.Lines{Task: v.Ref.ID, Items: []api.ShownMessage{}, Notes: []string{}, Questions: []string{}}
	for _, q := range v.State.Questions {
		out.Questions = append(out.Questions, q.Text)
	}
	var made []json.RawMessage
	var err error
	h, list := task.UI, v.State.UI()
	if o.API {
		h, list = task.API, v.State.API()
	}
	if o.Effective {
		made, out.Notes, err = report.Effective(v)
		if out.Notes == nil {
			out.Notes = []string{}
		}
		if made == nil {
			made = []json.RawMessage{}
		}
	} else {
		made, out.StandIn, err = report.StandIn(v, h)
	}
	if err != nil {
		return out, err
	}
	out.Total = len(list)
	isMade := made != nil || out.StandIn != ""
	if isMade {
		out.Total = len(made)
	}
	places, forward := span.places(out.Total)
	if !forward {
		slices.Reverse(places)
	}
	shown := export.NewLines(v, o)
	size, taken := 0, 0
	for len(places) > 0 && ctx.Err() == nil && !(forward && size > linesBytes) {
		n, held := 0, 0
		batch := make([]export.Element, 0, export.Together)
		for n < min(len(places), export.Together) && held < linesBytes {
			i := places[n]
			n++
			e := export.Element{Number: i + 1}
			if isMade {
				e.Raw = made[i]
			} else {
				raws, err := v.State.Raws(list[i : i+1])
				if err != nil {
					out.Notes = append(out.Notes, "message "+strconv.Itoa(i+1)+" cannot be read: "+err.Error())
					continue
				}
				e.Raw, e.Message = raws[0], list[i]
			}
			held += len(e.Raw)
			batch = append(batch, e)
		}
		for i, lines := range shown.Of(batch) {
			m := api.ShownMessage{Number: batch[i].Number, Lines: []api.Line{}}
			for _, l := range lines {
				m.Lines = append(m.Lines, api.Line{Style: string(l.Style), Text: strings.ToValidUTF8(l.Text, "\ufffd")})
				size += len(l.Text)
			}
			out.Items = append(out.Items, m)
		}
		places, taken = places[n:], taken+n
	}
	all, _ := span.places(out.Total)
	slices.Sort(all)
	if forward {
		all = all[:taken]
	}
	out.Before, out.After = edges(all, span, out.Total)
	return out, ctx.Err()
}
