package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/service"
)

// This file makes the parts of answers.

// bytesOf are the bytes of a document.
func bytesOf(doc any) ([]byte, error) {
	if t, ok := doc.(tagged); ok {
		doc = t.doc
	}
	if body, ok := doc.(raw); ok {
		return body, nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("write the answer: %w", err)
	}
	return buf.Bytes(), nil
}

func taskPath(id string) string { return "/v1/tasks/" + url.PathEscape(id) }

func runPath(id string) string { return "/v1/runs/" + url.PathEscape(id) }

// aboutTask are the headers that name the task and run of an answer.
func aboutTask(task, run string) http.Header {
	h := http.Header{"Roost-Task-Id": {task}}
	if run != "" {
		h.Set("Roost-Run-Id", run)
	}
	return h
}

// headOf are the headers that name the task and run of a document.
func headOf(doc any) http.Header {
	switch d := doc.(type) {
	case api.Run:
		return aboutTask(d.Task, d.ID)
	case api.Sent:
		return aboutTask(d.Task, d.Run)
	case api.Answered:
		return aboutTask(d.Task, d.Run)
	case api.Started:
		return aboutTask(d.Task, d.RunID)
	case api.Deleted:
		return aboutTask(d.ID, "")
	case api.DeletedTask:
		return aboutTask(d.ID, "")
	case api.Restored:
		return aboutTask(d.ID, "")
	case api.ForkResult:
		return aboutTask(d.ID, "")
	}
	return nil
}

// located adds the address of what a change made.
func located(head http.Header, path string) http.Header {
	head.Set("Location", path)
	return head
}

// pageOf is a page of a list that is whole: the cursor is how many were shown.
func pageOf[T any](a *asked, all []T) (any, error) {
	from, ok := countIn(a.text["cursor"])
	if !ok {
		return nil, service.BadCursor("list")
	}
	from = min(from, len(all))
	to := len(all)
	if limit := a.number["limit"]; limit > 0 {
		to = min(to, from+limit)
	}
	next := ""
	if to < len(all) {
		next = strconv.Itoa(to)
	}
	return api.PageOf(all[from:to], next), nil
}

// countIn reads the cursor of a list, the number of items that were shown; "" is its start.
func countIn(cursor string) (n int, ok bool) {
	if cursor == "" {
		return 0, true
	}
	n, err := strconv.Atoi(cursor)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == cursor
}
