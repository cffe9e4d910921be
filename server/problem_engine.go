package server

import (
	"errors"
	"net/http"
	"os"
	"syscall"

	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/trash"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/store"
)

// workProblem is the problem of an error of working on a task; nil for other errors.
func workProblem(err error) *Problem {
	for _, say := range []func(error) *Problem{busyProblem, runProblem, setupProblem, diskProblem} {
		if p := say(err); p != nil {
			return p
		}
	}
	return nil
}

// busyProblem is about tasks that another run or process works on.
func busyProblem(err error) *Problem {
	var busy *journal.BusyError
	switch {
	case errors.Is(err, engine.ErrRunning), errors.As(err, &busy) && busy.Holder.PID == os.Getpid() && filelog.Here(busy.Holder):
		p := problem(http.StatusConflict, "task_busy", "A run works on the task", "it has to end, or to be cancelled, first", "POST /v1/tasks/{id}/messages, which reaches the run", "POST /v1/tasks/{id}/cancel")
		p.Retryable, p.after = true, "1"
		return p
	case errors.As(err, &busy):
		p := problem(http.StatusConflict, "task_locked", "Another program works on the task", "it is held by "+clip(busy.Holder.Who()), "wait until that has ended")
		p.Retryable, p.after = true, "1"
		return p
	case errors.Is(err, store.ErrForeignBusy):
		p := problem(http.StatusConflict, "task_locked", "Another program works on the task", "it writes the task's files just now", "wait until that has ended")
		p.Retryable, p.after = true, "1"
		return p
	case errors.Is(err, journal.ErrFenced):
		p := problem(http.StatusConflict, "task_locked", "Another program works on the task", "it has taken the task over")
		p.Retryable = true
		return p
	}
	return nil
}

// runProblem is about runs, input and questions.
func runProblem(err error) *Problem {
	var late *engine.AnsweredError
	var held *engine.UntrustedError
	var other *setup.OtherModelError
	switch {
	case errors.As(err, &other):
		return problem(http.StatusConflict, "other_model", "Another model would answer", other.Error(), `"model": "`+other.Model+`" in POST /v1/tasks/`+other.Task+`/runs, or another provider and model`)
	case errors.As(err, &held):
		return problem(http.StatusConflict, "untrusted_settings", "The task is not trusted here", held.Error(), "roost root trust, if the root is yours", "roost serve --trust-root", "own_settings: true in POST /v1/tasks/{id}/runs, which ends all that is open in it")
	case errors.As(err, &late):
		return answered(late)
	case errors.Is(err, engine.ErrStale):
		return problem(http.StatusConflict, "question_stale", "Something else is asked by now", "the answer names an event from before the question as the newest that was seen", "GET /v1/questions")
	case errors.Is(err, engine.ErrNoQuestion):
		return problem(http.StatusNotFound, "question_not_found", "No such question is open", "nothing that is asked goes by that", "GET /v1/questions")
	case errors.Is(err, engine.ErrAnswer):
		return problem(http.StatusUnprocessableEntity, "not_an_answer", "It does not answer that question", err.Error(), "GET /v1/questions")
	case errors.Is(err, engine.ErrNoRun):
		return problem(http.StatusNotFound, "run_not_found", "No such run", "nothing that runs, ran or waits goes by that", "GET /v1/runs")
	case errors.Is(err, engine.ErrInput):
		return problem(http.StatusNotFound, "input_not_found", "No such words wait", "the run has taken them, or they were never there", "GET /v1/tasks/{id}/queue")
	case errors.Is(err, engine.ErrQueueFull):
		p := problem(http.StatusServiceUnavailable, "queue_full", "Too much waits already", err.Error())
		p.Retryable, p.after = true, "5"
		return p
	case errors.Is(err, engine.ErrDraining), errors.Is(err, engine.ErrClosed):
		// No Retry-After: a drain may last for hours, and a client should not wait for its end.
		p := problem(http.StatusServiceUnavailable, "draining", "No new runs are started", "the server drains, or is about to stop", "roost server status", "roost server drain --off")
		p.Retryable = true
		return p
	}
	return nil
}

// setupProblem is about what a request or the settings name.
func setupProblem(err error) *Problem {
	var (
		config   *setup.Error
		unknown  *setup.UnknownProfileError
		noMode   *mode.UnknownError
		provider *llm.Error
	)
	switch {
	case errors.As(err, &noMode):
		p := problem(http.StatusUnprocessableEntity, "unknown_mode", "There is no such mode", noMode.Error(), noMode.Closest...)
		p.Errors = []Wrong{{"/mode", noMode.Error()}}
		return p
	case errors.As(err, &unknown):
		p := problem(http.StatusUnprocessableEntity, "unknown_profile", "Whom to ask is not known", unknown.Error(),
			"give \"profile\", or \"provider\" and \"model\", as to POST /v1/tasks/{id}/runs", "roost config set source_profiles."+unknown.Source+" NAME  # for all tasks of that source")
		p.Errors = []Wrong{{"/profile", unknown.Error()}}
		return p
	case errors.As(err, &config):
		return problem(http.StatusUnprocessableEntity, "configuration", "It cannot be done as things are set up", config.Error(), overHTTP(config.Try))
	case errors.Is(err, labels.ErrInvalid):
		return problem(http.StatusUnprocessableEntity, "validation_failed", "It cannot be a label", err.Error())
	case errors.Is(err, trash.ErrTaken):
		return problem(http.StatusConflict, "id_taken", "A task of that id is there", "another one stands where it should go", "delete that one first")
	case errors.Is(err, store.ErrLinked):
		return problem(http.StatusForbidden, "path_denied", "The task is not written", "its folder leads out of its storage")
	case errors.As(err, &provider):
		p := problem(http.StatusBadGateway, "provider_error", "The model was not reached", provider.Error())
		p.Retryable = provider.Retryable()
		return p
	}
	return nil
}

// diskProblem is about changes that cannot be stored.
func diskProblem(err error) *Problem {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		p := problem(http.StatusInsufficientStorage, "disk_full", "The disk is full", "nothing can be kept until there is room").because(err)
		p.Retryable = true
		return p
	case errors.Is(err, journal.ErrNotSaved), errors.Is(err, syscall.EROFS):
		p := problem(http.StatusServiceUnavailable, "store_unavailable", "The disk refused", "what was asked could not be kept").because(err)
		p.Retryable = true
		return p
	case errors.Is(err, journal.ErrUntrustedLocks):
		return problem(http.StatusServiceUnavailable, "store_unavailable", "The tasks cannot be changed here", "their file system keeps no locks").because(err)
	}
	return nil
}

// overHTTP turns the engine's advice into advice for HTTP: the engine's is about flags, unless it is a whole command.
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
