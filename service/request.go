package service

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store/drafts"
)

// A decoder cannot check every rule for a document. The functions of this file check the remaining rules, and report all
// violations together before a change begins. The engine checks the rules that depend on the task.

// wrongs collects what is wrong with a body.
type wrongs []api.Wrong

func (w *wrongs) add(at, format string, args ...any) {
	*w = append(*w, api.Wrong{Parameter: at, Detail: fmt.Sprintf(format, args...)})
}

func (w wrongs) err() error {
	if len(w) == 0 {
		return nil
	}
	return api.Invalid(w...)
}

// origins are the front doors that a task can come from.
var origins = []string{"api", "cli", "web", "editor"}

// originOf returns the origin that a document names, "api" when it names none.
func originOf(given string, w *wrongs) string {
	switch {
	case given == "":
		return "api"
	case !slices.Contains(origins, given):
		w.add("/origin", "want one of %s", strings.Join(origins, ", "))
	}
	return given
}

// folder checks that a document names a folder by an absolute path.
func folder(at, path string) error {
	if path != "" && !filepath.IsAbs(path) {
		return api.Invalid(api.Wrong{Parameter: at, Detail: "want an absolute folder of the server's machine"})
	}
	return nil
}

func conflictRule(text string) error {
	if !slices.Contains([]string{"", "keep", "merge", "overwrite"}, text) {
		return api.Invalid(api.Wrong{Parameter: "/on_conflict", Detail: "want keep, merge or overwrite"})
	}
	return nil
}

const (
	imageMost  = drafts.MaxImages // pictures in one message
	imageBytes = drafts.MaxImage  // of one picture: the smallest limit among the big providers
	titleBytes = 4096
)

// settle puts the settings of a body into a request.
func settle(n api.Settings, r *engine.Request, w *wrongs) {
	r.Mode, r.Provider, r.Model, r.BaseURL, r.Profile, r.Approve = n.Mode, n.Provider, n.Model, n.BaseURL, n.Profile, n.Approve
	r.Allow, r.Deny, r.AllowTools, r.AskTools, r.DenyTools = n.Allow, n.Deny, n.AllowTools, n.AskTools, n.DenyTools
	r.Effort, r.Stale = n.Effort, n.Stale
	if n.Effort != "" && !slices.Contains(api.Efforts, n.Effort) {
		w.add("/effort", "want one of %s", strings.Join(api.Efforts, ", "))
	}
	if n.Stale != "" && n.Stale != api.StaleTell && n.Stale != api.StaleRead {
		w.add("/stale", "want tell or read")
	}
	count("/max_tokens", n.MaxTokens, &r.MaxTokens, w)
	if n.CondenseAt != nil {
		if r.Condense = config.OrNone(*n.CondenseAt); *n.CondenseAt != 0 && (r.Condense < 5 || r.Condense > 100) {
			w.add("/condense_at", "want a percentage between 5 and 100, or 0 for never")
		}
	}
	if n.Approve != "" && !approval.ValidMode(n.Approve) {
		w.add("/approve", "want one of ask, read, edits, all")
	}
	if known := append(setup.Providers(), "script"); n.Provider != "" && !slices.Contains(known, n.Provider) {
		w.add("/provider", "this version has no such provider; it has %s", strings.Join(known, ", "))
	}
	if n.Provider == "script" && n.Model != "" && !filepath.IsAbs(n.Model) {
		w.add("/model", "the script provider reads its replies from a file: give the file's absolute path")
	}
	if err := setup.CheckAddress(n.BaseURL); n.BaseURL != "" && err != nil {
		w.add("/base_url", "%s", err)
	}
	for name, list := range map[string][]string{"/allow": n.Allow, "/deny": n.Deny, "/allow_tools": n.AllowTools,
		"/ask_tools": n.AskTools, "/deny_tools": n.DenyTools} {
		tools := strings.HasSuffix(name, "_tools")
		for i, pattern := range list {
			if strings.TrimSpace(pattern) == "" {
				w.add(fmt.Sprintf("%s/%d", name, i), "the pattern is empty")
			} else if tools {
				if _, err := approval.ParseRule(pattern); err != nil {
					w.add(fmt.Sprintf("%s/%d", name, i), "%s", err)
				}
			}
		}
	}
	if n.Limits != nil {
		r.Limits = limitsOf(*n.Limits, w)
	}
}

func count(at string, n, to *int, w *wrongs) {
	if n == nil {
		return
	}
	if *to = config.OrNone(*n); *n < 0 {
		w.add(at, "want a whole number from 0 on")
	}
}

func amount(at string, usd *money.USD, to *int64, w *wrongs) {
	if usd == nil {
		return
	}
	if *to = config.OrNone(int64(*usd)); *usd < 0 {
		w.add(at, "want an amount of US dollars from 0 on")
	}
}

// limitsOf reads limits.
func limitsOf(l api.Limits, w *wrongs) *api.RunLimits {
	out := &api.RunLimits{}
	count("/limits/max_turns", l.MaxTurns, &out.MaxTurns, w)
	count("/limits/ask_after_requests", l.AskAfterRequests, &out.AskRequests, w)
	amount("/limits/max_cost", l.MaxCost, &out.MaxCostMicros, w)
	amount("/limits/max_cost_task", l.MaxCostTask, &out.MaxTaskMicros, w)
	amount("/limits/ask_after_cost", l.AskAfterCost, &out.AskCostMicros, w)
	span := func(at string, text *string, to *int64) {
		if text == nil {
			return
		}
		d, err := time.ParseDuration(*text)
		if *text == "0" {
			d, err = 0, nil
		}
		if err != nil || d < 0 {
			w.add(at, "want a duration such as 90s, 30m or 2h; 0 removes the limit")
		}
		*to = config.OrNone(config.Millis(d))
	}
	span("/limits/idle_timeout", l.IdleTimeout, &out.IdleTimeoutMS)
	span("/limits/total_timeout", l.TotalTimeout, &out.TotalTimeoutMS)
	return out
}

// setInput puts a text and images into a request.
func setInput(m *api.Words, at string, r *engine.Request, w *wrongs) {
	if m == nil {
		return
	}
	r.Text, r.Images = m.Text, m.Images
	checkWords(m.Text, m.Images, at, w)
}

func checkWords(text string, images []string, at string, w *wrongs) {
	if strings.TrimSpace(text) == "" && len(images) == 0 {
		w.add(at+"/text", "the text is empty, and there is no image")
	}
	checkImages(images, at, false, w)
}

// checkImages checks images of a body. With names, an image may also be the name of an image in a draft.
func checkImages(images []string, at string, names bool, w *wrongs) {
	if len(images) > imageMost {
		w.add(at+"/images", "want at most %d images", imageMost)
		return
	}
	for i, image := range images {
		if names && drafts.IsName(image) {
			continue
		}
		if why := badImage(image); why != "" {
			w.add(fmt.Sprintf("%s/images/%d", at, i), "%s", why)
		}
	}
}

// badImage returns why providers refuse a text as an image; "" = they accept it.
func badImage(text string) string {
	const want = "want a data URL: data:image/png;base64,... (png, jpeg, gif, webp)"
	kind, bytes, ok := imageOf(text)
	switch {
	case !ok || !slices.Contains(api.Pictures, kind):
		return want
	case len(bytes) > imageBytes:
		return fmt.Sprintf("the image has %d bytes; providers take at most %d", len(bytes), imageBytes)
	case api.PictureOf(bytes) != kind:
		return "its bytes are not those of " + kind
	}
	return ""
}

// checkFolder checks that a workspace is the absolute path of a folder that exists.
func checkFolder(dir string, w *wrongs) {
	if !filepath.IsAbs(dir) {
		w.add("/workspace", "want an absolute folder of the server's machine")
		return
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		w.add("/workspace", "no folder of that path can be opened")
	}
}

// newTask returns the request that starts a task.
func newTask(n api.NewTask, c Call) (r engine.Request, err error) {
	var w wrongs
	checkFolder(n.Workspace, &w)
	r = engine.Request{Choice: setup.Choice{Workspace: n.Workspace}, Title: strings.TrimSpace(n.Title), NewTask: c.Key}
	settle(n.Settings, &r, &w)
	setOneRun(n.OneRun, &r, &w)
	setInput(n.Message, "/message", &r, &w)
	if len(n.Title) > titleBytes || !utf8.ValidString(n.Title) {
		w.add("/title", "want at most %d bytes", titleBytes)
	}
	r.Origin = originOf(n.Origin, &w)
	if r.NewTask != "" {
		r.RunID = c.runFor(r.NewTask)
	}
	return r, w.err()
}

// newRun returns the request that continues a task.
func newRun(id string, n api.NewRun) (r engine.Request, err error) {
	var w wrongs
	r = engine.Request{
		Task:          id,
		Yes:           n.Yes,
		Choice:        setup.Choice{Workspace: n.Workspace},
		OwnSettings:   n.OwnSettings,
		TrustSettings: n.TrustSettings,
	}
	if n.Workspace != "" {
		checkFolder(n.Workspace, &w)
	}
	settle(n.Settings, &r, &w)
	setOneRun(n.OneRun, &r, &w)
	setInput(n.Message, "/message", &r, &w)
	return r, w.err()
}

func setOneRun(n api.OneRun, r *engine.Request, w *wrongs) {
	r.Interactive, r.NoCheckpoints, r.StandIn = !n.Unattended, n.NoCheckpoints, n.StandIn
	amount("/max_cost_day", n.MaxCostDay, &r.MaxDayMicros, w)
}
