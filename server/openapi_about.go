package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/roost-dev/roost/server/schema"
)

// tags are the groups of operations in the OpenAPI document.
var tags = []schema.Object{
	{"name": "tasks", "description": "Tasks of all tools: find, make, label, export and delete them."},
	{"name": "messages", "description": "The messages of a task, as the user saw them and as the model did."},
	{"name": "runs", "description": "Work on a task: start, continue and stop it, and give it words."},
	{"name": "questions", "description": "What runs ask a person, and the answers."},
	{"name": "events", "description": "What happens, as server-sent events."},
	{"name": "history", "description": "Move a task's histories and take it back: rewind, undo, fork, condense."},
	{"name": "files", "description": "Files that a task knows, and checkpoints of them."},
	{"name": "usage", "description": "Tokens and cost."},
	{"name": "server", "description": "The server itself: health, log-in, metrics, this description, its end."},
	{"name": "older call", "description": "The older restart call, in a shape of its own."},
}

// tagByPart is the group of a route by a part of its path; the last known part counts.
var tagByPart = map[string]string{
	"tasks": "tasks", "tree": "tasks", "names": "tasks", "sources": "tasks", "search": "tasks", "trash": "tasks",
	"purges": "tasks", "export": "tasks",
	"history": "messages", "lines": "messages", "journal": "messages", "messages": "messages", "context": "messages",
	"runs": "runs", "queue": "runs", "cancel": "runs", "questions": "questions", "events": "events",
	"rewinds": "history", "undo": "history", "redo": "history", "forks": "history", "condense": "history",
	"branches": "history", "head": "history",
	"files": "files", "checkpoints": "files", "usage": "usage",
	"server": "server", "healthz": "server", "readyz": "server", "login": "server", "openapi.json": "server",
	"version": "server", "metrics": "server",
}

func (rt route) tag() (tag string) {
	if rt.older {
		return "older call"
	}
	for part := range strings.SplitSeq(rt.path, "/") {
		if is, known := tagByPart[part]; known {
			tag = is
		}
	}
	return tag
}

// about describes a route: its summary, and what applies to all routes of its kind.
func (rt route) about() string {
	out := []string{rt.summary + "."}
	say := func(when bool, text string) {
		if when {
			out = append(out, text)
		}
	}
	takes := func(header string) bool { return slices.Contains(rt.headers(), header) }
	say(rt.verb() == http.MethodGet && rt.path != "/login", "It changes nothing.")
	say(takes("Last-Event-ID"), "A client that comes back with Last-Event-ID gets what it has missed. The end of a client touches no task.")
	say(takes("Idempotency-Key"), "With an Idempotency-Key it is done once, however often it is sent.")
	say(takes("If-Match"), "With If-Match it is refused when the task has changed since.")
	say(takes("Prefer"), "With Prefer: wait=N the answer comes when the run has ended or waits.")
	say(rt.open, "No token is needed.")
	return strings.Join(out, " ")
}
