package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/trash"
	"github.com/roost-dev/roost/task/rewind"
	"github.com/roost-dev/roost/view"
)

// ProblemOf returns the problem for an error about a task. For an unknown error the problem is "internal" without the
// error's text, which may name paths: only the log has the text.
func ProblemOf(ctx context.Context, st *store.Store, err error, id string) *api.Problem {
	var (
		own       *api.Problem
		trashed   *store.TrashedError
		ambiguous *store.AmbiguousError
		root      *store.RootError
		unread    *roofmt.UnreadError
	)
	known := cmp.Or(editProblem(err, id), BusyProblem(err), runProblem(err), SetupProblem(err), diskProblem(err))
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, store.ErrMoved):
		return MovedProblem(id)
	case known != nil:
		return known
	case errors.As(err, &trashed):
		return api.NewProblem(http.StatusNotFound, "task_not_found", "No such task", trashed.Error(), "roost trash restore "+api.ShellWord(trashed.Name))
	case errors.As(err, &ambiguous):
		p := api.NewProblem(http.StatusConflict, "ambiguous_id", "The id fits more than one task",
			fmt.Sprintf("%q fits %d tasks", Clip(ambiguous.Given), len(ambiguous.Candidates)))
		p.Suggestions, p.Candidates = ambiguous.Names(), candidates(ambiguous)
		return p
	case errors.Is(err, store.ErrNotFound):
		detail := "no task has the id " + id
		if id == "" { // one of several; the error names it
			detail = err.Error()
		} else if _, hint, ok := strings.Cut(err.Error(), "; it may lie in "); ok {
			detail += "; it may lie in " + hint
		}
		return api.NewProblem(http.StatusNotFound, "task_not_found", "No such task", detail,
			append(closest(ctx, st, id), "GET /v1/tasks?query=WORDS, which looks for words in titles and ids", "roost list")...)
	case errors.Is(err, catalog.ErrQuery):
		return api.NewProblem(http.StatusUnprocessableEntity, "validation_failed", "The query cannot be read", err.Error())
	case errors.As(err, &root):
		return api.NewProblem(http.StatusServiceUnavailable, "store_unavailable", "The root cannot be used",
			root.Path+": "+root.Check, "roost --root DIR ...").Because(err)
	case errors.As(err, &unread) && !errors.Is(err, os.ErrPermission):
		return api.NewProblem(http.StatusForbidden, "file_unreadable", "A file cannot be read",
			unread.Error()+"; the task does not continue without it", "ls -l "+unread.Path, "dmesg  # errors of the disk").Because(err)
	case errors.Is(err, os.ErrPermission):
		return forbidden(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return api.NewProblem(http.StatusServiceUnavailable, "stopping", "The answer was not finished",
			"the server is stopping, or the client went away").Because(err).Later("1")
	}
	return api.NewProblem(http.StatusInternalServerError, "internal", "The request failed",
		"the server's log has the reason, under the request's id").Because(err)
}

// forbidden returns the problem that names a file which the server may not read, and how to permit it.
func forbidden(err error) *api.Problem {
	p := api.NewProblem(http.StatusForbidden, "permission_denied", "A file may not be read",
		"permission denied: this process may not read a file of that task").Because(err)
	var (
		unread *roofmt.UnreadError
		at     *fs.PathError
	)
	path := ""
	switch {
	case errors.As(err, &unread):
		path, p.Detail = unread.Path, unread.Error()+"; the task does not continue without it"
	case errors.As(err, &at) && filepath.IsAbs(at.Path):
		path = at.Path
	}
	if path != "" {
		p.Suggestions = []string{"chmod u+r " + api.ShellWord(path), fmt.Sprintf("chown %d %s", os.Geteuid(), api.ShellWord(path))}
	}
	p.Suggestions = append(p.Suggestions, "run the server as the owner of the task's files")
	return p
}

// closest returns the ids most similar to an unknown one.
func closest(ctx context.Context, st *store.Store, id string) []string {
	refs, err := st.Refs(ctx)
	if err != nil {
		return nil
	}
	want := id[strings.IndexByte(id, ':')+1:]
	share := func(id string) int { // the length of the longest beginning or end that both have
		n := min(len(id), len(want))
		for id[:n] != want[:n] && id[len(id)-n:] != want[len(want)-n:] {
			n--
		}
		return n
	}
	var found []string
	for _, r := range refs {
		if n := share(r.ID); n >= 4 && 2*n >= len(want) && !slices.Contains(found, r.ID) {
			found = append(found, r.ID)
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return share(b) - share(a) })
	return found[:min(len(found), 3)]
}

// BusyProblem returns the problem of a task that another run or process works on; nil for other errors.
func BusyProblem(err error) *api.Problem {
	var busy *journal.BusyError
	locked := func(why string, suggestions ...string) *api.Problem {
		return api.NewProblem(http.StatusConflict, "task_locked", "Another program works on the task", why, suggestions...).Later("1")
	}
	switch {
	case errors.Is(err, engine.ErrRunning), errors.As(err, &busy) && busy.Holder.PID == os.Getpid() && filelog.Here(busy.Holder):
		return api.NewProblem(http.StatusConflict, "task_busy", "A run works on the task",
			"the run must end, or be cancelled, first", "POST /v1/tasks/{id}/messages, which reaches the run",
			"POST /v1/tasks/{id}/cancel").Later("1")
	case errors.As(err, &busy):
		return locked("the task is held by "+Clip(busy.Holder.Who()), "wait until that process has ended")
	case errors.Is(err, store.ErrForeignBusy):
		return locked("another tool is writing the task's files", "wait until that tool has finished")
	case errors.Is(err, journal.ErrFenced):
		return locked("another process has taken the task over").Later("")
	}
	return nil
}

// runProblem returns the problem for an error about runs, input or questions; nil for other errors.
func runProblem(err error) *api.Problem {
	var late *engine.AnsweredError
	var held *engine.UntrustedError
	var other *setup.OtherModelError
	var denied *engine.DeniedError
	switch {
	case errors.As(err, &denied):
		return api.NewProblem(http.StatusForbidden, "denied", "The run was denied what it needs", denied.Reason,
			"roost resume "+denied.Task).About(denied.Task)
	case errors.As(err, &other):
		p := api.NewProblem(http.StatusConflict, "other_model", "Another model would answer", other.Error(),
			`"model": "`+other.Model+`" in POST /v1/tasks/`+other.Task+`/runs, or another provider and model`)
		p.Task, p.Model = other.Task, other.Model
		return p
	case errors.As(err, &held):
		p := api.NewProblem(http.StatusConflict, "untrusted_settings", "The task is not trusted here", held.Error(),
			"roost root trust, if the root is yours", "roost serve --trust-root",
			"own_settings: true in POST /v1/tasks/{id}/runs, which ends all that is open in it")
		if held.Standing == store.Another {
			p.Suggestions = []string{"own_settings: true in POST /v1/tasks/{id}/runs, which ends all that is open in it",
				"trust_settings: true, which also keeps its policy, address and limits", "POST /v1/tasks/{id}/forks"}
		}
		p.Task = held.Task
		return p
	case errors.As(err, &late):
		return AnsweredProblem(late)
	case errors.Is(err, engine.ErrStale):
		return api.NewProblem(http.StatusConflict, "question_stale", "Another question is open now",
			"the newest event that the answer names as seen is older than the question", "GET /v1/questions")
	case errors.Is(err, engine.ErrNoQuestion):
		return api.NewProblem(http.StatusNotFound, "question_not_found", "No such question is open",
			"no open question has that id", "GET /v1/questions")
	case errors.Is(err, engine.ErrApproval):
		return api.NewProblem(http.StatusForbidden, "scope_missing", "The token does not allow that",
			engine.ErrApproval.Error()+": the token lacks the scope approve", "GET /v1/questions")
	case errors.Is(err, engine.ErrAnswer):
		return api.NewProblem(http.StatusUnprocessableEntity, "not_an_answer", "The answer does not fit the question",
			err.Error(), "GET /v1/questions")
	case errors.Is(err, engine.ErrNoRun):
		return api.NewProblem(http.StatusNotFound, "run_not_found", "No such run",
			"no run has that id", "GET /v1/runs")
	case errors.Is(err, engine.ErrInput):
		return api.NewProblem(http.StatusNotFound, "input_not_found", "No such input waits",
			"the run has taken the input, or the input never existed", "GET /v1/tasks/{id}/queue")
	case errors.Is(err, engine.ErrQueueFull):
		return api.NewProblem(http.StatusServiceUnavailable, "queue_full", "The queue is full", err.Error()).Later("5")
	case errors.Is(err, engine.ErrDraining), errors.Is(err, engine.ErrClosed):
		// No Retry-After: a drain may last for hours, and a client should not wait for its end.
		return api.NewProblem(http.StatusServiceUnavailable, "draining", "No new runs are started",
			"the server drains, or is about to stop", "roost server status", "roost server drain --off").Later("")
	}
	return nil
}

// SetupProblem returns the problem for an error in the names that a request or the settings give; nil for other
// errors.
func SetupProblem(err error) *api.Problem {
	var (
		config   *setup.Error
		unknown  *setup.UnknownProfileError
		noMode   *mode.UnknownError
		provider *llm.Error
		folder   *setup.WorkspaceError
	)
	switch {
	case errors.As(err, &folder):
		return api.NewProblem(http.StatusUnprocessableEntity, "workspace_missing", "The task needs a folder to work in",
			folder.Error(), overHTTP(folder.Fault.Try))
	case errors.As(err, &noMode):
		p := api.NewProblem(http.StatusUnprocessableEntity, "unknown_mode", "There is no such mode", noMode.Error(), noMode.Closest...)
		p.Errors = []api.Wrong{{Parameter: "/mode", Detail: noMode.Error()}}
		return p
	case errors.As(err, &unknown):
		p := api.NewProblem(http.StatusUnprocessableEntity, "unknown_profile", "The task's profile is not known here", unknown.Error(),
			"give \"profile\", or \"provider\" and \"model\", as to POST /v1/tasks/{id}/runs",
			"roost config set source_profiles."+unknown.Source+" NAME  # for all tasks of that source")
		p.Errors = []api.Wrong{{Parameter: "/profile", Detail: unknown.Error()}}
		p.Task, p.Unknown = unknown.Task, &api.UnknownProfile{Name: unknown.Profile, Source: unknown.Source}
		return p
	case errors.Is(err, setup.ErrNoModel):
		return api.NewProblem(http.StatusUnprocessableEntity, "configuration", "No model is configured",
			setup.ErrNoModel.Why, overHTTP(setup.ErrNoModel.Try))
	case errors.As(err, &config):
		return api.NewProblem(http.StatusUnprocessableEntity, "configuration", "A setting is missing or wrong",
			config.Error(), overHTTP(config.Try))
	case errors.Is(err, labels.ErrInvalid):
		return api.NewProblem(http.StatusUnprocessableEntity, "validation_failed", "The label is not valid", err.Error())
	case errors.Is(err, trash.ErrTaken):
		return api.NewProblem(http.StatusConflict, "id_taken", "Another task has that id",
			"the id of the deleted task now belongs to another task", "delete that task first")
	case errors.Is(err, store.ErrLinked):
		return api.NewProblem(http.StatusForbidden, "path_denied", "The task cannot be changed", "its folder is a link to a place outside of its storage")
	case errors.Is(err, store.ErrFolderName):
		return api.NewProblem(http.StatusForbidden, "path_denied", "The task cannot be changed", err.Error(), "roost import FOLDER  # a copy gets an id")
	case errors.As(err, &provider):
		p := api.NewProblem(http.StatusBadGateway, "provider_error", "The model was not reached", provider.Error())
		p.Retryable = provider.Retryable()
		return p
	}
	return nil
}

// diskProblem returns the problem of a change that cannot be stored; nil for other errors.
func diskProblem(err error) *api.Problem {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return api.NewProblem(http.StatusInsufficientStorage, "disk_full", "The disk is full",
			"nothing can be saved until the disk has room").Because(err).Later("")
	case errors.Is(err, journal.ErrNotSaved), errors.Is(err, syscall.EROFS):
		return api.NewProblem(http.StatusServiceUnavailable, "store_unavailable", "The disk refused the write",
			"the change could not be saved", "roost --root DIR ...  # or make this one writable").Because(err).Later("")
	case errors.Is(err, journal.ErrUntrustedLocks):
		return api.NewProblem(http.StatusServiceUnavailable, "store_unavailable", "The tasks cannot be changed here",
			"their file system keeps no locks").Because(err)
	}
	return nil
}

// editProblem returns the problem for an error about histories, branches or checkpoints; nil for other errors.
func editProblem(err error, id string) *api.Problem {
	var (
		row    *history.ReferenceError
		branch *history.BranchError
		state  *checkpoints.ReferenceError
		moved  *checkpoints.StoreMovedError
		back   *checkpoints.RolledBackError
		half   *checkpoints.HalfwayError
	)
	at := "/v1/tasks/" + id
	conflict := func(code, title string, suggestions ...string) *api.Problem {
		return api.NewProblem(http.StatusConflict, code, title, err.Error(), suggestions...)
	}
	switch {
	case errors.As(err, &row):
		p := api.NewProblem(http.StatusNotFound, "message_not_found", "There is no such message", err.Error())
		if row.Malformed || row.Ambiguous {
			p.Status, p.Code, p.Title = http.StatusUnprocessableEntity, "bad_reference", "That does not name one message"
		}
		p.Suggestions = append(p.Suggestions, api.Each(row.Candidates, rowName)...)
		return p
	case errors.As(err, &branch):
		return api.NewProblem(http.StatusNotFound, "branch_not_found", "There is no such branch", err.Error(),
			append(branch.Candidates, "GET "+at+"/branches")...)
	case errors.Is(err, rewind.ErrNothingToCut):
		return api.NewProblem(http.StatusNotFound, "nothing_to_rewind", "There is nothing to take back", err.Error(), "GET "+at+"/messages")
	case errors.Is(err, rewind.ErrFirstMessage), errors.Is(err, rewind.ErrShared):
		return conflict("not_alone", "That message cannot be removed alone", "POST "+at+`/rewinds {"to":"MESSAGE"}`)
	case errors.Is(err, engine.ErrTooShort):
		return api.NewProblem(http.StatusConflict, "too_short", "There is nothing to summarise",
			"there is too little before the newest messages")
	case errors.As(err, &state):
		p := api.NewProblem(http.StatusNotFound, "checkpoint_not_found", "There is no such checkpoint", err.Error(),
			"GET "+at+"/checkpoints")
		for _, c := range state.Candidates {
			p.Suggestions = append(p.Suggestions, c.Name()+"  "+view.CheckpointReason(c.Reason)+"  "+view.CheckpointTitle(c.Title))
		}
		return p
	case errors.Is(err, checkpoint.ErrShownChanged):
		return conflict("difference_changed", "The file or the hunk is not the one that was shown", "GET "+at+"/checkpoints/{c}/diff")
	case errors.Is(err, checkpoints.ErrNone):
		return api.NewProblem(http.StatusNotFound, "no_checkpoints", "The task has no checkpoints", "nothing that the task did changed a file")
	case errors.As(err, &moved):
		return conflict("workspace_moved", "The task's files were in another folder then", `name the folder: {"workspace":"DIR"}`)
	case errors.Is(err, checkpoint.ErrRefused):
		return conflict("workspace_refused", "Files of that folder are not put back", "GET "+at+"/checkpoints")
	case !errors.As(err, &half) && (errors.Is(err, checkpoint.ErrDamaged) || errors.Is(err, checkpoint.ErrUnkept)):
		return api.NewProblem(http.StatusUnprocessableEntity, "damaged", "The content to put back is damaged, or was not kept",
			"no file was changed: "+err.Error(), "GET "+at+"/checkpoints", "roost doctor --repair")
	case errors.As(err, &back):
		return api.NewProblem(http.StatusInternalServerError, "rolled_back", "The restore failed, and everything is as before",
			back.Error(), "GET "+at+"/checkpoints").Because(err)
	case errors.As(err, &half):
		return api.NewProblem(http.StatusInternalServerError, "restoring", "The restore failed halfway", half.Error(),
			"the same request again, after the cause is removed").Because(err).Later("")
	}
	return nil
}

// rowName returns the name of a message for users.
func rowName(r api.Row) string {
	text := fmt.Sprintf("#%d %s", r.Number, strings.TrimPrefix(strings.TrimPrefix(r.Kind, "say:"), "ask:"))
	if r.Text != "" {
		text += ` "` + r.Text + `"`
	}
	return text
}

// UndoProblem returns the problem of an undo or redo that changed nothing; it returns other errors unchanged.
func UndoProblem(err error, o actions.Options, d api.TaskActions) error {
	var (
		other *actions.ConflictError
		went  *actions.ContinuedError
		since *checkpoints.ChangedSinceError
	)
	id := cmp.Or(d.Name, d.Task.ID)
	at, word := "/v1/tasks/"+url.PathEscape(id), api.ShellWord(id)
	p := api.NewProblem(http.StatusConflict, "", "", err.Error()).About(d.Task.ID)
	switch {
	case errors.As(err, &went):
		p.Code, p.Title = "went_on", "The task was continued since"
		p.Suggestions = []string{"POST " + at + `/forks {"branch":"` + went.Branch + `"}`, "GET " + at + "/branches",
			"roost fork " + word + " --branch " + went.Branch, "roost show " + word + " --branches",
			"roost resume " + word + " --branch " + went.Branch}
	case errors.As(err, &since):
		p.Code, p.Title = "changed_since", "The files cannot go back as they came"
		p.Suggestions = []string{fmt.Sprintf(`POST %s/checkpoints/c%d/restore {"dry_run":true}`, at, since.Safety),
			fmt.Sprintf("roost checkpoint restore %s c%d --dry-run", word, since.Safety)}
	case errors.Is(err, actions.ErrNothing):
		p.Status, p.Code, p.Title, p.Detail = http.StatusNotFound, "nothing_to_undo", "There is nothing to take back",
			"nothing that was done to it can be taken back"
		if o.Redo {
			p.Code, p.Title, p.Detail = "nothing_to_redo", "There is nothing to do again",
				"nothing was taken back since the last thing that was done to it"
		}
	case errors.As(err, &other):
		p.Code, p.Title, p.Retryable = "changed_meanwhile", "Another action came first", true
		p.Detail, p.Suggestions = "nothing was changed: "+other.Error(), []string{"GET " + at + "/undo", "roost undo --list " + word}
	case errors.Is(err, trash.ErrTaken):
		p.Code, p.Title, p.Detail = "task_exists", "Another task has its place",
			"another task has that id now; both stay as they are"
		p.Suggestions = []string{"roost delete " + api.ShellWord(d.Task.ID) + " && roost trash restore " + api.ShellWord(d.QualifiedName())}
	default:
		return err
	}
	return p
}

// ConflictProblem returns the problem of a restore that could only overwrite changes of others.
func ConflictProblem(r api.RestoreResult) *api.Problem {
	items := r.Conflicts
	names := api.Each(items[:min(len(items), 5)], func(i api.RestoreItem) string { return i.Path })
	if n := len(items) - len(names); n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	why := "another program or the user changed it since"
	first := items[0].Why
	other := func(i api.RestoreItem) bool { return !i.Doubt || i.Why != first }
	if first != "" && !slices.ContainsFunc(items, other) {
		why = first
	}
	return api.NewProblem(http.StatusConflict, "checkpoint_conflict", "Every file changed since and was kept",
		strings.Join(names, ", ")+": "+why+", so the restore left it as it is", `{"on_conflict":"merge"}`, `{"on_conflict":"overwrite"}`,
		"roost checkpoint restore "+api.ShellWord(r.ID)+" "+r.To.Name()+" --on-conflict merge  # or overwrite").About(r.ID)
}

// MovedProblem refuses a change of a task that has changed since the state that If-Match names.
func MovedProblem(task string) *api.Problem {
	return api.NewProblem(http.StatusPreconditionFailed, "etag_mismatch", "The task changed since",
		"its state is not the one that If-Match names", "GET /v1/tasks/"+task)
}

// overHTTP turns the engine's advice into advice for HTTP: the engine names flags, except in a whole command line.
func overHTTP(try string) string {
	switch try {
	case "name the folder with -C DIR":
		return NameFolder
	case "name a YAML file with --model":
		return NameScript
	}
	return try
}

// Advice for a request or task that names a missing folder or file.
const (
	NameFolder = `give "workspace", an absolute folder of the server's machine, as to POST /v1/tasks/{id}/runs`
	NameScript = `give "model", a YAML file of the server's machine, as to POST /v1/tasks/{id}/runs`
)

// candidates returns the tasks that an ambiguous id matches, as far as they were read.
func candidates(e *store.AmbiguousError) (out []api.Candidate) {
	names := ShortNames(e.All, e.Tasks)
	for i, t := range e.Tasks {
		tool := e.Candidates[i].Tool
		if e.Candidates[i].Own {
			tool = api.OwnSource
		}
		out = append(out, api.Candidate{Name: names[t.Key()], Title: t.Title, Tool: tool, TS: t.TS})
	}
	return out
}

// Clip shortens a client's text for an answer.
func Clip(text string) string { return api.Shorten(text, 100) }

// AnsweredProblem refuses a late answer and shows the first one.
func AnsweredProblem(e *engine.AnsweredError) *api.Problem {
	p := api.NewProblem(http.StatusConflict, "question_answered", "The question was answered already", "by "+e.Answer.By,
		"GET /v1/tasks/"+url.PathEscape(e.Task)+"/messages")
	if e.Answer.Reason != "" {
		p.Detail = "the run no longer waits for an answer: " + e.Answer.Reason
	}
	p.Answer = &api.Answered{Question: e.Task + "." + e.Question, Task: e.Task, Approve: e.Answer.Approve, Text: e.Answer.Text, By: e.Answer.By}
	return p.About(e.Task)
}

// LocalProblem returns the problem for an error of a lower package, in the words of a command line, for a front door
// on this machine; nil for other errors. It checks more specific errors first.
func LocalProblem(err error) *api.Problem {
	var (
		trashed   *store.TrashedError
		ambiguous *store.AmbiguousError
		noMode    *mode.UnknownError
		busy      *journal.BusyError
		root      *store.RootError
		unread    *roofmt.UnreadError
	)
	switch {
	case errors.As(err, &trashed):
		return api.NewProblem(http.StatusNotFound, "task_not_found", "find the task", trashed.Error(), "roost trash restore "+api.ShellWord(trashed.Name))
	case errors.As(err, &ambiguous):
		p := api.NewProblem(0, "ambiguous_id", "find task "+ambiguous.Given,
			fmt.Sprintf("%q fits %d tasks", ambiguous.Given, len(ambiguous.Candidates)), "roost show SOURCE:ID")
		p.Candidates = candidates(ambiguous)
		if names := ambiguous.Names(); len(names) > 0 {
			p.Suggestions = append([]string{"roost show " + api.ShellWord(names[0])}, names...)
		}
		return p
	case errors.Is(err, store.ErrNotFound):
		return api.NewProblem(http.StatusNotFound, "task_not_found", "find the task", err.Error(), "roost list")
	case errors.As(err, &busy), errors.Is(err, store.ErrForeignBusy):
		return api.NewProblem(http.StatusConflict, "task_busy", "own the task", err.Error(),
			"roost show ID  # or wait until the other program is done").Later("")
	case errors.Is(err, journal.ErrFenced):
		return api.NewProblem(http.StatusConflict, "task_fenced", "continue the task", err.Error(), "roost list")
	case errors.As(err, &root):
		detail := root.Check
		if root.Err != nil {
			detail += ": " + root.Err.Error()
		}
		return api.NewProblem(0, "root_unusable", "use the root "+root.Path, detail, "roost --root DIR ...")
	case errors.Is(err, journal.ErrUntrustedLocks):
		return api.NewProblem(0, "untrusted_locks", "take the lock", err.Error(), "roost --root DIR ... on a local disk")
	case errors.As(err, &noMode):
		return SetupProblem(err)
	case errors.As(err, &unread):
		path := "'" + strings.ReplaceAll(unread.Path, "'", `'\''`) + "'"
		p := api.NewProblem(0, "file_unreadable", "read "+unread.Path,
			roofmt.Reason(unread.Err)+"; the task does not continue without it, and nothing was changed", "ls -l "+path)
		if errors.Is(unread.Err, os.ErrPermission) {
			p.Status, p.Code = http.StatusForbidden, "permission_denied"
			p.Suggestions = []string{"chmod u+r " + path + "  # or chown it, or run roost as its owner"}
		}
		return p
	}
	return nil
}
