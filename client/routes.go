package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/roost-dev/roost/api"
)

// get reads a document.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (doc T, err error) {
	_, err = c.Do(ctx, http.MethodGet, path, query, nil, &doc)
	return doc, err
}

// post makes a change, and reads the document that answers it.
func post[T any](ctx context.Context, c *Client, path string, body any) (doc T, err error) {
	_, err = c.Do(ctx, http.MethodPost, path, nil, body, &doc)
	return doc, err
}

// all reads every page of a list.
func all[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	var items []T
	if query == nil {
		query = url.Values{}
	}
	for {
		p, err := get[api.Page[T]](ctx, c, path, query)
		if err != nil {
			return nil, err
		}
		items = append(items, p.Items...)
		if p.Next == nil || *p.Next == query.Get("cursor") {
			return items, nil
		}
		query.Set("cursor", *p.Next)
	}
}

// Task returns a task.
func (c *Client) Task(ctx context.Context, id string) (api.Summary, error) {
	return get[api.Summary](ctx, c, taskPath(id), nil)
}

// Tasks returns a page of tasks; the query is that of GET /v1/tasks, see api.TaskFilter.Query.
func (c *Client) Tasks(ctx context.Context, query url.Values) (api.Page[api.Summary], error) {
	return get[api.Page[api.Summary]](ctx, c, "/v1/tasks", query)
}

// Search returns a page of messages that hold a query; the parameters are those of GET /v1/search.
func (c *Client) Search(ctx context.Context, query url.Values) (api.Page[api.Hit], error) {
	return get[api.Page[api.Hit]](ctx, c, "/v1/search", query)
}

// Names returns the ids of all tasks, and where they are.
func (c *Client) Names(ctx context.Context) (api.Names, error) {
	return get[api.Names](ctx, c, "/v1/names", nil)
}

// Tree returns a task with its subtasks.
func (c *Client) Tree(ctx context.Context, id string) (api.Branch, error) {
	return get[api.Branch](ctx, c, taskPath(id, "tree"), nil)
}

// Messages returns a window of what the user saw; the query is that of GET /v1/tasks/{id}/messages.
func (c *Client) Messages(ctx context.Context, id string, query url.Values) (api.Window, error) {
	return get[api.Window](ctx, c, taskPath(id, "messages"), query)
}

// History returns a window of what the model saw; the query is that of GET /v1/tasks/{id}/history.
func (c *Client) History(ctx context.Context, id string, query url.Values) (api.Window, error) {
	return get[api.Window](ctx, c, taskPath(id, "history"), query)
}

// Files returns the files that the model of a task knows.
func (c *Client) Files(ctx context.Context, id string, query url.Values) (api.KnownFiles, error) {
	return get[api.KnownFiles](ctx, c, taskPath(id, "files"), query)
}

// Usage returns what a task spent.
func (c *Client) Usage(ctx context.Context, id string) (api.Usage, error) {
	return get[api.Usage](ctx, c, taskPath(id, "usage"), nil)
}

// Start makes a task and runs it when it has a message. Without a message the ID of the run is "".
func (c *Client) Start(ctx context.Context, t api.NewTask) (api.Run, error) {
	made, err := post[api.Started](ctx, c, "/v1/tasks", t)
	if err != nil {
		return api.Run{}, err
	}
	if made.Run == nil {
		return api.Run{Task: made.Task, State: made.Status, Mode: made.Mode, Provider: made.Provider, Model: made.Model}, nil
	}
	return *made.Run, nil
}

// Resume continues a task, with or without a message.
func (c *Client) Resume(ctx context.Context, id string, n api.NewRun) (api.Run, error) {
	return post[api.Run](ctx, c, taskPath(id, "runs"), n)
}

// Send sends a message to a task, in any state.
func (c *Client) Send(ctx context.Context, id string, m api.Message) (api.Sent, error) {
	return post[api.Sent](ctx, c, taskPath(id, "messages"), m)
}

// Queue returns the messages that a task has not used yet.
func (c *Client) Queue(ctx context.Context, id string) ([]api.Queued, error) {
	return all[api.Queued](ctx, c, taskPath(id, "queue"), nil)
}

// Cancel stops the run of a task, and returns when the run has ended.
func (c *Client) Cancel(ctx context.Context, id string) (api.Run, error) {
	return post[api.Run](ctx, c, taskPath(id, "cancel"), nil)
}

// Questions returns the open questions of a task, or of all tasks when task is "".
func (c *Client) Questions(ctx context.Context, task string) ([]api.Question, error) {
	query := url.Values{}
	if task != "" {
		query.Set("task", task)
	}
	return all[api.Question](ctx, c, "/v1/questions", query)
}

// Answer answers a question. The first answer wins: a later one gets a *Problem with status 409, which holds the
// first.
func (c *Client) Answer(ctx context.Context, question string, a api.Answer) (api.Answered, error) {
	return post[api.Answered](ctx, c, "/v1/questions/"+url.PathEscape(question)+"/answer", a)
}

// Run returns a run.
func (c *Client) Run(ctx context.Context, rid string) (api.Run, error) {
	return get[api.Run](ctx, c, "/v1/runs/"+url.PathEscape(rid), nil)
}

// Await returns a run when it has ended or waits for a user, or when the time is over. A server may answer earlier.
func (c *Client) Await(ctx context.Context, rid string, most time.Duration) (r api.Run, err error) {
	wait := strconv.Itoa(int(max(most, time.Second) / time.Second))
	_, err = c.Ask(ctx, Request{Path: "/v1/runs/" + url.PathEscape(rid), Header: http.Header{"Prefer": {"wait=" + wait}}}, &r)
	return r, err
}

// Runs returns a page of runs; the query is that of GET /v1/runs.
func (c *Client) Runs(ctx context.Context, query url.Values) (api.Page[api.Run], error) {
	return get[api.Page[api.Run]](ctx, c, "/v1/runs", query)
}

// RunsOf returns the newest runs of a task, the newest first.
func (c *Client) RunsOf(ctx context.Context, id string) (api.Page[api.Run], error) {
	return get[api.Page[api.Run]](ctx, c, taskPath(id, "runs"), nil)
}

// Patch changes title, tags, pin or settings of a task.
func (c *Client) Patch(ctx context.Context, id string, p api.TaskPatch) (t api.Summary, err error) {
	_, err = c.Do(ctx, http.MethodPatch, taskPath(id), nil, p, &t)
	return t, err
}

// Delete moves a task into the trash. Subtasks is keep or delete; a task with subtasks needs it.
func (c *Client) Delete(ctx context.Context, id, subtasks string) (d api.Deleted, err error) {
	query := url.Values{}
	if subtasks != "" {
		query.Set("subtasks", subtasks)
	}
	_, err = c.Do(ctx, http.MethodDelete, taskPath(id), query, nil, &d)
	return d, err
}

// Trash returns the deleted tasks, the newest first.
func (c *Client) Trash(ctx context.Context) ([]api.DeletedTask, error) {
	return all[api.DeletedTask](ctx, c, "/v1/trash", nil)
}

// Trashed returns a deleted task by its name, or by the end of one.
func (c *Client) Trashed(ctx context.Context, name string) (api.DeletedTask, error) {
	return get[api.DeletedTask](ctx, c, "/v1/trash/"+url.PathEscape(name), nil)
}

// Untrash puts a deleted task back.
func (c *Client) Untrash(ctx context.Context, name string) (api.Restored, error) {
	return post[api.Restored](ctx, c, "/v1/trash/"+url.PathEscape(name)+"/restore", nil)
}

// Purge removes deleted tasks for good.
func (c *Client) Purge(ctx context.Context, names ...string) (api.Purged, error) {
	return post[api.Purged](ctx, c, "/v1/purges", api.NewPurge{Names: names})
}

// Rewind takes both histories of a task back to a message, edits a message, or removes one.
func (c *Client) Rewind(ctx context.Context, id string, n api.NewRewind) (api.Rewound, error) {
	return post[api.Rewound](ctx, c, taskPath(id, "rewinds"), n)
}

// Actions returns what can be undone and redone of a task.
func (c *Client) Actions(ctx context.Context, id string) (api.TaskActions, error) {
	return get[api.TaskActions](ctx, c, taskPath(id, "undo"), nil)
}

// Undo undoes what was last done to a task.
func (c *Client) Undo(ctx context.Context, id string, n api.NewUndo) (api.Undone, error) {
	return post[api.Undone](ctx, c, taskPath(id, "undo"), n)
}

// Redo does again what was undone last.
func (c *Client) Redo(ctx context.Context, id string, n api.NewUndo) (api.Undone, error) {
	return post[api.Undone](ctx, c, taskPath(id, "redo"), n)
}

// Fork makes a new task with the history of another one.
func (c *Client) Fork(ctx context.Context, id string, n api.NewFork) (api.ForkResult, error) {
	return post[api.ForkResult](ctx, c, taskPath(id, "forks"), n)
}

// Condense has the older history of a task summarised.
func (c *Client) Condense(ctx context.Context, id string, n api.NewCondense) (api.Condensed, error) {
	return post[api.Condensed](ctx, c, taskPath(id, "condense"), n)
}

// Branches returns the branches of a task.
func (c *Client) Branches(ctx context.Context, id string) (api.BranchTree, error) {
	return get[api.BranchTree](ctx, c, taskPath(id, "branches"), nil)
}

// Switch makes a branch the head of a task's histories.
func (c *Client) Switch(ctx context.Context, id, branch string) (api.Head, error) {
	return post[api.Head](ctx, c, taskPath(id, "head"), api.NewHead{Branch: branch})
}

// Checkpoints returns the states of files that a task changed.
func (c *Client) Checkpoints(ctx context.Context, id string) (api.Checkpoints, error) {
	return get[api.Checkpoints](ctx, c, taskPath(id, "checkpoints"), nil)
}

// SaveCheckpoint saves a checkpoint of the files as they are now.
func (c *Client) SaveCheckpoint(ctx context.Context, id string) (api.SavedCheckpoint, error) {
	return post[api.SavedCheckpoint](ctx, c, taskPath(id, "checkpoints"), nil)
}

// Diff returns what differs between a checkpoint and another one, or now; the query is that of
// GET /v1/tasks/{id}/checkpoints/{c}/diff. "" is the checkpoint before the newest change.
func (c *Client) Diff(ctx context.Context, id, checkpoint string, query url.Values) (api.Diff, error) {
	return get[api.Diff](ctx, c, taskPath(id, "checkpoints", checkpointPath(checkpoint), "diff"), query)
}

// Restore puts the files that a task changed back as they were at a checkpoint; "" is the one before the newest change.
func (c *Client) Restore(ctx context.Context, id, checkpoint string, n api.NewRestore) (api.RestoreResult, error) {
	return post[api.RestoreResult](ctx, c, taskPath(id, "checkpoints", checkpointPath(checkpoint), "restore"), n)
}

func checkpointPath(name string) string {
	if name == "" {
		return "newest"
	}
	return url.PathEscape(name)
}

// Server returns what the server is and does.
func (c *Client) Server(ctx context.Context) (api.Server, error) {
	return get[api.Server](ctx, c, "/v1/server", nil)
}
