package setup

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// Environment is what a run with certain settings works with.
type Environment struct {
	Provider  Provider
	Workspace *workspace.Workspace
	Model     catalogue.Model
	Modes     mode.Set
	Notes     []string // for the user
}

// Open opens the workspace, the provider and the modes that settings name.
func (r Resolver) Open(s task.Settings) (Environment, error) {
	if !filepath.IsAbs(s.Workspace) { // a path of another machine: here it would name some folder below the current one
		return Environment{}, &Error{
			What: "open the workspace " + s.Workspace,
			Why:  "it is no absolute folder on this machine",
			Try:  "name the folder with -C DIR",
		}
	}
	ws, err := r.OpenWorkspace(s.Workspace)
	if err != nil {
		return Environment{}, err
	}
	provider, err := r.Provider(s)
	if err != nil {
		return Environment{}, err
	}
	model, _ := catalogue.Find(s.Provider, s.Model)
	modes, notes := r.Config.Modes(ws.Root())
	return Environment{
		Provider:  provider,
		Workspace: ws,
		Model:     model,
		Modes:     modes,
		Notes:     notes,
	}, nil
}

// OpenWorkspace opens a folder and guards Roost's own data in it.
func (r Resolver) OpenWorkspace(root string) (*workspace.Workspace, error) {
	ws, err := workspace.Open(root)
	if err != nil {
		return nil, &Error{What: "open the workspace " + root, Why: err.Error(), Try: "name the folder with -C DIR"}
	}
	ws.Guard(append([]string{r.Root}, r.Config.Guarded...)...)
	return ws, nil
}

// CheckMode checks the mode of the settings. A mode that the caller has named must exist. One that the task has kept
// may have been removed with its file: then the task continues in Roo's fallback mode, and a note reports that. The
// error is a *mode.UnknownError.
func (e *Environment) CheckMode(s *task.Settings, named bool) error {
	m, err := e.Modes.Lookup(s.Mode)
	switch {
	case err != nil && named:
		return err
	case err != nil:
		e.Notes = append(e.Notes, fmt.Sprintf("the task's mode %s does not exist any more: it continues in mode %s; --mode "+
			"names another one", s.Mode, mode.Fallback))
		s.Mode = mode.Fallback
	case m.Source == mode.Project && slices.Contains(e.Modes.Redefined(), s.Mode):
		e.Notes = append(e.Notes, fmt.Sprintf("the mode %s is not the built-in one: %s of this workspace redefines it", s.Mode, modesFile))
	}
	return nil
}

// UnknownPrice warns of limits of cost that cannot hold, because the model's price is unknown.
func (r Resolver) UnknownPrice(s task.Settings, model catalogue.Model, c Choice) []string {
	l := s.Limits
	if l.MaxCostMicros <= 0 && l.MaxTaskMicros <= 0 && l.AskCostMicros <= 0 && r.DayLimit(c) <= 0 {
		return nil
	}
	if _, known := model.Cost(llm.Usage{Input: 1, Output: 1}); known && len(model.IDs) > 0 {
		return nil
	}
	return []string{fmt.Sprintf("the price of %s is not known, so no limit of cost can stop this run; --max-turns can", s.Model)}
}

// Prepare lets the profile of the settings' mode answer, and opens what the run works with. before are the settings of
// the task's last run.
func (r Resolver) Prepare(before, s task.Settings, c Choice, isNew bool) (task.Settings, Environment, error) {
	s, notes := r.EnterMode(before, s, c, isNew)
	env, err := r.Open(s)
	if err == nil {
		err = env.CheckMode(&s, c.Mode != "")
	}
	env.Notes = append(env.Notes, notes...)
	return s, env, err
}
