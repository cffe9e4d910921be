package server

import (
	"context"

	"github.com/roost-dev/roost/service"
)

// ofTask is the document of a route that shows something of a task.
func ofTask[D any](verb func(*service.Service, context.Context, string) (D, error)) func(*Server, *asked) (any, error) {
	return func(s *Server, a *asked) (any, error) { return verb(s.service, a.Context(), a.id) }
}

// listed is the document of a route that pages through a list that is whole.
func listed[D any](list func(*Server, *asked) ([]D, error)) func(*Server, *asked) (any, error) {
	return func(s *Server, a *asked) (any, error) {
		all, err := list(s, a)
		if err != nil {
			return nil, err
		}
		return pageOf(a, all)
	}
}

// change is the act of a route whose body is a document that changes a task.
func change[N, D any](verb func(*service.Service, context.Context, service.Call, string, N) (D, error)) func(*Server, *asked) (*reply, error) {
	return func(s *Server, a *asked) (*reply, error) {
		var n N
		if err := a.read(&n); err != nil {
			return nil, err
		}
		doc, err := verb(s.service, a.Context(), a.call(), a.id, n)
		return &reply{doc: doc, head: headOf(doc)}, err
	}
}
