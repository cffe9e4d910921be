package server

import (
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/service"
)

// routes are all routes of the server.
func routes() []route {
	return slices.Concat(
		readRoutes(),
		lookRoutes(),
		exportRoutes(),
		writeRoutes(),
		serverRoutes(),
		streamRoutes(),
		editRoutes(),
		olderRoutes(),
	)
}

// readRoutes are the routes that only read.
func readRoutes() []route {
	words := func(names []string) []string { return names }
	var groupings []string
	for _, g := range api.Groupings {
		groupings = append(groupings, string(g))
	}
	return []route{
		{path: "/healthz", summary: "Whether the process answers", open: true, answer: health{}, document: (*Server).healthz},
		{path: "/readyz", summary: "Whether tasks can be read and kept", open: true, answer: readiness{}, fails: []int{503},
			serve: (*Server).readyz},
		{path: "/login", summary: "The log-in link: sets the cookie and leads on; works once", open: true,
			media: "text/plain", forms: []string{jsonMedia},
			params: []param{{name: "key", kind: "text", doc: "what the link that roost serve printed holds"}}, serve: (*Server).login},
		{path: "/openapi.json", summary: "This description", media: jsonMedia, document: (*Server).describe},
		{path: "/v1/openapi.json", summary: "This description", media: jsonMedia, document: (*Server).describe},
		{path: "/v1/version", summary: "What the server is", answer: api.Version{}, document: (*Server).version},
		{path: "/v1/sources", summary: "The storages that tasks are read from", answer: sources{}, document: (*Server).sources},
		{path: "/v1/tasks", summary: "Tasks of all sources, newest first", answer: api.Page[api.Summary]{},
			fails: []int{400}, document: (*Server).tasks,
			params: with(taskParams,
				param{name: "query", kind: "text", doc: "only tasks whose title or id holds these words"},
				param{name: "sort", kind: "word", words: words([]string{"newest", "oldest", "cost", "tokens"}), doc: "the order"},
				param{name: "tree", kind: "flag", doc: "subtasks behind their parents, and on one page with them"},
				param{name: "damaged", kind: "flag", doc: "only damaged tasks"},
				param{name: "empty", kind: "flag", doc: "also task folders without messages"}, withParam)},
		{path: "/v1/tasks/{id}", summary: "A task", answer: api.Summary{}, document: (*Server).task},
		{path: "/v1/tasks/{id}/messages", summary: "What the person saw: a window of it, the newest when none is named",
			answer: api.Window{}, document: (*Server).messages, params: windowParams},
		{path: "/v1/tasks/{id}/history", summary: "What the model saw, or what would be sent to it now", answer: api.Window{},
			document: (*Server).history,
			params: with(windowParams, param{name: "view", kind: "word", words: words([]string{"raw", "effective"}),
				doc: "raw: as it is stored (the default); effective: what would be sent"})},
		{path: "/v1/tasks/{id}/files", summary: "The files that the model knows, each fresh, changed or missing",
			answer: api.KnownFiles{}, fails: []int{422}, document: (*Server).files,
			params: []param{
				{name: "path", kind: "text", doc: "only this file, with its records; however its path is spelled"},
				{name: "workspace", kind: "text", doc: "the folder to look in; the task's own when none is named"},
			}},
		{path: "/v1/tasks/{id}/usage", summary: "What the task spent", answer: api.Usage{}, document: ofTask((*service.Service).Usage)},
		{path: "/v1/tasks/{id}/tree", summary: "The task and its subtasks", answer: api.Branch{}, document: (*Server).tree,
			params: []param{withParam}},
		{path: "/v1/tasks/{id}/events", summary: "The task's events: those of its journal, then those that come. Labels of " +
			"other tools' tasks, and the way of any task into the trash and back, stand in no task's journal: /v1/events tells " +
			"of them", media: streamMedia, fails: []int{400, 429}, serve: (*Server).events,
			params: []param{{name: "after", kind: "text", doc: "0: from the start; the id of an event: what comes behind it; " +
				"the number of a commit: what comes behind that. Last-Event-ID goes before it. Neither: only what comes from now " +
				"on"}, typesParam}},
		{path: "/v1/search", summary: "Messages of all tasks that hold some words", answer: api.Page[api.Hit]{},
			fails: []int{400}, document: (*Server).search,
			params: with(taskParams,
				param{name: "q", kind: "text", doc: "the words; in double quotes a phrase"},
				param{name: "in", kind: "words", words: api.Scopes, doc: "only in these places, joined by commas"},
				param{name: "tool", kind: "text", doc: "only tasks in which this tool was called"},
				param{name: "file", kind: "text", doc: "only tasks in which a tool was asked for a path that holds this"}, withParam)},
		{path: "/v1/usage", summary: "What all tasks spent, in groups", answer: api.Totals{}, document: (*Server).spending,
			params: []param{
				{name: "by", kind: "word", words: groupings, doc: "the groups; by day when none is named"},
				{name: "since", kind: "time", doc: "requests from this time on"},
				{name: "until", kind: "time", doc: "requests before this time"},
				{name: "source", kind: "text", doc: "only tasks of this source"},
				{name: "workspace", kind: "text", doc: "only tasks of this folder"},
			}},
	}
}

// writeRoutes are those of tasks, runs, words, questions and the trash that change
// something, or show what is being done.
func writeRoutes() []route {
	return slices.Concat(taskRoutes(), runRoutes(), wordRoutes(), questionRoutes(), trashRoutes())
}
