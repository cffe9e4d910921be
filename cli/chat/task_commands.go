package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
)

func (s *Session) newTask(_ context.Context, id, _ string) error {
	if s.state().Working {
		s.tell("task %s continues; /resume %s returns to it", id, id)
	}
	s.leave()
	s.came = true
	s.arrive(s.o.New.Mode, cmp.Or(s.o.New.Approve, policies[0]))
	s.tell("a new task begins with the next words")
	return nil
}

// tailMessages is how much of a task is shown when the chat turns to it.
const tailMessages = "6"

// turn switches the chat to a task: it shows the last messages, what is open, and all that comes.
func (s *Session) turn(ctx context.Context, _, rest string) error {
	if rest == "" {
		s.tell("/resume ID turns to one of these")
		return s.roost(ctx, "list", "--limit", "15")
	}
	t, err := s.backend.Task(ctx, rest)
	if err != nil {
		return err
	}
	s.arrive(t.Mode, "")
	return s.goTo(ctx, t.ID, t.Source+":"+t.ID)
}

// arrive turns to another task. What was set for the next run of the one before is not
// for it; what the chat was begun with is for the first.
func (s *Session) arrive(mode, policy string) {
	s.change(func(st *state) {
		if s.came {
			s.again = api.NewRun{}
		}
		s.came = true
		st.Mode, st.Policy = cmp.Or(s.again.Mode, mode), cmp.Or(s.again.Approve, policy)
	})
}

// goTo switches to a task. ref names it where one id may be in two storages.
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

func (s *Session) show(ctx context.Context, id, rest string) error {
	if rest == "" {
		rest = "20"
	}
	if n, err := strconv.Atoi(rest); err != nil || n < 1 {
		return usage("/show N, a number of messages")
	}
	return s.roost(ctx, "show", id, "--tail", rest)
}

// fork continues in the new task.
func (s *Session) fork(ctx context.Context, id, rest string) error {
	args := []string{"fork", id, "--json"}
	if rest != "" {
		args = append(args, "--at", rest)
	}
	said := s.settled(ctx, args)
	var made struct {
		ID string `json:"id"`
	}
	if said.Code != 0 || json.Unmarshal([]byte(said.Out), &made) != nil || made.ID == "" {
		return s.roost(ctx, append(args[:2:2], args[3:]...)...) // it prints the reason
	}
	s.tell("task %s, forked from %s", made.ID, id)
	return s.goTo(ctx, made.ID, made.ID)
}

// idle refuses what cannot be done to a task that something works on.
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

// restore puts nothing back before the user has confirmed: without --yes it only shows what it would do.
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
	var again api.NewRun
	s.locked(func() { again = s.again })
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
		s.tell("nothing works on the task")
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
	if approves(q) {
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

// queued lists what waits for the run, and changes it.
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
