package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/service"
)

// lookRoutes are the routes by which the command line shows tasks.
func lookRoutes() []route {
	const id = "/v1/tasks/{id}"
	return []route{
		{path: "/v1/names", summary: "The ids of all tasks and their folders, from which short names follow",
			answer: api.Names{}, document: (*Server).names},
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

func (s *Server) names(a *asked) (any, error) {
	items, err := s.service.Names(a.Context())
	return api.Names{Items: items}, err
}

func (s *Server) allActions(a *asked) (any, error) {
	all, err := s.service.AllActions(a.Context(), a.number["limit"])
	return api.PageOf(all, ""), err
}

func (s *Server) context(a *asked) (any, error) {
	return s.service.Context(a.Context(), a.id, a.text["workspace"])
}

func (s *Server) journal(a *asked) (any, error) {
	span, err := a.span()
	if err != nil {
		return nil, err
	}
	return s.service.Commits(a.Context(), a.id, span)
}

func (s *Server) lines(a *asked) (any, error) {
	span, err := a.span()
	if err != nil {
		return nil, err
	}
	o := service.LinesOptions{API: a.text["view"] == "api", Effective: a.text["view"] == "effective", Whole: a.flag["whole"]}
	return s.service.Lines(a.Context(), a.id, o, span)
}

func (s *Server) messages(a *asked) (any, error) {
	span, err := a.span()
	if err != nil {
		return nil, err
	}
	w, err := s.service.Messages(a.Context(), a.id, span)
	return windowBytes(w), err
}

func (s *Server) history(a *asked) (any, error) {
	span, err := a.span()
	if err != nil {
		return nil, err
	}
	w, err := s.service.History(a.Context(), a.id, a.text["view"] == "effective", span)
	return windowBytes(w), err
}

// windowBytes is a window as JSON. The items are copied: encoding them again would change their bytes.
func windowBytes(w api.Window) raw {
	items := []byte("[")
	for i, item := range w.Items {
		if i > 0 {
			items = append(items, ',')
		}
		items = append(items, item...)
	}
	var o esjson.Object
	o.String("task_id", w.Task)
	o.String("history", w.History)
	o.Raw("items", append(items, ']'))
	put := func(key string, v any) {
		text, _ := json.Marshal(v) // numbers and texts
		o.Raw(key, text)
	}
	put("numbers", append([]int{}, w.Numbers...))
	put("total", w.Total)
	put("next_before", w.Before)
	put("next_after", w.After)
	put("notes", append([]string{}, w.Notes...))
	put("notices", append([]api.Notice{}, w.Notices...))
	return append(raw(o.Bytes()), '\n')
}

// span is the part of a list that the parameters before, after and limit name.
func (a *asked) span() (service.Span, error) {
	out := service.Span{Limit: a.number["limit"]}
	for name, to := range map[string]*int{"before": &out.Before, "after": &out.After} {
		text, given := a.text[name]
		if !given {
			continue
		}
		n, err := strconv.Atoi(strings.TrimPrefix(text, "#"))
		if err != nil || n < 0 || name == "before" && n == 0 {
			p := problem(http.StatusUnprocessableEntity, "validation_failed", "A parameter is wrong",
				name+": want a message's number such as 12")
			p.Errors = []api.Wrong{{Parameter: name, Detail: "want a message's number such as 12"}}
			return out, p
		}
		if *to = n; name == "after" {
			*to = n + 1 // the first one
		}
	}
	return out, nil
}
