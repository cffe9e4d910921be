package server

import (
	"cmp"
	"net/http"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/service"
)

// draftRoutes returns the routes of drafts, for a task or for a new one.
func draftRoutes() (list []route) {
	for _, of := range []string{"/v1/tasks/{id}/draft", "/v1/draft"} {
		list = append(list,
			route{on: "GET " + of, answer: api.Draft{}, document: shows("id", (*service.Service).Draft)},
			route{on: "PUT " + of, body: api.NewDraft{}, answer: api.Draft{}, act: puts("id", (*service.Service).ChangeDraft)},
			route{on: "DELETE " + of, act: does(func(s *service.Service, a *asked) (any, error) {
				return nil, s.DropDraft(a.Context(), a.id, a.text["revision"])
			})},
			route{on: "GET " + of + "/images/{picture}", media: "application/octet-stream",
				forms: []string{"image/png", "image/jpeg", "image/gif", "image/webp"}, serve: (*Server).draftImage})
	}
	return list
}

// completionRoutes returns the routes that complete the beginning of a word.
func completionRoutes() []route {
	document := func(s *Server, a *asked) (any, error) {
		return s.service.Completions(a.Context(), a.id, service.CompletionQuery{
			Kind:      cmp.Or(a.text["kind"], "mention"),
			Text:      a.text["text"],
			Workspace: a.text["workspace"],
			Mode:      a.text["mode"],
		})
	}
	return []route{
		{on: "GET /v1/tasks/{id}/completions", answer: api.Page[api.Completion]{}, engine: true, document: document},
		{on: "GET /v1/completions", answer: api.Page[api.Completion]{}, engine: true, document: document},
	}
}

// draftImage answers with an image of a draft. The image's name is derived from its bytes, so a browser may cache it.
func (s *Server) draftImage(w http.ResponseWriter, a *asked) *api.Problem {
	media, raw, err := s.service.DraftImage(a.Context(), a.id, a.PathValue("picture"))
	return s.sendImage(w, a, media, raw, err)
}
