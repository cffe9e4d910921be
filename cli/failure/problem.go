package failure

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
)

// problemExits are the exit codes of server problems whose status alone would give another
// exit code than the same failure in this process.
var problemExits = map[string]int{
	"ambiguous_id":       ExitUsage,
	"workspace_missing":  ExitConfig,
	"workspace_moved":    ExitConfig,
	"workspace_refused":  ExitConfig,
	"unknown_profile":    ExitConfig,
	"configuration":      ExitConfig,
	"provider_auth":      ExitConfig,
	"provider_error":     ExitProvider,
	"too_short":          ExitFailed,
	"rolled_back":        ExitFailed,
	"restoring":          ExitFailed,
	"damaged":            ExitDamaged,
	"store_unavailable":  ExitConfig,
	"root_unusable":      ExitConfig,
	"input_needed":       ExitInput,
	"untrusted_settings": ExitInput,
	"other_model":        ExitInput,
	"untrusted_locks":    ExitConfig,
	"draining":           ExitBusy,
	"queue_full":         ExitBusy,
	"stopping":           ExitBusy,
	"import_busy":        ExitBusy,
	"usage":              ExitUsage,
}

// failureOfProblem is the failure that a server's problem document stands for.
func failureOfProblem(p *client.Problem) *Failure {
	why, settings := against(p)
	f := &Failure{Exit: ExitFailed, Code: p.Code, Status: p.Status, What: p.Title, Why: why, Task: p.Task, Retryable: p.Retryable}
	switch exit, own := problemExits[p.Code]; {
	case own:
		f.Exit = exit
	case settings:
		f.Exit = ExitConfig
	case p.Status == http.StatusUnauthorized:
		f.Exit, f.Try = ExitConfig, "ROOST_TOKEN=... roost ...  # the token is in server/token below the server's root"
	case p.Status == http.StatusForbidden && (p.Code == "denied" || strings.Contains(p.Code, "approval")):
		f.Exit = ExitDenied
	case p.Status == http.StatusNotFound, p.Status == http.StatusGone:
		f.Exit = ExitNotFound
	case p.Status == http.StatusConflict, p.Status == http.StatusPreconditionFailed, p.Status == http.StatusTooManyRequests:
		f.Exit = ExitBusy
	case p.Status == http.StatusBadRequest, p.Status == http.StatusUnprocessableEntity, p.Status == http.StatusRequestEntityTooLarge:
		f.Exit = ExitUsage
	}
	const list = "roost list"
	if p.Code == "task_not_found" && f.Why != "" && !slices.ContainsFunc(p.Suggestions, func(s string) bool {
		return strings.HasPrefix(s, "roost ") && s != list
	}) {
		f.What, f.Try = "find the task", list
	}
	for _, s := range p.Suggestions {
		switch method, _, _ := strings.Cut(s, " "); method {
		case http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete:
			continue // for programs that speak HTTP
		}
		if s == f.Try {
			continue
		}
		if _, ours := flagAdvice[s]; f.Try == "" && (ours || strings.HasPrefix(s, "roost ")) {
			f.Try = s
		} else {
			f.Suggestions = append(f.Suggestions, s)
		}
	}
	if (p.Code == "permission_denied" || p.Status == 0) && len(p.Suggestions) > 0 { // without a status it is of this machine
		f.Try, f.Suggestions = p.Suggestions[0], p.Suggestions[1:]
	}
	if p.Code == "unknown_mode" {
		f.What, f.Try = "use the mode", "roost modes"
	}
	if f.Try == "" && p.Code == "ambiguous_id" && len(f.Suggestions) > 0 {
		f.What, f.Try = "find the task", "roost show "+f.Suggestions[0]
	}
	if f.Try == "" && slices.ContainsFunc(p.Errors, func(e api.Wrong) bool { return e.Parameter == "/workspace" }) {
		f.Try = nameFolder
	}
	if p.Code == "internal" && len(p.Suggestions) > 0 {
		f.Try, f.Suggestions = p.Suggestions[0], nil
	} else if what, why, ok := divide(f.Why); ok && p.Code == "internal" {
		f.What, f.Why = what, why
	}
	if f.Try == "" {
		f.Try = nothing
	}
	if p.Code == "configuration" {
		if what, why, ok := strings.Cut(f.Why, ": "); ok { // as the engine words it here
			f.What, f.Why = what, why
		}
	}
	return f
}

// OfServer is the failure of a client's error; nil when it is none.
func OfServer(err error) *Failure {
	var p *client.Problem // also of an act in this process
	var un *client.Unreachable
	switch {
	case errors.As(err, &p):
		return failureOfProblem(p)
	case errors.As(err, &un):
		return &Failure{Exit: ExitServer, Code: "server_unreachable", What: "reach the server " + un.Base, Why: un.Err.Error(),
			Retryable: true,
			Try:       "roost serve  # or leave --server and ROOST_SERVER out"}
	}
	return nil
}
