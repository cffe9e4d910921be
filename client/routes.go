package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/roost-dev/roost/api"
)

// Task returns a task.
func (c *Client) Task(ctx context.Context, id string) (t api.Summary, err error) {
	_, err = c.Do(ctx, http.MethodGet, taskPath(id), nil, nil, &t)
	return t, err
}

// Tasks returns a page of tasks; the query is that of GET /v1/tasks.
func (c *Client) Tasks(ctx context.Context, query url.Values) (p api.Page[api.Summary], err error) {
	_, err = c.Do(ctx, http.MethodGet, "/v1/tasks", query, nil, &p)
	return p, err
}

// Start makes a task and runs it when it has a message. Without a message the ID of the run is "".
func (c *Client) Start(ctx context.Context, t api.NewTask) (api.Run, error) {
	var made api.Started
	if _, err := c.Do(ctx, http.MethodPost, "/v1/tasks", nil, t, &made); err != nil {
		return api.Run{}, err
	}
	if made.Run == nil {
		return api.Run{Task: made.Task, State: made.Status, Mode: made.Mode, Provider: made.Provider, Model: made.Model}, nil
	}
	return *made.Run, nil
}

// Resume continues a task, with or without a message.
func (c *Client) Resume(ctx context.Context, id string, n api.NewRun) (r api.Run, err error) {
	_, err = c.Do(ctx, http.MethodPost, taskPath(id, "runs"), nil, n, &r)
	return r, err
}

// Send sends a message to a task, in any state.
func (c *Client) Send(ctx context.Context, id string, m api.Message) (s api.Sent, err error) {
	_, err = c.Do(ctx, http.MethodPost, taskPath(id, "messages"), nil, m, &s)
	return s, err
}

// Cancel stops the run of a task, and returns when the run has ended.
func (c *Client) Cancel(ctx context.Context, id string) (r api.Run, err error) {
	_, err = c.Do(ctx, http.MethodPost, taskPath(id, "cancel"), nil, nil, &r)
	return r, err
}

// Questions returns the open questions of a task, or of all tasks when task is "".
func (c *Client) Questions(ctx context.Context, task string) ([]api.Question, error) {
	var all []api.Question
	query := url.Values{}
	if task != "" {
		query.Set("task", task)
	}
	for {
		var p api.Page[api.Question]
		if _, err := c.Do(ctx, http.MethodGet, "/v1/questions", query, nil, &p); err != nil {
			return nil, err
		}
		all = append(all, p.Items...)
		if p.Next == nil || *p.Next == query.Get("cursor") {
			return all, nil
		}
		query.Set("cursor", *p.Next)
	}
}

// Answer answers a question. The first answer wins: a later one gets a *Problem with status 409, which holds the
// first.
func (c *Client) Answer(ctx context.Context, question string, a api.Answer) (out api.Answered, err error) {
	_, err = c.Do(ctx, http.MethodPost, "/v1/questions/"+url.PathEscape(question)+"/answer", nil, a, &out)
	return out, err
}

// Run returns a run.
func (c *Client) Run(ctx context.Context, rid string) (r api.Run, err error) {
	_, err = c.Do(ctx, http.MethodGet, "/v1/runs/"+url.PathEscape(rid), nil, nil, &r)
	return r, err
}

// Await returns a run when it has ended or waits for a user, or when the time is over. A server may answer earlier.
func (c *Client) Await(ctx context.Context, rid string, most time.Duration) (r api.Run, err error) {
	wait := strconv.Itoa(int(max(most, time.Second) / time.Second))
	_, err = c.Ask(ctx, Request{Path: "/v1/runs/" + url.PathEscape(rid), Header: http.Header{"Prefer": {"wait=" + wait}}}, &r)
	return r, err
}

// Runs returns a page of runs; the query is that of GET /v1/runs.
func (c *Client) Runs(ctx context.Context, query url.Values) (p api.Page[api.Run], err error) {
	_, err = c.Do(ctx, http.MethodGet, "/v1/runs", query, nil, &p)
	return p, err
}

// RunsOf returns the runs of a task, the newest first.
func (c *Client) RunsOf(ctx context.Context, id string) (p api.Page[api.Run], err error) {
	_, err = c.Do(ctx, http.MethodGet, taskPath(id, "runs"), nil, nil, &p)
	return p, err
}
