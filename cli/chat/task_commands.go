package chat

import (
	"cmp"
	"context"
	_ "embed" // initPrompt
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/view"
)

func (s *Session) newTask(_ context.Context, id, _ string) error {
	if s.state().Working {
		s.tell("task %s continues; /resume %s returns to it", id, id)
	}
	s.leave()
	s.came = true
	s.arrive(s.o.New.Mode, cmp.Or(s.o.New.Approve, policies[0]))
	s.refresh()
	s.tell("a new task begins with the next words")
	return nil
}

// tailMessages is the number of messages that are shown when the chat switches to a task.
const tailMessages = "6"

// switchTask switches the chat to a task: it shows the last messages, the open questions, and all later events.
func (s *Session) switchTask(ctx context.Context, _, rest string) error {
	if rest == "" {
		s.tell("/resume ID turns to one of these")
		return s.roost(ctx, "list", "--limit", "15")
	}
	t, err := s.backend.Task(ctx, rest)
	if err != nil {
		return err
	}
	s.arrive(t.Mode, "")
	return s.goTo(ctx, t.ID, t.Key())
}

// arrive prepares the settings for another task. It drops the settings for the next run of the earlier task; the
// settings with which the chat began are for its first task.
func (s *Session) arrive(mode, policy string) {
	s.change(func(st *state) {
		if s.came {
			st.again = api.NewRun{OneRun: s.o.New.OneRun}
		}
		s.came = true
		st.Facts.Mode, st.Policy = cmp.Or(st.again.Mode, mode), cmp.Or(st.again.Approve, policy)
	})
}

// goTo follows a task. ref names it where two storages have the same id.
func (s *Session) goTo(ctx context.Context, id, ref string) error {
	if err := s.roost(ctx, "show", ref, "--tail", tailMessages); err != nil {
		return err
	}
	if err := s.follow(ctx, id, nowhere); err != nil {
		s.leave()
		return fmt.Errorf("follow task %s: %w", id, err)
	}
	return s.open(ctx, id)
}

// found follows the task again after its events have ended; the user then sees first what was missed.
func (s *Session) found(ctx context.Context, id string) error {
	if !s.state().Lost {
		return nil
	}
	if err := s.goTo(ctx, id, id); err != nil {
		return err
	}
	return errors.New("nothing was sent: the chat had lost the task, and follows it again; once more (Up) sends it")
}

func (s *Session) show(ctx context.Context, id, rest string) error {
	rest = cmp.Or(rest, "20")
	if n, err := strconv.Atoi(rest); err != nil || n < 1 {
		return usage("/show N, a number of messages")
	}
	return s.roost(ctx, "show", id, "--tail", rest)
}

// fork makes a fork of the task, and switches the chat to it.
func (s *Session) fork(ctx context.Context, id, rest string) error {
	args := []string{"fork", id}
	if rest != "" {
		args = append(args, "--at", rest)
	}
	said := s.settled(ctx, args)
	made, _, _ := strings.Cut(said.Out, " ")
	if said.Code != 0 {
		return s.printed(said, args)
	}
	s.tell("task %s, forked from %s", made, id)
	return s.goTo(ctx, made, made)
}

// idle refuses a command that cannot change a task while a run works on it.
func (s *Session) idle(what string) error {
	if st := s.state(); st.Working || st.Asking {
		return errors.New("a run works on the task: stop it first (Esc), then " + what)
	}
	return nil
}

func (s *Session) rewind(ctx context.Context, id, rest string) error {
	if err := s.idle("/rewind"); err != nil {
		return err
	}
	args := []string{"rewind", id}
	words := fields(rest)
	if len(words) > 0 && !strings.HasPrefix(words[0], "--") {
		args, words = append(args, "--to="+words[0]), words[1:]
	}
	return s.roost(ctx, append(args, words...)...)
}

func (s *Session) edit(ctx context.Context, id, rest string) error {
	ref, text, _ := strings.Cut(rest, " ")
	if text = strings.TrimSpace(text); ref == "" || text == "" {
		return usage("/edit #12 WORDS: the message, as /show numbers it, and its new text")
	}
	if err := s.idle("/edit"); err != nil {
		return err
	}
	if err := s.roost(ctx, "rewind", id, "--to="+ref, "--edit="+text); err != nil {
		return err
	}
	return s.retry(ctx, id, "")
}

func (s *Session) condense(ctx context.Context, id, rest string) error {
	if err := s.idle("/condense"); err != nil {
		return err
	}
	args := []string{"condense", id}
	if rest != "" {
		args = append(args, "--keep="+rest)
	}
	s.tell("the model summarises; Esc stops it")
	return s.roost(ctx, args...)
}

func (s *Session) checkpoint(ctx context.Context, id, rest string) error {
	if rest == "list" {
		return s.roost(ctx, "checkpoint", "list", id)
	}
	return s.roost(ctx, append([]string{"checkpoint", "save", id}, fields(rest)...)...)
}

// restore restores files only after the user has confirmed: without --yes it only shows what it would do.
func (s *Session) restore(ctx context.Context, id, rest string) error {
	args := append([]string{"checkpoint", "restore", id}, fields(rest)...)
	if slices.Contains(args, "--yes") {
		if err := s.idle("/restore"); err != nil {
			return err
		}
		return s.roost(ctx, args...)
	}
	if err := s.roost(ctx, append(args, "--dry-run")...); err != nil {
		return err
	}
	s.tell("nothing was changed; /restore %s does it", strings.TrimSpace(rest+" --yes"))
	return nil
}

func (s *Session) export(ctx context.Context, id, rest string) error {
	words := fields(rest)
	if len(words) > 2 {
		return usage("/export [FORM] [FILE]")
	}
	words = append(words, "", "")
	form, file := cmp.Or(words[0], "md"), words[1]
	if file == "" {
		ends := map[string]string{"roo": "", "archive": ".zip"}
		end, other := ends[form]
		if !other {
			end = "." + form
		}
		file = id + end
	}
	return s.roost(ctx, "export", id, "--format="+form, "--output="+file)
}

func (s *Session) retry(ctx context.Context, id, _ string) error {
	if s.state().Working {
		return errors.New("a run works on the task already")
	}
	if err := s.found(ctx, id); err != nil {
		return err
	}
	again := s.state().again
	again.Yes = true
	run, err := s.resume(ctx, id, again)
	if err != nil {
		return err
	}
	s.started(run)
	return nil
}

func (s *Session) abort(ctx context.Context, id, _ string) error {
	if st := s.state(); !st.Working && !st.Asking {
		s.tell("no run works on the task")
		return nil
	}
	s.tell("· stopping and saving")
	s.stop(ctx, id)
	return nil
}

// reply answers the open question with words: yes and no decide an approval.
func (s *Session) reply(ctx context.Context, id, rest string) error {
	q, err := s.asked(ctx, id)
	if err != nil {
		return err
	}
	a := api.Answer{Text: rest, Seen: q.Event}
	if display.Choices(q.QuestionOpened) != nil { // it wants a yes or a no
		word, words, _ := strings.Cut(rest, " ")
		yes, plain := map[string]bool{"y": true, "yes": true, "n": false, "no": false}[strings.ToLower(word)]
		if !plain {
			return usage("/answer yes or /answer no, and words for the model behind it")
		}
		a.Approve, a.Text = new(yes), strings.TrimSpace(words)
	} else if n, err := strconv.Atoi(rest); err == nil && n >= 1 && n <= len(q.Choices) {
		a.Text = q.Choices[n-1]
	}
	if a.Text == "" && a.Approve == nil {
		return usage("/answer WORDS")
	}
	return s.decide(ctx, q, a)
}

// queued lists the inputs that wait for the run, or changes one.
func (s *Session) queued(ctx context.Context, id, rest string) error {
	st := s.state()
	if rest == "" {
		if len(st.Queue) == 0 {
			s.tell("nothing is queued")
		}
		for i, q := range st.Queue {
			s.tell("%d. %s", i+1, s.short(q.Text))
		}
		return nil
	}
	word, words, _ := strings.Cut(rest, " ")
	drop := word == "drop"
	if drop {
		word, words = strings.TrimSpace(words), ""
	}
	words = strings.TrimSpace(words)
	n, err := strconv.Atoi(word)
	if err != nil || !drop && words == "" {
		return usage("/queue N WORDS, or /queue drop N")
	}
	if n < 1 || n > len(st.Queue) {
		return fmt.Errorf("nothing is queued in place %d", n)
	}
	text := &words
	if drop {
		text = nil
	}
	return s.backend.EditQueued(ctx, id, st.Queue[n-1].ID, text)
}

// next returns the settings of the next run: of the new task, or of the task that the chat is about. The caller holds
// mu.
func (s *Session) next() *api.Settings {
	if s.st.Task == "" {
		return &s.o.New.Settings
	}
	return &s.st.again.Settings
}

// set changes a setting of the next run.
func (s *Session) set(change func(*api.Settings), note string) {
	working := false
	s.locked(func() {
		change(s.next())
		working = s.st.Working
	})
	s.refresh()
	if working {
		note += ", from the next run on"
	}
	s.tell("%s", note)
}

func (s *Session) mode(ctx context.Context, _, rest string) error {
	known := s.backend.Words(ctx, Modes, s.workspace(ctx), "")
	if rest == "" {
		_, f := s.facts(ctx)
		for _, w := range known {
			lead := "  "
			if w.Text == f.Mode {
				lead = "* "
			}
			s.tell("%s%s  %s", lead, w.Text, w.About)
		}
		if len(known) == 0 {
			s.tell("mode %s", f.Mode)
		}
		return nil
	}
	if names := texts(known); len(names) > 0 && !slices.Contains(names, rest) {
		text := "there is no mode " + rest
		if near := api.Nearest(rest, names); near != "" {
			text += "; " + near + " is one"
		}
		return errors.New(text + " (/mode lists them)")
	}
	s.set(func(o *api.Settings) { o.Mode = rest }, "mode "+rest)
	s.change(func(st *state) { st.Facts.Mode = rest })
	return nil
}

func (s *Session) model(ctx context.Context, id, rest string) error {
	if rest == "" {
		now := s.chosen(func(o *api.Settings) *string { return &o.Model })
		if now == "" && id != "" {
			t, err := s.backend.Task(ctx, id)
			if err != nil {
				return err
			}
			now = t.Model
		}
		s.tell("model %s", cmp.Or(now, s.state().Facts.Model, "from the settings"))
		return nil
	}
	s.set(func(o *api.Settings) { o.Model = rest }, "model "+rest)
	return nil
}

// chosen returns a setting that the user chose for the next run; "" = none.
func (s *Session) chosen(of func(*api.Settings) *string) (value string) {
	s.locked(func() { value = *of(s.next()) })
	return value
}

// texts returns the completions without their descriptions.
func texts(words []Word) []string { return api.Each(words, func(w Word) string { return w.Text }) }

// choose sets one of the settings of the next run, or shows it.
func (s *Session) choose(what, value string, kind Kind, of func(*api.Settings) *string) error {
	if value == "" {
		s.tell("%s %s", what, cmp.Or(s.chosen(of), "from the settings"))
		return nil
	}
	names := texts(s.backend.Words(s.ctx, kind, "", ""))
	if !slices.Contains(names, value) {
		return fmt.Errorf("there is no %s %s; there are %s", what, value, cmp.Or(strings.Join(names, ", "), "none"))
	}
	s.set(func(o *api.Settings) { *of(o) = value }, what+" "+value)
	return nil
}

func (s *Session) effort(_ context.Context, _, rest string) error {
	return s.choose("effort", rest, Efforts, func(o *api.Settings) *string { return &o.Effort })
}

func (s *Session) profile(_ context.Context, _, rest string) error {
	return s.choose("profile", rest, Profiles, func(o *api.Settings) *string { return &o.Profile })
}

// provider sets the provider, and clears the model and address, which belong to the earlier provider.
func (s *Session) provider(_ context.Context, _, rest string) error {
	return s.choose("provider", rest, Provided, func(o *api.Settings) *string {
		if rest != "" {
			o.Model, o.BaseURL = "", ""
		}
		return &o.Provider
	})
}

func (s *Session) status(ctx context.Context, id, _ string) error {
	_, f := s.facts(ctx)
	lines := f.Welcome()
	lines = lines[:len(lines)-1] // the last one is about keys
	if id != "" {
		lines = append(lines, "task "+id)
	}
	if f.Window > 0 {
		share, _ := api.ShareOf(f.Context, f.Window)
		lines = append(lines, fmt.Sprintf("context %s of %s tokens (%d%%)", thousands(int(f.Context)), thousands(int(f.Window)), share))
	}
	if f.Cost > 0 { // 0 = not known
		lines = append(lines, fmt.Sprintf("cost so far $%.2f", f.Cost.Float()))
	}
	for _, line := range lines {
		s.tell("%s", line)
	}
	return nil
}

// clear carries out /clear: it begins another task, as /new does, and prints how to return to the earlier one.
func (s *Session) clear(ctx context.Context, id, _ string) error {
	title := ""
	if id != "" {
		t, err := s.backend.Task(ctx, id)
		if err == nil {
			title = t.Title
		}
		s.tell("kept: %s (/resume %s returns to it)", cmp.Or(display.Cut(display.OneLine(title), 60), "the task"), id)
	}
	return s.newTask(ctx, id, "")
}

// initPrompt asks the model for AGENTS.md.
//
//go:embed init.txt
var initPrompt string

func (s *Session) init(ctx context.Context, _, _ string) error {
	if err := s.idle("/init"); err != nil {
		return err
	}
	return s.prompt(ctx, strings.TrimSpace(initPrompt))
}

var policies = []string{"ask", "read", "edits", "all"}

func (s *Session) approve(_ context.Context, _, rest string) error {
	if rest == "" {
		s.tell("unasked: %s; of ask, read, edits, all", cmp.Or(s.state().Policy, "as the task has it"))
		return nil
	}
	if !slices.Contains(policies, rest) {
		return usage("/approve ask, read, edits or all")
	}
	s.tell("%s", s.allow(rest))
	return nil
}

func (s *Session) limits(_ context.Context, _, rest string) error {
	var next api.Limits
	s.locked(func() {
		if l := s.next().Limits; l != nil {
			next = *l
		}
	})
	if rest == "" {
		s.tell("%s", limitsText(next))
		return nil
	}
	for _, word := range fields(rest) {
		if err := limit(&next, word); err != nil {
			return err
		}
	}
	s.set(func(o *api.Settings) { o.Limits = &next }, limitsText(next))
	return nil
}

// limit reads one limit.
func limit(l *api.Limits, word string) error {
	name, value, ok := strings.Cut(word, "=")
	wrong := fmt.Errorf("%s: want turns=20, cost=0.50, idle=10m or total=2h; 0 takes a limit away", word)
	if !ok {
		return wrong
	}
	switch name {
	case "turns":
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return wrong
		}
		l.MaxTurns = &n
	case "cost":
		usd, err := money.Parse(value)
		if err != nil || usd < 0 {
			return wrong
		}
		l.MaxCost = &usd
	case "idle", "total":
		d, err := time.ParseDuration(value)
		if value != "0" && err != nil || d < 0 {
			return wrong
		}
		if name == "idle" {
			l.IdleTimeout = new(d.String())
		} else {
			l.TotalTimeout = new(d.String())
		}
	default:
		return wrong
	}
	return nil
}

func limitsText(l api.Limits) string {
	var parts []string
	if l.MaxTurns != nil {
		parts = append(parts, fmt.Sprintf("turns=%d", *l.MaxTurns))
	}
	if l.MaxCost != nil {
		parts = append(parts, "cost="+l.MaxCost.String())
	}
	if l.IdleTimeout != nil {
		parts = append(parts, "idle="+*l.IdleTimeout)
	}
	if l.TotalTimeout != nil {
		parts = append(parts, "total="+*l.TotalTimeout)
	}
	if parts == nil {
		return "limits as the task has them"
	}
	return "limits " + strings.Join(parts, " ")
}

// cycle handles Shift+Tab: it selects the next policy of approvals, for the next run. It reaches "all" only when the
// user has named that policy before: one key too many must not allow everything.
func (s *Session) cycle() (note string) {
	st := s.state()
	list := policies
	if !st.Loose {
		list = policies[:len(policies)-1]
	}
	return s.allow(list[(slices.Index(list, st.Policy)+1)%len(list)])
}

// about describes what each policy allows without a question.
var about = map[string]string{
	"ask":   "reading in the workspace",
	"read":  "reading everywhere",
	"edits": "reading everywhere and writing in the workspace",
	"all":   "every tool and command",
}

// allow sets the policy of the next run, and returns a line about it.
func (s *Session) allow(policy string) (note string) {
	note = "unasked: " + policy + ", " + about[policy]
	s.change(func(st *state) {
		s.next().Approve, st.Policy = policy, policy
		st.Loose = st.Loose || policy == "all"
		if st.Working {
			note += "; from the next run on"
		}
	})
	return note
}

// unasked returns the row above the editor about what runs without a question; "" for the default policy.
func (st state) unasked() string {
	if st.Policy == "" || st.Policy == policies[0] {
		return ""
	}
	return "· unasked: " + st.Policy + " (Shift+Tab changes it)"
}

// busy is the exit code of a command whose task another process owns. settling limits how long a run that has ended
// may still save its task.
const (
	busy     = 14
	settling = 5 * time.Second
)

// settled runs a command of roost. Right after the end of a run it repeats the command while the task is busy.
func (s *Session) settled(ctx context.Context, args []string) Said {
	for end := time.Now().Add(settling); ; {
		said := s.backend.Command(ctx, args...)
		if said.Code != busy || s.state().Working || time.Now().After(end) {
			return said
		}
		if !sleep.For(ctx, 50*time.Millisecond) {
			return said
		}
	}
}

// roost runs a command of roost and shows its output.
func (s *Session) roost(ctx context.Context, args ...string) error {
	return s.printed(s.settled(ctx, args), args)
}

// printed shows the output of a command of roost.
func (s *Session) printed(said Said, args []string) error {
	differs := slices.Contains(args, "diff") || slices.Contains(args, "restore")
	paint := func(text string, usual view.Style) string {
		lines := strings.Split(strings.TrimRight(display.Safe(text), "\n"), "\n")
		for i, l := range lines {
			how := usual
			if how == view.Plain && differs {
				how = view.DiffStyle(l)
			}
			lines[i] = s.style.Paint(how, l)
		}
		return strings.Join(lines, "\n")
	}
	colour := view.Dim
	if said.Code != 0 {
		colour = view.Bad
	}
	if s.o.Result == nil && said.Whole != "" && said.Out != "" {
		s.out.block(paint(said.Whole, view.Plain))
	} else {
		s.give(paint(said.Out, view.Plain))
		s.out.block(paint(said.Err, colour))
	}
	if said.Code != 0 {
		return &failed{said}
	}
	return nil
}

// fields splits arguments at blanks; blanks between quotes, single or double, do not split. A quote without an end
// ends with the text.
func fields(text string) (out []string) {
	var word strings.Builder
	begun, quote := false, rune(0)
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, begun = r, true
		case unicode.IsSpace(r):
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out
}

func usage(text string) error { return fmt.Errorf("want %s", text) }
