package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/store"
)

// Restart is which tasks requests may restart, that is begin another run of. Input or an answer for a live run is not a
// restart, and neither is the first run of a new task. The zero value has the defaults.
type Restart struct {
	Off         bool          // requests restart no task
	OwnOnly     bool          // only tasks that were made over the API
	MaxAttempts int           // consecutive restarts of a task without progress; 0 = 3, negative = no bound
	LoadTimeout time.Duration // to find and load a task; 0 = 10 s
	Workspace   string        // of new tasks; "" = the current folder of the process
}

func (r Restart) attempts() int {
	if r.MaxAttempts == 0 {
		return 3
	}
	return r.MaxAttempts
}

func (r Restart) patience() time.Duration {
	if r.LoadTimeout <= 0 {
		return 10 * time.Second
	}
	return r.LoadTimeout
}

// mayRestart is the problem of a request that may not begin another run of its task; nil when it may, or begins none.
func (s *Service) mayRestart(ctx context.Context, c Call, id string) error {
	o := s.opt.Restart
	if !o.Off && !o.OwnOnly && o.attempts() < 0 {
		return nil
	}
	ref, err := s.store.FindLatest(ctx, id)
	if err != nil {
		return err
	}
	runs, err := s.engine.RunsOf(ctx, ref.Source+":"+ref.ID)
	if err != nil {
		return err
	}
	if len(runs) == 0 && ref.Own || len(runs) > 0 && (moving(runs[0]) || runs[0].State == "waiting") {
		return nil
	}
	var sum api.Summary
	if o.OwnOnly {
		if _, sum, err = s.load(ctx, ref.Source+":"+ref.ID); err != nil {
			return err
		}
	}
	return o.refuses(ref, sum, runs, c.runFor(ref.ID))
}

// refuses is the problem of a restart that the settings forbid: runs are newest first, and run is the one to begin. A
// request that has begun its run before is not refused.
func (r Restart) refuses(ref store.Ref, sum api.Summary, runs []engine.RunInfo, run string) error {
	if run != "" && slices.ContainsFunc(runs, func(i engine.RunInfo) bool { return i.ID == run }) {
		return nil
	}
	if r.Off {
		return restartsOff(ref.ID)
	}
	if made := sum.Origin == "api" || sum.Origin == "web"; r.OwnOnly && !(ref.Own && made) {
		p := problem(http.StatusForbidden, "restart_denied", "That task was not made here",
			"the setting restart.cross_context lets only tasks go on that were made over the API", "roost resume "+ref.ID,
			"roost config set restart.cross_context true")
		p.Task = ref.ID
		return p
	}
	in := 0
	for i, one := range runs {
		if i == len(runs)-1 || one.OwnTurns > 0 || one.State != "failed" && one.State != "interrupted" {
			break // the first run is not a restart
		}
		in++
	}
	if most := r.attempts(); most < 0 || in < most {
		return nil
	}
	p := problem(http.StatusConflict, "too_many_restarts", "The task was restarted too often",
		fmt.Sprintf("its last %d restarts ended before the model replied; the setting restart.max_attempts allows %d", in, r.attempts()),
		"roost show "+ref.ID, "roost resume "+ref.ID+"  # is not bounded",
		"roost config set restart.max_attempts "+strconv.Itoa(r.attempts()+3))
	p.Task = ref.ID
	return p
}

func restartsOff(id string) *api.Problem {
	p := problem(http.StatusForbidden, "restart_disabled", "Tasks are not restarted here",
		"the setting restart.enabled is false", "roost resume "+id, "roost config set restart.enabled true")
	p.Task = id
	return p
}

// restarts finds and reads the task to continue, and returns why it may not continue. It changes nothing.
func (s *Service) restarts(caller context.Context, c Call, given string, r *engine.Request) error {
	o := s.opt.Restart
	if o.Off {
		return restartsOff(given)
	}
	ctx, stop := context.WithTimeout(caller, o.patience())
	defer stop()
	ref, sum, err := s.load(ctx, given)
	if errors.Is(err, context.DeadlineExceeded) && caller.Err() == nil {
		p := problem(http.StatusGatewayTimeout, "load_timeout", "The task took too long to load",
			"it was not found and read within "+o.patience().String(), "ask again", "roost config set restart.load_timeout 60s")
		p.Task, p.Retryable = given, true
		return p
	}
	if err != nil {
		return s.about(caller, given, err)
	}
	if len(sum.Damaged) > 0 {
		d := sum.Damaged[0]
		p := problem(http.StatusUnprocessableEntity, "history_corrupt", "Task data is damaged", d.File+": "+d.Problem,
			"roost doctor "+ref.ID, "roost doctor --repair "+ref.ID, "roost resume "+ref.ID+"  # continues with what is whole")
		p.Task = ref.ID
		return p
	}
	r.Task, r.RunID = ref.Source+":"+ref.ID, c.runFor(ref.ID)
	runs, err := s.engine.RunsOf(ctx, r.Task)
	if err != nil {
		return s.about(caller, ref.ID, err)
	}
	return o.refuses(ref, sum, runs, r.RunID)
}

// load finds a task and reads it.
func (s *Service) load(ctx context.Context, given string) (store.Ref, api.Summary, error) {
	ref, err := s.store.FindLatest(ctx, given)
	if err != nil {
		return ref, api.Summary{}, err
	}
	v, err := s.store.Read(ctx, ref)
	if err != nil {
		return ref, api.Summary{}, err
	}
	return ref, v.Summary, errors.Join(v.Unread(), v.Close(), ctx.Err())
}
