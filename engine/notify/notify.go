// Package notify calls the user when a question waits or a run has ended: it runs a command or sends a POST, which only the
// user's own settings name.
//
// The engine of each process passes it the events of its own runs, so it works for a server, for roost run and for the
// chat alike. A question that was answered within Config.After makes no call; the notifier looks the question up again
// before it calls, since another process may have answered. A process that ends calls at once for the questions that its
// runs left open, and waits for that for closeWithin at the most. Nothing of this is on disk: a killed process makes no
// call, and a run that continues with the same question does not call again.
//
// What is sent names the task, its title and the kind of question. The words of a question are sent only with
// Config.Text. A failure keeps no run waiting: it is counted, and passed to Options.Failed.
package notify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/agent/hook"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
)

// The values of Config.Ends.
const (
	NoEnds     = "none"
	FailedEnds = "failed" // ends that are neither a completion nor by the user's word
	AllEnds    = "all"
)

const (
	// DefaultAfter is how long a question waits before anybody is called.
	DefaultAfter = 10 * time.Second
	// commandWithin and webhookWithin bound one call, closeWithin all calls at the end of a process.
	commandWithin = time.Minute
	webhookWithin = 10 * time.Second
	closeWithin   = 5 * time.Second
	// atATime bounds the calls that are under way.
	atATime = 4
)

// waits are the times between the tries of a webhook.
var waits = []time.Duration{time.Second, 5 * time.Second}

// Config are the user's settings.
type Config struct {
	Command string        // a command line for sh -c; "" = none
	Webhook string        // an address that takes a POST; "" = none; see CheckWebhook
	After   time.Duration // how long a question waits for an answer before; 0 = DefaultAfter
	Ends    string        // which ends of runs call, too; "" = NoEnds
	Text    bool          // the words of questions are sent, too
}

// CheckWebhook reports what is wrong with an address: it is https, or http to this machine.
func CheckWebhook(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("want an address such as https://example.com/hook")
	}
	addr, err := netip.ParseAddr(u.Hostname())
	if u.Scheme == "http" && u.Hostname() != "localhost" && (err != nil || !addr.Unmap().IsLoopback()) {
		return errors.New("want https: without it anyone in between could read what is sent; http is for 127.0.0.1 alone")
	}
	return nil
}

// Document is what a command reads on its stdin, and a webhook gets as its body.
type Document struct {
	Event    string `json:"event"` // question, run_end
	Task     string `json:"task_id"`
	Title    string `json:"title"`
	Run      string `json:"run_id"`
	At       string `json:"at"`
	Question string `json:"question_id,omitempty"` // as answers name it
	Kind     string `json:"kind,omitempty"`        // of the question
	Outcome  string `json:"outcome,omitempty"`     // of the run
	Link     string `json:"link,omitempty"`        // to the page of the task, where a server shows it
	Text     string `json:"text,omitempty"`        // the words of the question, or the reason of the outcome
}

// Options are what a Notifier needs.
type Options struct {
	// Settings returns the user's settings of this moment. The notifier reads them for each event and call; it must be quick.
	Settings func() Config
	Base     string // the address of the server whose pages show the tasks; "" = there is none
	// Look gives the title of a task, and whether a question of it is open; question is "" for the title alone.
	Look   func(ctx context.Context, task, question string) (title string, open bool, err error)
	Mask   func(string) string // hides secrets
	Failed func(why string)    // gets why a call failed; may be nil
}

// Notifier calls the person. It is safe for concurrent use.
type Notifier struct {
	opt    Options
	ctx    context.Context //nolint:containedctx // of all calls; it ends with Close
	cancel context.CancelFunc
	ending chan struct{}
	slots  chan struct{}
	client *http.Client
	wait   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	pending map[string]pending // questions without a call yet, by task and id
	state   api.Notifications
}

type pending struct {
	run      string
	answered context.CancelFunc
}

// New makes a Notifier. It makes no calls while the settings name nothing to call with.
func New(o Options) *Notifier {
	n := &Notifier{opt: o, ending: make(chan struct{}), slots: make(chan struct{}, atATime), pending: map[string]pending{}}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.client = &http.Client{
		Timeout: webhookWithin,
		// A redirect would send the document to an address that the user has not named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     http.DefaultTransport.(*http.Transport).Clone(), //nolint:forcetypeassert // the library's own
	}
	return n
}

// payload holds the members that the notifier reads of an event.
type payload struct {
	api.QuestionOpened        // of question.opened; its Question also of question.closed
	Outcome            string `json:"outcome"` // of run.ended, like Reason
	Reason             string `json:"reason"`
}

// Wanted reports whether the settings name something to call with.
func (n *Notifier) Wanted() bool {
	c := n.opt.Settings()
	return c.Command != "" || c.Webhook != ""
}

// Observe takes an event of a run in. It is quick.
func (n *Notifier) Observe(e events.Event) {
	if !n.Wanted() {
		return
	}
	var d payload
	switch e.Type {
	case "question.opened", "question.closed", "run.ended":
		if json.Unmarshal(e.Data, &d) != nil {
			return
		}
	default:
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	key := e.Task + "." + d.Question
	switch e.Type {
	case "question.opened":
		ctx, answered := context.WithCancel(n.ctx)
		n.pending[key] = pending{e.Run, answered}
		n.wait.Go(func() { n.question(ctx, key, e, d.QuestionOpened) })
	case "question.closed":
		n.drop(key)
	case "run.ended": // a run that ends while it asks was ended by the user, who needs no call
		for key, p := range n.pending {
			if p.run == e.Run {
				n.drop(key)
			}
		}
		if n.ends(d.Outcome) {
			n.wait.Go(func() { n.end(e, d) })
		}
	}
}

// drop removes a question from those without a call. The caller holds mu.
func (n *Notifier) drop(key string) {
	if p, known := n.pending[key]; known {
		p.answered()
		delete(n.pending, key)
	}
}

func (n *Notifier) ends(outcome string) bool {
	switch n.opt.Settings().Ends {
	case AllEnds:
		return true
	case FailedEnds:
		return outcome != "completed" && outcome != "cancelled"
	}
	return false
}

// question calls for a question that is still open after its time.
func (n *Notifier) question(ctx context.Context, key string, e events.Event, q api.QuestionOpened) {
	timer := time.NewTimer(cmp.Or(n.opt.Settings().After, DefaultAfter))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-n.ending:
	case <-ctx.Done():
		return
	}
	title, open, err := n.opt.Look(ctx, e.Task, q.Question)
	n.mu.Lock()
	_, waits := n.pending[key]
	n.drop(key)
	n.mu.Unlock()
	if !waits || err == nil && !open {
		return
	}
	doc := n.document("question", title, e)
	doc.Question, doc.Kind = e.Task+"."+q.Question, q.Kind
	if doc.Link != "" {
		doc.Link += "#questions"
	}
	if n.opt.Settings().Text {
		doc.Text = n.opt.Mask(strings.TrimSpace(q.Text + "\n" + q.Command))
	}
	n.call(doc)
}

// end calls for the end of a run.
func (n *Notifier) end(e events.Event, d payload) {
	title, _, _ := n.opt.Look(n.ctx, e.Task, "") // the end is worth a call without a title, too
	doc := n.document("run_end", title, e)
	doc.Outcome = d.Outcome
	if n.opt.Settings().Text {
		doc.Text = n.opt.Mask(d.Reason)
	}
	n.call(doc)
}

func (n *Notifier) document(event, title string, e events.Event) Document {
	d := Document{Event: event, Task: e.Task, Title: n.opt.Mask(title), Run: e.Run, At: api.Stamp(e.At)}
	if n.opt.Base != "" {
		d.Link = n.opt.Base + "/tasks/" + url.PathEscape(e.Task)
	}
	return d
}

// call runs the command and sends the webhook.
func (n *Notifier) call(d Document) {
	select {
	case n.slots <- struct{}{}:
		defer func() { <-n.slots }()
	case <-n.ctx.Done():
		return
	}
	var err error
	c := n.opt.Settings()
	if c.Command != "" {
		if failed := n.run(c.Command, d); failed != nil {
			err = fmt.Errorf("the command of notify_command failed: %w", failed)
		}
	}
	if c.Webhook != "" {
		if failed := n.post(c.Webhook, d); failed != nil {
			err = errors.Join(err, fmt.Errorf("the POST to notify_webhook failed: %w", failed))
		}
	}
	n.mu.Lock()
	if err == nil {
		n.state.Sent++
	} else {
		n.state.Failed++
		n.state.Problem, n.state.ProblemAt = strings.ReplaceAll(n.opt.Mask(err.Error()), "\n", "; "), d.At
	}
	why := n.state.Problem
	n.mu.Unlock()
	if err != nil && n.opt.Failed != nil {
		n.opt.Failed(why)
	}
}

// run runs the command, in the folder for temporary files: it is about no workspace.
func (n *Notifier) run(command string, d Document) error {
	ran, complaints, err := hook.Exec(n.ctx, command, os.TempDir(), commandWithin, d)
	switch {
	case err != nil:
		return err
	case ran.Cancelled:
		return errors.New("it was ended with the process")
	case ran.TimedOut:
		return fmt.Errorf("it was ended after %s", commandWithin)
	case ran.Exit != 0:
		return fmt.Errorf("exit code %d: %s", ran.Exit, complaints)
	}
	return nil
}

// post sends the document, again after a failure that may pass.
func (n *Notifier) post(address string, d Document) error {
	body, err := json.Marshal(d)
	if err != nil {
		return err //nolint:wrapcheck // the caller names what failed
	}
	for try := 0; ; try++ {
		again, err := n.postOnce(address, body)
		if err == nil || !again || try == len(waits) {
			return err
		}
		select {
		case <-time.After(waits[try]):
		case <-n.ending: // once more, and no more waiting
			_, err = n.postOnce(address, body)
			return err
		case <-n.ctx.Done():
			return err
		}
	}
}

// postOnce sends the document. again: the failure may pass. Errors do not name the address: it may be a secret.
func (n *Notifier) postOnce(address string, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(n.ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("the address cannot be used")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "roost")
	answer, err := n.client.Do(r)
	if err != nil {
		if at := (*url.Error)(nil); errors.As(err, &at) {
			err = at.Err
		}
		if _, is := errors.AsType[*net.DNSError](err); is {
			err = errors.New("its host was not found")
		}
		return true, err //nolint:wrapcheck // the caller names what failed
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be used again
	_ = answer.Body.Close()
	switch {
	case answer.StatusCode < 300:
		return false, nil
	case answer.StatusCode < 400:
		return false, fmt.Errorf("%s: a redirect is not followed", answer.Status)
	}
	return answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests, errors.New(answer.Status)
}

// State returns what was called so far; nil when there is nothing to call with, and nothing was called.
func (n *Notifier) State() *api.Notifications {
	n.mu.Lock()
	defer n.mu.Unlock()
	state := n.state
	if !n.Wanted() && state == (api.Notifications{}) {
		return nil
	}
	return &state
}

// Close calls for the questions that are open, and returns when all calls have ended, after closeWithin at the latest.
func (n *Notifier) Close() {
	n.mu.Lock()
	closed := n.closed
	n.closed = true
	n.mu.Unlock()
	if closed {
		return
	}
	close(n.ending)
	late := time.AfterFunc(closeWithin, n.cancel)
	n.wait.Wait()
	late.Stop()
	n.cancel()
	n.client.CloseIdleConnections()
}
