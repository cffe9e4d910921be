package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/checkpoints"
	"github.com/roost-dev/roost/task/rewind"

	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/trash"

	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/view"
)

// editProblem is the problem of an error about histories, branches or checkpoints; nil for other errors.
func editProblem(err error, id string) *Problem {
	var (
		row    *history.ReferenceError
		branch *history.BranchError
		state  *checkpoints.ReferenceError
		moved  *checkpoints.StoreMovedError
		back   *checkpoints.RolledBackError
		half   *checkpoints.HalfwayError
	)
	at := "/v1/tasks/" + id
	conflict := func(code, title string, suggestions ...string) *Problem {
		return problem(http.StatusConflict, code, title, err.Error(), suggestions...)
	}
	switch {
	case errors.As(err, &row):
		p := problem(http.StatusNotFound, "message_not_found", "There is no such message", err.Error())
		if row.Malformed || row.Ambiguous {
			p.Status, p.Code, p.Title = http.StatusUnprocessableEntity, "bad_reference", "That does not name one message"
		}
		for _, c := range row.Candidates {
			p.Suggestions = append(p.Suggestions, rowName(c))
		}
		return p
	case errors.As(err, &branch):
		return problem(http.StatusNotFound, "branch_not_found", "There is no such branch", err.Error(), append(branch.Candidates, "GET "+at+"/branches")...)
	case errors.Is(err, rewind.ErrNothingToCut):
		return problem(http.StatusNotFound, "nothing_to_rewind", "There is nothing to take back", err.Error(), "GET "+at+"/messages")
	case errors.Is(err, rewind.ErrFirstMessage), errors.Is(err, rewind.ErrShared):
		return conflict("not_alone", "That message cannot go alone", "POST "+at+`/rewinds {"to":"MESSAGE"}`)
	case errors.Is(err, engine.ErrTooShort):
		return problem(http.StatusConflict, "too_short", "There is nothing to summarise", "there is too little before the newest messages")
	case errors.As(err, &state):
		p := problem(http.StatusNotFound, "checkpoint_not_found", "There is no such checkpoint", err.Error(), "GET "+at+"/checkpoints")
		for _, c := range state.Candidates {
			p.Suggestions = append(p.Suggestions, c.Name()+"  "+view.CheckpointReason(c.Reason)+"  "+view.CheckpointTitle(c.Title))
		}
		return p
	case errors.Is(err, checkpoints.ErrNone):
		return problem(http.StatusNotFound, "no_checkpoints", "The task has no checkpoints", "nothing that it did changed a file")
	case errors.As(err, &moved):
		return conflict("workspace_moved", "The task's files lay elsewhere then", `name the folder: {"workspace":"DIR"}`)
	case errors.Is(err, checkpoint.ErrRefused):
		return conflict("workspace_refused", "That folder's files are not put back", "GET "+at+"/checkpoints")
	case !errors.As(err, &half) && (errors.Is(err, checkpoint.ErrDamaged) || errors.Is(err, checkpoint.ErrUnkept)):
		return problem(http.StatusUnprocessableEntity, "damaged", "What is to be put back is damaged, or not kept", "no file was changed: "+err.Error(), "GET "+at+"/checkpoints", "roost doctor --repair")
	case errors.As(err, &back):
		return problem(http.StatusInternalServerError, "rolled_back", "It failed, and everything is as it was", back.Error(), "GET "+at+"/checkpoints").because(err)
	case errors.As(err, &half):
		p := problem(http.StatusInternalServerError, "restoring", "It failed halfway", half.Error(), "the same request again, when what is in its way is gone").because(err)
		p.Retryable = true
		return p
	}
	return nil
}

// rowName names a message for people.
func rowName(r api.Row) string {
	text := fmt.Sprintf("#%d %s", r.Number, strings.TrimPrefix(strings.TrimPrefix(r.Kind, "say:"), "ask:"))
	if r.Text != "" {
		text += ` "` + r.Text + `"`
	}
	return text
}

// undoProblem is the problem of an undo or redo that changed nothing.
func undoProblem(err error, o actions.Options, d api.TaskActions) error {
	id := d.Name
	if id == "" {
		id = d.Task.ID
	}
	if p := undoErrors(err, o, d, id); p != nil {
		p.Task = d.Task.ID
		return p
	}
	return err
}

func undoErrors(err error, o actions.Options, d api.TaskActions, id string) *Problem {
	var (
		other *actions.ConflictError
		went  *actions.ContinuedError
		since *checkpoints.ChangedSinceError
	)
	at := "/v1/tasks/" + id
	p := problem(http.StatusConflict, "", "", err.Error())
	switch {
	case errors.As(err, &went):
		p.Code, p.Title = "went_on", "The task went on since"
		p.Suggestions = []string{"POST " + at + `/forks {"branch":"` + went.Branch + `"}`, "GET " + at + "/branches",
			"roost fork " + id + " --branch " + went.Branch, "roost show " + id + " --branches", "roost resume " + id + " --branch " + went.Branch}
	case errors.As(err, &since):
		p.Code, p.Title = "changed_since", "The task changed a file again since"
		p.Suggestions = []string{fmt.Sprintf(`POST %s/checkpoints/c%d/restore {"dry_run":true}`, at, since.Safety),
			fmt.Sprintf("roost checkpoint restore %s c%d --dry-run", id, since.Safety)}
	case errors.Is(err, actions.ErrNothing):
		p.Status, p.Code, p.Title, p.Detail = http.StatusNotFound, "nothing_to_undo", "There is nothing to take back", "nothing that was done to it can be taken back"
		if o.Redo {
			p.Code, p.Title, p.Detail = "nothing_to_redo", "There is nothing to do again", "nothing was taken back since the last thing that was done to it"
		}
	case errors.As(err, &other):
		p.Code, p.Title, p.Retryable = "changed_meanwhile", "Something else was done to it meanwhile", true
		p.Detail, p.Suggestions = "nothing was changed: "+other.Error(), []string{"GET " + at + "/undo", "roost undo --list " + id}
	case errors.Is(err, trash.ErrTaken):
		p.Code, p.Title, p.Detail = "task_exists", "Another task stands where it was", "another task of that id stands where it was; both stay as they are"
		p.Suggestions = []string{"roost delete " + d.Task.ID + " && roost trash restore " + d.QualifiedName()}
	default:
		return nil
	}
	return p
}

// conflicts is the problem of a restore that could only overwrite changes of others.
func conflicts(r api.RestoreResult) *Problem {
	items := r.Conflicts
	var names []string
	for _, i := range items[:min(len(items), 5)] {
		names = append(names, i.Path)
	}
	if n := len(items) - len(names); n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	why := "another program or the user changed it since"
	if same := func(i api.RestoreItem) bool { return i.Doubt && i.Why != "" && i.Why == items[0].Why }; !slices.ContainsFunc(items, func(i api.RestoreItem) bool { return !same(i) }) {
		why = items[0].Why
	}
	p := problem(http.StatusConflict, "checkpoint_conflict", "Every file changed since and was kept",
		strings.Join(names, ", ")+": "+why+", so that it was kept", `{"on_conflict":"merge"}`, `{"on_conflict":"overwrite"}`,
		"roost checkpoint restore "+r.ID+" "+r.To.Name()+" --on-conflict merge  # or overwrite")
	p.Task = r.ID
	return p
}
