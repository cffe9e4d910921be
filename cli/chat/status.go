package chat

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/money"
)

// Facts describe the next request of a chat: which model it asks, what the run may do, and where.
type Facts struct {
	Provider, Model, Address string // Address is the provider's, in the form for a user
	Key                      string // where the key comes from; "" = there is none, or none is needed
	Profile, Mode, Approve   string
	Folder, Branch           string // Branch is the git branch of the folder; "" = none
	Window, Context          int64  // tokens of the model's window, and tokens that the last request used; 0 = not known
	Cost                     money.USD
	Problem                  string // why no request can be sent; "" = no reason is known
}

// Welcome returns the lines with which a chat begins: the model and its provider, the folder, and the policy of
// approvals.
func (f Facts) Welcome() []string {
	asks := "model as the server's settings say"
	if f.Problem != "" {
		asks = "no model is set up: " + f.Problem
	}
	if f.Model != "" || f.Provider != "" {
		asks = "model " + cmp.Or(f.Model, "(none named)") + " of " + cmp.Or(f.Provider, "(no provider named)")
		if f.Address != "" {
			asks += " at " + f.Address
		}
		switch {
		case f.Problem != "":
			asks += "; " + f.Problem
		case f.Key != "":
			asks += "; key from " + f.Key
		case f.Provider == "script":
			asks += "; it plays a file and costs nothing"
		default:
			asks += "; no key is used"
		}
	}
	policy := cmp.Or(f.Approve, policies[0])
	where := "folder " + f.Folder
	if f.Branch != "" {
		where += ", branch " + f.Branch
	}
	if f.Mode != "" {
		where += ", mode " + f.Mode
	}
	return []string{
		asks, where, "runs unasked: " + about[policy] + " (approvals: " + policy + ")",
		"/ for commands, @ for files, ? for all keys; Ctrl-D leaves",
	}
}

// asked returns the short name of the model: the model of a script is a path.
func (f Facts) asked() string {
	if f.Provider == "script" && f.Model != "" {
		return filepath.Base(f.Model)
	}
	return display.OneLine(cmp.Or(f.Model, f.Profile, f.Provider))
}

// live is the present activity of the run.
type live struct {
	Doing string // in a word or two, "" = not known yet
	Since time.Time
}

// part is a part of the status line. A line that is too wide loses the part with the least weight first.
type part struct {
	text   string
	weight int
}

// fitted joins as many parts as fit into width.
func fitted(parts []part, width int) string {
	parts = slices.DeleteFunc(parts, func(p part) bool { return p.text == "" })
	for {
		var texts []string
		least := 0
		for i, p := range parts {
			texts = append(texts, p.text)
			if p.weight < parts[least].weight {
				least = i
			}
		}
		line := strings.Join(texts, " · ")
		if display.Columns(line) <= width || len(parts) < 2 {
			return display.Cut(line, max(width, 1))
		}
		parts = slices.Delete(parts, least, least+1)
	}
}

// frame is how long the status line shows one picture of the spinner.
const frame = 100 * time.Millisecond

// status returns the line at the bottom of the screen.
func (st state) status(now time.Time, width int) string {
	f := st.Facts
	activity, took := "", ""
	switch {
	case st.Asking:
		activity = "waiting for your answer"
	case st.Working:
		activity = display.Spinner(int(now.UnixMilli()/frame.Milliseconds())) + " " + cmp.Or(st.Live.Doing, "starting")
		if spent := now.Sub(st.Live.Since); !st.Live.Since.IsZero() && spent >= time.Second {
			took = display.Seconds(spent)
		}
	case st.Waiting:
		activity = "waits for an answer"
	}
	folder := ""
	if f.Folder != "" {
		folder = filepath.Base(f.Folder)
		if f.Branch != "" {
			folder += " (" + f.Branch + ")"
		}
	}
	used := ""
	if share, ok := api.ShareOf(f.Context, f.Window); ok {
		used = fmt.Sprintf("%d%% of context", share)
	}
	cost := ""
	if f.Cost > 0 {
		cost = fmt.Sprintf("$%.2f", f.Cost.Float())
	}
	return fitted([]part{
		{activity, 9}, {took, 3}, {f.asked(), 8}, {f.Mode, 2}, {cmp.Or(st.Policy, f.Approve), 7},
		{display.OneLine(folder), 1}, {used, 5}, {cost, 6},
	}, width)
}
